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

import re
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


_WORD = re.compile(r'"([A-Za-z_]\w*)"')
_KEYWORDS = frozenset(
    ("end", "and", "or", "not", "in", "if", "then", "for", "do", "repeat", "until", "function")
)


def spelled(node: Node) -> str:
    """The text of an expression, a statement or a block."""
    return _SPELLED[node.kind](node)


def _commas(parts: tuple[Node, ...]) -> str:
    return ", ".join(spelled(part) for part in parts)


def _function(node: Node) -> str:
    names, body = node.parts
    return f"function({_commas(names.parts)})\n{spelled(body)}end"


def _binary(node: Node) -> str:
    left, right = LEVELS[node.text]
    first = _operand(node.parts[0], left - (node.text not in ("..", "^")))
    return f"{first} {node.text} {_operand(node.parts[1], right)}"


def _operand(node: Node, level: int) -> str:
    """An operand, in brackets if it binds no more than `level`."""
    own = LEVELS[node.text][0] if node.kind == "binary" else UNARY if node.kind == "unary" else 99
    return f"({spelled(node)})" if own <= level else spelled(node)


def _unary(node: Node) -> str:
    return node.text + (" " if node.text in ("not", "-") else "") + _operand(node.parts[0], UNARY - 1)


def _callable(node: Node) -> str:
    """What stands before an index or a bracket."""
    text = spelled(node)
    return text if node.kind in ("name", "index", "call", "method", "paren", "ref") else f"({text})"


def _index(node: Node) -> str:
    key = spelled(node.parts[1])
    word = _WORD.fullmatch(key)
    plain = word and word[1] not in _KEYWORDS
    return _callable(node.parts[0]) + (f".{word[1]}" if word and plain else f"[{key}]")


def _field(node: Node) -> str:
    key = spelled(node.parts[0])
    word = _WORD.fullmatch(key)
    return (word[1] if word and word[1] not in _KEYWORDS else f"[{key}]") + " = " + spelled(node.parts[1])


def _if(node: Node) -> str:
    texts: list[str] = []
    for place in range(0, len(node.parts) - 1, 2):
        condition, body = node.parts[place], node.parts[place + 1]
        texts.append(f"{'else' if place else ''}if {spelled(condition)} then\n{spelled(body)}")
    if len(node.parts) % 2:
        texts.append(f"else\n{spelled(node.parts[-1])}")
    return "".join(texts) + "end\n"


def _local(node: Node) -> str:
    names, values = node.parts
    return f"local {_commas(names.parts)}" + (f" = {_commas(values.parts)}" if values.parts else "") + "\n"


def _block(node: Node) -> str:
    """Statements; one that begins with a bracket would be read as the call of what stands before it."""
    text = ""
    for part in node.parts:
        own = spelled(part)
        text = (text[:-1] + ";\n" if text and own.startswith("(") else text) + own
    return text


def _fornum(node: Node) -> str:
    return f"for {node.parts[0].text} = {_commas(node.parts[2:])} do\n{spelled(node.parts[1])}end\n"


_SPELLED: dict[str, Callable[[Node], str]] = {
    "name": lambda node: node.text,
    "ref": lambda node: node.text,
    "const": lambda node: node.text,
    "vararg": lambda _: "...",
    "call": lambda node: f"{_callable(node.parts[0])}({_commas(node.parts[1:])})",
    "method": lambda node: f"{_callable(node.parts[0])}:{node.text}({_commas(node.parts[1:])})",
    "index": _index,
    "binary": _binary,
    "unary": _unary,
    "paren": lambda node: f"({spelled(node.parts[0])})",
    "function": _function,
    "table": lambda node: "{ " + _commas(node.parts) + " }" if node.parts else "{}",
    "item": lambda node: spelled(node.parts[0]),
    "field": _field,
    "list": lambda node: _commas(node.parts),
    "block": _block,
    "local": _local,
    "assign": lambda node: f"{spelled(node.parts[0])} = {spelled(node.parts[1])}\n",
    "localfunction": lambda node: f"local function {node.parts[0].text}{spelled(node.parts[1])[8:]}\n",
    "do": lambda node: f"do\n{spelled(node.parts[0])}end\n",
    "run": lambda node: f"{spelled(node.parts[0])}\n",
    "while": lambda node: f"while {spelled(node.parts[0])} do\n{spelled(node.parts[1])}end\n",
    "repeat": lambda node: f"repeat\n{spelled(node.parts[0])}until {spelled(node.parts[1])}\n",
    "if": _if,
    "fornum": _fornum,
    "forin": lambda node: (
        f"for {_commas(node.parts[0].parts)} in {_commas(node.parts[1].parts)} do\n{spelled(node.parts[2])}end\n"
    ),
    "return": lambda node: f"return {_commas(node.parts)}\n" if node.parts else "return\n",
    "break": lambda _: "break\n",
}
