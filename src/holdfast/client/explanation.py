"""Explain why a job is running or not, as of one instant."""

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.client.descriptors import CommandMethod
from holdfast.commands import Command
from holdfast.commands.base import map_reply
from holdfast.commands.views import Explain
from holdfast.models import JobFacts

if TYPE_CHECKING:
    from holdfast.client.reasons import Check, Facts


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """Why a job is running or not: its state, one sentence, and the checks behind it, in order."""

    jid: str
    state: str
    text: str
    checks: "tuple[Check, ...]"
    facts: "Facts"

    @property
    def exists(self) -> bool:
        """Whether the job exists."""
        return self.state != "gone"

    @property
    def blocked_by(self) -> "list[Check]":
        """The checks that keep the job from running, the first one first."""
        return [check for check in self.checks if check.verdict == "blocks"]

    def as_dict(self) -> dict[str, Any]:
        """Return all of it, for JSON; times in milliseconds."""
        checks = [check.as_dict() for check in self.checks]
        return {
            "jid": self.jid,
            "state": self.state,
            "text": self.text,
            "checks": checks,
            "facts": dict(self.facts),
        }


def explanation(facts: "Facts", flags: str = "") -> Explanation:
    """Return the explanation of one job from its facts; `flags` complete the command lines in it."""
    from holdfast.client.reasons import (
        CHECKS,  # sentences for people, of no use to programs that ask nothing
    )

    checks = tuple([check for find in CHECKS if (check := find({**facts, "flags": flags})) is not None])
    blocks = [check.text for check in checks if check.verdict == "blocks"]
    return Explanation(facts["jid"], facts["state"], (blocks or [checks[-1].text])[0], checks, facts)


def explained(jid: str, flags: str = "") -> Command[Explanation]:
    """Return the command that explains a job."""
    return map_reply(Explain(jid), lambda facts: explanation(facts, flags))


class ExplainedVerbs:
    """The method of a job that explains it."""

    facts: JobFacts
    _client: Any

    @CommandMethod
    def explain(self) -> Command[Explanation]:
        """Explain why this job is running or not, as `jobs.explain`. Core: verbs/explain.lua."""
        return explained(self.facts.jid, self._client.settings.flags)
