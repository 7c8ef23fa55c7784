"""A walk over a tree that knows which names are local where it is."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from holdfast.core.script.syntax import Node, several

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
