"""Calls of functions that are known replaced by what those do.

Making a function costs as much as ten steps, and so does calling it; a script makes and calls each of its functions
anew in every call. So what a usual command does is written as one function: the call becomes the body, the parameters
become locals, `return` becomes an assignment, and where it comes early, a jump out of `repeat … until true`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import ClassVar

from holdfast.core.script.bodies import Renamed, expression, is_open, nearer, returns, settled
from holdfast.core.script.folding import folded, is_pure
from holdfast.core.script.program import HOISTED, Program
from holdfast.core.script.scopes import Scope, assigned
from holdfast.core.script.syntax import Node, block, const, name, several

Lowered = tuple[list[Node], Node]
"""Statements that come first, and an expression."""


class Inliner:
    """Rewrites functions so that those among `usual` are part of who calls them."""

    def __init__(self, program: Program, usual: Collection[str]) -> None:
        self.program, self.usual = program, usual
        self.count = 0
        self.steady = {path.replace(".", "_") for path in HOISTED} | {"C", "ARGV", "KEYS"}
        """Names that keep the value they are made with."""
        self.under_way: list[str] = []

    def function(self, ref: Node, node: Node) -> Node:
        """The function that `ref` names, with what it calls inside it."""
        self.under_way.append(ref.text)
        node = self._renamed(node, {})
        done = Node("function", (node.parts[0], self._block(node.parts[1])))
        self.under_way.pop()
        return folded(done, self.program.truth)

    def statements(self, node: Node) -> Node:
        """A block that nobody calls."""
        return folded(self._block(self._renamed(node, {})), self.program.truth)

    def _fresh(self, text: str, steady: bool) -> Node:
        self.count += 1
        own = name(f"{text.rstrip('0123456789_')}_{self.count}")
        if steady:
            self.steady.add(own.text)
        return own

    def _renamed(self, node: Node, scope: Scope) -> Node:
        changing = assigned(node)
        return Renamed(lambda text: self._fresh(text, text not in changing)).tree(node, scope)

    def _is_steady(self, node: Node) -> bool:
        return node.kind in ("const", "ref") or (node.kind == "name" and node.text in self.steady)

    # Which calls.

    def _body(self, node: Node) -> Node | None:
        """The function that a call runs, if it may stand in place of the call."""
        ref = node.parts[0] if node.kind == "call" else node
        if node is ref or ref.kind != "ref" or ref.text not in self.usual or ref.text in self.under_way:
            return None
        body = self.program.body(ref)
        is_plain = body.kind == "function" and all(own.kind == "name" for own in body.parts[0].parts)
        return body if is_plain else None

    def _fits(self, node: Node, tail: bool = False) -> bool:
        body = self._body(node)
        return body is not None and (tail or not any(in_loop for _, in_loop in returns(body.parts[1])))

    def _is_plain(self, node: Node) -> bool:
        return expression(self._body(node), node, self._is_steady) is not None

    def _width(self, node: Node) -> int | None:
        """How many values a call gives that is one of several, if that is the same each time."""
        body = self._body(node)
        if body is None or not self._fits(node):
            return None
        found = [one for one, _ in returns(body.parts[1])]
        widths = {len(one.parts) for one in found}
        whole = bool(body.parts[1].parts) and body.parts[1].parts[-1].kind == "return"
        if not whole or len(widths) != 1 or any(one.parts and is_open(one.parts[-1]) for one in found):
            return None
        return widths.pop()

    # Statements.

    def _block(self, node: Node) -> Node:
        return block(*(made for statement in node.parts for made in self._statement(statement)))

    def _statement(self, node: Node) -> list[Node]:
        change = self._CHANGES.get(node.kind)
        return change(self, node) if change else [self._inside(node)]

    def _inside(self, node: Node) -> Node:
        """A node whose calls stay, but for those in blocks of its own."""
        if node.kind == "block":
            return self._block(node)
        return node.over(self._inside)

    def _local(self, node: Node) -> list[Node]:
        names, values = node.parts
        if len(values.parts) == 1 and self._fits(values.parts[0]) and not self._is_plain(values.parts[0]):
            return [Node("local", (names, several([]))), *self._in_place(values.parts[0], names.parts)]
        first, made = self._values(values.parts, len(names.parts))
        return [*first, Node("local", (names, several(made)))]

    def _assign(self, node: Node) -> list[Node]:
        targets, values = node.parts
        whole = len(values.parts) == 1 and all(target.text in self.steady for target in targets.parts)
        if whole and self._fits(values.parts[0]) and not self._is_plain(values.parts[0]):
            return self._in_place(values.parts[0], targets.parts)
        first, made = self._values(values.parts, len(targets.parts))
        return [
            *first,
            Node("assign", (several([self._inside(one) for one in targets.parts]), several(made))),
        ]

    def _run(self, node: Node) -> list[Node]:
        call = node.parts[0]
        if self._fits(call):
            return self._in_place(call, ())
        first, made = self._values(call.parts, None)
        return [*first, Node("run", (replace(call, parts=tuple(made)),))]

    def _return(self, node: Node) -> list[Node]:
        if len(node.parts) == 1 and self._fits(node.parts[0], tail=True):
            return self._in_place(node.parts[0], None)
        first, made = self._values(node.parts, None)
        return [*first, Node("return", tuple(made))]

    def _if(self, node: Node) -> list[Node]:
        first, condition = self._value(node.parts[0])
        rest = node.parts[2:]
        otherwise: tuple[Node, ...] = ()
        if len(rest) == 1:
            otherwise = (self._block(rest[0]),)
        elif rest:
            inner = self._if(Node("if", rest))
            otherwise = inner[0].parts if len(inner) == 1 and inner[0].kind == "if" else (block(*inner),)
        return [*first, Node("if", (condition, self._block(node.parts[1]), *otherwise))]

    def _loop(self, node: Node) -> list[Node]:
        own, body, *limits = node.parts
        first, made = self._values(limits, len(limits))
        return [*first, Node("fornum", (own, self._block(body), *made))]

    def _each(self, node: Node) -> list[Node]:
        names, values, body = node.parts
        first, made = self._values(values.parts, None)
        return [*first, Node("forin", (names, several(made), self._block(body)))]

    def _do(self, node: Node) -> list[Node]:
        return [Node("do", (self._block(node.parts[0]),))]

    # Expressions.

    def _has(self, node: Node) -> bool:
        """Whether a call in it may become a body."""
        if node.kind == "function":
            return False
        return (
            self._fits(node) if node.kind == "call" and self._fits(node) else any(map(self._has, node.parts))
        )

    def _value(self, node: Node) -> Lowered:
        """One value."""
        if node.kind == "function" or not self._has(node):
            return [], self._inside(node)
        plain = expression(self._body(node), node, self._is_steady)
        if plain:
            self.under_way.append(node.parts[0].text)
            found = self._value(plain)
            self.under_way.pop()
            return found
        if node.kind == "call" and self._fits(node):
            own = self._fresh("made", steady=True)
            return [Node("local", (Node("names", (own,)), several([]))), *self._in_place(node, (own,))], own
        if node.kind == "binary" and node.text in ("and", "or") and self._has(node.parts[1]):
            return self._choice(node)
        if node.kind == "table":
            return self._table(node)
        last_open = None if node.kind in ("call", "method") else len(node.parts)
        first, made = self._values(node.parts, last_open)
        return first, replace(node, parts=tuple(made))

    def _choice(self, node: Node) -> Lowered:
        """`a and b` where `b` needs statements of its own."""
        own = self._fresh("made", steady=True)
        first, left = self._value(node.parts[0])
        inner, right = self._value(node.parts[1])
        condition = own if node.text == "and" else Node("unary", (own,), "not")
        then = block(*inner, Node("assign", (several([own]), several([right]))))
        return [
            *first,
            Node("local", (Node("names", (own,)), several([left]))),
            Node("if", (condition, then)),
        ], own

    def _table(self, node: Node) -> Lowered:
        first, made = self._values([part.parts[-1] for part in node.parts], len(node.parts))
        fields = [
            replace(part, parts=(*part.parts[:-1], value))
            for part, value in zip(node.parts, made, strict=True)
        ]
        return first, Node("table", tuple(fields))

    def _values(self, nodes: Sequence[Node], wanted: int | None) -> tuple[list[Node], list[Node]]:
        """Several values in their order; the last may be as many as it likes, or as are still wanted."""
        lowered: list[tuple[list[Node], list[Node]]] = []
        for place, node in enumerate(nodes):
            left = None if wanted is None else wanted - place
            if place + 1 == len(nodes) and left != 1 and is_open(node):
                lowered.append(self._last(node, left))
            else:
                first, value = self._value(node)
                lowered.append((first, [value]))
        before: list[Node] = []
        values: list[Node] = []
        for place, (statements, made) in enumerate(lowered):
            before += statements
            later = any(follow for follow, _ in lowered[place + 1 :])
            values += [self._kept(one, before) if later and not self._is_steady(one) else one for one in made]
        return before, values

    def _kept(self, node: Node, before: list[Node]) -> Node:
        own = self._fresh("kept", steady=True)
        before.append(Node("local", (Node("names", (own,)), several([node]))))
        return own

    def _last(self, node: Node, wanted: int | None) -> tuple[list[Node], list[Node]]:
        """A call that may give several values."""
        width = wanted if wanted is not None and self._fits(node) else self._width(node)
        if width is not None and width > 0:
            owns = tuple(self._fresh("made", steady=True) for _ in range(width))
            return [Node("local", (Node("names", owns), several([]))), *self._in_place(node, owns)], list(
                owns
            )
        if node.kind == "vararg" or not any(map(self._has, node.parts)):
            return [], [self._inside(node)]
        first, made = self._values(node.parts, None)
        return first, [replace(node, parts=tuple(made))]

    # A body in place of its call.

    def _in_place(self, call: Node, targets: tuple[Node, ...] | None) -> list[Node]:
        """What the called function does, its values in `targets`, or returned if that is None."""
        body = self._body(call)
        assert body is not None
        first, scope = self._given(body, call.parts[1:])
        inner = folded(self._renamed(nearer(body.parts[1]), scope), self.program.truth)
        self.under_way.append(call.parts[0].text)
        if targets is None:
            made = self._block(inner).parts
            made = made if made and made[-1].kind == "return" else (*made, Node("return"))
        else:
            inner, jumps = settled(inner, targets, True)
            made = self._block(inner).parts
            made = (Node("repeat", (block(*made), const("true"))),) if jumps else made
        self.under_way.pop()
        return [Node("do", (block(*first, *made),))] if first or made else []

    def _given(self, body: Node, arguments: tuple[Node, ...]) -> tuple[list[Node], Scope]:
        """Statements that make the parameters of a function, and what stands for each."""
        names = body.parts[0].parts
        first, given = self._values(arguments, len(names))
        changing = assigned(body)
        has_open = bool(given) and is_open(given[-1]) and len(given) <= len(names)
        several_from = len(given) - 1 if has_open else len(names)
        scope: Scope = {}
        owns: list[Node] = []
        for place, own in enumerate(names):
            value = given[place] if place < len(given) else const("nil")
            if place < several_from and own.text not in changing and self._is_steady(value):
                scope[own.text] = value
            else:
                scope[own.text] = self._fresh(own.text, own.text not in changing)
                owns.append(scope[own.text])
        values = [
            value
            for place, value in enumerate(given)
            if (not is_pure(value) if place >= len(names) else scope[names[place].text] in owns)
        ]
        if owns:
            first.append(Node("local", (Node("names", tuple(owns)), several(values))))
        return first, scope

    _CHANGES: ClassVar[dict[str, Callable[["Inliner", Node], list[Node]]]] = {
        "local": _local,
        "assign": _assign,
        "run": _run,
        "return": _return,
        "if": _if,
        "fornum": _loop,
        "forin": _each,
        "do": _do,
    }
