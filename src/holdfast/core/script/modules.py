"""What the statements of a module bind."""

from functools import cache

from holdfast.core.script.reading import Reader
from holdfast.core.script.syntax import Node, const, name
from holdfast.core.sources import source


def key_of(node: Node) -> str | None:
    """The text of a constant key."""
    return (
        node.parts[1].text[1:-1] if node.parts[1].kind == "const" and node.parts[1].text[0] in "\"'" else None
    )


def path_of(node: Node) -> str | None:
    """`a.b.c` of an index by constants, the name of a name."""
    if node.kind == "name":
        return node.text
    if node.kind != "index" or key_of(node) is None:
        return None
    first = path_of(node.parts[0])
    return first and f"{first}.{key_of(node)}"


class Module:
    """The statements of one file by what they bind."""

    def __init__(self, module: str) -> None:
        self.name = module
        self.aliases: dict[str, str] = {}
        self.bound: dict[str, Node] = {}
        """Expression by name; a member of the module's table as `M.name`."""
        self.rest: list[Node] = []
        """Statements that bind nothing, and what follows: a door's own run."""
        for statement in Reader(source(module)).whole().parts:
            self._read(statement)
        self.changing = {
            name_of(target)
            for value in self.bound.values()
            for part in value.walk()
            if part.kind == "assign"
            for target in part.parts[0].parts
        }
        """Names that a function assigns to, or to something in them."""

    def _read(self, node: Node) -> None:
        if self.rest:
            self.rest.append(node)
        elif node.kind == "local":
            for place, own in enumerate(node.parts[0].parts):
                values = node.parts[1].parts
                self._bind(own, values[place] if place < len(values) else const("nil"))
        elif node.kind == "localfunction":
            self._bind(*node.parts)
        elif node.kind == "assign":
            for target, value in zip(node.parts[0].parts, node.parts[1].parts, strict=True):
                self._bind(target, value)
        elif node.kind != "return" or self.name.startswith("doors."):
            self.rest.append(node)
        if self.rest and self.rest[0] == Node("return", (name("M"),)):
            self.rest = []

    def _bind(self, target: Node, value: Node) -> None:
        path = path_of(target)
        if value.kind == "call" and value.parts[0] == name("require"):
            self.aliases[target.text] = value.parts[1].text[1:-1]
        elif path and path != "M":
            self.bound[path] = value


def name_of(target: Node) -> str:
    """The name whose value changes when this is assigned to: `M.name` for something in the module's table."""
    while target.kind == "index" and target.parts[0] != name("M"):
        target = target.parts[0]
    return path_of(target) or ""


@cache
def prelude() -> dict[str, Node]:
    """What each name stands for that no module requires: `redis.call` for `call`."""
    [bind] = [one for one in Reader(source("base.prelude")).whole().parts if one.kind == "localfunction"]
    return {
        target.text: value
        for one in bind.parts[1].parts[1].parts
        for target, value in zip(one.parts[0].parts, one.parts[1].parts, strict=True)
    }


@cache
def read(module: str) -> Module:
    return Module(module)
