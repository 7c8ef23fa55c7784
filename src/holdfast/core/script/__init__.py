"""A door as a script: a text that the store runs anew for every call.

Running the modules would cost as much as a job: a hundred functions take ten microseconds to make, and a call uses a
third of them. So each name that a module binds is a *cell*, filled when it is first used: `job.read(…)` becomes
`C[7](…)`, and a miss in `C` runs the seventh branch of a function. The commands that every job needs begin by filling
the cells that they use (`usual`), which is cheaper than missing them. Constants are written where they are used, and what
no branch needs is left out: a call costs the same however many commands there are.
"""

from collections.abc import Callable, Collection
from functools import cache

from holdfast.core.script.program import HOISTED, Program
from holdfast.core.script.syntax import Node, block, const, name, quoted, several, spelled
from holdfast.core.script.usual import FILLED

_CELLS = name("C")


class Script:
    """The cells that a door needs, numbered in the order they are met."""

    def __init__(self, door: str, filled: Collection[str]) -> None:
        self.program = Program(door)
        self.filled = filled
        self.numbers: dict[str, int] = {}
        run = self.program.resolved(self.program.door, block(*self.program.door.rest))
        self.in_place: set[str] = set()
        """Functions that are written where they are named."""
        whole = self._in_place(run, self._finding)
        self.run = spelled(self._celled(block(*self._fills(run), whole)))
        self.texts: list[str] = []
        while len(self.texts) < len(self.numbers):
            self.texts.append(self._branch(Node("ref", text=list(self.numbers)[len(self.texts)])))

    def _in_place(self, node: Node, write: Callable[[Node], Node]) -> Node:
        """A tree in which each function that is named, and not called, is written where it is named."""
        if node.kind == "ref" and self.program.body(node).kind == "function":
            self.in_place.add(node.text)
            return write(self.program.body(node))
        if node.kind == "call" and node.parts[0].kind == "ref":
            return Node("call", (node.parts[0], *(self._in_place(part, write) for part in node.parts[1:])))
        return node.over(lambda part: self._in_place(part, write))

    def _finding(self, node: Node) -> Node:
        """The function that finds a command by its name, in which the commands that every job needs are written."""
        names, body = node.parts
        return Node("function", (names, self._in_place(body, self._beginning)))

    def _beginning(self, node: Node) -> Node:
        """A command that begins by filling the cells it is going to use, which is cheaper than a miss."""
        names, body = node.parts
        return Node("function", (names, block(*self._fills(body), *body.parts)))

    def _fills(self, node: Node) -> list[Node]:
        """Statements that fill the cells which are certain to be used."""
        filled: dict[str, Node] = {}
        left = [node]
        while left:
            for part in left.pop().walk():
                if (
                    part.kind == "ref"
                    and part.text in self.filled
                    and part.text not in {*filled, *self.in_place}
                ):
                    filled[part.text] = self._filling(part)
                    left.append(filled[part.text])
        return [
            Node("assign", (several([Node("ref", text=ref)]), several([made])))
            for ref, made in filled.items()
        ]

    def _branch(self, ref: Node) -> str:
        return f"made = {spelled(self._celled(self._filling(ref)))}\n"

    def _filling(self, ref: Node) -> Node:
        """What goes into a cell."""
        home, _, bound = ref.text.partition(":")
        if bound == "M":
            return self._members(home)
        body = self.program.body(ref)
        if home == self.program.door.name and bound == "CTX":  # its forms are written where they are used
            return Node("table", tuple(part for part in body.parts if part.parts[1].kind != "ref"))
        return body

    def _members(self, home: str) -> Node:
        """A module that is used as a value (a form that `ctx` holds) makes its members one by one, too."""
        key, made, own = name("key"), name("made"), self.program.modules[home]
        tests: list[Node] = []
        for bound in own.bound:
            if bound.startswith("M."):
                tests.append(Node("binary", (key, quoted(bound[2:])), "=="))
                tests.append(
                    block(Node("assign", (several([made]), several([Node("ref", text=f"{home}:{bound}")]))))
                )
        rest = (
            Node("local", (Node("names", (made,)), several([]))),
            Node("if", tuple(tests)),
            Node("assign", (several([Node("index", (name("M"), key))]), several([made]))),
            Node("return", (made,)),
        )
        find = Node("function", (Node("names", (name("M"), key)), block(*rest)))
        field = Node("field", (quoted("__index"), find))
        return Node("call", (name("setmetatable"), Node("table"), Node("table", (field,))))

    def _celled(self, node: Node) -> Node:
        if node.kind == "ref":
            number = self.numbers.setdefault(node.text, len(self.numbers) + 1)
            return Node("index", (_CELLS, const(str(number))))
        return node.over(self._celled)


def _choice(branches: list[str], first: int) -> str:
    """Nested halves, so that finding one cell of two hundred takes eight comparisons."""
    if len(branches) == 1:
        return branches[0]
    half = len(branches) // 2
    left, right = _choice(branches[:half], first), _choice(branches[half:], first + half)
    return f"if number < {first + half} then\n{left}else\n{right}end\n"


def _text(made: Script, at_miss: str = "") -> str:
    names = ", ".join(path.replace(".", "_") for path in HOISTED)
    return (
        f"local {names} = {', '.join(HOISTED)}\n"
        "local C = setmetatable({}, { __index = function(C, number)\nlocal made\n"
        f"{_choice(made.texts, 1)}C[number] = made\n{at_miss}return made\nend }})\n"
        f"{made.run}"
    )


@cache
def script(door: str) -> str:
    """The Lua text of a door such as `doors.reqless`, for `SCRIPT LOAD`."""
    return _text(Script(door, FILLED))


def missed(door: str, filled: Collection[str] = FILLED) -> tuple[str, list[str]]:
    """A script that pushes the number of each cell it misses onto the list `missed`, and the names by number."""
    made = Script(door, filled)
    return _text(made, "redis_call('RPUSH', 'missed', number)\n"), list(made.numbers)
