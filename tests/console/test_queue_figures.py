"""What lists and charts of queues show: what happened lately, forecasts, the jobs of a queue by state."""

from collections.abc import Callable

import pytest

from holdfast import Client, UsageError
from holdfast.cli.queues import detail
from holdfast.commands import Command
from holdfast.commands.admin import Watch
from holdfast.commands.views import Minutes, Tallies
from holdfast.commands.workers import WorkerSeen
from holdfast.console.handles import Console
from holdfast.console.put import NamedCode
from holdfast.console.read import charts
from holdfast.console.read.charts import PROTOCOL_BUCKETS, added, per_minute, rates, steps, waiting_at
from holdfast.console.read.queries import Series, Servers, growth_of
from holdfast.console.read.queue_figures import QueueFigures
from holdfast.models import Counts, Sample
from holdfast.testing.clock import START_MS, StoppedClock

MINUTE = 60_000


def period(when_ms: int, **counts: int) -> Series:
    return Series(when_ms, 60.0, *[counts.get(name, 0) for name in ("put", "popped", "completed", "failed", "retried", "lost")])  # fmt: skip


@pytest.fixture
def clock(client: Client) -> StoppedClock:
    """The stopped clock of this test's namespace."""
    made = StoppedClock(client, START_MS)
    made.start()
    return made


@pytest.fixture
def console(client: Client) -> Console:
    return Console(client, actor="ada")


def test_a_period_over_several_steps_is_spread_over_them() -> None:
    line = Series(10 * MINUTE, 120.0, 0, 0, 6, 0, 0, 0)
    assert rates([line], "completed", 10 * MINUTE, MINUTE, 3) == [0.0, 3.0, 3.0]
    assert rates([line], "completed", 10 * MINUTE + 30_000, MINUTE, 3) == [1.5, 3.0, 1.5]
    assert rates([line], "completed", 20 * MINUTE, MINUTE, 3) == [0.0, 0.0, 0.0]


def test_steps_add_queues_and_know_their_times() -> None:
    found = steps([[period(MINUTE, put=2)], [period(MINUTE, put=3)]], ("put",), MINUTE, MINUTE, 2)
    assert found.of("put") == (0.0, 5.0)
    assert found.times == (0, 60)
    assert steps([], ("put",), MINUTE, MINUTE, 2).of("put") == (0.0, 0.0)


def test_ten_minute_steps_are_shown_a_minute() -> None:
    found = steps([[period(10 * MINUTE, put=5)]], ("put",), 10 * MINUTE, 10 * MINUTE, 1)
    assert found.a_minute("put") == (0.5,)


def noted(minute: float, put: int, waiting: int) -> Tallies:
    return Tallies(round(minute * MINUTE), put=put, waiting=waiting)


def waited(lines: list[Tallies], *minutes: float) -> tuple[int | None, ...]:
    return waiting_at(lines, [round(minute * 60) for minute in minutes])


def test_a_backlog_is_what_was_noted_and_unknown_where_nobody_noted_it() -> None:
    lines = [
        noted(3, 9, 5),
        noted(4, 9, 5),
        noted(8, 9, 5),
        noted(9, 20, 16),
        noted(14, 30, 2),
        noted(14.5, 30, 3),
    ]
    assert waited(lines, *range(2, 15)) == (None, 5, 5, 5, 5, 5, 5, 16, None, None, None, None, 3)
    assert waited([noted(3, 9, -1), noted(4, 9, -1), noted(4.5, 9, 7)], 2, 3, 4, 4.5) == (None, None, 7, 7)
    assert waited([noted(9, 0, 4)], 1, 9) == (None, 4)


def test_a_backlog_of_days_ago_is_known_from_the_lines_that_were_kept() -> None:
    day = 24 * 60
    lines = [noted(0, 1, 5), noted(10, 2, 8), noted(29, 3, 9), noted(60, 4, 2), noted(day, 4, 1)]
    assert waited(lines, 5, 15, 28, 29.5, 45) == (5, 8, 8, 9, None)


@pytest.mark.parametrize(
    ("text", "minutes", "columns"),
    [
        ("100-160", 1, 1),
        ("0-5400", 1, 90),
        ("0-36000", 5, 120),
        ("0-604800", 60, 168),
        ("604770-999999", 1, 1),
    ],
)
def test_a_range_of_two_times_has_steps_of_whole_minutes(text: str, minutes: int, columns: int) -> None:
    now_ms = 604_800_000
    found = charts.period(text, now_ms)
    assert (found.step_ms, found.columns) == (minutes * MINUTE, columns)
    assert found.end_ms == min(int(text.partition("-")[2]) * 1000, now_ms)


@pytest.mark.parametrize(
    "text", ["", "1y", "5-5", "9-5", "1-2-3", "-5-5", "1e3-2e3", "0-1", "9999999-99999999"]
)
def test_a_range_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="range: expected"):
        charts.period(text, 1_000_000_000)


def test_growth_is_that_of_the_waiting_jobs_over_two_to_three_minutes() -> None:
    counts = Counts("mail", waiting=30)

    def growth(*lines: tuple[float, int], now: Counts = counts) -> float | None:
        return growth_of(
            [Series(round(at * MINUTE), 60.0, 9, 0, 0, 0, 0, 0, waiting) for at, waiting in lines],
            now,
            Servers(("w",)),
        )

    assert growth((1, 500), (7, 90), (8, 60), (9, 50), (10, 30)) == pytest.approx(-15)
    assert growth((7.5, 20), (8.5, 30), (10, 30)) == pytest.approx(4)
    assert growth((2, 30), (10, 30)) == 0
    for unknown in ([], [(10, 30)], [(2, 40), (10, 30)], [(8, -1), (10, 30)], [(8, 30), (10, -1)]):
        assert growth(*unknown) is None
    assert growth((8, 60), (10, 30), now=Counts("mail", waiting=30, paused=True)) is None


def test_a_queue_drains_only_if_fewer_wait_each_minute() -> None:
    counts = Counts("mail", waiting=30)
    assert QueueFigures(counts, (), -2.0, None, None, 0).drains_in == 900
    assert QueueFigures(counts, (), 2.0, None, None, 0).drains_in is None
    assert QueueFigures(counts, (), None, None, None, 0).drains_in is None
    assert QueueFigures(Counts("mail"), (), -2.0, None, None, 0).drains_in is None


def test_older_buckets_are_jobs_a_minute() -> None:
    buckets = [0] * PROTOCOL_BUCKETS
    buckets[3], buckets[60], buckets[119], buckets[142] = 2, 2, 60, 1440
    found = dict(per_minute(Sample(0, 0, 0, tuple(buckets))))
    assert len(found) == PROTOCOL_BUCKETS
    assert found["3 seconds"] == 120
    assert found["1 minutes"] == 2
    assert found["1 hours"] == pytest.approx(1)
    assert found["1 days"] == pytest.approx(1)


def test_samples_are_added() -> None:
    zeros = (0,) * PROTOCOL_BUCKETS
    found = added([Sample(1, 2.0, 0, zeros, ((8, 1),)), Sample(3, 4.0, 0, zeros, ((8, 2), (9, 1)))])
    assert (found.count, found.mean, found.fine) == (4, 3.5, ((8, 3), (9, 1)))
    assert added([]).count == 0


def test_figures_have_what_happened_lately(client: Client, clock: StoppedClock, console: Console) -> None:
    mail = client.queues["mail"]
    for _ in range(8):
        mail.put("jobs.send", {})
    for _ in range(3):
        for job in mail.pop(2):
            job.complete()
        clock.advance(minutes=1)
    client.queues["idle"].put("jobs.send", {})
    [found, idle] = console.queue_figures(console.counts("mail", "idle"))
    assert sum(found.trend) == pytest.approx(6)
    assert found.wait_p95 == pytest.approx(120, rel=0.25)
    assert found.growth == pytest.approx(-4 / 2, rel=0.5)
    assert found.drains_in == -2 * 60 / found.growth
    assert console.queue("mail").drains_in == found.drains_in
    assert (idle.wait_p95, sum(idle.trend), idle.workers) == (None, 0, 0)
    assert console.queue_figures(()) == []


def test_throughput_adds_queues_step_by_step(client: Client, clock: StoppedClock, console: Console) -> None:
    for name in ("a", "b"):
        client.queues[name].put("jobs.send", {})
        clock.advance(minutes=1)
        client.queues[name].pop().complete()  # type: ignore[union-attr]
    found = console.throughput(["a", "b"], "24h")
    assert sum(found.of("completed")) == pytest.approx(2)
    assert len(found.times) == 144
    assert console.waits(["a", "b"]).count == 2
    with pytest.raises(UsageError, match="range: expected one of 90m, 24h, 7d"):
        console.throughput(["a"], "1y")


def test_waiting_jobs_are_listed_as_they_are_popped(client: Client, console: Console) -> None:
    mail = client.queues['ma"il']
    low = [mail.put("jobs.low", {}) for _ in range(3)]
    high = mail.put("jobs.high", {}, priority=9)
    first = console.queue_jobs('ma"il', "waiting", limit=2)
    rest = console.queue_jobs('ma"il', "waiting", limit=9, after=first.jobs.next)
    assert [row.jid for row in (*first.jobs.rows, *rest.jobs.rows)] == [high, *low]
    assert first.jobs.total == 4
    assert [job.jid for job in console.jobs(first.filter).jobs] == [high, *low]


def test_depending_and_throttled_jobs_show_what_keeps_them(client: Client, console: Console) -> None:
    mail = client.queues["mail"]
    client.throttles["api"].maximum = 1
    holder, held = (mail.put("jobs.call", {}, throttles=["api"]) for _ in range(2))
    mail.pop(2)
    child = mail.put("jobs.child", {}, depends=[holder])
    assert console.queue_jobs("mail", "depends").needs == {child: (holder,)}
    found = console.queue_jobs("mail", "throttled")
    assert found.needs == {held: ("api",)}
    assert (found.throttles["api"].facts.maximum, found.throttles["api"].holder) == (1, holder)


def test_recurring_jobs_of_a_queue_are_those_of_no_other(client: Client, console: Console) -> None:
    jid = client.queues["mail*"].recur("jobs.send", {}, interval=60)
    client.queues["mail-two"].recur("jobs.send", {}, interval=60)
    assert [one.jid for one in console.recurring_of("mail*").rows] == [jid]


def test_queues_are_sorted_either_way_and_paged(client: Client, console: Console) -> None:
    for name, count in (("a", 1), ("b", 3), ("c", 2)):
        for _ in range(count):
            client.queues[name].put("jobs.send", {})
    for sort, reverse, order in (
        ("name", False, "abc"),
        ("name", True, "cba"),
        ("waiting", False, "bca"),
        ("waiting", True, "acb"),
        ("recurring", False, "abc"),
    ):
        first = console.queues(sort=sort, reverse=reverse, limit=2)
        rest = console.queues(sort=sort, reverse=reverse, limit=2, after=first.next)
        assert "".join(one.name for one in (*first.rows, *rest.rows)) == order, (sort, reverse)


def test_a_put_by_name_is_in_the_audit_log(client: Client, console: Console) -> None:
    code = NamedCode("shop.mail.welcome", False, 1 << 20)
    jid = console.put_job("mail", code, code.data("[7]"), {"priority": 3})
    job = client.job(jid)
    assert (job.klass_name, job.priority, job.retries_left) == ("shop.mail.welcome", 3, 0)
    [line] = console.audit().rows
    assert (line.who, line.what, line.target) == ("ada", "put", "mail")
    with pytest.raises(UsageError, match="priority"):
        console.put_job("mail", code, code.data("[7]"), {"priority": "high"})


def test_a_queue_without_a_worker_has_its_minutes_while_anybody_is_alive(
    client: Client, clock: StoppedClock, console: Console
) -> None:
    """Another queue's worker reports, or a page of the web interface is open: both continue the same round."""
    mail, other = client.queues["mail"], client.queues["other"]
    clock.advance(seconds=60 - clock.now % 60)
    other.put("jobs.send", {})
    alive: list[Command[object]] = [WorkerSeen("w", {"queues": '["other"]'}), Watch(15_000)]
    for minute in range(12):
        if 4 <= minute < 7:
            mail.put_many([("jobs.send", {})] * 100)
            mail.put("jobs.later", {}, delay=3600)
        client.run(alive[minute % 2])
        clock.advance(minutes=1)
    put = console.throughput(["mail"], "90m").of("put")
    assert [round(count) for count in put[-12:]] == [0, 0, 0, 101, 101, 101, 0, 0, 0, 0, 0, 0]
    lines = client.run(Minutes("mail"))
    assert len(lines) <= 7  # a queue in which nothing happens gets no line
    assert lines[0].put == 0


def test_a_queue_that_nobody_serves_has_no_forecast_wherever_it_is_shown(
    client: Client, clock: StoppedClock, console: Console
) -> None:
    mail = client.queues["mail"]

    def growth(alive: Callable[[], object]) -> float | None:
        for _ in range(4):
            client.run(Watch(15_000))
            clock.advance(minutes=1)
            alive()
            mail.put_many([("jobs.send", {})] * 10)
        [found] = console.queue_figures(console.counts("mail"))
        shown = detail(console.queue("mail"))
        assert (shown["growth"], shown["drains_in"]) == (found.growth, found.drains_in)
        return found.growth

    assert growth(lambda: None) is None
    assert growth(lambda: mail.pop(1)) == pytest.approx(9, abs=5)  # a program that reports no queues
    assert growth(lambda: client.run(WorkerSeen("w", {"queues": '["mail"]'}))) == pytest.approx(10, abs=5)
    clock.advance(minutes=2)
    mail.pop(1)
    assert growth(lambda: None) is None  # the worker is silent


def test_the_backlog_is_that_of_waiting_jobs_also_where_jobs_are_scheduled_and_nobody_serves_the_queue(
    client: Client, clock: StoppedClock, console: Console
) -> None:
    mail = client.queues["mail"]
    clock.advance(seconds=60 - clock.now % 60)
    for minute in range(8):
        if minute in (2, 3):
            mail.put_many([("jobs.send", {})] * 100)
            mail.put_many([("jobs.later", {})] * 50, delay=180)
        client.run(Watch(15_000))
        clock.advance(minutes=1)
    assert console.backlog("mail", console.throughput(["mail"], "90m"))[-7:] == (
        100,
        200,
        200,
        250,
        300,
        300,
        300,
    )


def test_the_backlog_of_a_quiet_queue_holds_until_something_changes_and_a_night_without_anybody_is_a_gap(
    client: Client, clock: StoppedClock, console: Console
) -> None:
    mail = client.queues["mail"]
    clock.advance(seconds=60 - clock.now % 60)

    def quiet(minutes: int) -> None:
        for _ in range(minutes):
            client.run(Watch(15_000))
            clock.advance(minutes=1)

    def last() -> tuple[int | None, ...]:
        return console.backlog("mail", console.throughput(["mail"], "90m"))[-6:]

    mail.put_many([("jobs.send", {})] * 7)
    quiet(200)
    assert last() == (7, 7, 7, 7, 7, 7)
    mail.put("jobs.send", {})  # noted by nobody yet
    assert last() == (7, 7, 7, 7, 7, 8)
    clock.advance(minutes=4)
    assert last() == (7, None, None, None, None, 8)


def test_jobs_that_are_scheduled_are_no_growth_and_a_paused_queue_has_no_forecast(
    client: Client, clock: StoppedClock, console: Console
) -> None:
    mail = client.queues["mail"]
    for _ in range(4):
        mail.put_many([("jobs.later", {})] * 30, delay=3600)
        mail.put("jobs.now", {})
        clock.advance(seconds=1)
        for job in mail.pop(9):
            job.complete()
        client.run(Watch(15_000))
        clock.advance(minutes=1)
    [found] = console.queue_figures(console.counts("mail"))
    assert found.growth == pytest.approx(0, abs=1)
    mail.put_many([("jobs.now", {})] * 60)
    clock.advance(minutes=1)
    [found] = console.queue_figures(console.counts("mail"))
    assert found.growth is not None
    assert found.growth > 15
    mail.pause()
    [found] = console.queue_figures(console.counts("mail"))
    assert (found.growth, console.queue("mail").growth) == (None, None)


def test_the_sum_of_the_minutes_is_what_was_counted(
    client: Client, clock: StoppedClock, console: Console
) -> None:
    for _ in range(3):
        client.queues["mail"].put_many([("jobs.send", {})] * 20)
        for job in client.queues["mail"].pop(20):
            job.complete()
        clock.advance(minutes=1)
    found = console.throughput(["mail"], "90m")
    assert {name: round(sum(found.of(name))) for name in ("put", "popped", "completed")} == {
        "put": 60,
        "popped": 60,
        "completed": 60,
    }
