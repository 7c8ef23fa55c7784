"""Values on their way: arguments and results arrive as they were, or are refused; so do data of class jobs that JSON has."""

import textwrap
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from holdfast import JobFailed, UsageError

BERLIN = ZoneInfo("Europe/Berlin")
ODD = timezone(timedelta(hours=1, seconds=20))
ALMOST_UTC = timezone(timedelta(seconds=20))

CODE = """
import dataclasses
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID
from zoneinfo import ZoneInfo
import msgspec
from chores import app


class Colour(Enum):
    RED = "red"


class Mixed(Enum):
    ONE = 1
    A = "a"


@dataclasses.dataclass
class Order:
    number: int
    at: datetime | None = None


class Item(msgspec.Struct):
    number: int
    body: bytes = b""


def make(kind):
    def same(value):
        assert kind in (dict, list) or value is not None
        return value

    same.__annotations__ = {"value": kind, "return": kind}
    return same


KINDS = dict(
    datetime=datetime, date=date, time=time, timedelta=timedelta, Decimal=Decimal, float=float, int=int, bytes=bytes, str=str,
    UUID=UUID, Path=Path, Colour=Colour, Mixed=Mixed, Order=Order, Item=Item, set=set[int], frozenset=frozenset[str],
    tuple=tuple[int, str], days=dict[date, int], numbers=dict[int, str], colours=dict[Colour, int], mixed=dict[Mixed, int],
    dict=dict, either=dict[int | str, int], moments=list[datetime],
)
SAME = {name: app.job(queue="q", name=f"values.{name}")(make(kind)) for name, kind in KINDS.items()}


@app.job(queue="q")
def old() -> datetime:
    return datetime(1890, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))


@app.job(queue="q")
def odd_time() -> dict[str, time]:
    return {"at": time(1, 2, tzinfo=timezone(timedelta(hours=1, seconds=20)))}


@app.job(queue="q")
def order() -> Order:
    return Order(1, datetime(1890, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")))


@app.job(queue="q")
def nothing() -> list[float]:
    return [1.0, float("nan")]
"""


@pytest.fixture
def values(shop):
    (shop.here / "values.py").write_text(textwrap.dedent(CODE))
    import values

    yield values
    import sys

    del sys.modules["values"]


def good(values: Any) -> list[tuple[str, object]]:
    summer, winter = (datetime(2020, 10, 25, 2, 30, fold=fold, tzinfo=BERLIN) for fold in (0, 1))
    return [
        *(("datetime", datetime(2020, 10, 25, 2, 30, 1, 7)), ("datetime", summer), ("datetime", winter)),
        *(("datetime", datetime(99, 1, 1)), ("datetime", datetime(1, 1, 1, tzinfo=UTC))),
        ("datetime", datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=-23, minutes=-59)))),
        *(("date", date(99, 1, 1)), ("time", time(1, 2, 3, 4)), ("time", time(1, 2, tzinfo=UTC))),
        *(
            ("timedelta", timedelta.max),
            ("timedelta", timedelta.min),
            ("timedelta", timedelta(microseconds=-1)),
        ),
        *(("Decimal", Decimal("1.10")), ("Decimal", Decimal("1E+1000")), ("Decimal", Decimal("-0"))),
        *(("float", -0.0), ("float", 5e-324), ("float", 1.7976931348623157e308), ("float", 1e16)),
        *(("int", number) for number in (2**53 + 1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**100, -(2**100))),
        *(("bytes", b"\0\xff"), ("str", "\0\u2028é\U0001f600"), ("UUID", UUID(int=7)), ("Path", Path("a/b"))),
        *(("Colour", values.Colour.RED), ("Order", values.Order(1, datetime(2020, 1, 1, tzinfo=UTC)))),
        *(
            ("Item", values.Item(2**70, b"\xff")),
            ("set", {1, 2}),
            ("frozenset", frozenset("ab")),
            ("tuple", (1, "a")),
        ),
        *(
            ("days", {date(2020, 1, 1): 1}),
            ("numbers", {-1: "a", 2**70: "b"}),
            ("colours", {values.Colour.RED: 1}),
        ),
        *(("dict", {"a": [1, None]}), ("either", {"1": 1})),
    ]


def bad(values: Any) -> list[tuple[str, object]]:
    old = datetime(1890, 1, 1, tzinfo=BERLIN)
    return [
        *(
            ("datetime", old),
            ("moments", [old]),
            ("Order", values.Order(1, old)),
            ("time", time(1, 2, tzinfo=ODD)),
        ),
        *(("time", time(1, 2, tzinfo=ALMOST_UTC)), ("datetime", datetime(2020, 1, 1, tzinfo=ALMOST_UTC))),
        *(("float", nan), ("float", inf), ("Mixed", values.Mixed.ONE), ("mixed", {values.Mixed.ONE: 1})),
        *(("dict", {1: "a"}), ("dict", {1: "a", "1": "b"}), ("either", {1: 1})),
        *(("str", "\ud800"), ("Path", Path("\udcff"))),
    ]


def as_told(value: object) -> object:
    # Two zones that agree on an offset are the same moment; an hour that comes twice is never equal in two zones.
    is_aware = isinstance(value, datetime) and value.utcoffset() is not None
    return (type(value), value.isoformat() if is_aware else repr(value))


@pytest.mark.full
def test_arguments_and_results_come_back_as_they_were(shop, values):
    shop.start("thread")
    put = [(value, values.SAME[name].put(value)) for name, value in good(values)]
    for value, handle in put:
        assert as_told(handle.result(30)) == as_told(value) or handle.result(30) == value


def test_arguments_that_would_arrive_as_others_are_refused_at_the_put(shop, values):
    for name, value in bad(values):
        with pytest.raises(UsageError, match="argument 'value'"):
            values.SAME[name].put(value)
    assert shop.q.length() == 0


@pytest.mark.full
@pytest.mark.parametrize(
    "value", [datetime(1890, 1, 1, tzinfo=BERLIN), time(1, tzinfo=ODD), time(1, tzinfo=ALMOST_UTC), nan, inf]
)
def test_data_of_a_class_job_that_json_would_change_are_refused_at_the_put(shop, value):
    for data in ({"a": value}, {"a": [{"b": value}]}):
        with pytest.raises(UsageError, match=r"has seconds, which JSON cannot represent|cannot express"):
            shop.q.put("some.Class", data)
    assert shop.q.length() == 0


@pytest.mark.full
def test_a_result_that_json_would_change_fails_its_job_with_the_reason(shop, values):
    shop.start("thread")
    for job in (values.old, values.odd_time, values.order, values.nothing):
        with pytest.raises(
            JobFailed, match=r"has seconds, which JSON cannot represent|cannot express"
        ) as caught:
            job.put().result(30)
        assert caught.value.group == "q-UnserializableResult"
