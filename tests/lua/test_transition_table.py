"""Each row of the protocol's table of transitions (1.5), by its number: what it does to every column, natively.

`Change.of` is asked after the one call that a row is about: it tells the columns that are not as they were. Events are
those of a tracked job and of workers; what goes to a log channel is the other door's.
"""

from typing import Any

import pytest
from test_tracking_story import Ear, ear  # noqa: F401

from holdfast.commands.admin import ConfigSet
from holdfast.commands.attributes import Track
from holdfast.commands.dependencies import CompleteX, Depend
from holdfast.commands.failures import Unfail
from holdfast.commands.jobs import Cancel
from holdfast.commands.leases import Complete, Heartbeat, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Advance, Fail, Retry, Timeout
from holdfast.commands.queues import GetStats, ThrottleSet
from holdfast.commands.recurring import Recur
from holdfast.models import JobFacts
from native_door import Door

STATS = ("retries", "failed", "failures", "wait", "run")


class Table:
    """The job `j` of queue `q`, tracked, under the throttle `db` of one slot; and what changes of it."""

    def __init__(self, core: Any, clock: Any, door: Door, heard: Ear) -> None:
        self.core, self.clock, self.door, self.ear = core, clock, door, heard
        core(ThrottleSet("db", 1))

    def put(
        self, jid: str = "j", retries: int = 5, delay: int = 0, mode: str = "move", *depends: str
    ) -> None:
        wish = ExtraOptions(throttles=["db"], depends=depends)
        self.core(
            PutX("q", [JobWithOptions("k", b"{}", jid, wish)], retries=retries, delay_ms=delay, mode=mode)
        )

    def waits(self, **more: Any) -> None:
        """The job is there and tracked."""
        self.put(**more)
        self.core(Track(True, "j"))
        self.settle()

    def runs(self, **more: Any) -> JobFacts:
        self.waits(**more)
        [job] = self.pop()
        self.settle()
        return job

    def pop(self, worker: str = "w") -> list[JobFacts]:
        return list(self.core(Pop(worker, ["q"], 1)))

    def settle(self) -> None:
        """What is so far is how it was before."""
        self.ear.heard()
        self.before, self.lines = self.columns(), self.history()

    def job(self) -> JobFacts | None:
        return self.door.job("j")

    def columns(self) -> dict[str, Any]:
        job, stats = self.job(), self.core(GetStats("q"))
        numbers = (stats.retries, stats.failed, stats.failures, stats.wait.count, stats.run.count)
        own = {"holders": self.members("holders"), "pending": self.members("pending")}
        facts: dict[str, Any] = {"state": "absent"}
        if job:
            left = job.expires_ms - self.clock.now_ms if job.expires_ms else 0
            facts = {"state": job.state, "remaining": job.remaining, "worker": job.worker, "expires": left}
        return {**facts, **dict(zip(STATS, numbers, strict=True)), **own}

    def members(self, kind: str) -> list[str]:
        return [jid.decode() for jid in self.door.look("list", kind, "db", "", "", 9, "")[::2]]

    def history(self) -> list[tuple[str, str]]:
        job = self.job()
        return [(line.what, line.name) for line in job.history] if job else []

    def changed(self) -> dict[str, Any]:
        """The columns that differ, the new lines of the history, and what was told."""
        columns, lines = self.columns(), self.history()
        found = {name: value for name, value in columns.items() if self.before.get(name) != value}
        if lines[len(self.lines) :]:
            found["lines"] = lines[len(self.lines) :]
        heard = [
            channel for channel, message in self.ear.heard() if message == "j" or channel.startswith("w:")
        ]
        return {**found, "events": heard} if heard else found


@pytest.fixture
def table(core, clock, door: Door, ear: Ear) -> Table:  # noqa: F811
    return Table(core, clock, door, ear)


PUT = {"lines": [("put", "q")], "events": ["put"]}


def test_row_1_a_put_makes_a_job_wait_and_takes_it_out_of_its_failures(table: Table):
    table.core(Fail("w", table.runs(), "G", "m"))
    table.settle()
    table.put(retries=3)
    assert table.changed() == {"state": "waiting", "remaining": 3, "failed": 0, **PUT}


def test_row_1_a_put_takes_the_lease_and_the_slots_of_a_running_job(table: Table):
    table.runs()
    table.put()
    assert table.changed() == {
        "state": "waiting", "worker": "", "expires": 0, "holders": [], "lines": PUT["lines"], "events": ["w:w", "put"],
    }  # fmt: skip


def test_row_2_a_put_with_a_delay_does_not_look_at_throttles(table: Table):
    table.put("first")
    table.pop()
    table.waits()
    assert table.before["state"] == "throttled"
    table.put("j", 4, 5_000)
    assert table.changed() == {"state": "scheduled", "remaining": 4, "pending": [], **PUT}


def test_row_3_a_put_with_open_parents_waits_for_them_and_keeps_its_delay(table: Table):
    table.door.put("p", "parent")
    table.waits()
    table.put("j", 5, 5_000, "move", "parent")
    assert table.changed() == {"state": "depends", **PUT}


def test_row_4_a_put_that_finds_a_throttle_full_is_set_aside(table: Table):
    table.put("first")
    table.pop()
    table.waits(delay=9_000)
    table.put()
    lines = [("put", "q"), ("throttled", "q")]
    assert table.changed() == {"state": "throttled", "pending": ["j"], "lines": lines, "events": ["put"]}


def test_row_5_a_job_that_is_due_becomes_ready_without_a_word(table: Table):
    table.waits(delay=5_000)
    table.clock.advance(seconds=5)
    table.door.put("q", "before", priority=9)
    assert [job.jid for job in table.pop()] == ["before"]
    assert table.changed() == {"state": "waiting", "wait": 1}


@pytest.mark.parametrize(("delay", "state"), [(0, "waiting"), (5_000, "scheduled")])
def test_rows_6_and_7_the_last_parent_lets_a_job_go_by_its_delay(table: Table, delay: int, state: str):
    table.door.put("p", "parent")
    table.waits()
    table.put("j", 5, delay, "move", "parent")
    table.settle()
    table.core(Complete("w", table.core(Pop("w", ["p"]))[0]))
    assert table.changed() == {"state": state}


def test_row_8_a_parent_taken_away_lets_a_job_go_whatever_its_delay(table: Table):
    table.door.put("p", "parent")
    table.waits()
    table.put("j", 5, 5_000, "move", "parent")
    table.settle()
    table.core(Depend("j", ["parent"], "remove"))
    assert table.changed() == {"state": "waiting"}


RUNNING = {"state": "running", "worker": "w", "expires": 60_000}
POPPED = {"wait": 1, "lines": [("popped", "q")], "events": ["popped"]}


@pytest.mark.usefixtures("long_leases")
@pytest.mark.parametrize("ready", ["waiting", "stalled", "throttled"])
def test_row_9_a_ready_job_is_popped_and_takes_its_slots(table: Table, ready: str):
    if ready == "stalled":
        table.runs()
        table.core(Timeout(["j"]))
    elif ready == "throttled":
        table.put("first")
        [first] = table.pop()
        table.waits()
        table.core(Complete("w", first))
    else:
        table.waits()
    table.settle()
    assert table.before["state"] == ready
    table.pop()
    assert table.changed() == {**RUNNING, **POPPED, "wait": 1 + (ready != "waiting"), "holders": ["j"]}


def test_row_10_a_ready_job_that_finds_a_throttle_full_is_set_aside(table: Table):
    table.waits()
    table.put("first")
    table.put("j", 5, 1_000)
    table.pop()
    table.clock.advance(seconds=1)
    table.settle()
    table.pop()
    assert table.changed() == {"state": "throttled", "pending": ["j"], "lines": [("throttled", "q")]}


def test_row_11_a_slot_that_comes_back_lets_a_job_go_and_is_taken_at_the_pop(table: Table):
    table.put("first")
    [first] = table.pop()
    table.waits()
    table.core(Complete("w", first))
    assert table.changed() == {"pending": [], "holders": [], "run": 1}
    assert table.door.look("list", "waiting", "q", "", "", 9, "")[0] == b"j"


@pytest.mark.usefixtures("long_leases")
def test_row_12_a_heartbeat_makes_the_lease_longer_and_nothing_else(table: Table):
    job = table.runs()
    table.clock.advance(seconds=20)
    table.settle()
    table.core(Heartbeat("w", job))
    assert table.changed() == {"expires": 60_000}


END = {"worker": "", "expires": 0, "holders": []}


def test_row_13_a_completed_job_has_all_its_retries_and_no_failure(table: Table):
    table.core(Retry("w", table.runs(), 0, "G", "m"))
    [again] = table.pop()
    table.settle()
    table.core(Complete("w", again))
    lines, events = [("done", "q")], ["completed"]
    assert table.changed() == {
        **END,
        "state": "complete",
        "remaining": 5,
        "run": 1,
        "lines": lines,
        "events": events,
    }
    assert table.job().failure is None


@pytest.mark.parametrize("state", ["waiting", "scheduled", "depends"])
def test_row_14_a_job_goes_on_in_the_next_queue(table: Table, state: str):
    table.door.put("p", "parent")
    job = table.runs()
    if state == "depends":
        table.core(CompleteX("w", job, next_queue="next", depends=["parent"]))
    else:
        table.core(Advance("w", "next", job, 5_000 if state == "scheduled" else 0))
    found = table.changed()
    assert found.pop("lines")[-1][1] == "next"
    assert found == {**END, "state": state, "run": 1, "events": ["completed"]}


FAILED = {**END, "state": "failed", "failures": 1, "failed": 1, "events": ["failed"]}


def test_row_15_a_failure_is_counted_and_gives_the_slots_back(table: Table):
    table.core(Fail("w", table.runs(), "G", "m"))
    assert table.changed() == {**FAILED, "lines": [("failed", "G")]}


@pytest.mark.parametrize(("delay", "state"), [(0, "waiting"), (5_000, "scheduled")])
def test_row_16_a_retry_costs_one(table: Table, delay: int, state: str):
    table.core(Retry("w", table.runs(), delay))
    found = table.changed()
    found.pop("lines")  # the line of the attempt, which tells a repeat
    assert found == {**END, "state": state, "remaining": 4}


def test_row_17_a_retry_without_one_left_fails_the_job(table: Table):
    table.core(Retry("w", table.runs(retries=0)))
    lines = [("failed-retries", "failed-retries-q")]
    assert table.changed() == {**FAILED, "remaining": -1, "lines": lines}


@pytest.mark.usefixtures("long_leases")
def test_rows_18_and_19_a_lost_lease_is_noticed_and_then_handed_on_with_its_slots(table: Table):
    table.runs()
    table.clock.advance(seconds=60)
    table.settle()
    assert table.pop("v") == []
    told = {"retries": 1, "lines": [("timed-out", "")], "events": ["stalled", "w:w"]}
    found = table.changed()
    assert found.pop("expires", 10_000) == 10_000
    assert found == told
    table.clock.advance(seconds=10)
    table.settle()
    assert len(table.pop("v")) == 1
    lines = [("lost", "retries"), ("popped", "q")]
    assert table.changed() == {
        **POPPED, "lines": lines, "worker": "v", "expires": 60_000, "remaining": 4, "wait": 2,
    }  # fmt: skip


@pytest.mark.usefixtures("long_leases")
def test_row_20_a_lost_lease_without_a_retry_left_fails_the_job(table: Table):
    table.runs(retries=0)
    table.clock.advance(seconds=60)
    table.pop("v")
    table.clock.advance(seconds=10)
    table.settle()
    assert table.pop("v") == []
    gone = {**FAILED, "remaining": -1, "lines": [("lost", "retries"), ("failed", "failed-retries-q")]}
    gone.pop("expires")
    assert table.changed() == gone


def test_rows_18_and_19_are_one_without_grace(table: Table):
    table.core(ConfigSet("grace-period", "0"))
    table.runs()
    table.clock.advance(seconds=60)
    table.settle()
    assert len(table.pop("v")) == 1
    assert table.changed()["lines"] == [("timed-out", ""), ("lost", "retries"), ("popped", "q")]


def test_row_21_a_timeout_takes_the_lease_and_no_retry(table: Table):
    table.runs()
    table.core(Timeout(["j"]))
    assert table.changed() == {**END, "state": "stalled", "lines": [("timed-out", "")], "events": ["w:w"]}


def test_row_22_a_failed_job_gets_another_chance(table: Table):
    table.core(Retry("w", table.runs(), 0))
    table.core(Fail("w", table.pop()[0], "G", "m"))
    table.settle()
    assert table.core(Unfail("q", "G", 1)) == 1
    assert table.changed() == {"state": "waiting", "remaining": 5, "failed": 0, "lines": [("put", "q")]}


def test_row_23_a_cancelled_job_is_gone_with_its_failure_or_its_slots(table: Table):
    table.runs()
    table.core(Cancel(["j"]))
    found = table.changed()
    assert (found["state"], found["holders"], found["events"]) == ("absent", [], ["w:w", "canceled"])
    table.core(Fail("w", table.runs(), "G", "m"))
    table.settle()
    table.core(Cancel(["j"]))
    assert (table.changed()["failed"], table.job()) == (0, None)


def test_row_24_a_completed_job_goes_by_the_rules_of_retention(table: Table):
    table.core(ConfigSet("jobs-history-count", "0"))
    table.core(Complete("w", table.runs()))
    assert table.changed()["state"] == "absent"


def test_row_25_a_template_that_is_due_puts_a_job_at_its_moment(table: Table):
    table.core(Recur(queue="q", klass="k", jid="t", interval_ms=60_000, offset_ms=5_000, retries=2))
    table.clock.advance(seconds=7)
    table.door.put("q", "before", priority=9)
    assert [job.jid for job in table.pop()] == ["before"]
    job = table.door.job("t-1")
    assert (job.state, job.remaining, job.worker, job.expires_ms) == ("waiting", 2, "", 0)
    assert [(line.what, line.name) for line in job.history] == [("put", "q")]
    assert job.history[0].when_ms == table.clock.now_ms - 2_000
    assert table.ear.heard() == []
