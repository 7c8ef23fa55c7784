"""Which queues some patterns mean, and in which order: pure functions of what is given.

A pattern is a name in which `*` stands for any run of characters; `!` before it takes away instead of adding, and
`@key` stands for the patterns kept under that key. Everything else in a name means itself.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from random import SystemRandom
from shlex import quote
from typing import Any, Final

from holdfast.client.patterns import QueuePriorityPattern

REST: Final = "default"
_fair = SystemRandom()


def resolve_queue_names(
    dynamic_queue_mapping: Mapping[str, Sequence[str]],
    known_queue_names: Iterable[str],
    patterns: Iterable[str],
) -> list[str]:
    """The queues that `patterns` mean, applied one after the other: in the order in which each was first matched.

    A pattern with `*` means the known queues it matches, in their order; a plain name itself, known or not. A key
    that is not in the mapping means nothing, and taking away what is not there does nothing.
    """
    known = list(known_queue_names)
    chosen: dict[str, None] = {}
    for pattern in _expanded(dynamic_queue_mapping, patterns):
        if pattern.startswith("!"):
            matches = _matcher(pattern[1:])
            chosen = {name: None for name in chosen if not matches(name)}
        elif is_plain(pattern):
            chosen[pattern] = None
        else:
            matches = _matcher(pattern)
            chosen.update({name: None for name in known if matches(name)})
    return list(chosen)


def prioritize_queues(
    queue_identifiers: Iterable[str], queue_priority_patterns: Iterable[QueuePriorityPattern]
) -> list[str]:
    """The same queues, each once, in the order of the rules: each takes what it matches of those not yet taken.

    A rule that is exactly `["default"]` (the last such) stands for all that no rule matches; without one they come
    last. The queues of a fair rule are shuffled at each call; others keep the order of their patterns, then the
    given one.
    """
    parts = divide_by_rules(queue_identifiers, queue_priority_patterns)
    for rule, names in parts:
        if rule.should_distribute_fairly:
            _fair.shuffle(names)
    return [name for _, names in parts for name in names]


def divide_by_rules(
    queue_identifiers: Iterable[str], queue_priority_patterns: Iterable[QueuePriorityPattern]
) -> list[tuple[QueuePriorityPattern, list[str]]]:
    """Return each rule with the queues that it takes, as `prioritize_queues` does before it shuffles them."""
    left = dict.fromkeys(queue_identifiers)
    rules = list(queue_priority_patterns)
    rest = max((at for at, rule in enumerate(rules) if rule.patterns == [REST]), default=len(rules))
    taken = [[] if rule.patterns == [REST] else _taken(left, rule.patterns) for rule in rules]
    taken[rest : rest + 1] = [list(left)]
    return list(zip([*rules, QueuePriorityPattern([REST])], taken, strict=False))


class Fallbacks(dict[str, Sequence[str]]):
    """Identifiers as a worker on `host` reads them: a key that is not kept means `default`, and that `*` if it is not kept
    either; the key "" is the name of the machine.
    """

    def __init__(self, identifiers: Mapping[str, Sequence[str]], host: str) -> None:
        super().__init__(identifiers)
        self._host = host

    def get(self, key: str, default: object = None) -> Any:
        """Return the patterns of a key."""
        return super().get(key or self._host) or super().get(REST) or ("*",)


def as_argument(queue: str) -> str:
    """Return the name of a queue as `holdfast worker -q` takes it, quoted for a shell: an unmarked comma would divide it."""
    return quote(queue.replace(",", "\\,"))


def is_plain(pattern: str) -> bool:
    """Whether a pattern means one queue: the one of that name."""
    return "*" not in pattern and not pattern.startswith(("!", "@"))


def _expanded(mapping: Mapping[str, Sequence[str]], patterns: Iterable[str]) -> Iterable[str]:
    for pattern in patterns:
        if pattern.startswith("@"):
            yield from mapping.get(pattern[1:], ())
        elif pattern.startswith("!@"):
            for one in mapping.get(pattern[2:], ()):
                yield one[1:] if one.startswith("!") else "!" + one
        else:
            yield pattern


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> Callable[[str], object]:
    """Whether a whole name matches. Each part is taken where it is first found, so that many stars cost no more."""
    first, *middle = map(re.escape, pattern.split("*"))
    last = ".*" + middle.pop() if middle else ""
    return re.compile(first + "".join(f"(?>.*?{part})" for part in middle) + last, re.DOTALL).fullmatch


def _taken(left: dict[str, None], patterns: Sequence[str]) -> list[str]:
    """What the patterns of one rule match of `left`, which loses it."""
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matches = _matcher(pattern.removeprefix("!"))
        if pattern.startswith("!"):
            chosen = {name: None for name in chosen if not matches(name)}
        else:
            chosen.update({name: None for name in left if matches(name)})
    for name in chosen:
        del left[name]
    return list(chosen)
