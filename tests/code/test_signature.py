"""Arguments of function jobs: what fits, what is refused, in which words, and what arrives."""

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Required, TypedDict, Unpack

import msgspec
import pytest

from holdfast.code.signature import Arguments
from holdfast.errors import UsageError

if TYPE_CHECKING:
    from fractions import Fraction


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Circle:
    radius: float


class Parcel(msgspec.Struct):
    to: str
    at: datetime.datetime | None = None


class Colour(enum.Enum):
    RED = "red"


class Size(TypedDict):
    width: int


class Pair(NamedTuple):
    left: int
    right: str


def welcome(user_id: int, lang: str = "en", *, when: datetime.date | None = None) -> None: ...


def anything(first, *rest: int, **named: float) -> None: ...


def travelled(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """What arrives of a call: written when it is put, read when it is performed."""
    arguments = Arguments(function, function.__name__)
    return arguments.read(bytes(arguments.write(args, kwargs)))


def test_plain_arguments_arrive_as_they_are():
    assert travelled(welcome, 7, lang="de") == ([7], {"lang": "de"})
    assert travelled(anything, [1, None], 1, 2, x=1.5) == ([[1, None], 1, 2], {"x": 1.5})


def test_data_are_args_and_kwargs_in_json_that_anybody_could_write():
    assert json.loads(bytes(Arguments(welcome, "w").write([7], {"lang": "dé"}))) == {
        "args": [7],
        "kwargs": {"lang": "dé"},
    }


class Marked(str):
    def __str__(self) -> str:
        return f"<{super().__str__()}>"


class ClientBase(int):
    pass


class Real(float):
    pass


def test_text_and_numbers_of_classes_of_their_own_arrive_as_text_and_numbers():
    def take(text: str, whole: int, real: float, all: list[str]) -> None: ...

    arrived, _ = travelled(take, Marked("a"), ClientBase(3), Real(1.5), [Marked("b")])
    assert arrived == ["a", 3, 1.5, ["b"]]
    assert [type(value) for value in arrived] == [str, int, float, list]
    with pytest.raises(UsageError, match="argument 'real'"):
        Arguments(take, "take").write(["a", 3, Real("nan"), []], {})


AWARE = datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=datetime.UTC)
VALUES = [
    (datetime.datetime, AWARE),
    (datetime.date, datetime.date(2024, 2, 29)),
    (datetime.time, datetime.time(3, 4, 5)),
    (datetime.timedelta, datetime.timedelta(days=2, milliseconds=3)),
    (uuid.UUID, uuid.UUID(int=7)),
    (decimal.Decimal, decimal.Decimal("1.10")),
    (Colour, Colour.RED),
    (set[int], {1, 2}),
    (frozenset[str], frozenset({"a"})),
    (tuple[int, str], (1, "a")),
    (tuple[Point, ...], (Point(1), Point(2, 3))),
    (Point, Point(1, 2)),
    (Point | None, Point(1)),
    (dict[str, Point], {"a": Point(1)}),
    (dict[int, str], {1: "a"}),
    (Parcel, Parcel("Ann", AWARE)),
    (list[Parcel], [Parcel("Ann")]),
    (Size, {"width": 3}),
    (Pair, Pair(1, "b")),
    (Literal["a", "b"], "b"),
    (Mapping[str, set[int]], {"a": {1}}),
    (bytes, b"\x00\xff"),
    (float, 3),
    (Path, Path("/tmp/ü")),
    (list[Path], [Path("a")]),
    (str, "text, not JSON: {"),
    (bool, True),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=[str(kind) for kind, _ in VALUES])
def test_a_value_arrives_as_what_its_annotation_says(kind, value):
    def job(value): ...

    job.__annotations__["value"] = kind
    [arrived], _ = travelled(job, value)
    assert arrived == value
    assert isinstance(arrived, type(value)) or kind is float


def test_pydantic_models_arrive_as_models():
    pydantic = pytest.importorskip("pydantic")

    class Order(pydantic.BaseModel):
        id: int
        lines: list[str] = pydantic.Field(default=[], alias="orderLines")
        placed: datetime.datetime

    def ship(order: Order, more: list[Order]) -> None: ...

    order = Order(id=7, orderLines=["tea"], placed=AWARE)
    assert travelled(ship, order, [order]) == ([order, [order]], {})
    with pytest.raises(UsageError, match=r"ship: argument 'order' does not fit(.|\n)*placed"):
        Arguments(ship, "ship").read(b'{"args":[{"id":1},[]]}')


class Model:
    """A model of a library that says it as pydantic does: `model_validate` reads, `model_dump` writes."""

    def __init__(self, weight: int) -> None:
        self.weight = weight

    @classmethod
    def model_validate(cls, plain: object) -> "Model":
        if not isinstance(plain, dict) or not isinstance(plain.get("weight"), int):
            raise ValueError("weight must be a whole number")
        return cls(plain["weight"])

    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, object]:
        assert (mode, by_alias) == ("json", True)
        return {"weight": self.weight}


def test_what_reads_and_writes_itself_as_such_models_do_arrives_as_a_model():
    def weigh(model: Model, all: list[Model]) -> None: ...

    [one, [two]], _ = travelled(weigh, Model(3), [Model(4)])
    assert (type(one), one.weight, two.weight) == (Model, 3, 4)
    with pytest.raises(UsageError, match="argument 'model' does not fit: weight must be a whole number"):
        Arguments(weigh, "weigh").write([Model("3")], {"all": []})


def test_what_came_as_json_becomes_what_the_annotation_says():
    assert Arguments(welcome, "welcome").read(b'{"args":[7],"kwargs":{"when":"2024-02-29"}}') == (
        [7],
        {"when": datetime.date(2024, 2, 29)},
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        (["7"], {}, "user_id"),
        ([True], {}, "user_id"),
        ([], {}, "requires the argument 'user_id'"),
        ([1, "de", 3], {}, "at most 2 arguments by position, not 3"),
        ([1], {"nope": 1}, "no argument 'nope'"),
        ([1], {"language": "de"}, "no argument 'language'; did you mean 'lang'?"),
        ([1], {"user_id": 2}, "'user_id' twice"),
        ([1], {"lang": 5}, "lang"),
        ([1], {"when": "yesterday"}, "when"),
    ],
)
def test_what_does_not_fit_is_refused_by_name_when_put_and_when_performed(
    args: list[Any], kwargs: dict[str, Any], words: str
):
    with pytest.raises(UsageError, match="welcome") as caught:
        Arguments(welcome, "welcome").write(args, kwargs)
    assert words in str(caught.value)
    with pytest.raises(UsageError, match="welcome") as caught:
        Arguments(welcome, "welcome").read(msgspec.json.encode({"args": args, "kwargs": kwargs}))
    assert words in str(caught.value)


def test_all_missing_arguments_are_named():
    def many(a: int, b: int, *, c: int) -> None: ...

    with pytest.raises(UsageError, match="requires the arguments 'b', 'c'"):
        Arguments(many, "many").write([1], {})


def test_rest_parameters_are_checked_too():
    with pytest.raises(UsageError, match="rest"):
        Arguments(anything, "anything").write([0, "x"], {})
    with pytest.raises(UsageError, match="speed"):
        Arguments(anything, "anything").write([0], {"speed": "fast"})


def test_a_name_that_can_only_be_given_by_position_may_be_used_again_by_name():
    def odd(first: int, /, **named: int) -> None: ...

    assert travelled(odd, 1, first=2) == ([1], {"first": 2})


class Door(TypedDict, total=False):
    colour: str
    size: Size


def paint(door: Door, more: list[Door] = []) -> None: ...  # noqa: B006


@pytest.mark.parametrize(
    ("args", "key"),
    [
        ([{"color": "red"}], "'color' - at `$`"),
        ([{"size": {"width": 1, "depth": 2}}], "'depth' - at `$.size`"),
        ([{}, [{"colour": "red"}, {"color": "red"}]], "'color' - at `$[1]`"),
    ],
)
def test_keys_that_a_typed_dict_does_not_have_are_refused_when_put_and_when_performed(
    args: list[Any], key: str
):
    with pytest.raises(UsageError, match=r"paint: argument '(door|more)' does not fit") as caught:
        Arguments(paint, "paint").write(args, {})
    assert f"has no key {key}" in str(caught.value)
    with pytest.raises(UsageError) as caught:
        Arguments(paint, "paint").read(msgspec.json.encode({"args": args}))
    assert f"has no key {key}" in str(caught.value)
    assert travelled(paint, {"size": {"width": 1}}, [{"colour": "red"}])[0][1] == [{"colour": "red"}]


@dataclasses.dataclass
class Ball(Point):
    radius: int = 1


def test_nothing_of_a_class_is_left_out_silently_neither_of_a_subclass_nor_of_a_dict():
    def move(point: Point, by_number: dict[int, list[Point]]) -> None: ...

    for args in ([Ball(1), {}], [Point(1), {7: [Ball(2)]}]):
        with pytest.raises(UsageError, match="could not build a Ball again: name Ball in the annotation"):
            Arguments(move, "move").write(args, {})
    with pytest.raises(UsageError, match="Point has no field 'z' - at `\\$`"):
        Arguments(move, "move").write([{"x": 1, "z": 2}, {}], {})
    assert travelled(move, Point(1), {7: [Point(2)]}) == ([Point(1), {7: [Point(2)]}], {})


def test_a_field_that_a_newer_program_sends_does_not_fail_an_older_worker():
    def move(point: Point) -> None: ...

    assert Arguments(move, "move").read(b'{"args":[{"x":1,"z":2}]}') == ([Point(1)], {})


class Names(TypedDict, total=False):
    speed: Required[int]
    colour: str


def test_arguments_by_name_that_a_typed_dict_lists_are_checked_as_others():
    def drive(car: str, **names: Unpack[Names]) -> None: ...

    assert travelled(drive, "a", speed=3, colour="red") == (["a"], {"speed": 3, "colour": "red"})
    for names, words in (
        ({"colour": "red"}, "requires the argument 'speed'"),
        ({"speed": 3, "color": "red"}, "no argument 'color'; did you mean 'colour'"),
        ({"speed": "fast"}, "argument 'speed' does not fit"),
    ):
        with pytest.raises(UsageError, match=words):
            Arguments(drive, "drive").write(["a"], names)
        with pytest.raises(UsageError, match=words):
            Arguments(drive, "drive").read(msgspec.json.encode({"args": ["a"], "kwargs": names}))


class Wide(Point):
    pass


def take(point: Point, points: list[Point] = []) -> None: ...  # noqa: B006


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([Point("x")], "'point' does not fit"),
        ([Point(1), [Point("x")]], "'points' does not fit"),
        ([Circle(1)], "'point' does not fit"),
        ([Wide(1)], "'point' does not fit"),
        ([{"z": 1}], "'point' does not fit"),
    ],
)
def test_a_value_of_the_right_class_that_holds_wrong_ones_is_refused_when_it_is_put(args, words):
    with pytest.raises(UsageError, match=words):
        Arguments(take, "take").write(args, {})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1.0, float("nan")]])
def test_a_number_that_json_cannot_say_is_refused_by_name(value):
    def weigh(pounds: Any) -> None: ...

    def measure(metres: float | list[float]) -> None: ...

    with pytest.raises(UsageError, match="argument 'pounds'"):
        Arguments(weigh, "weigh").write([value], {})
    with pytest.raises(UsageError, match="argument 'metres'"):
        Arguments(measure, "measure").write([value], {})


def test_what_cannot_be_written_is_refused_by_name():
    def store(thing: Any, path: Path = Path()) -> None: ...

    with pytest.raises(UsageError, match="argument 'thing': data cannot be written as JSON: Sized"):
        Arguments(store, "store").write([type("Sized", (), {})()], {})
    with pytest.raises(UsageError, match=r"argument 'thing'.* bytes"):
        Arguments(store, "store").write(["x" * 100], {}, limit=50)


@pytest.mark.parametrize("value", [AWARE, uuid.UUID(int=1), {1}, Point(1), Colour.RED])
def test_an_argument_that_would_arrive_as_something_else_is_refused_when_it_is_put(value):
    def bare(value): ...

    def either(value: Point | Circle): ...

    def unknown(value: "Fraction"): ...

    with pytest.raises(UsageError, match=r"'value': a worker could not build this .* it has no annotation"):
        Arguments(bare, "bare").write([value], {})
    with pytest.raises(UsageError, match="cannot be read from JSON"):
        Arguments(either, "either").write([value], {})
    with pytest.raises(UsageError, match="'Fraction' is not known when the job runs"):
        Arguments(unknown, "unknown").write([value], {})


def test_where_anything_may_come_plain_values_pass_whatever_the_annotation():
    def some(bare, either: Point | Circle, unknown: "Fraction", any: Any): ...

    assert travelled(some, 1, {"x": 1}, 2.5, AWARE) == ([1, {"x": 1}, 2.5, "2024-02-29T12:30:01.000005Z"], {})


def test_one_annotation_that_cannot_be_looked_up_does_not_spoil_the_others():
    def mixed(odd: "Fraction", day: "datetime.date") -> None: ...

    assert travelled(mixed, 1, datetime.date(2024, 2, 29)) == ([1, datetime.date(2024, 2, 29)], {})


def test_an_envelope_may_leave_out_either_half_and_must_be_one():
    def nothing(*args: int) -> None: ...

    arguments = Arguments(nothing, "nothing")
    assert arguments.read(b'{"args":[1]}') == ([1], {})
    assert arguments.read(b"{}") == ([], {})
    with pytest.raises(UsageError, match="nothing takes"):
        arguments.read(b"[1]")
