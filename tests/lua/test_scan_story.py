"""Scans: the jobs of a set, page by page, with what a search compares."""

from collections.abc import Iterator

import pytest

from holdfast.commands.attributes import Tag, Track
from holdfast.commands.job_rows import JobRow
from holdfast.commands.leases import Complete
from holdfast.commands.operations import SCANNED, Scan
from holdfast.commands.outcomes import Fail, Timeout
from holdfast.commands.queues import CountQueues
from native_door import Door, StoreMessage


def walk(core, set: str, name: str = "", count: int = 100, wants: str = "") -> Iterator[JobRow]:
    """Every job of a set, read in pages of `count`."""
    after = None
    while True:
        page = core(Scan(set, name, after, count, wants))
        yield from page.jobs
        after = page.next
        if after is None:
            return


def scanned(core, set: str, name: str = "", count: int = 100) -> list[str]:
    return [row.jid for row in walk(core, set, name, count)]


@pytest.fixture
def varied(core, clock, door: Door) -> Door:
    """A queue with two jobs in every state that has a set, of which the first ones have the tag `vip`."""
    door("throttle_set", "", 0, "db", 1, 0)
    door.put("q", "lost1", "lost2")
    door.pop("w", "q", n=2, lease=1500)
    door.put("q", "run1", "run2", "bad1", "bad2", "done1", "done2")
    run = door.pop("w", "q", n=6, lease=60_000)
    for job in run[2:4]:
        core(Fail("w", job, "G", f"because of {job.jid}"))
        clock.advance(seconds=0.5)
    for job in run[4:]:
        core(Complete("w", job))
    words = [word for jid in ("slot", "full1", "full2") for word in (jid, "k", "{}", 1, "throttle", "db")]
    door("put_x", "", 0, "new", "q", 9, 5, 0, *words)
    door.pop("w", "q", n=3, lease=60_000)
    door.put("q", "due1", "due2", delay=100)
    clock.advance(seconds=1)
    door.put("q", "later1", "later2", delay=5000)
    door.put("q", "wait1", "wait2")
    door.put("q", "high", priority=7)
    door.put("q", "out", priority=-7)
    door.put_waiting("child1", "wait1")
    door.put_waiting("child2", "wait1")
    door(
        "flow_put",
        "",
        0,
        "f",
        "k",
        *(word for n in range(3) for word in ("other", 0, 0, 0, f"f-{n}", "k", "{}", 0)),
    )
    for jid in ("lost1", "run1", "bad1", "done1", "full1", "due1", "later1", "wait1", "child1"):
        core(Tag("add", jid, ["vip"]))
        core(Track(True, jid))
        clock.advance(seconds=0.001)
    return door


EXPECTED = {
    ("waiting", "q"): ["high", "wait1", "wait2", "out", "due1", "due2"],
    ("running", "q"): ["run1", "run2", "slot"], ("stalled", "q"): ["lost1", "lost2"],
    ("scheduled", "q"): ["later1", "later2"], ("depends", "q"): ["child1", "child2"],
    ("throttled", "q"): ["full1", "full2"], ("pending", "db"): ["full1", "full2"], ("holders", "db"): ["slot"],
    ("failed", "q"): ["bad2", "bad1"], ("group", "G"): ["bad2", "bad1"], ("completed", ""): ["done2", "done1"],
    ("tracked", ""): ["child1", "wait1", "later1", "due1", "full1", "done1", "bad1", "run1", "lost1"],
    ("tagged", "vip"): ["lost1", "run1", "bad1", "done1", "full1", "due1", "later1", "wait1", "child1"],
    ("flow", "f"): ["f-0", "f-1", "f-2"],
}  # fmt: skip
STATES = {
    "lost1": "stalled", "run1": "running", "bad1": "failed", "done1": "complete", "full1": "throttled",
    "due1": "waiting", "later1": "scheduled", "wait1": "waiting", "child1": "depends",
}  # fmt: skip


def test_every_set_has_a_story() -> None:
    assert {set for set, _ in EXPECTED} == SCANNED


@pytest.mark.parametrize("count", [1, 2, 512])
@pytest.mark.parametrize("which", EXPECTED, ids="-".join)
def test_a_set_is_scanned_in_its_order_whatever_the_page(which, count, core, varied: Door):
    before = varied.dump()
    assert scanned(core, *which, count=count) == EXPECTED[which]
    assert core(Scan(*which, count=count)).size == len(EXPECTED[which])
    assert core(Scan(*which, count=0)) == core(Scan(*which, count=0, wants="dte"))
    assert core(Scan(*which, count=0)).size == len(EXPECTED[which])
    assert varied.dump() == before


def test_states_are_those_of_the_counts(core, varied: Door):
    [counts] = core(CountQueues(["q"]))
    for state in ("waiting", "running", "stalled", "scheduled", "depends", "throttled", "failed"):
        rows = list(walk(core, state, "q", 2))
        assert len(rows) == getattr(counts, state) > 0
        assert {row.state for row in rows} == {state}
    assert {row.state for row in walk(core, "completed")} == {"complete"}
    for which in (("tagged", "vip"), ("tracked",)):
        assert {row.jid: row.state for row in walk(core, *which)} == STATES


def test_a_job_that_was_taken_from_its_worker_waits(core, varied: Door):
    core(Timeout(("run1",)))
    assert varied.state("run1") == "stalled"
    [row] = [row for row in walk(core, "tagged", "vip") if row.jid == "run1"]
    assert (row.state, row.due_ms) == ("waiting", 0)
    assert [row.state for row in walk(core, "waiting", "q", 2)] == ["waiting"] * 7


def test_a_job_that_its_throttle_let_go_waits(core, varied: Door):
    varied("throttle_set", "", 0, "db", 2, 0)
    assert varied.state("full1") == "throttled"
    assert scanned(core, "throttled", "q") == ["full2"]
    assert [row.state for row in walk(core, "tagged", "vip") if row.jid == "full1"] == ["waiting"]


def test_a_row_has_what_a_search_compares(core, clock, varied: Door):
    [row] = [row for row in walk(core, "group", "G", wants="dte") if row.jid == "bad1"]
    shown = varied.job("bad1")
    assert row == JobRow(
        "bad1", "k", "q", "failed", 0, 5, 5, 1, 0, shown.created_ms, shown.queued_ms, shown.popped_ms,
        shown.ended_ms, 0, "w", True, ("vip",), "G", "because of bad1", shown.ended_ms, b"{}",
    )  # fmt: skip
    [plain] = [row for row in walk(core, "group", "G") if row.jid == "bad1"]
    assert (plain.tags, plain.group, plain.message, plain.failed_ms, plain.data) == ((), "G", "", 0, b"")


def test_due_times_and_ends_of_leases_are_there(core, clock, varied: Door):
    due = {row.jid: row.due_ms for set in ("waiting", "scheduled", "running") for row in walk(core, set, "q")}
    tagged = {row.jid: row.due_ms for row in walk(core, "tagged", "vip") if row.jid in due}
    assert due | tagged == due
    assert due["wait1"] == 0
    assert due["due1"] < clock.now_ms < due["later1"] == varied.job("later1").due_ms
    assert due["run1"] == varied.job("run1").expires_ms


def test_no_job_comes_twice_or_is_left_out_while_others_come_and_go(core, door: Door):
    door.put("q", *[f"j{n:02}" for n in range(40)])
    seen, after, turn = [], None, 0
    while turn == 0 or after is not None:
        page = core(Scan("waiting", "q", after, 7))
        seen += [row.jid for row in page.jobs]
        after = page.next
        door("cancel", "", 0, seen[-1])  # the one to which the cursor points
        door.put("q", f"new{turn}", priority=5)  # ahead of all
        turn += 1
    assert seen == [f"j{n:02}" for n in range(40)]


def test_entries_whose_job_is_gone_are_looked_at_and_left_out(core, door: Door):
    door.put("q", "a", "b", "c")
    door.ask("DEL", door.key("j:b"))
    page = core(Scan("waiting", "q", None, 2))
    assert ([row.jid for row in page.jobs], page.looked, len(page.scores)) == (["a"], 2, 1)
    assert [row.jid for row in core(Scan("waiting", "q", page.next, 2)).jobs] == ["c"]
    door.ask("DEL", door.key("j:a"), door.key("j:c"))
    page = core(Scan("waiting", "q", None, 9))
    assert (page.jobs, page.looked, page.size, page.next) == ((), 3, 3, None)


def test_records_that_cannot_be_read_are_left_out(core, door: Door):
    door.put("q", *[f"j{n}" for n in range(6)])
    for n, broken in enumerate(["", "x", "x" * 18, "A" + "\xff" * 30]):
        door.ask("SET", door.key(f"j:j{n}"), broken.encode("latin-1"))
    assert scanned(core, "waiting", "q") == ["j4", "j5"]


def test_much_data_ends_a_page_early(core, door: Door):
    body = b'"' + b"x" * 100_000 + b'"'
    for n in range(7):
        door("put", "", 0, "new", "q", 0, 5, 0, f"j{n}", "k", body)
    page = core(Scan("waiting", "q", None, 512, "d"))
    assert [row.jid for row in page.jobs] == ["j0", "j1", "j2"]
    assert page.jobs[0].data == body
    assert page.next is not None
    assert [row.jid for row in walk(core, "waiting", "q", 512, "d")] == [f"j{n}" for n in range(7)]
    assert core(Scan("waiting", "q", None, 7, "d")).next is not None
    assert len(core(Scan("waiting", "q", None, 512)).jobs) == 7


def test_jobs_of_a_flow_that_are_not_kept_any_more_are_left_out_of_its_scan(core, varied: Door):
    varied("cancel", "", 0, "f-1")
    [first] = varied.pop("w", "other")
    core(Fail("w", first, "G", "it broke"))
    found = list(walk(core, "flow", "f", 1, "e"))
    assert [(row.jid, row.state, row.message) for row in found] == [
        ("f-0", "failed", "it broke"),
        ("f-2", "waiting", ""),
    ]
    assert core(Scan("flow", "f", ("0", "f-0"), 5)).size == 3


def test_long_messages_end_a_page_early(core, door: Door):
    door.put("q", *[f"j{n:02}" for n in range(40)])
    for job in door.pop("w", "q", n=40):
        core(Fail("w", job, "G", "m" * 16_000))
    page = core(Scan("group", "G", None, 512, "e"))
    assert 10 < page.looked < 40
    assert len(list(walk(core, "group", "G", 512, "e"))) == 40
    assert core(Scan("group", "G", None, 512, "t")).looked == 40


def test_every_set_can_be_scanned_when_there_is_nothing(core, door: Door):
    for set in sorted(SCANNED):
        page = core(Scan(set, "nobody's"))
        assert (page.jobs, page.looked, page.size, page.next) == ((), 0, 0, None)


@pytest.mark.parametrize(
    "words",
    [
        (), ("workers",), ("queues",), ("topics",), ("recurring", "q"), ("queued", "q"), ("lost", "q"), ("waiting", ""),
        ("waiting", "q", "x", "j"), ("waiting", "q", "nan", "j"), ("waiting", "q", " 1", "j"), ("waiting", "q", "due:x", "j"),
        ("running", "q", "due:5", "j"), ("waiting", "q", "", "", 513), ("waiting", "q", "", "", -1), ("waiting", "q", "", "", "x"),
        ("waiting", "q", "", "", 5, "d" * 17), ("completed", "", "1.5", "j"), ("completed", "", "-1", "j"),
        ("completed", "", "1e300", "j"), ("flow", "f", "-1", "j"), ("flow", "f", "1.5", "j"), ("flow", ""), ("waiting", "q", "due:", "j"), ("waiting", "n" * 201),
    ],
)  # fmt: skip
def test_a_scan_that_makes_no_sense_is_refused(words, door: Door):
    rest = ["waiting", "q", "", "", 5, ""][len(words) :] if words else []
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door.look("scan", *words, *rest)


@pytest.mark.parametrize(
    "words", [("waiting", "q"), ("waiting", "q", ""), ("waiting", "q", "5"), ("waiting", "q", "", "", 5)]
)
def test_a_scan_without_all_of_its_words_is_refused(words, door: Door):
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door.look("scan", *words)
