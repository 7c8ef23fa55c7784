"""Lua as a tree: what the assembly of a script reads, rearranges, and writes again.

Every node is of one shape, so that a walk over all of them is one line. Kinds, with their parts:

- `name`, `const`, `vararg`: just `text`; `ref`: a name that a module binds, `text` is `module:name`
- `call` (function, arguments…), `method` (object, arguments…; `text` its name), `index` (object, key)
- `binary` (left, right; `text` the operator), `unary` (operand), `paren` (inner)
- `function` (names, block), `table` (`item` (value) or `field` (key, value)…)
- statements: `local` (names, list), `assign` (list, list), `localfunction` (name, function), `do` (block), `run` (call),
  `while` (condition, block), `repeat` (block, condition), `if` (condition, block, condition, block…, block),
  `fornum` (name, block, from, to, step), `forin` (names, list, block), `return` (values…), `break`
- `block`, `names`, `list`: just parts
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of a Lua text."""

    kind: str
    parts: tuple["Node", ...] = ()
    text: str = ""

    def walk(self) -> Iterator["Node"]:
        left: list[Node] = [self]
        while left:
            node = left.pop()
            yield node
            left += node.parts

    def over(self, change: Callable[["Node"], "Node"]) -> "Node":
        """The same node with each of its parts changed."""
        if not self.parts:
            return self
        return Node(self.kind, tuple([change(part) for part in self.parts]), self.text)


def name(text: str) -> Node:
    return Node("name", text=text)


def const(text: str) -> Node:
    return Node("const", text=text)


def quoted(text: str) -> Node:
    return const(f'"{text}"')


def block(*statements: Node) -> Node:
    return Node("block", statements)


def several(nodes: list[Node] | tuple[Node, ...]) -> Node:
    return Node("list", tuple(nodes))


LEVELS = {
    "or": (1, 1),
    "and": (2, 2),
    **dict.fromkeys(("<", ">", "<=", ">=", "~=", "=="), (3, 3)),
    "..": (5, 4),
    **dict.fromkeys(("+", "-"), (6, 6)),
    **dict.fromkeys(("*", "/", "%"), (7, 7)),
    "^": (10, 9),
}
"""How strongly an operator binds what is left and what is right of it."""
UNARY = 8
