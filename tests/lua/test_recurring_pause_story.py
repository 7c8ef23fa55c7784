"""Recurring jobs that are paused, resumed, and run beside their schedule."""

import pytest
from test_recurring_story import StoreSession

from holdfast.commands.leases import Complete
from holdfast.commands.options import ExtraOptions
from holdfast.commands.queues import CountQueues, QueueSet
from holdfast.commands.recurring import RecurCancel, RecurPause, RecurRun, RecurUpdate
from holdfast.errors import JobNotFound, Refused
from native_door import Door, StoreMessage

NEVER_DUE = 2**53 - 1


@pytest.fixture
def turns(core, clock) -> StoreSession:
    return StoreSession(core, clock)


def pause(turns: StoreSession, jid: str = "r") -> bool:
    return turns.core(RecurPause(jid))


def resume(turns: StoreSession, jid: str = "r") -> bool:
    return turns.core(RecurPause(jid, on=False))


def due_of(door: Door, queue: str = "q", mode: int = 0) -> int:
    """The ms until something is due in a queue, -1 for never."""
    return door("pop", "w", "", 0, 1, 0, queue, mode)[0]


def test_a_paused_template_puts_nothing_and_leaves_out_what_it_missed(turns: StoreSession):
    turns.recur(interval=60, offset=20)
    turns.at(20)
    assert turns.popped() == {"r-1": 20}
    assert pause(turns) is True
    turns.at(300)
    assert turns.popped() == {}
    assert (turns.next(), turns.template().count, turns.template().paused) == (80, 1, True)
    assert resume(turns) is True
    assert (turns.next(), turns.template().paused) == (320, False)
    assert turns.popped() == {}
    turns.at(320)
    assert turns.popped() == {"r-2": 320}


def test_a_pause_with_an_end_is_over_by_itself_and_makes_up_nothing(turns: StoreSession, door: Door):
    turns.recur(interval=60, offset=20, backlog=0)
    end = turns.start + 290_000
    assert turns.core(RecurPause("r", who="ada", until_ms=end)) is True
    assert turns.core(RecurPause("r", until_ms=end)) is False
    assert turns.template().paused_until_ms == end
    turns.recur(interval=60, offset=20, backlog=0, keeps_time=True)
    turns.at(289)
    assert turns.popped() == {}
    assert due_of(door) == 1000
    turns.at(290)
    assert turns.popped() == {}
    template = turns.template()
    assert (template.paused, template.paused_by, template.paused_until_ms) == (False, "", 0)
    assert (template.left_out, turns.next()) == (5, 320)
    turns.at(320)
    assert turns.popped() == {"r-1": 320}


def test_what_is_due_after_the_end_of_a_pause_is_made_up_when_a_worker_comes(turns: StoreSession):
    turns.recur(interval=60, offset=20, backlog=0)
    turns.core(RecurPause("r", until_ms=turns.start + 290_000))
    turns.at(390)
    assert turns.popped() == {"r-1": 320, "r-2": 380}


def test_a_pause_gets_another_end_or_none(turns: StoreSession):
    turns.recur(interval=60, offset=20)
    end = turns.start + 290_000
    turns.core(RecurPause("r", until_ms=end))
    assert turns.core(RecurPause("r", until_ms=end + 1)) is True
    assert turns.template().paused_until_ms == end + 1
    assert pause(turns) is True
    assert turns.template().paused_until_ms == 0
    turns.at(400)
    assert turns.popped() == {}


def test_a_pause_does_not_end_before_it_begins(turns: StoreSession):
    turns.recur(interval=60)
    with pytest.raises(Refused, match="over already"):
        turns.core(RecurPause("r", until_ms=turns.start))
    assert not turns.template().paused


@pytest.mark.parametrize(
    ("moment", "next_one"), [(70, 80), (80, 80), (80.001, 140), (139, 140), (140, 140), (1000, 1040)]
)
def test_the_first_occurrence_that_is_not_over_comes_after_the_pause(
    turns: StoreSession, moment: float, next_one: float
):
    turns.recur(interval=60, offset=80, backlog=0)
    pause(turns)
    turns.at(moment)
    resume(turns)
    assert turns.next() == next_one
    turns.at(next_one)
    assert turns.popped() == {"r-1": next_one}


def test_what_was_due_and_not_yet_put_at_the_pause_is_left_out_too(turns: StoreSession):
    turns.recur(interval=60)
    turns.at(130)
    pause(turns)
    assert (turns.popped(), turns.next()) == ({}, 0)
    resume(turns)
    assert (turns.popped(), turns.next()) == ({}, 180)


def test_only_a_change_counts_as_one(turns: StoreSession, door: Door):
    turns.recur(interval=60)
    for on in (0, 1):
        before = door.dump()
        assert door("recur_pause", "", 0, on, "r") == 0
        assert door.dump() == before
        pause(turns)


def test_jobs_that_were_put_stay_when_their_template_is_paused(turns: StoreSession, core):
    turns.recur()
    [job] = turns.pop()
    pause(turns)
    assert core(Complete("w", job)) == "complete"


def test_a_paused_template_is_listed_and_counted_behind_the_others(turns: StoreSession, core, door: Door):
    turns.recur("r", offset=10)
    turns.recur("s", offset=20)
    pause(turns)
    assert core(CountQueues(["q"]))[0].recurring == 2
    assert door.ask("ZRANGE", door.key("y:q"), 0, -1) == [b"s", b"r"]
    assert door.ask("ZSCORE", door.key("y:q"), "r") == str(NEVER_DUE).encode()
    turns.at(20)
    assert turns.popped() == {"s-1": 20}


def test_nobody_waits_for_a_paused_template(turns: StoreSession, door: Door):
    turns.recur(interval=60, offset=30)
    assert due_of(door) == 30_000
    pause(turns)
    turns.at(30)
    assert due_of(door) == -1
    assert door.ask("EXISTS", door.key("q:q")) == 0
    turns.recur("s", offset=5)
    assert due_of(door) == 5_000


def test_an_idle_worker_learns_of_a_template_that_is_resumed(turns: StoreSession, door: Door):
    turns.recur(interval=60)
    pause(turns)
    assert due_of(door, mode=1) == -1
    resume(turns)
    assert door.ask("LLEN", door.key("n:q")) == 1
    assert turns.popped() == {"r-1": 0}


@pytest.mark.parametrize("keeps_time", [False, True])
def test_a_template_that_is_put_again_stays_paused(turns: StoreSession, door: Door, keeps_time: bool):
    turns.recur(interval=60, offset=50)
    pause(turns)
    turns.at(10)
    turns.recur(interval=100, offset=30, queue="p", keeps_time=keeps_time, priority=3)
    when = 90 if keeps_time else 40
    assert (turns.next(), turns.template().paused, turns.template().priority) == (when, True, 3)
    assert "y:q" not in door.names()
    turns.at(when)
    assert turns.popped(queue="p") == {}
    resume(turns)
    assert turns.popped(queue="p") == {"r-1": when}


def test_a_template_that_is_changed_stays_paused(turns: StoreSession, core, door: Door):
    turns.recur(interval=60, offset=50)
    pause(turns)
    core(RecurUpdate("r", interval_ms=70_000))
    assert (turns.next(), turns.template().paused) == (60, True)
    core(RecurUpdate("r", queue="p"))
    assert (turns.next(), turns.template().queue, turns.template().paused) == (60, "p", True)
    core(RecurUpdate("r", priority=4, queue="q", interval_ms=10_000))
    assert (turns.next(), turns.template().paused) == (0, True)
    turns.at(55)
    assert (due_of(door, "q"), due_of(door, "p")) == (-1, -1)
    resume(turns)
    turns.at(70)
    assert turns.popped() == {"r-1": 60, "r-2": 70}


def test_a_template_that_is_made_anew_is_not_paused(turns: StoreSession, core, door: Door):
    turns.recur()
    pause(turns)
    core(RecurCancel(["r"]))
    assert not [name for name in door.names() if name.startswith(("r:", "y:"))]
    turns.recur()
    assert turns.template().paused is False
    assert turns.popped() == {"r-1": 0}


def test_run_now_puts_one_job_and_leaves_the_schedule(turns: StoreSession, core, door: Door):
    wish = ExtraOptions(tags=["a"], throttles=["mine"], limit_ms=7_000, expires_ms=600_000)
    turns.recur(interval=60, offset=60, priority=7, retries=2, data=b"[1]", options=wish)
    turns.at(13)
    assert core(RecurRun("r")) == "r-1"
    assert (turns.next(), turns.template().count) == (60, 1)
    [job] = turns.pop()
    assert (job.jid, job.klass, job.data, job.priority, job.retries) == ("r-1", "K", b"[1]", 7, 2)
    assert job.created_ms - turns.start == 13_000
    facts = door.job("r-1")
    assert (facts.tags, facts.throttles, facts.spawned_from) == (("a",), ("mine", "ql:q:q"), "r")
    assert facts.options["expires"] == turns.start + 613_000
    turns.at(60)
    assert turns.popped() == {"r-2": 60}


def test_run_now_does_not_make_up_what_is_due(turns: StoreSession, core):
    turns.recur(interval=60)
    turns.at(60)
    assert core(RecurRun("r")) == "r-1"
    assert turns.popped() == {"r-2": 0, "r-3": 60, "r-1": 60}


def test_a_paused_template_is_run_now_and_stays_paused(turns: StoreSession, core):
    turns.recur(interval=60)
    pause(turns)
    turns.at(70)
    assert (core(RecurRun("r")), core(RecurRun("r"))) == ("r-1", "r-2")
    assert turns.popped() == {"r-1": 70, "r-2": 70}
    assert (turns.next(), turns.template().count, turns.template().paused) == (0, 2, True)


def test_an_idle_worker_is_woken_for_a_job_that_is_run_now(turns: StoreSession, core, door: Door):
    turns.recur(offset=60)
    due_of(door, mode=1)
    core(RecurRun("r"))
    assert door.ask("LLEN", door.key("n:q")) == 1


def test_run_now_passes_names_that_are_taken(turns: StoreSession, core, door: Door):
    door.put("other", "r-1", "r-2")
    turns.recur(offset=60)
    assert core(RecurRun("r")) == "r-3"
    assert door.job("r-1").queue == "other"
    assert turns.template().count == 3


def test_run_now_finds_a_name_behind_hundreds_that_are_taken(turns: StoreSession, core, door: Door):
    for first in (1, 501):
        door.put("other", *[f"r-{n}" for n in range(first, first + 500)])
    turns.recur(offset=60)
    jid = core(RecurRun("r"))
    assert 1_000 < int(jid.removeprefix("r-")) < 2_000
    assert jid == f"r-{turns.template().count}"
    assert list(turns.popped()) == [jid]


def test_run_now_goes_past_the_limit_of_waiting_jobs_as_occurrences_do(turns: StoreSession, core, door: Door):
    core(QueueSet("q", "max-waiting", 1))
    door.put("q", "a")
    turns.recur(offset=60)
    assert core(RecurRun("r")) == "r-1"


def test_a_paused_queue_keeps_a_job_that_is_run_now_until_that_is_resumed(
    turns: StoreSession, core, door: Door
):
    turns.recur(offset=60)
    door("pause", "", 0, 1, "", "", 0, "q")
    core(RecurRun("r"))
    assert turns.popped() == {}
    door("pause", "", 0, 0, "", "", 0, "q")
    assert turns.popped() == {"r-1": 0}


@pytest.mark.parametrize(
    "command", [RecurPause("nobody"), RecurPause("nobody", on=False), RecurRun("nobody")]
)
def test_a_template_that_is_not_there_is_refused(core, door: Door, command):
    before = door.dump()
    with pytest.raises(JobNotFound, match="nobody"):
        core(command)
    assert door.dump() == before


def test_a_call_that_is_sent_again_has_no_second_effect(turns: StoreSession, door: Door):
    turns.recur(offset=60)
    run = ("recur_run", "line", 1, "r")
    assert door(*run) == door(*run) == b"r-1"
    assert turns.template().count == 1
    hold, go_on = ("recur_pause", "line", 2, 1, "r"), ("recur_pause", "line", 3, 0, "r")
    assert door(*hold) == door(*hold) == 1
    assert door(*go_on) == door(*go_on) == 1
    with pytest.raises(StoreMessage, match="HF_STALE_NUMBER"):
        door(*hold)
    assert turns.template().paused is False


def test_older_words_change_a_paused_template_and_reply_as_before(turns: StoreSession, door: Door):
    """The commands of the reqless protocol, on a native root."""

    def call(*words) -> bytes:
        return door("call", "", 0, *words)

    turns.recur(interval=60, offset=50)
    shown = call("recurringJob.get", "r")
    pause(turns)
    assert call("recurringJob.get", "r") == shown
    call("recurringJob.update", "r", "interval", 80, "queue", "p")
    assert (turns.next(), turns.template().paused) == (70, True)
    call("queue.recurAtInterval", "q", "r", "K", "{}", 60, 10)
    assert (turns.next(), turns.template().paused) == (10, True)
    turns.at(20)
    assert turns.popped() == {}
    resume(turns)
    turns.at(70)
    assert turns.popped() == {"r-1": 70}
