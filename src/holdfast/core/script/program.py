"""What the statements of a module bind, and what a name in it stands for once the door is known."""

from functools import cache, partial

from holdfast.core.script.reading import Reader
from holdfast.core.script.rewriting import Substituted, Walk, folded, is_constant, is_pure, known
from holdfast.core.script.syntax import Node, block, const, name, quoted
from holdfast.core.sources import CoreBroken, in_order, source


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


HOISTED = ("redis.call", "struct.pack", "struct.unpack", "string.sub", "cjson.encode", "math.floor")
"""Names of the store that most calls use: looked up once a call."""

QUEUES = ("queue", "next_queue")
"""How a queue is called wherever its keys are used."""


class Program:
    """The modules of a door, and what their names stand for."""

    def __init__(self, door: str) -> None:
        self.modules = {named: read(named) for named in in_order(door)}
        self.door = self.modules[door]
        self.forms: dict[str, Node] = {}
        self.late: set[str | None] = set()
        self.unread: set[str] = set()
        self.queue_keys: dict[str, Node] = {}
        self._bodies: dict[str, Node] = {}
        self.forms = self._forms()
        self.late = {
            key
            for own in self.modules.values()
            for value in own.bound.values()
            for part in value.walk()
            if part.kind == "assign"
            for target in part.parts[0].parts
            if target.kind == "index"
            and target.parts[0] == name("ctx")
            and (key := key_of(target)) in self.forms
        }
        """Forms that are made in the call: what is not constant in them is asked for there."""
        self.queue_keys = self._queue_keys()
        self.unread = {named for named in self.modules if self._is_unread(named)}

    def _forms(self) -> dict[str, Node]:
        """What the door puts into `ctx` once and for all: modules, and tables by their names, by the field's name."""
        forms: dict[str, Node] = {}
        for field in self.door.bound.get("CTX", Node("table")).parts:
            value = Resolved(self, self.door).tree(field.parts[1], {})
            if value.kind == "ref":
                forms[field.parts[0].text[1:-1]] = value
        return forms

    def _queue_keys(self) -> dict[str, Node]:
        """Functions that spell a key of a queue from its name, each one expression."""
        table = self.value(self.forms["queue_keys"]) if "queue_keys" in self.forms else None
        return {field.parts[0].text[1:-1]: field.parts[1] for field in table.parts} if table else {}

    def _is_unread(self, named: str) -> bool:
        """Whether no module asks this one for anything: it is only told, and remembers for another door."""
        own = self.modules[named]
        if not any(map(partial(_only_notes, own), own.bound.values())):
            return False
        told = [
            own_key
            for other in self.modules.values()
            for alias, home in other.aliases.items()
            if home == named
            for node in [*other.bound.values(), *other.rest]
            for part in node.walk()
            if part.kind == "index" and part.parts[0] == name(alias) and (own_key := key_of(part))
        ]
        return bool(told) and all(_only_notes(own, own.bound.get(f"M.{key}")) for key in told)

    def is_unread_note(self, node: Node) -> bool:
        """A statement that tells a silent module something."""
        if node.kind != "run" or node.parts[0].parts[0].kind != "ref":
            return False
        return node.parts[0].parts[0].text.partition(":")[0] in self.unread and all(
            map(is_pure, node.parts[0].parts)
        )

    def is_queue(self, node: Node) -> bool:
        """Something whose keys are spelled where they are used: by its name, by its field, or straight from its maker."""
        if "queue_keys" not in self.forms:
            return False
        if node.kind == "call":
            return node.parts[0] == Node("ref", text="base.keys:M.of_queue")
        return node.kind in ("name", "index") and (path_of(node) or "").rpartition(".")[2] in QUEUES

    def key_of_queue(self, queue: Node, key: str | None) -> Node | None:
        """A key of a queue, spelled; None for a field that is none."""
        if key is None:
            raise CoreBroken(
                f"a field of {path_of(queue)} that is not known before the call: keys.of finds it"
            )
        spell = self.queue_keys.get(key)
        if spell is None:
            return None
        own = queue.parts[2] if queue.kind == "call" else Node("index", (queue, quoted("name")))
        return Substituted({spell.parts[0].parts[0].text: own}).tree(spell.parts[1].parts[0].parts[0], {})

    def value(self, ref: Node) -> Node | None:
        """What a reference is bound to, as its module says it; None for a module itself."""
        home, _, bound = ref.text.partition(":")
        return self.modules[home].bound.get(bound)

    def body(self, ref: Node) -> Node:
        """What a reference is bound to, every name in it spelled as what it stands for."""
        if ref.text not in self._bodies:
            home, _, bound = ref.text.partition(":")
            own = self.modules[home]
            self._bodies[ref.text] = (
                self.resolved(own, own.bound[bound]) if bound in own.bound else const("nil")
            )
        return self._bodies[ref.text]

    def truth(self, node: Node) -> bool | None:
        """See `rewriting.known`; a form, a function and a table are there."""
        if node.kind == "ref":
            value = self.value(node)
            home, _, bound = node.text.partition(":")
            return True if value is None else None if bound in self.modules[home].changing else known(value)
        return known(node)

    def resolved(self, home: Module, node: Node) -> Node:
        return folded(self._without_notes(Resolved(self, home).tree(node, {})), self.truth)

    def _without_notes(self, node: Node) -> Node:
        if node.kind == "block":
            node = block(*(part for part in node.parts if not self.is_unread_note(part)))
        return node.over(self._without_notes)

    def named(self, home: Module, bound: str) -> Node:
        """What a name of a module stands for: its constant, what it is another name for, or a reference."""
        own = Node("ref", text=f"{home.name}:{bound}")
        value = home.bound[bound]
        if bound in home.changing or value.kind in ("function", "table"):
            return own
        if value.kind in ("name", "index") or not value.parts or value.kind == "binary":
            found = self.resolved(home, value)
            if is_constant(found) or found.kind == "ref":
                return Node("paren", (found,)) if found.kind == "binary" else found
        return value if is_constant(value) else own

    def member(self, of: Node, key: str) -> Node | None:
        """A member of something that is referred to, if it is known before any call."""
        home, _, bound = of.text.partition(":")
        own = self.modules[home]
        inner = f"{bound}.{key}"
        if inner in own.bound:
            return self.named(own, inner)
        if bound == "M":
            return const("nil")
        value = own.bound.get(bound)
        if value and value.kind == "table" and bound not in own.changing:
            for field in value.parts:
                if field.kind == "field" and field.parts[0].text[1:-1] == key:
                    found = self.resolved(own, field.parts[1])
                    return found if is_constant(found) else None
            if any(form == of and named not in self.late for named, form in self.forms.items()):
                return const("nil")
        return None


def _only_notes(own: Module, value: Node | None) -> bool:
    """Whether a function does nothing but assign to names of its module."""
    return (
        value is not None
        and value.kind == "function"
        and all(
            one.kind == "assign"
            and is_pure(one)
            and all(name_of(target) in own.bound for target in one.parts[0].parts)
            for one in value.parts[1].parts
        )
    )


class Resolved(Walk):
    """Spells every name that a module binds as what it stands for."""

    def __init__(self, program: Program, home: Module) -> None:
        self.program, self.home = program, home

    def free(self, own: Node) -> Node:
        home = self.home
        if own.text == "M" or own.text in home.aliases:
            return Node("ref", text=f"{home.aliases.get(own.text, home.name)}:M")
        if own.text in home.bound:
            return self.program.named(home, own.text)
        native = prelude().get(own.text)
        path = path_of(native) if native else None
        if path and path in HOISTED:
            return name(path.replace(".", "_"))
        return native or own

    def indexed(self, node: Node) -> Node:
        of, key, forms = node.parts[0], key_of(node), self.program.forms
        if self.program.is_queue(of):
            return self.program.key_of_queue(of, key) or node
        if key is None:
            return node
        if of == name("ctx") and key in forms and key not in self.program.late:
            return forms[key]
        if of.kind == "index" and of.parts[0] == name("ctx") and key_of(of) in forms:
            of = forms[key_of(of) or ""]  # one that is made in the call
        return self.program.member(of, key) or node if of.kind == "ref" else node

    def stand_in(self, value: Node) -> Node | None:
        """A form by another name is still the form."""
        if value.kind == "ref" or (
            value.kind == "index" and value.parts[0] == name("ctx") and key_of(value) in self.program.forms
        ):
            return value
        return None
