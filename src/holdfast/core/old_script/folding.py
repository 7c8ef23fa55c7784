"""What is known of a tree before it runs: constants joined, branches that cannot be reached left out."""

from collections.abc import Callable

from holdfast.core.script.syntax import Node, block, const

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
