"""Rewriting trees: a walk that knows which names are local where it is, and what is known before a tree runs."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from holdfast.core.script.syntax import Node, block, const, several

Scope = dict[str, Node]


class Walk:
    """Gives back the same tree; what is to be changed is said by the methods that are not private."""

    def declared(self, own: Node) -> Node:
        """What stands for a local name from its statement on."""
        return own

    def free(self, own: Node) -> Node:
        """What stands for a name that is not local here."""
        return own

    def indexed(self, node: Node) -> Node:
        """What stands for an `index` whose parts are changed already."""
        return node

    def called(self, node: Node) -> Node:
        """What stands for a `call`, likewise."""
        return node

    def stand_in(self, value: Node) -> Node | None:
        """What is written for a local name with this value instead of making it, if anything."""
        del value
        return None

    def tree(self, node: Node, scope: Mapping[str, Node]) -> Node:
        """A changed expression or block."""
        if node.kind == "name":
            return scope[node.text] if node.text in scope else self.free(node)
        if node.kind == "block":
            return self._block(node, dict(scope))
        if node.kind == "function":
            return self._function(node, dict(scope))
        changed = node.over(lambda part: self.tree(part, scope))
        if node.kind == "index":
            return self.indexed(changed)
        return self.called(changed) if node.kind == "call" else changed

    def _function(self, node: Node, scope: Scope) -> Node:
        names, body = node.parts
        return Node("function", (self._names(names, scope), self.tree(body, scope)))

    def _names(self, names: Node, scope: Scope) -> Node:
        found: list[Node] = []
        for own in names.parts:
            found.append(self.declared(own) if own.kind == "name" else own)
            scope[own.text] = found[-1]
        return Node("names", tuple(found))

    def _block(self, node: Node, scope: Scope) -> Node:
        found: list[Node] = []
        changed_later = assigned(node)
        for statement in node.parts:
            change = self._STATEMENTS.get(statement.kind)
            if statement.kind == "local" and self._stands_in(statement, scope, changed_later):
                continue
            found.append(
                change(self, statement, scope)
                if change
                else statement.over(lambda part: self.tree(part, scope))
            )
        return Node("block", tuple(found))

    def _stands_in(self, node: Node, scope: Scope, changed_later: set[str]) -> bool:
        names, values = node.parts
        if len(names.parts) != 1 or len(values.parts) != 1 or names.parts[0].text in changed_later:
            return False
        instead = self.stand_in(self.tree(values.parts[0], scope))
        if instead:
            scope[names.parts[0].text] = instead
        return instead is not None

    def _local(self, node: Node, scope: Scope) -> Node:
        names, values = node.parts
        values = several([self.tree(value, scope) for value in values.parts])
        return Node("local", (self._names(names, scope), values))

    def _local_function(self, node: Node, scope: Scope) -> Node:
        own = self._names(Node("names", node.parts[:1]), scope).parts[0]
        return Node("localfunction", (own, self.tree(node.parts[1], scope)))

    def _count(self, node: Node, scope: Scope) -> Node:
        own, body, *limits = node.parts
        limits = [self.tree(limit, scope) for limit in limits]
        inner = dict(scope)
        names = self._names(Node("names", (own,)), inner)
        return Node("fornum", (names.parts[0], self.tree(body, inner), *limits))

    def _each(self, node: Node, scope: Scope) -> Node:
        names, values, body = node.parts
        values = self.tree(values, scope)
        inner = dict(scope)
        return Node("forin", (self._names(names, inner), values, self.tree(body, inner)))

    def _until(self, node: Node, scope: Scope) -> Node:
        inner = dict(scope)
        body = self._block(node.parts[0], inner)  # its names are known in the condition
        return Node("repeat", (body, self.tree(node.parts[1], inner)))

    _STATEMENTS: ClassVar[dict[str, Callable[["Walk", Node, Scope], Node]]] = {
        "local": _local,
        "localfunction": _local_function,
        "fornum": _count,
        "forin": _each,
        "repeat": _until,
    }


class Substituted(Walk):
    """Writes expressions in place of names."""

    def __init__(self, instead: dict[str, Node]) -> None:
        self.instead = instead

    def free(self, own: Node) -> Node:
        return self.instead.get(own.text, own)


def assigned(node: Node) -> set[str]:
    """The names that are assigned to within `node`, whosever they are."""
    return {
        target.text
        for part in node.walk()
        if part.kind == "assign"
        for target in part.parts[0].parts
        if target.kind == "name"
    }


Known = Callable[[Node], bool | None]
"""Whether an expression is true, false, or one of both as the call will have it."""


def known(node: Node) -> bool | None:
    if node.kind == "const":
        return node.text not in ("nil", "false")
    return True if node.kind in ("function", "table") else None


def is_constant(node: Node) -> bool:
    """A constant, or a calculation with constants only."""
    return node.kind == "const" or (
        node.kind in ("unary", "binary", "paren") and node.text != ".." and all(map(is_constant, node.parts))
    )


def is_pure(node: Node) -> bool:
    """Nothing happens when it is evaluated."""
    return not any(part.kind in ("call", "method") for part in node.walk())


def folded(node: Node, truth: Known) -> Node:
    node = node.over(lambda part: folded(part, truth))
    fold = _FOLDS.get(node.kind)
    return fold(node, truth) if fold else node


def _unary(node: Node, truth: Known) -> Node:
    value = truth(node.parts[0]) if node.text == "not" else None
    return node if value is None else const("false" if value else "true")


def _binary(node: Node, truth: Known) -> Node:
    left, right = node.parts
    if node.text in ("and", "or"):
        value = truth(left)
        if value is None:
            return node
        return right if value == (node.text == "and") else left
    if left.kind == right.kind == "const" and node.text in ("==", "~="):
        return const("true" if (left.text == right.text) == (node.text == "==") else "false")
    if node.text != "..":
        return node
    if (
        left.kind == "binary" and left.text == ".."
    ):  # which order makes no difference but to the number of texts made
        return _binary(
            Node("binary", (left.parts[0], Node("binary", (left.parts[1], right), "..")), ".."), truth
        )
    return _joined(left, right) or node


def _joined(left: Node, right: Node) -> Node | None:
    """Two texts as one: `"a" .. "b"`, or `"a" .. ("b" .. c)`."""
    if right.kind == "binary" and right.text == ".." and right.parts[0].kind == "const":
        first = _joined(left, right.parts[0])
        return Node("binary", (first, right.parts[1]), "..") if first else None
    if left.kind != "const" or right.kind != "const" or not {left.text[0], right.text[0]} <= {'"', "'"}:
        return None
    if left.text[0] == right.text[0]:
        return const(left.text[:-1] + right.text[1:])
    if '"' in left.text[1:-1] + right.text[1:-1]:
        return (
            const("'" + left.text[1:-1] + right.text[1:-1] + "'")
            if "'" not in right.text + left.text[1:-1]
            else None
        )
    return const('"' + left.text[1:-1] + right.text[1:-1] + '"')


def _if(node: Node, truth: Known) -> Node:
    parts: list[Node] = []
    otherwise = node.parts[-1] if len(node.parts) % 2 else None
    for place in range(0, len(node.parts) - 1, 2):
        value = truth(node.parts[place])
        if value:
            otherwise = node.parts[place + 1]
            break
        if value is None:
            parts += node.parts[place : place + 2]
    if not parts:
        return Node("do", (otherwise or block(),))
    return Node("if", (*parts, otherwise) if otherwise and otherwise.parts else tuple(parts))


def _block(node: Node, truth: Known) -> Node:
    del truth
    found: list[Node] = []
    for part in node.parts:
        inner = part.parts[0].parts if part.kind == "do" else ()
        if part.kind == "do" and not any(one.kind in ("local", "localfunction") for one in inner):
            found += inner
        elif part.kind != "do" or inner:
            found.append(part)
        if found and _ends(found[-1]):
            break
    return block(*found)


def _ends(node: Node) -> bool:
    if node.kind == "do":
        return bool(node.parts[0].parts) and _ends(node.parts[0].parts[-1])
    return node.kind in ("return", "break")


def _paren(node: Node, truth: Known) -> Node:
    del truth
    inner = node.parts[0]
    return node if inner.kind in ("call", "vararg", "method") else inner


_FOLDS: dict[str, Callable[[Node, Known], Node]] = {
    "unary": _unary,
    "binary": _binary,
    "if": _if,
    "block": _block,
    "paren": _paren,
}
