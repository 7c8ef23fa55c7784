"""A module of jobs that mean harm, or whose author was careless; `hostile_jobs` puts them."""

HOSTILE = r'''
import asyncio, enum, logging, os, sys
import datetime, decimal, pathlib, uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal
import msgspec, pydantic
import holdfast
from chores import app

log = logging.getLogger("of.the.job")
CONSTANT = 5


class Odd(BaseException):
    """Gets past `except Exception`."""


RAISED = {
    "key": lambda: KeyError("a"), "exit": lambda: SystemExit(3), "interrupt": KeyboardInterrupt,
    "generator": GeneratorExit, "cancelled": asyncio.CancelledError, "deep": RecursionError, "memory": MemoryError,
    "stop": StopIteration, "astop": StopAsyncIteration, "odd": Odd, "name": lambda: NameError("b"), "value": lambda: ValueError("c"),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"\xff" * 999, 0, 1, "d"), "os": lambda: OSError(2, "e", "\udcff"),
    "usage": lambda: holdfast.UsageError("f"), "codec": lambda: holdfast.CodecError("g"), "none": lambda: AttributeError(None),
}


def throw(how):
    raise RAISED[how]()


# Types whose values are made while the arguments are read.

class Model(pydantic.BaseModel):
    how: str

    @pydantic.field_validator("how")
    @classmethod
    def look(cls, how):
        throw(how)


class Late(pydantic.BaseModel):
    how: str

    def model_post_init(self, context):
        throw(self.how)


@dataclass
class Point:
    how: str

    def __post_init__(self):
        throw(self.how)


class Shape(msgspec.Struct):
    how: str

    def __post_init__(self):
        throw(self.how)


class Way(pathlib.PurePosixPath):
    def __new__(cls, text):
        throw(text)


class Colour(enum.Enum):
    RED = "red"

    @classmethod
    def _missing_(cls, value):
        throw(value) if value in RAISED else None


@app.job(queue="q")
def of_model(a: Model) -> None: ...
@app.job(queue="q")
async def of_late(a: Late) -> None: ...
@app.job(queue="q")
def of_point(a: Point) -> None: ...
@app.job(queue="q")
async def of_shape(a: Shape) -> None: ...
@app.job(queue="q")
def of_way(a: Way) -> None: ...
@app.job(queue="q")
def of_colour(a: Colour) -> None: ...

# Types that a worker reads by itself.

@app.job(queue="q")
def of_any(a) -> None: ...
@app.job(queue="q")
async def of_int(a: int) -> None: ...
@app.job(queue="q")
def of_many(a: int | None = None, b: float = 1.0, *rest: datetime.datetime, c: uuid.UUID = None, **more: decimal.Decimal) -> None: ...
@app.job(queue="q")
def of_text(a: Annotated[str, msgspec.Meta(max_length=3)], b: bytes = b"") -> None: ...
@app.job(queue="q")
def of_lists(a: list[list[int]], b: dict[str, set[Literal["x"]]] = {}) -> None: ...
@app.job(queue="q")
def of_nothing() -> None: ...


# Classes, which read their data themselves or not at all.

class Ignores:
    @staticmethod
    def perform(job): ...


class Settles:
    @staticmethod
    async def process(job):
        await job.complete()


class ReadsText:
    @staticmethod
    def perform(job):
        job.data


class ReadsItem:
    @staticmethod
    async def perform(job):
        job["a"]


class Writes:
    @staticmethod
    def perform(job):
        job.data = {"mine": 1}


class Throws:
    @staticmethod
    def perform(job):
        raise ODD[job["how"]]()


# What cannot be described.

def text_that(act):
    return type("TextThat", (Exception,), {"__str__": lambda self: act(), "__repr__": lambda self: act()})()


def notes_that(act):
    return type("NotesThat", (ValueError,), {"__notes__": property(lambda self: act())})("text")


def attribute_that(name, act):
    return type("AttributeThat", (ValueError,), {name: property(lambda self: act())})("text")


class Anything(type):
    __name__ = property(lambda cls: throw("key"))
    __module__ = property(lambda cls: throw("odd"))
    def __hash__(cls): throw("exit")
    def __eq__(cls, other): throw("exit")
    def __getattribute__(cls, name): throw("odd") if name != "__mro__" else None
    def __instancecheck__(cls, thing): throw("odd")
    def __subclasscheck__(cls, thing): throw("odd")


class Everything:
    """Does nothing without raising."""
    for _name in ("eq", "hash", "bool", "len", "iter", "str", "repr", "format", "lt", "int", "float", "index", "dir", "reduce_ex", "getattr"):
        vars()[f"__{_name}__"] = lambda self, *more: throw("exit")


class Text(str):
    for _name in ("len", "str", "getitem", "iter", "eq", "hash", "format", "contains"):
        vars()[f"__{_name}__"] = lambda self, *more: throw("odd")
    split = encode = startswith = partition = replace = lambda self, *more: throw("exit")


def circle(of):
    first, second = ValueError("first"), ValueError("second")
    setattr(first, of, second), setattr(second, of, first)
    return first


def chain(of, length, kind=ValueError):
    error = kind("last")
    for number in range(length):
        after = kind(str(number))
        setattr(after, of, error)
        error = after
    return error


def crowd(width, depth):
    error = ValueError("one of many")
    for _ in range(depth):
        error = ExceptionGroup("many", [error] * width)
    return error


def noted(*notes):
    error = ValueError("text")
    error.__notes__ = notes[0] if len(notes) == 1 else list(notes)
    return error


def from_file(name):
    def make():
        try:
            exec(compile("1/0", name, "exec"))
        except ZeroDivisionError as error:
            return error
    return make


def deeply(frames):
    def down(left):
        return 1 / left and down(left - 1)
    try:
        down(frames)
    except ZeroDivisionError as error:
        return error


def endless(name):
    kind = type("Endless", (ValueError,), {})
    setattr(kind, name, property(lambda self: kind("again")))
    return kind("first")


def wrong_syntax(*words):
    error = SyntaxError("wrong")
    error.filename, error.lineno, error.offset, error.text, error.end_lineno, error.end_offset = words
    return error


def named(**attributes):
    return type("Named", (ValueError,), attributes)("text")


def loaded():
    loader = type("Loader", (), {"get_source": lambda self, name: throw("exit")})()
    try:
        exec(compile("1/0", "<loaded>", "exec"), {"__loader__": loader, "__name__": "loaded"})
    except ZeroDivisionError as error:
        return error


ODD = {
    **{f"text raises {how}": lambda how=how: text_that(lambda: throw(how)) for how in RAISED},
    **{f"notes raise {how}": lambda how=how: notes_that(lambda: throw(how)) for how in RAISED},
    **{f"{name} raises": lambda name=name: attribute_that(name, lambda: throw("exit")) for name in (
        "__class__", "__cause__", "__context__", "__traceback__", "__suppress_context__", "__dict__", "args", "code", "name", "obj")},
    **{f"endless {name}": lambda name=name: endless(name) for name in ("__cause__", "__context__")},
    **{f"circle of {name}": lambda name=name: circle(name) for name in ("__cause__", "__context__")},
    **{f"chain of {name}": lambda name=name: chain(name, 30_000) for name in ("__cause__", "__context__")},
    "circle of itself": lambda: chain("__cause__", 0).with_traceback(None),
    "text is no text": lambda: text_that(lambda: 7),
    "text is odd": lambda: text_that(lambda: Text("odd")),
    "text of 100 MB": lambda: ValueError("x" * (100 << 20)),
    "text of 10 M words": lambda: ValueError("x " * 10_000_000),
    "text of 1 M lines": lambda: ValueError("x\n" * 1_000_000),
    "text of faces": lambda: ValueError("\U0001f600" * 100_000),
    "text of half characters": lambda: ValueError("\ud800\udcff" * 50_000),
    "text of controls": lambda: ValueError("".join(map(chr, range(256)))),
    "text of a huge number": lambda: ValueError(10 ** 100_000),
    "nameless": lambda: KeyError("x" * (10 << 20)),
    "notes are a number": lambda: noted(7),
    "notes are odd": lambda: noted(Everything()),
    "notes are text": lambda: noted("text"),
    "notes hold what is odd": lambda: noted(Everything(), None, Text("a"), b"\xff", 5),
    "notes of 50 MB": lambda: noted("x\n" * (25 << 20), "y"),
    "100,000 notes": lambda: noted(["z"] * 100_000),
    "a crowd": lambda: crowd(15, 10),
    "a deep crowd": lambda: crowd(1, 400),
    "a wide crowd": lambda: crowd(100_000, 1),
    "a base crowd": lambda: BaseExceptionGroup("odd", [Odd(), SystemExit(), text_that(lambda: throw("exit"))]),
    "no name": lambda: Anything("Anything", (ValueError,), {})("text"),
    "a long name": lambda: type("L" * 100_000, (ValueError,), {})(),
    "a name of two lines": lambda: type("a\nb\x1b[2J", (ValueError,), {})(),
    "an odd module": lambda: named(__module__=Everything()),
    "a module of half characters": lambda: named(__module__="\ud800"),
    "an odd qualname": lambda: named(__qualname__="a\n\ud800" * 999),
    "an exit with what is odd": lambda: SystemExit(Everything()),
    "an exit": lambda: SystemExit("bye"), "an odd one": Odd, "a generator's": GeneratorExit,
    "an iterator's": StopIteration, "an async iterator's": StopAsyncIteration, "a cancellation": asyncio.CancelledError,
    "from a file that has no end": from_file("/dev/zero"), "from a directory": from_file("/"), "from nowhere": from_file("a\n" * 9_000),
    "from a loader that raises": loaded,
    "200 frames": lambda: deeply(200), "an import": lambda: ModuleNotFoundError("no", name=Everything()),
    "a name that is near": lambda: NameError("no", name=Everything()), "an attribute of what is odd": lambda: AttributeError("no", name="a", obj=Everything()),
    "syntax of what is odd": lambda: wrong_syntax(*[Everything()] * 6), "syntax of 50 MB": lambda: wrong_syntax("f", 1, 9, "x" * (50 << 20), 1, 99),
    "syntax beyond": lambda: wrong_syntax("/dev/zero", 10**30, -5, None, -1, 10**9),
    "does nothing": lambda: type("Nothing", (ValueError, ), dict(vars(Everything)))("text"),
    "text that logs": lambda: text_that(lambda: log.error("%s", Everything()) or "x"),
}


@app.job(queue="q")
def raises(how: str) -> None:
    raise ODD[how]()


@app.job(queue="q")
async def araises(how: str) -> None:
    raise ODD[how]()


@app.job(queue="q", retries=1, backoff=lambda attempt, error: throw("exit"))
def retried(how: str) -> None:
    raise ODD[how]()


def nested(depth):
    return [nested(depth - 1)] if depth else []


def itself():
    thing = []
    thing.append(thing)
    return thing


class Dumped(pydantic.BaseModel):
    how: str

    @pydantic.model_serializer
    def dump(self):
        throw(self.how)


class Attributes:
    def __getattr__(self, name):
        throw("exit")


RESULTS = {
    **{f"dump raises {how}": lambda how=how: Dumped(how=how) for how in RAISED},
    "an object": object, "not a number": lambda: [float("nan")], "nested deep": lambda: nested(500), "itself": itself, "2 MB": lambda: "x" * (2 << 20),
    "half a character": lambda: "\ud800", "bytes": lambda: b"\xff", "a generator": lambda: (n for n in ()), "what is odd": Everything,
    "attributes that raise": Attributes, "odd text": lambda: Text("x"), "a huge number": lambda: 10 ** 5000, "odd keys": lambda: {Everything: 1, (1, 2): 3},
    "a class": lambda: Anything("Anything", (), {}), "of that class": lambda: object.__new__(Anything("Anything", (), {})), "a function": lambda: throw,
    "a retry after what is odd": lambda: holdfast.Retry(after=Everything()), "a retry for ever": lambda: holdfast.Retry(after=float("inf")),
    "a group of two lines": lambda: holdfast.Failed("a\nb"), "a group of what is odd": lambda: holdfast.Failed(Everything()),
    "an odd message": lambda: holdfast.Failed("q-odd", Text("x")), "a message of 100 MB": lambda: holdfast.Failed("q-odd", "x" * (100 << 20)),
    "moved nowhere": lambda: holdfast.Moved(""), "moved to what is odd": lambda: holdfast.Moved(Everything()), "moved late": lambda: holdfast.Moved("q", 10**400),
}


@app.job(queue="q")
def returns(how: str) -> Any:
    return RESULTS[how]()


@app.job(queue="q")
async def areturns(how: str) -> Any:
    return RESULTS[how]()


@app.job(queue="q")
def logs(how: str) -> None:
    log.error("%s", ODD[how]())
    log.error(ODD[how]())


def __getattr__(name):
    throw(name.removeprefix("attribute_")) if name.startswith("attribute_") else None
    raise AttributeError(name)
'''
