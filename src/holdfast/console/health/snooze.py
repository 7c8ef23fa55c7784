"""Findings that operators have snoozed: the overview leaves them out for a time, or until they grow, for everybody.

They are one setting of the namespace, which is changed only if it has not been changed since it was read.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from holdfast.commands.admin import ConfigGet, ConfigSet
from holdfast.commands.failures import FailureGroup
from holdfast.commands.operations import audited
from holdfast.console.health.attention import KINDS, ORDER, Attention, Severity
from holdfast.errors import UsageError, WrongState
from holdfast.wire.plans import Plan, Planner

KEY: Final = "attention-snoozed"
"""The setting; lists of settings leave it out."""
GROUP: Final = KINDS["surge"].noun
_MOST: Final = 200
_TRIES: Final = 5
_LEAST_GROWTH: Final = 10


class Snooze(msgspec.Struct, frozen=True, kw_only=True):
    """What is left out: findings of a kind, or all about a noun (`failure group`), on one subject ("": on any).

    It ends at `until_ms` (0: never), when there is a more urgent finding than `severity`, or when there is more of it: half again as
    many `jobs`, at least ten; without a subject, as many more findings.
    """

    about: str
    subject: str
    who: str
    since_ms: int
    until_ms: int = 0
    severity: Severity = "urgent"
    jobs: int = 0

    def is_over(self, now_ms: int) -> bool:
        """Return whether its time is over."""
        return 0 < self.until_ms <= now_ms

    def is_about(self, one: Attention) -> bool:
        """Return whether it is meant for a finding."""
        return self.about in (one.kind, KINDS[one.kind].noun) and self.subject in ("", one.subject)

    def hides(self, one: Attention, count: int, now_ms: int) -> bool:
        """Return whether it leaves out a finding, one of `count` of its kind."""
        jobs = one.jobs if self.subject else count
        is_new = self.subject and one.since_ms > self.since_ms
        is_worse = ORDER.index(one.severity) < ORDER.index(self.severity)
        return self.is_about(one) and not (self.is_over(now_ms) or is_new or is_worse or self.has_grown(jobs))

    def mutes(self, group: FailureGroup) -> bool:
        """Return whether it leaves out all findings about a failure group."""
        is_meant = (self.about, self.subject) == (GROUP, group.name)
        return is_meant and group.first_ms <= self.since_ms and not self.has_grown(group.count)

    def has_grown(self, jobs: int) -> bool:
        """Return whether there are many more jobs than when it began."""
        return jobs >= self.jobs + max(self.jobs // 2, _LEAST_GROWTH)


class Snoozed(msgspec.Struct, frozen=True):
    """A finding that is left out, and the snooze that does that."""

    attention: Attention
    snooze: Snooze


def _read(text: str | None) -> tuple[Snooze, ...]:
    """Return the snoozes that the setting holds; any other content is ignored."""
    try:
        return msgspec.json.decode((text or "[]").encode(), type=tuple[Snooze, ...])
    except (msgspec.MsgspecError, UnicodeEncodeError):
        return ()


def snoozes(ask: Planner) -> Plan[tuple[Snooze, ...]]:
    """Return what is snoozed."""
    return _read((yield from ask(ConfigGet((KEY,)))).get(KEY))


def divided(
    found: Sequence[Attention], known: Sequence[Snooze], now_ms: int
) -> tuple[list[Attention], list[Snoozed]]:
    """Return the findings that are shown, and those that are left out."""
    kinds = Counter(one.kind for one in found)
    shown: list[Attention] = []
    hidden: list[Snoozed] = []
    for one in found:
        by_whom = next((snooze for snooze in known if snooze.hides(one, kinds[one.kind], now_ms)), None)
        if by_whom is None:
            shown.append(one)
        else:
            hidden.append(Snoozed(one, by_whom))
    return shown, hidden


def add(ask: Planner, snooze: Snooze, now_ms: int) -> Plan[None]:
    """Add a snooze in place of any for the same findings. Those whose time is over are removed."""
    what = f"{snooze.about} {snooze.subject}".rstrip()
    until = f"for {(snooze.until_ms - now_ms) / 1000:.0f} s" if snooze.until_ms else "until it grows"

    def added(known: Sequence[Snooze]) -> list[Snooze]:
        others = [one for one in known if not (one.is_over(now_ms) or _is_same(one, snooze))]
        if len(others) >= _MOST:
            raise UsageError(f"{_MOST} findings are snoozed, the maximum; end one of them first")
        return [*others, snooze]

    yield from _change(ask, snooze.who, "snooze", what, until, added)


def remove(ask: Planner, who: str, about: str, subject: str) -> Plan[bool]:
    """End a snooze. Returns whether there was one."""
    wanted = Snooze(about=about, subject=subject, who=who, since_ms=0)
    if not any(_is_same(one, wanted) for one in (yield from snoozes(ask))):
        return False

    def left(known: Sequence[Snooze]) -> list[Snooze]:
        return [one for one in known if not _is_same(one, wanted)]

    yield from _change(ask, who, "unsnooze", f"{about} {subject}".rstrip(), "", left)
    return True


def _is_same(one: Snooze, other: Snooze) -> bool:
    return (one.about, one.subject) == (other.about, other.subject)


def _change(
    ask: Planner,
    who: str,
    what: str,
    target: str,
    detail: str,
    change: Callable[[Sequence[Snooze]], list[Snooze]],
) -> Plan[None]:
    """Change the setting; again from the start if somebody else did at the same moment."""
    for attempt in range(_TRIES):
        before = (yield from ask(ConfigGet((KEY,)))).get(KEY) or ""
        after = msgspec.json.encode(change(_read(before))).decode()
        try:
            yield from ask(audited(who, ConfigSet(KEY, after, before), what, target, detail))
        except WrongState:
            if attempt == _TRIES - 1:
                raise
        else:
            return
