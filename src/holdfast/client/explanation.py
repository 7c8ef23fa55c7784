"""Why a job runs or does not, of one instant."""

from typing import TYPE_CHECKING, Any

import msgspec

from holdfast.client.descriptors import CommandMethod
from holdfast.commands import Command
from holdfast.commands.base import then
from holdfast.commands.views import Explain
from holdfast.models import JobFacts

if TYPE_CHECKING:
    from holdfast.client.reasons import Check, Facts


class Explanation(msgspec.Struct, frozen=True, gc=False):
    """Why a job runs or does not: its state as of now, one sentence, and the checks behind it, in order."""

    jid: str
    state: str
    text: str
    checks: "tuple[Check, ...]"
    facts: "Facts"

    @property
    def exists(self) -> bool:
        """Whether the store knows the job."""
        return self.state != "gone"

    @property
    def blocked_by(self) -> "list[Check]":
        """The checks that keep the job from running, the first one first."""
        return [check for check in self.checks if check.verdict == "blocks"]

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON; times in milliseconds."""
        checks = [check.as_dict() for check in self.checks]
        return {
            "jid": self.jid,
            "state": self.state,
            "text": self.text,
            "checks": checks,
            "facts": dict(self.facts),
        }


def explanation(facts: "Facts", flags: str = "") -> Explanation:
    """Return the checks that the facts of one job ask for; `flags` complete the command lines in them."""
    from holdfast.client.reasons import (
        LOOKS,  # sentences for people, of no use to programs that ask nothing
    )

    checks = tuple([check for look in LOOKS if (check := look({**facts, "flags": flags})) is not None])
    blocks = [check.text for check in checks if check.verdict == "blocks"]
    return Explanation(facts["jid"], facts["state"], (blocks or [checks[-1].text])[0], checks, facts)


def explained(jid: str, flags: str = "") -> Command[Explanation]:
    """Return the command that asks why a job runs or does not."""
    return then(Explain(jid), lambda facts: explanation(facts, flags))


class ExplainedVerbs:
    """What can be asked of a job about why it runs or does not."""

    facts: JobFacts
    _client: Any

    @CommandMethod
    def explain(self) -> Command[Explanation]:
        """Say why this job runs or does not, as of now; see `jobs.explain`. Core: verbs/explain.lua."""
        return explained(self.facts.jid, self._client.settings.flags)
