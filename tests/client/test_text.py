"""How durations, times, sizes, counts and lists are written for people, and how a length of time that they type is read."""

from collections.abc import Callable

import pytest

from holdfast import text

NOW = 1_795_500_000_000
"""2026-11-24 06:00:00 UTC."""


def spaced(narrow: str) -> str:
    return narrow.replace("\u202f", " ").replace("\u00a0", " ")


def test_a_number_has_its_noun_in_the_singular_for_one_only() -> None:
    assert [text.counted(count, "job") for count in (0, 1, 2, 1234)] == [
        "0 jobs",
        "1 job",
        "2 jobs",
        "1,234 jobs",
    ]
    assert text.counted(1_234_567, "job", comma=text.THIN) == "1\u202f234\u202f567 jobs"
    assert [text.counted(count, "job waits", "jobs wait") for count in (1, 2)] == [
        "1 job waits",
        "2 jobs wait",
    ]
    assert [text.times(count) for count in (1, 3)] == ["once", "3 times"]


def test_one_thing_has_its_name_and_several_their_number() -> None:
    assert text.name_or_count("Worker", ["mail-1"]) == "Worker mail-1"
    assert text.name_or_count("Recurring job", ["a", "b"]) == "2 recurring jobs"
    assert text.name_or_count("Queue", []) == "0 queues"
    assert text.name_or_count("Job", ["j"] * 1234) == "1,234 jobs"


def test_a_list_of_names_ends_with_how_many_more_there_are() -> None:
    assert text.listed([], 2) == ""
    assert text.listed(["a", "b"], 2) == "a, b"
    assert text.listed(["a", "b", "c"], 2) == "a, b and 1 more"
    assert text.listed([f"q{number}" for number in range(1500)]).endswith(", q31 and 1,468 more")
    assert [text.either(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == [
        "a",
        "a or b",
        "a, b or c",
    ]
    assert text.with_counts({"1.0": 2, "1.1": 3}) == "1.0 (2), 1.1 (3)"


@pytest.mark.parametrize(
    ("count", "wide", "narrow"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (1000, "1.0 kB", "1 kB"),
        (1234, "1.2 kB", "1.23 kB"),
        (3_700_000, "3.7 MB", "3.7 MB"),
        (64e9, "64.0 GB", "64 GB"),
        (5 * 10**15, "5000.0 TB", "5e+03 TB"),
    ],
)
def test_a_size_is_in_the_largest_unit_of_which_there_is_one(count: float, wide: str, narrow: str) -> None:
    assert (text.size(count), spaced(text.narrow_size(count))) == (wide, narrow)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.0, "0 s"), (2.5, "2.5 s"), (60, "1 min"), (60.4, "1 min"), (200, "3 min 20 s"), (3599.7, "1 h"), (14_700, "4 h 5 min"), (86_400 * 3 + 7200, "3 d 2 h")],
)  # fmt: skip
def test_a_duration_has_at_most_two_units(seconds: float, shown: str) -> None:
    assert text.duration(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.5, "0.5 seconds"), (86_400, "86400 seconds"), (2_678_400, "2,678,400 seconds (31 days)"), (3_162_240_000, "3,162,240,000 seconds (100 years)"), (-3_162_240_000, "-3,162,240,000 seconds (-100 years)")],
)  # fmt: skip
def test_a_bound_is_exact_and_a_large_one_is_in_words_too(seconds: float, shown: str) -> None:
    assert text.bound(seconds) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0 s"), (0.0004, "0.4 ms"), (0.31, "310 ms"), (0.9996, "1 s"), (1.84, "1.8 s"), (9.96, "10 s"), (59.6, "1 m"), (190, "3 m 10 s"), (3599.7, "1 h"), (8640, "2 h 24 m"), (273_600, "3 d 4 h"), (-2.5, "−2.5 s"), (float("nan"), "–"), (float("-inf"), "–")],
)  # fmt: skip
def test_a_narrow_duration_has_at_most_two_units(seconds: float, shown: str) -> None:
    assert spaced(text.narrow_duration(seconds)) == shown


@pytest.mark.parametrize(
    ("ms", "shown"),
    [(-5, "0 ms"), (310, "310 ms"), (4000, "4 s"), (119_000, "119 s"), (720_000, "12 min"), (10_800_000, "3 h"), (172_800_000, "2 d")],
)  # fmt: skip
def test_a_span_has_one_unit(ms: float, shown: str) -> None:
    assert text.span(ms) == shown


def test_a_duration_of_an_axis_has_one_unit() -> None:
    seconds = (0.001, 0.01, 1, 1.5, 1200, 7200, 604_800)
    assert [text.axis_duration(one) for one in seconds] == [
        "1 ms",
        "10 ms",
        "1 s",
        "1.5 s",
        "20 m",
        "2 h",
        "7 d",
    ]


def test_an_interval_is_in_the_largest_unit_that_divides_it() -> None:
    found = [text.every(ms) for ms in (3_600_000, 900_000, 86_400_000 * 2, 90_000, 1500)]
    assert found == [
        "every hour",
        "every 15 minutes",
        "every 2 days",
        "every 90 seconds",
        "every 1,500 milliseconds",
    ]


@pytest.mark.parametrize(("typed", "ms"), [("0s", 0), ("500ms", 500), ("2h", 7_200_000), ("1d12h", 129_600_000), ("14d3m1s5ms", 1_209_781_005)])  # fmt: skip
def test_a_length_of_time_is_written_as_it_is_read(typed: str, ms: int) -> None:
    assert text.typed_length(ms) == typed
    assert round(1000 * (text.parse_length(typed) or 0)) == ms


def test_a_length_of_time_has_numbers_with_units() -> None:
    assert [text.parse_length(typed) for typed in ("30s", "1.5h", "1w", "1h30m")] == [30, 5400, 604_800, 5400]
    assert [text.parse_length(typed) for typed in ("", "90", "h", "2 h", "2H", "-2h", "1m2", "1.5.5s")] == [
        None
    ] * 8


def test_times_are_absolute_and_relative() -> None:
    assert text.clock(NOW) == "2026-11-24 06:00:00 UTC"
    assert text.clock_time(NOW) == "06:00"
    assert text.short_clock(NOW) == "24 Nov 06:00:00 UTC"
    assert text.iso(NOW + 120) == "2026-11-24T06:00:00.120Z"
    assert text.moment(NOW) == "2026-11-24 06:00:00 UTC"
    assert text.moment(NOW, NOW + 14_400_000) == "2026-11-24 06:00:00 UTC (4 h ago)"


def test_a_time_that_no_calendar_has_is_shown_as_its_number() -> None:
    assert (text.clock(1e30), text.moment(1e30, NOW)) == ("1e+30", "1e+30")
    assert (text.clock_time(1e30), text.iso(1e30)) == ("–", "")


@pytest.mark.parametrize(
    ("how", "shown"),
    [
        (text.ago, ["0 s ago", "3 min 10 s ago", "in 4 h"]),
        (text.brief_ago, ["0 ms ago", "3 min ago", "in 4 h"]),
        (text.narrow_ago, ["now", "3 m 10 s ago", "in 4 h"]),
        (text.age, ["0 ms", "3 min", "0 ms"]),
    ],
)
def test_a_time_is_shown_by_its_distance_from_now(
    how: Callable[[float, float], str], shown: list[str]
) -> None:
    assert [spaced(how(NOW - ms, NOW)) for ms in (0, 190_000, -14_400_000)] == shown


def test_no_time_has_no_distance() -> None:
    assert [how(0, NOW) for how in (text.ago, text.brief_ago, text.age, text.moment)] == [""] * 4
    assert spaced(text.narrow_ago(NOW - 190_000, NOW, bare=True)) == "3 m 10 s"
