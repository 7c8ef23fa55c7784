"""Reading Lua: the part of it that the core is written in."""

import re
from dataclasses import replace

from holdfast.core.script.syntax import LEVELS, UNARY, Node, block, const, name, quoted, several


class Unreadable(Exception):
    """A file of the core is no Lua that this reader knows."""


_TOKEN = re.compile(
    r"\s+|--[^\n]*"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>0x[\da-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r'|(?P<quotes>"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')'
    r"|(?P<sign>\.\.\.|\.\.|==|~=|<=|>=|[-+*/%^#<>=(){}\[\];:,.])"
)
_KEYWORDS = frozenset(
    [
        "and",
        "break",
        "do",
        "else",
        "elseif",
        "end",
        "false",
        "for",
        "function",
        "if",
        "in",
        "local",
        "nil",
        "not",
        "or",
        "repeat",
        "return",
        "then",
        "true",
        "until",
        "while",
    ]
)


class Reader:
    """One text, read from the front."""

    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if not found:
                raise Unreadable(text[place : place + 40])
            place = found.end()
            if found.lastgroup:
                kind = "sign" if found[0] in _KEYWORDS else found.lastgroup
                self.tokens.append((kind, found[0]))
        self.tokens.append(("end", ""))
        self.place = 0

    def whole(self) -> Node:
        read = self.block()
        if self.tokens[self.place][0] != "end":
            raise Unreadable(self.tokens[self.place][1])
        return read

    def sees(self, *signs: str) -> bool:
        kind, text = self.tokens[self.place]
        return kind == "sign" and text in signs

    def take(self, *signs: str) -> bool:
        found = self.sees(*signs)
        self.place += found
        return found

    def need(self, sign: str) -> None:
        if not self.take(sign):
            raise Unreadable(f"{sign} expected at {self.tokens[self.place][1]}")

    def next(self) -> str:
        self.place += 1
        return self.tokens[self.place - 1][1]

    def block(self) -> Node:
        found: list[Node] = []
        while not self.sees("end", "else", "elseif", "until") and self.tokens[self.place][0] != "end":
            found.append(self.statement())
            self.take(";")
        return block(*found)

    def closed(self) -> Node:
        body = self.block()
        self.need("end")
        return body

    def statement(self) -> Node:
        for sign, read in (
            ("local", self.local), ("if", self.choice), ("return", self.returned), ("for", self.loop),
            ("function", self.named_function),
        ):  # fmt: skip
            if self.take(sign):
                return read()
        if self.take("do"):
            return Node("do", (self.closed(),))
        if self.take("while"):
            condition = self.expression()
            self.need("do")
            return Node("while", (condition, self.closed()))
        if self.take("repeat"):
            body = self.block()
            self.need("until")
            return Node("repeat", (body, self.expression()))
        return Node("break") if self.take("break") else self.plain()

    def plain(self) -> Node:
        """An assignment, or a call."""
        first = self.suffixed()
        if not self.sees("=", ","):
            return Node("run", (first,))
        targets = [first]
        while self.take(","):
            targets.append(self.suffixed())
        self.need("=")
        return Node("assign", (several(targets), self.expressions()))

    def local(self) -> Node:
        if self.take("function"):
            own = name(self.next())
            return Node("localfunction", (own, self.function()))
        names = self.names()
        return Node("local", (names, self.expressions() if self.take("=") else several([])))

    def names(self) -> Node:
        found = [name(self.next())]
        while self.take(","):
            found.append(name(self.next()))
        return Node("names", tuple(found))

    def choice(self) -> Node:
        parts: list[Node] = []
        while True:
            parts.append(self.expression())
            self.need("then")
            parts.append(self.block())
            if self.take("elseif"):
                continue
            if self.take("else"):
                parts.append(self.block())
            self.need("end")
            return Node("if", tuple(parts))

    def returned(self) -> Node:
        if self.sees("end", "else", "elseif", "until", ";") or self.tokens[self.place][0] == "end":
            return Node("return")
        return Node("return", self.expressions().parts)

    def loop(self) -> Node:
        names = self.names()
        if not self.take("="):
            self.need("in")
            values = self.expressions()
            self.need("do")
            return Node("forin", (names, values, self.closed()))
        limits = self.expressions()
        self.need("do")
        return Node("fornum", (names.parts[0], self.closed(), *limits.parts))

    def named_function(self) -> Node:
        target = name(self.next())
        while self.take("."):
            target = Node("index", (target, quoted(self.next())))
        return Node("assign", (several([target]), several([self.function()])))

    def function(self) -> Node:
        self.need("(")
        names: list[Node] = []
        while not self.take(")"):
            names.append(Node("vararg") if self.take("...") else name(self.next()))
            self.take(",")
        return Node("function", (Node("names", tuple(names)), self.closed()))

    def expressions(self) -> Node:
        found = [self.expression()]
        while self.take(","):
            found.append(self.expression())
        return several(found)

    def expression(self, level: int = 0) -> Node:
        if self.sees("not", "-", "#"):
            left = Node("unary", text=self.next())
            left = replace(left, parts=(self.expression(UNARY),))
        else:
            left = self.simple()
        while self.tokens[self.place][0] == "sign":
            sign = self.tokens[self.place][1]
            if sign not in LEVELS or LEVELS[sign][0] <= level:
                break
            self.place += 1
            left = Node("binary", (left, self.expression(LEVELS[sign][1])), sign)
        return left

    def simple(self) -> Node:
        kind, text = self.tokens[self.place]
        if kind in ("number", "quotes") or text in ("nil", "true", "false"):
            return const(self.next())
        if self.take("..."):
            return Node("vararg")
        if self.take("function"):
            return self.function()
        return self.table() if self.sees("{") else self.suffixed()

    def table(self) -> Node:
        self.need("{")
        found: list[Node] = []
        while not self.take("}"):
            if self.take("["):
                key = self.expression()
                self.need("]")
                self.need("=")
                found.append(Node("field", (key, self.expression())))
            elif self.tokens[self.place][0] == "word" and self.tokens[self.place + 1] == ("sign", "="):
                key = quoted(self.next())
                self.need("=")
                found.append(Node("field", (key, self.expression())))
            else:
                found.append(Node("item", (self.expression(),)))
            self.take(",", ";")
        return Node("table", tuple(found))

    def suffixed(self) -> Node:
        if self.take("("):
            left = Node("paren", (self.expression(),))
            self.need(")")
        else:
            left = name(self.next())
        while True:
            kind = self.tokens[self.place][0]
            if self.take("."):
                left = Node("index", (left, quoted(self.next())))
            elif self.take("["):
                left = Node("index", (left, self.expression()))
                self.need("]")
            elif self.take(":"):
                method = self.next()
                left = Node("method", (left, *self.arguments()), method)
            elif self.sees("(", "{") or kind == "quotes":
                left = Node("call", (left, *self.arguments()))
            else:
                return left

    def arguments(self) -> tuple[Node, ...]:
        if not self.take("("):
            return (self.simple(),)
        if self.take(")"):
            return ()
        found = self.expressions()
        self.need(")")
        return found.parts
