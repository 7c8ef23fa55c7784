"""What is wished for a job when it is put, as the model understands it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Options = tuple[tuple[str, Any], ...]
"""(option, value) pairs, as they are sent."""
JobWithOptions = tuple[str, str, bytes, Options]
"""jid, klass, data, options."""


@dataclass
class ExtraOptions:
    """`tags` None: not said. A name that is given twice counts once."""

    tags: list[str] | None = None
    throttles: list[str] = field(default_factory=list)
    depends: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Iterable[tuple[str, Any]]) -> "ExtraOptions":
        wish = cls()
        for option, value in options:
            if option == "tag":
                wish.tags = cls.with_name(wish.tags or [], value)
            elif option == "untagged":
                wish.tags = wish.tags or []
            elif option == "unthrottled":
                continue
            elif option == "throttle":
                wish.throttles = cls.with_name(wish.throttles, value)
            elif option == "depends":
                wish.depends = cls.with_name(wish.depends, value)
            else:
                wish.options[option] = value
        return wish

    @staticmethod
    def with_name(names: list[str], name: str) -> list[str]:
        return names if name in names else [*names, name]


def parents_first(jobs: tuple[JobWithOptions, ...]) -> tuple[list[int], set[int]]:
    """The places of jobs in the order in which one call puts them: whom a job waits for comes before it. And those
    that would close a circle within the call."""
    first = {job[0]: index for index, job in reversed(list(enumerate(jobs)))}
    order: list[int] = []
    circles: set[int] = set()

    def visit(index: int, way: tuple[int, ...]) -> None:
        for parent in ExtraOptions.of(jobs[index][3]).depends:
            place = first.get(parent)
            if place is not None and (place == index or place in way):
                circles.add(index)
            elif place is not None and place not in order:
                visit(place, (*way, index))
        order.append(index)

    for index in range(len(jobs)):
        if index not in order:
            visit(index, ())
    return order, circles


def beyond(jobs: tuple[JobWithOptions, ...], parents: Iterable[str]) -> set[str]:
    """These, and all that they wait for within the call."""
    named = {job[0]: ExtraOptions.of(job[3]).depends for job in reversed(jobs)}
    found: set[str] = set()
    ahead = list(parents)
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead += named.get(one, [])
    return found
