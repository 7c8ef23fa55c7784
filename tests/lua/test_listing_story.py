"""Lists, page by page: every set by (score, member), never by an offset."""

from collections.abc import Iterator

import pytest

from holdfast.commands.leases import Complete, Pop
from holdfast.commands.outcomes import Fail
from holdfast.commands.queues import CountQueues
from holdfast.commands.views import SETS, Cursor, Entry, ListSet
from native_door import Door, StoreMessage


def walk(core, set: str, name: str = "", count: int = 100, **options) -> Iterator[Entry]:
    """Every entry of a set, read in pages of `count`."""
    after: Cursor | None = None
    while True:
        page = core(ListSet(set, name, after, count, **options))
        yield from page.entries
        after = page.next
        if after is None:
            return


def names(core, set: str, name: str = "", count: int = 100, **options) -> list[str]:
    return [entry.member for entry in walk(core, set, name, count, **options)]


@pytest.fixture
def varied(core, clock, door: Door) -> Door:
    """A queue with two jobs in every state that has a set."""
    door.put("q", "lost1", "lost2")
    door.pop("w", "q", n=2, lease=1000)
    door.put("q", "run1", "run2", "bad1", "bad2", "done1", "done2")
    run = door.pop("w", "q", n=6, lease=60_000)
    for job in run[2:4]:
        core(Fail("w", job, "G", "m"))
        clock.advance(seconds=0.5)
    for job in run[4:]:
        core(Complete("w", job))
    door.put("q", "due1", "due2", delay=100)
    clock.advance(seconds=1)
    door.put("q", "later1", "later2", delay=5000)
    door.put("q", "wait1", "wait2")
    door.put("q", "high", priority=7)
    door.put("q", "low", priority=-7)
    return door


EXPECTED = {
    ("waiting", "q"): ["high", "wait1", "wait2", "low", "due1", "due2"],
    ("running", "q"): ["run1", "run2"], ("stalled", "q"): ["lost1", "lost2"],
    ("scheduled", "q"): ["later1", "later2"], ("failed", "q"): ["bad2", "bad1"], ("group", "G"): ["bad2", "bad1"],
    ("completed", ""): ["done2", "done1"], ("queues", ""): ["q"], ("depends", "q"): [], ("recurring", "q"): [],
}  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3, 512])
@pytest.mark.parametrize("which", EXPECTED, ids="-".join)
def test_a_set_is_read_in_its_order_whatever_the_page(which, count, core, varied: Door):
    before = varied.dump()
    assert names(core, *which, count=count) == EXPECTED[which]
    if which[0] != "completed":
        other = "up" if which[0] in ("failed", "group") else "down"
        assert names(core, *which, count=count, direction=other) == EXPECTED[which][::-1]
    assert varied.dump() == before


def test_a_list_agrees_with_the_count_of_its_state(core, varied: Door):
    [counts] = core(CountQueues(["q"]))
    for state in ("waiting", "running", "stalled", "scheduled", "failed"):
        assert len(names(core, state, "q")) == getattr(counts, state) > 0
    for state in ("waiting", "running", "stalled", "scheduled"):
        for jid in names(core, state, "q"):
            shown = varied.state(jid)
            assert shown == state or (state == "stalled" and shown == "running")


def test_the_ready_are_listed_in_the_order_of_pops(core, varied: Door):
    listed = names(core, "waiting", "q", 2)
    popped = [job.jid for job in core(Pop("w", ["q"], limit=50))]
    ready = [jid for jid in popped if not jid.startswith(("lost", "due"))]
    assert listed == [*ready, "due1", "due2"]


def test_nothing_that_comes_or_goes_moves_a_page(core, door: Door):
    door.put("q", *[f"j{n}" for n in range(9)])
    first = core(ListSet("waiting", "q", None, 3))
    assert first.names == ["j0", "j1", "j2"]
    door("cancel", "", 0, "j0", "j2", "j4")
    door.put("q", "new", priority=5)
    second = core(ListSet("waiting", "q", first.next, 3))
    assert second.names == ["j3", "j5", "j6"]
    assert core(ListSet("waiting", "q", second.next, 3)).names == ["j7", "j8"]


def test_among_a_thousand_of_one_moment_the_cursor_finds_its_place(core, clock, door: Door):
    jids = [f"J{n:03}x" if n % 2 else f"j{n:03}y" for n in range(500)]
    door.put("q", *jids, delay=5000)
    in_order = sorted(jids)  # as the store has it: byte by byte
    [score] = {entry.score for entry in walk(core, "scheduled", "q")}
    for gone in ("J001x", "J249x", "j000y", "j498y"):
        door("cancel", "", 0, gone)
        rest = [jid for jid in in_order if jid > gone]
        assert core(ListSet("scheduled", "q", (score, gone), 512)).names == rest
        less = [jid for jid in in_order if jid < gone][::-1]
        assert core(ListSet("scheduled", "q", (score, gone), 512, "down")).names == less
        in_order.remove(gone)
    assert core(ListSet("scheduled", "q", (score, ""), 1)).names == in_order[:1]
    assert core(ListSet("scheduled", "q", (score, "k"), 1)).names == []
    assert names(core, "scheduled", "q", 7) == in_order


def test_a_name_that_begins_another_comes_before_it(core, door: Door):
    jids = ["a", "aa", "aaa", "b", "z", "é"]
    door.put("q", *jids, delay=5000)
    [score] = {entry.score for entry in walk(core, "scheduled", "q")}
    for gone in jids:
        door("cancel", "", 0, gone)
        above = jids[jids.index(gone) + 1 :]
        assert core(ListSet("scheduled", "q", (score, gone), 9)).names == above


def test_completed_jobs_are_found_again_when_others_have_completed_since(core, door: Door):
    door.put("q", *[f"j{n}" for n in range(12)])
    jobs = core(Pop("w", ["q"], limit=12))
    for job in jobs[:8]:
        core(Complete("w", job))
    first = core(ListSet("completed", "", None, 3))
    assert first.names == ["j7", "j6", "j5"]
    for job in jobs[8:]:
        core(Complete("w", job))
    second = core(ListSet("completed", "", first.next, 3))
    assert second.names == ["j4", "j3", "j2"]
    assert core(ListSet("completed", "", second.next, 3)).names == ["j1", "j0"]


def test_completed_jobs_that_left_something_behind_are_found_again_too(core, door: Door):
    door.put("q", "a", "b")
    for _ in range(2):  # a retried job keeps its history beside its record
        for job in core(Pop("w", ["q"], limit=2)):
            door("retry", "w", 0, "G", "m", job.jid, job.token, "")
    for job in core(Pop("w", ["q"], limit=2)):
        core(Complete("w", job))
    assert names(core, "completed", count=1) == ["b", "a"]


def test_the_holders_of_a_queue_s_own_throttle_are_its_leases(core, door: Door):
    door("throttle_set", "", 0, "ql:q:q", 1, 0)
    door.put("q", "a", "b")
    door.pop("w", "q")
    door.put("q", "c")
    assert names(core, "holders", "ql:q:q") == ["a"]
    assert names(core, "pending", "ql:q:q") == names(core, "throttled", "q") == ["c"]


def test_every_set_can_be_listed_when_there_is_nothing(core, door: Door):
    for known in sorted(SETS):
        assert names(core, known, "nobody's") == []


@pytest.mark.parametrize(
    "words",
    [("lost", "q"), ("waiting", ""), ("waiting", "q", "x", "j"), ("waiting", "q", "nan", "j"),
     ("waiting", "q", " 1", "j"), ("running", "q", "due:5", "j"), ("waiting", "q", "", "", 513),
     ("waiting", "q", "", "", 5, "sideways"), ("completed", "", "", "", 5, "up")],
)  # fmt: skip
def test_a_list_that_makes_no_sense_is_refused(words, door: Door):
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door.look("list", *words, *["", "", 5][len(words) - 2 :])
