"""What a function does, made ready to stand in the place of its call."""

from collections.abc import Callable
from dataclasses import replace

from holdfast.core.script.folding import is_pure
from holdfast.core.script.modules import path_of
from holdfast.core.script.scopes import Substituted, Walk
from holdfast.core.script.syntax import Node, block, const, name, several

_LOOPS = ("while", "repeat", "fornum", "forin")


class Renamed(Walk):
    """A body whose locals have names of their own."""

    def __init__(self, fresh: Callable[[str], Node]) -> None:
        self.fresh = fresh

    def declared(self, own: Node) -> Node:
        return self.fresh(own.text)


def returns(node: Node, in_loop: bool = False) -> list[tuple[Node, bool]]:
    """The `return` statements of a body, and whether each is inside a loop."""
    if node.kind == "function":
        return []
    if node.kind == "return":
        return [(node, in_loop)]
    return [found for part in node.parts for found in returns(part, in_loop or node.kind in _LOOPS)]


def is_open(node: Node) -> bool:
    """An expression that may be several values."""
    return node.kind in ("call", "method", "vararg")


def expression(body: Node | None, call: Node, is_steady: Callable[[Node], bool]) -> Node | None:
    """What a function that is one expression comes to with these arguments, where their order makes no difference."""
    if (
        body is None
        or [one.kind for one in body.parts[1].parts] != ["return"]
        or call.parts[0].text in _named(body)
    ):
        return None
    whole = body.parts[1].parts[0].parts
    if len(whole) != 1 or is_open(whole[0]) or any(part.kind == "function" for part in whole[0].walk()):
        return None
    chooses = any(part.text in ("and", "or") for part in whole[0].walk())
    instead: dict[str, Node] = {}
    for place, own in enumerate(body.parts[0].parts):
        given = call.parts[place + 1] if place + 1 < len(call.parts) else const("nil")
        uses = sum(part == own for part in whole[0].walk())
        if not is_steady(given) and (not is_pure(whole[0]) or uses > (2 if path_of(given) else 1)):
            return None
        if not is_pure(given) and (chooses or uses != 1 or len(call.parts) > 2):
            return None
        instead[own.text] = given
    return Substituted(instead).tree(whole[0], {})


def _named(node: Node) -> set[str]:
    return {part.text for part in node.walk() if part.kind == "ref"}


def nearer(node: Node) -> Node:
    """A body that is going to be part of its caller, so `error` means that by level 1."""
    if node.kind == "call" and node.parts[0] == name("error") and node.parts[2:] == (const("2"),):
        return replace(node, parts=node.parts[:2])
    return node if node.kind == "function" else node.over(nearer)


def settled(node: Node, targets: tuple[Node, ...], at_end: bool) -> tuple[Node, bool]:
    """A block whose `return`s are assignments, with a jump where more would follow; and whether there is a jump."""
    if node.kind == "return":
        made = _assignment(node.parts, targets)
        return block(*made, *(() if at_end else (Node("break"),))), not at_end
    if node.kind not in ("block", "if", "do"):
        return node, False
    parts: list[Node] = []
    jumps = False
    for place, part in enumerate(node.parts):
        last = at_end and (node.kind != "block" or place + 1 == len(node.parts))
        if part.kind in ("return", "block", "if", "do"):
            part, jumped = settled(part, targets, last)
            jumps = jumps or jumped
        parts += part.parts if node.kind == "block" and part.kind == "block" else [part]
    return replace(node, parts=tuple(parts)), jumps


def _assignment(values: tuple[Node, ...], targets: tuple[Node, ...]) -> list[Node]:
    wanted = [one for place, one in enumerate(values) if place < len(targets) or not is_pure(one)]
    if not targets:
        return [
            Node("run", (one,))
            if is_open(one)
            else Node("local", (Node("names", (name("_"),)), several([one])))
            for one in wanted
        ]
    return [Node("assign", (several(targets), several(wanted)))] if wanted else []
