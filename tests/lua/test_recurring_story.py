"""Recurring jobs: templates, when they put jobs, and what people may change."""

import pytest

from holdfast.commands.jobs import Cancel, JobGet
from holdfast.commands.leases import Complete, Pop
from holdfast.commands.options import ExtraOptions
from holdfast.commands.queues import GetStats
from holdfast.commands.recurring import Recur, RecurCancel, RecurGet, RecurTag, RecurUpdate
from holdfast.errors import JobNotFound
from holdfast.models import JobFacts
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each

MINUTE = 60_000


class StoreSession:
    """A queue `q` and what recurs in it, its times in seconds since the test began."""

    def __init__(self, core, clock) -> None:
        self.core, self.clock, self.start = core, clock, clock.now_ms

    def recur(self, jid: str = "r", interval: float = 60, offset: float = 0, **more) -> str:
        more.setdefault("queue", "q")
        return self.core(
            Recur(klass="K", jid=jid, interval_ms=int(interval * 1000), offset_ms=int(offset * 1000), **more)
        )

    def at(self, seconds: float) -> None:
        self.clock.advance(seconds=seconds - (self.clock.now_ms - self.start) / 1000)

    def pop(self, limit: int = 500, queue: str = "q") -> list[JobFacts]:
        return self.core(Pop("w", [queue], limit))

    def popped(self, limit: int = 500, queue: str = "q") -> dict[str, float]:
        """The jids popped and when each was put."""
        return {job.jid: (job.created_ms - self.start) / 1000 for job in self.pop(limit, queue)}

    def template(self, jid: str = "r"):
        return self.core(RecurGet([jid]))[0]

    def next(self, jid: str = "r") -> float:
        return (self.template(jid).next_ms - self.start) / 1000


@pytest.fixture
def turns(core, clock) -> StoreSession:
    return StoreSession(core, clock)


def test_a_template_said_again_may_keep_its_time(turns: StoreSession):
    turns.recur("daily", 100, 50, keeps_time=True)
    turns.at(60)
    assert turns.popped() == {"daily-1": 50}
    turns.recur("daily", 100, 0, keeps_time=True, priority=3)
    assert (turns.next("daily"), turns.template("daily").priority) == (150, 3)
    assert turns.popped() == {}
    turns.recur("daily", 130, 0, keeps_time=True)
    assert turns.next("daily") == 180
    turns.at(181)
    assert turns.popped() == {"daily-2": 180}
    turns.recur("daily", 30, 0, keeps_time=True, queue="other")
    assert turns.next("daily") == 210
    turns.recur("daily", 30, 5)
    assert turns.next("daily") == 186


def test_the_worked_trace_of_the_protocol(turns: StoreSession, core, door: Door):
    assert turns.recur("daily", 100, 50, retries=2, options=ExtraOptions(tags=["r"])) == "daily"
    turns.at(49)
    assert turns.pop(10) == []
    turns.at(260)
    first = turns.pop(2)
    assert [(job.jid, job.remaining) for job in first] == [("daily-1", 2), ("daily-2", 2)]
    assert [job.created_ms - turns.start for job in first] == [50_000, 150_000]
    turns.at(261)
    assert turns.popped(2) == {"daily-3": 250}
    assert turns.template("daily").count == 3
    core(RecurUpdate("daily", interval_ms=10_000, priority=3))
    assert turns.next("daily") == 260
    turns.at(275)
    assert [(job.jid, job.priority) for job in turns.pop(10)] == [("daily-4", 3), ("daily-5", 3)]
    assert core(RecurCancel(["daily", "nobody"])) == [True, False]
    turns.at(1000)
    assert door.pop("w", "q") == []
    assert not [name for name in door.names() if name.startswith(("r:", "y:"))]


def test_a_spawned_job_is_put_when_it_was_due_and_waits_from_then_on(turns: StoreSession, core, door: Door):
    turns.recur(interval=60, retries=2, priority=7, data=b'{"a":1}')
    turns.at(30)
    [job] = turns.pop()
    assert (job.jid, job.klass, job.data, job.priority, job.retries) == ("r-1", "K", b'{"a":1}', 7, 2)
    assert core(GetStats("q")).wait.mean == 30
    facts = door.job("r-1")
    assert [(line.what, line.when_ms - turns.start) for line in facts.history] == [
        ("put", 0),
        ("popped", 30_000),
    ]
    assert (facts.spawned_from, facts.scheduled_for_ms) == ("r", turns.start)
    assert job.scheduled_for_ms == turns.start
    assert core(Complete("w", job)) == "complete"


def test_an_occurrence_comes_at_its_moment_not_before(turns: StoreSession):
    turns.recur(interval=60, offset=60)
    turns.at(59.999)
    assert turns.popped() == {}
    turns.at(60)
    assert turns.popped() == {"r-1": 60}
    assert turns.popped() == {}


def test_missed_occurrences_are_made_up_one_by_one(turns: StoreSession):
    turns.recur(interval=60)
    turns.at(599)
    assert turns.popped() == {f"r-{n}": 60 * (n - 1) for n in range(1, 11)}
    assert (turns.next(), turns.template().count) == (600, 10)


@pytest.mark.parametrize(("moment", "put"), [(600, [540, 600]), (630, [600]), (60, [0, 60]), (0, [0])])
def test_a_backlog_limits_how_many_are_made_up(turns: StoreSession, moment: int, put: list[int]):
    turns.recur(interval=60, backlog=1)
    turns.at(moment)
    assert list(turns.popped().values()) == put


def test_milliseconds_of_an_occurrence_are_kept(turns: StoreSession):
    turns.recur(interval=0.25, offset=0.125)
    turns.at(1)
    assert list(turns.popped().values()) == [0.125, 0.375, 0.625, 0.875]


def test_an_offset_may_lie_in_the_past(turns: StoreSession):
    turns.recur(interval=60, offset=-120)
    assert turns.popped() == {"r-1": -120, "r-2": -60, "r-3": 0}


def test_templates_that_are_due_take_turns_by_their_time(turns: StoreSession):
    turns.recur("late", 60, 30)
    turns.recur("early", 60, 10)
    turns.at(100)
    assert list(turns.popped()) == ["early-1", "early-2", "late-1", "late-2"]


def test_one_call_puts_at_most_a_hundred_and_the_next_goes_on(turns: StoreSession):
    turns.recur(interval=1)
    turns.at(249)
    assert [len(turns.pop()) for _ in range(4)] == [100, 100, 50, 0]
    assert turns.template().count == 250


def test_a_paused_queue_puts_nothing(turns: StoreSession, door: Door):
    turns.recur(interval=60)
    door("pause", "", 0, 1, "", "", 0, "q")
    turns.at(60)
    assert turns.popped() == {}
    assert turns.template().count == 0
    door("pause", "", 0, 0, "", "", 0, "q")
    assert turns.popped() == {"r-1": 0, "r-2": 60}


@pytest.mark.usefixtures("long_leases")
def test_a_full_queue_puts_nothing_and_nobody_is_told_to_come_back_for_it(
    turns: StoreSession, core, door: Door
):
    door("throttle_set", "", 0, "ql:q:q", 1, 0)
    turns.recur(interval=10)
    [job] = turns.pop()
    turns.at(40)
    assert door("pop", "v", "", 0, 5, 0, "q", 1) == [20_000]  # until the lease ends
    assert turns.template().count == 1
    core(Complete("w", job))
    assert turns.popped() == {"r-2": 10}
    assert turns.template().count == 5


def test_a_pop_sent_again_puts_nothing_twice(turns: StoreSession, door: Door):
    turns.recur(interval=10)
    turns.at(15)
    pop = ("pop", "w", "line", 1, 10, 0, "q", 0)
    assert door(*pop)[1::4] == door(*pop)[1::4] == [b"r-1", b"r-2"]
    assert turns.template().count == 2


def test_an_idle_worker_learns_of_a_template(turns: StoreSession, door: Door):
    assert door("pop", "w", "", 0, 1, 0, "q", 1) == [-1]
    turns.recur(interval=60, offset=5)
    assert door.ask("LLEN", door.key("n:q")) == 1
    assert door("pop", "w", "", 0, 1, 0, "q", 2) == [5000]


def test_w2_a_job_that_exists_is_not_taken_over(turns: StoreSession, door: Door):
    door.put("other", "r-1", "r-2")
    turns.recur(interval=60)
    turns.at(60)
    assert turns.popped() == {"r-3": 0, "r-4": 60}
    assert door.job("r-1").queue == "other"


def test_w2_names_that_are_all_taken_are_passed_a_hundred_a_call(turns: StoreSession, door: Door):
    for first in (0, 500):
        door.put("other", *[f"r-{n}" for n in range(first + 1, first + 501)][: 250 - first])
    turns.recur(interval=60)
    assert [list(turns.popped()) for _ in range(4)] == [[], [], ["r-251"], []]


def test_w30_an_interval_must_be_longer_than_nothing(turns: StoreSession, core, door: Door):
    turns.recur(interval=60)
    before = door.dump()
    for interval in ("0", "-1", "0.5", "nan"):
        with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
            door("recur_update", "", 0, "r", "priority", 1, "interval", interval)
        with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
            door("recur", "", 0, "set", "q", "r", "K", "{}", interval, 0, 0, 0, 0, 0)
    assert door.dump() == before


def test_w30_what_would_be_due_before_all_time_is_found(turns: StoreSession, core, door: Door):
    years = 3_000_000_000
    turns.recur(interval=years, offset=-turns.start / 1000, backlog=1)
    core(RecurUpdate("r", interval_ms=1000))
    assert turns.next() == -turns.start / 1000
    core(RecurUpdate("r", interval_ms=int(turns.start)))
    assert list(turns.popped()) == ["r-1"]


def test_w30_a_template_that_moves_leaves_its_old_queue_s_throttle_behind(turns: StoreSession, core):
    mine = ExtraOptions(throttles=["ql:q:q", "mine", "ql:q:p"])
    turns.recur(options=mine)
    assert turns.template().throttles == ("mine", "ql:q:p", "ql:q:q")
    turns.recur(queue="p", options=mine)
    assert turns.template().throttles == ("mine", "ql:q:p")
    core(RecurUpdate("r", queue="q"))
    assert turns.template().throttles == ("mine", "ql:q:q")
    core(RecurUpdate("r", throttles=[]))
    assert turns.template().throttles == ("ql:q:q",)


def test_w30_tags_come_once(turns: StoreSession, core):
    turns.recur(options=ExtraOptions(tags=["a", "b", "a"]))
    assert turns.template().tags == ("a", "b")
    assert core(RecurTag("add", "r", ["b", "c", "c"])) == ["a", "b", "c"]
    assert core(RecurTag("remove", "r", ["b", "x", "b"])) == ["a", "c"]
    with pytest.raises(JobNotFound):
        core(RecurTag("add", "nobody", ["a"]))


def test_only_jobs_that_were_put_are_in_the_index_by_tag(turns: StoreSession, door: Door):
    turns.recur(options=ExtraOptions(tags=["a"]))
    assert not [name for name in door.names() if name.startswith("g:")]
    turns.at(5)
    assert turns.pop()[0].jid == "r-1"
    assert door.ask("ZRANGE", door.key("g:a"), 0, -1, "WITHSCORES") == [b"r-1", b"%d" % (turns.start + 5000)]
    assert door.job("r-1").tags == ("a",)


def test_recurring_again_replaces_all_but_the_count_and_moves(turns: StoreSession, door: Door):
    turns.recur(interval=60, priority=5, retries=3, backlog=7, options=ExtraOptions(tags=["a"], limit_ms=100))
    turns.at(60)
    assert len(turns.pop()) == 2
    turns.recur(interval=30, offset=10, queue="p")
    t = turns.template()
    assert (t.queue, t.interval_ms, t.priority, t.retries, t.backlog, t.count) == ("p", 30_000, 0, 0, 0, 2)
    assert (t.tags, t.options, turns.next()) == ((), {}, 70)
    assert not [name for name in door.names() if name == "y:q"]
    turns.at(500)
    assert turns.popped() == {}
    assert next(iter(turns.popped(queue="p"))) == "r-3"


def test_an_update_changes_jobs_put_afterwards(turns: StoreSession, core, door: Door):
    turns.recur(interval=60)
    assert turns.pop()[0].jid == "r-1"
    core(RecurUpdate("r", 9, 4, 10_000, b"[1]", "L", 2, "p", ["mine"]))
    t = turns.template()
    assert (t.queue, t.klass, t.data, t.backlog, turns.next()) == ("p", "L", b"[1]", 2, 10)
    assert sorted(door.look("queues")) == [b"p", b"q"]
    turns.at(60)
    jobs = turns.pop(queue="p")
    assert (jobs[0].klass, jobs[0].data, jobs[0].priority, jobs[0].retries) == ("L", b"[1]", 9, 4)
    assert [job.created_ms - turns.start for job in jobs] == [40_000, 50_000, 60_000]
    assert door.job("r-1").klass == "K"


def test_a_shorter_interval_counts_from_the_last_occurrence(turns: StoreSession, core):
    turns.recur(interval=60)
    assert turns.popped() == {"r-1": 0}
    core(RecurUpdate("r", interval_ms=10_000))
    turns.at(60)
    assert list(turns.popped().values()) == [10, 20, 30, 40, 50, 60]


def test_an_update_of_what_is_not_there_is_refused(core, door: Door):
    before = door.dump()
    with pytest.raises(JobNotFound):
        core(RecurUpdate("r", priority=1, queue="p"))
    assert door.dump() == before


def test_a_job_that_was_put_stays_when_its_template_goes(turns: StoreSession, core):
    turns.recur()
    [job] = turns.pop()
    core(RecurCancel(["r"]))
    assert core(Complete("w", job)) == "complete"
    assert turns.template() is None


def test_wishes_of_a_template_are_wishes_of_each_job(turns: StoreSession, core, door: Door):
    wish = ExtraOptions(backoff="fixed:1000:1000:0", limit_ms=7_000, keep_ms=9_000, expires_ms=600_000)
    turns.recur(interval=60, options=wish)
    assert turns.template().options == {
        "backoff": "fixed:1000:1000:0", "limit": "7000", "keep": "9000", "expires": "600000",
    }  # fmt: skip
    turns.at(90)
    assert len(turns.pop()) == 2
    options = door.job("r-2").options
    assert options["expires"] == turns.start + 60_000 + 600_000
    assert (options["limit"], options["keep"]) == (7_000, 9_000)


def test_priority_goes_before_the_order_of_occurrences(turns: StoreSession):
    turns.recur("low", 60, priority=-1)
    turns.recur("high", 60, offset=10, priority=1)
    turns.at(70)
    assert list(turns.popped()) == ["high-1", "high-2", "low-1", "low-2"]


def test_long_data_go_into_each_job_and_with_it(turns: StoreSession, core, door: Door):
    data = b'"' + b"x" * 5000 + b'"'
    turns.recur(data=data)
    assert turns.pop()[0].data == data
    core(Cancel(["r-1"]))
    assert core(JobGet(["r-1"])) == [None]
    assert [name for name in door.names() if "r-1" in name] == ["E:r-1"]


def test_a_template_whose_hash_is_gone_is_passed(turns: StoreSession, door: Door):
    turns.recur("a")
    turns.recur("b")
    door.ask("DEL", door.key("r:a"))
    assert list(turns.popped()) == ["b-1"]
    assert door.ask("ZRANGE", door.key("y:q"), 0, -1) == [b"b"]


def test_a_heavy_template_puts_fewer_jobs_a_call(turns: StoreSession):
    turns.recur(interval=1, data=b'"' + b"x" * 1_000_000 + b'"')
    turns.at(4)
    assert [len(turns.pop()) for _ in range(4)] == [2, 2, 1, 0]


def test_counts_say_how_many_templates_a_queue_has(turns: StoreSession, door: Door):
    turns.recur("a")
    turns.recur("b", offset=60)
    assert door.look("counts", "q")[0][7] == 2


def commands_run(door: Door) -> int:
    """How many commands the store has run so far, those of its functions included."""
    lines = door.ask("INFO", "commandstats").decode().splitlines()
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines if "calls=" in line)


def test_no_call_is_long_when_twenty_thousand_are_due(turns: StoreSession, core, door: Door):
    for n in range(2_000):
        turns.recur(f"t{n}", 86_400)
    turns.recur("one", 0.001, offset=-20)
    ran = []
    for _ in range(30):
        before = commands_run(door)
        assert len(turns.pop(100)) == 100
        ran.append(commands_run(door) - before)
    assert max(ran) < 1_000
