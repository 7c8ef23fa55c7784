"""A door as a script: a text that the store runs anew for every call.

Running a module costs as much as a job: a hundred functions take ten microseconds to make, and a call uses a third
of them. So a script is not a row of modules. What a usual command does is written as one function, in which the
functions it calls have become statements (`inlining`). Everything else is a *cell*, one for each name that a module
binds, filled when it is first used: `job.read(…)` becomes `C[7](…)`, a miss in `C` runs the seventh branch of `make`.
Constants are written where they are used, and what no branch needs is left out: a call costs the same however many
commands there are.
"""

from collections.abc import Collection
from functools import cache

from holdfast.core.script.inlining import Inliner
from holdfast.core.script.program import HOISTED, Program
from holdfast.core.script.spelling import spelled
from holdfast.core.script.syntax import Node, block, const, name, quoted, several
from holdfast.core.script.usual import FILLED, USUAL

_CELLS = name("C")


class Script:
    """The cells that a door needs, numbered in the order they are met."""

    def __init__(self, door: str, usual: Collection[str], filled: Collection[str]) -> None:
        self.program = Program(door)
        self.usual, self.filled = usual, filled
        self.numbers: dict[str, int] = {}
        run = self.program.resolved(self.program.door, block(*self.program.door.rest))
        at_once = {part.text for part in run.walk() if part.kind == "ref"}
        self.inliner = Inliner(self.program, {*usual, *at_once})
        run = self.inliner.statements(run)
        self.in_place: set[str] = set()
        """Functions that are written where they are named."""
        whole = self._with_commands(run)
        self.run = spelled(self._celled(block(*self._fills(run), whole)))
        self.texts: list[str] = []
        while len(self.texts) < len(self.numbers):
            self.texts.append(self._branch(Node("ref", text=list(self.numbers)[len(self.texts)])))

    def _with_commands(self, node: Node) -> Node:
        """The run, in which the usual commands, which are found by their names, are functions where they are found."""
        if node.kind == "ref" and self.program.body(node).kind == "function":
            self.in_place.add(node.text)
            return self._beginning(self.inliner.function(node, self.program.body(node)))
        if node.kind == "call" and node.parts[0].kind == "ref":
            return Node("call", (node.parts[0], *map(self._with_commands, node.parts[1:])))
        return node.over(self._with_commands)

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
        return (
            self.inliner.function(ref, body) if ref.text in self.usual and body.kind == "function" else body
        )

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
    return _text(Script(door, USUAL, FILLED))


def missed(
    door: str, usual: Collection[str] = USUAL, filled: Collection[str] = FILLED
) -> tuple[str, list[str]]:
    """A script that pushes the number of each cell it misses onto the list `missed`, and the names by number."""
    made = Script(door, usual, filled)
    return _text(made, "redis_call('RPUSH', 'missed', number)\n"), list(made.numbers)
