"""Operations on many jobs: their runner, progress and changes; and audited calls of operators."""

import pytest

from holdfast.commands.admin import Audit, AuditList, ConfigSet
from holdfast.commands.jobs import Cancel, SetPriority
from holdfast.commands.leases import Heartbeat, Pop
from holdfast.commands.operations import (
    Act,
    Audited,
    OperationGet,
    Operations,
    OperationSet,
    Progress,
)
from holdfast.commands.queues import CountQueues, Pause
from holdfast.errors import JobNotFound, OperationNotFound, Refused, WrongState
from native_door import Door, StoreMessage

HOUR = 3600


def start(core, id: str = "o", runner: str = "bee", length_ms: int = 5000) -> None:
    assert core(OperationSet("start", id, runner, length_ms, '{"what":1}')) is True


def state(core, id: str = "o") -> tuple[str, str]:
    facts = core(OperationGet(id)).facts
    return facts.state, facts.runner


def progress(cursor: str = "here", looked: int = 0, matched: int = 0, runner: str = "bee") -> Progress:
    return Progress("o", runner, 5000, cursor, looked, matched)


def test_an_operation_begins_with_nothing_done(core, clock):
    start(core)
    found = core(OperationGet("o", 0, 64))
    facts = found.facts
    assert (facts.id, facts.spec, facts.state, facts.runner) == ("o", '{"what":1}', "running", "bee")
    assert (facts.created_ms, facts.updated_ms, facts.lease_ms) == (
        clock.now_ms,
        clock.now_ms,
        clock.now_ms + 5000,
    )
    assert (facts.cursor, facts.looked, facts.matched, facts.changed, facts.same, facts.refused) == (
        "",
        0,
        0,
        0,
        0,
        0,
    )
    assert (found.refused, found.changed, found.chunks) == ((), (), 0)
    assert core(OperationGet("p")) is None
    with pytest.raises(WrongState, match="there already"):
        start(core)


def test_progress_is_noted_with_the_change(core, clock, door: Door):
    door.put("q", "a", "b", "c")
    start(core)
    clock.advance(seconds=2)
    jobs = [("a", ""), ("b", "0"), ("nobody", ""), ("c", "")]
    core(Act("priority", jobs, "3", operation=progress("at c", 10, 4)))
    clock.advance(seconds=1)
    core(Act("priority", [("b", "")], "4", operation=progress("at b", 5, 1)))
    core(Act("priority", [], operation=progress("at the end", 7)))
    found = core(OperationGet("o", 0, 9))
    facts = found.facts
    assert (facts.cursor, facts.looked, facts.matched) == ("at the end", 22, 5)
    assert (facts.changed, facts.same, facts.refused) == (3, 1, 1)
    assert (facts.updated_ms, facts.lease_ms) == (clock.now_ms, clock.now_ms + 5000)
    assert found.changed == (("a", "0"), ("c", "0"), ("b", "0"))
    assert found.chunks == 2
    assert core(OperationGet("o", 1, 9)).changed == (("b", "0"),)
    assert core(OperationGet("o", 0, 0)).changed == ()
    assert found.refused == (("nobody", "job nobody does not exist"),)


def test_a_call_that_leaves_jobs_for_another_keeps_the_cursor(core, door: Door):
    door.put("q", "hub")
    for at in range(0, 300, 100):
        jids = [f"c{n}" for n in range(at, at + 100)]
        words = [word for jid in jids for word in (jid, "k", "{}", 1, "depends", "hub")]
        door("put_x", "", 0, "new", "q", 0, 5, 0, *words)
    start(core)
    jobs = [("hub", "")] * 4
    left = jobs[len(core(Act("cancel", jobs, operation=progress("behind", 9, 4)))) :]
    facts = core(OperationGet("o")).facts
    assert 0 < len(left) < 4
    done = 4 - len(left)
    assert (facts.cursor, facts.looked, facts.matched, facts.refused) == ("", done, done, done)
    rest = progress("behind", 9, 4).without(done)
    assert len(core(Act("cancel", left, operation=rest))) == len(left)
    facts = core(OperationGet("o")).facts
    assert (facts.cursor, facts.looked, facts.matched, facts.refused) == ("behind", 9, 4, 4)


def test_nobody_else_acts_in_an_operation(core, door: Door):
    door.put("q", "a")
    start(core)
    before = door.dump()
    with pytest.raises(StoreMessage, match=r"HF_WRONG_STATE operation o is run by bee"):
        door("act", "", 0, "priority", "3", "", "o", "ant", 5000, "", 0, 0, "a", "")
    with pytest.raises(StoreMessage, match="HF_OPERATION_NOT_FOUND"):
        door("act", "", 0, "priority", "3", "", "p", "bee", 5000, "", 0, 0, "a", "")
    assert door.dump() == before


def test_an_operation_is_taken_over_when_its_lease_is_over_and_not_before(core, clock, door: Door):
    start(core)
    clock.advance(seconds=4.999)
    with pytest.raises(WrongState, match="is run by bee"):
        core(OperationSet("take", "o", "ant", 5000))
    assert state(core) == ("running", "bee")
    clock.advance(seconds=0.001)
    assert core(OperationSet("take", "o", "ant", 7000)) is True
    assert state(core) == ("running", "ant")
    assert core(OperationGet("o")).facts.lease_ms == clock.now_ms + 7000
    with pytest.raises(WrongState, match="is run by ant"):
        core(Act("retry", [], operation=progress()))
    core(Act("retry", [], operation=progress("on", runner="ant")))


def test_a_runner_that_is_late_continues_if_nobody_took_over(core, clock):
    start(core)
    clock.advance(seconds=60)
    core(Act("retry", [], operation=progress("later")))
    facts = core(OperationGet("o")).facts
    assert (facts.cursor, facts.lease_ms) == ("later", clock.now_ms + 5000)
    core(OperationSet("take", "o", "bee", 9000))
    assert core(OperationGet("o")).facts.lease_ms == clock.now_ms + 9000


def test_a_stopped_operation_changes_nothing_until_it_is_taken_again(core, door: Door):
    door.put("q", "a", "b")
    start(core)
    core(Act("priority", [("a", "")], "3", operation=progress("at a", 1, 1)))
    assert core(OperationSet("finish", "o", detail="stopped")) is True
    assert core(OperationSet("finish", "o", detail="stopped")) is False
    with pytest.raises(WrongState, match="operation o is stopped"):
        core(Act("priority", [("b", "")], "3", operation=progress("at b", 1, 1)))
    assert door.job("b").priority == 0
    assert core(OperationSet("take", "o", "ant", 5000)) is True
    facts = core(OperationGet("o")).facts
    assert (facts.state, facts.runner, facts.cursor, facts.changed) == ("running", "ant", "at a", 1)


def test_an_operation_that_has_ended_can_only_be_undone(core):
    for id, end in (("o", "done"), ("p", "failed")):
        start(core, id)
        assert core(OperationSet("finish", id, "bee", detail=end)) is True
        for other in ("done", "failed", "stopped"):
            assert core(OperationSet("finish", id, detail=other)) is False
        with pytest.raises(WrongState, match=f"is {end}"):
            core(OperationSet("take", id, "ant", 5000))
        assert state(core, id) == (end, "bee")
        assert core(OperationSet("finish", id, detail="undone")) is True
        assert core(OperationSet("finish", id, detail="done")) is False
        assert state(core, id) == ("undone", "bee")


def test_a_runner_does_not_end_what_another_runs(core):
    start(core)
    with pytest.raises(WrongState, match="is run by bee"):
        core(OperationSet("finish", "o", "ant", detail="done"))
    assert state(core) == ("running", "bee")
    with pytest.raises(OperationNotFound, match="operation nothing does not exist"):
        core(OperationSet("finish", "nothing", detail="done"))


def test_operations_are_listed_newest_first_page_by_page(core, clock):
    for id in ("b", "c", "a"):
        start(core, id)  # in one moment
    clock.advance(seconds=-60)
    start(core, "d")
    assert [facts.id for facts in core(Operations())] == ["d", "a", "c", "b"]
    assert [facts.id for facts in core(Operations(1, 2))] == ["a", "c"]
    assert core(Operations(4)) == core(Operations(0, 0)) == []


def test_the_hundredth_and_first_pushes_the_oldest_out_with_its_keys(core, door: Door):
    door.put("q", "a")
    start(core)
    core(Act("priority", [("a", ""), ("nobody", "")], "3", operation=progress()))
    assert {"O:o", "Ou:o", "Or:o"} <= door.names()
    for n in range(99):
        start(core, f"x{n}")
    assert core(OperationGet("o")) is not None
    start(core, "the last")
    assert core(OperationGet("o")) is None
    assert {"O:o", "Ou:o", "Or:o"} & door.names() == set()
    listed = [facts.id for at in (0, 64) for facts in core(Operations(at, 64))]
    assert listed == ["the last", *[f"x{n}" for n in range(98, -1, -1)]]
    with pytest.raises(OperationNotFound):
        core(Act("priority", [("a", "")], "4", operation=progress()))


def test_what_undoes_a_change_is_kept_for_an_hour(core, door: Door):
    door.put("q", "a")
    start(core)
    core(Act("priority", [("a", ""), ("nobody", "")], "3", operation=progress()))
    assert HOUR - 60 < door.ask("TTL", door.key("Ou:o")) <= HOUR
    assert door.ask("TTL", door.key("O:o")) == door.ask("TTL", door.key("Or:o")) == -1


def test_the_first_hundred_refusals_are_kept_and_all_counted(core):
    start(core)
    for at in range(0, 150, 50):
        core(Act("retry", [(f"j{at + n:03}", "") for n in range(50)], operation=progress()))
    found = core(OperationGet("o"))
    assert found.facts.refused == 150
    assert [jid for jid, _ in found.refused] == [f"j{n:03}" for n in range(100)]


def test_each_action_notes_what_undoes_it(core, door: Door):
    door.put("q", "a", priority=2)
    core(Cancel(("nobody",)))
    start(core)
    for action, value in (
        ("move", "r"),
        ("priority", "3"),
        ("retries", "9"),
        ("tag", "x\ny"),
        ("untag", "y"),
        ("delay", "5"),
    ):
        core(Act(action, [("a", value)], operation=progress()))
    moved, *others = [undo for _, undo in core(OperationGet("o", 0, 64)).changed]
    assert moved.endswith(" 0 q")
    assert others == ["2", "5", "x\ny", "y", ""]


def test_a_repeat_of_the_same_request_is_noted_once(core, door: Door):
    door.put("q", "a")
    start(core)
    words = ("act", "line", 1, "priority", "3", "", "o", "bee", 5000, "at a", 1, 1, "a", "")
    assert door(*words) == door(*words) == [1]
    facts = core(OperationGet("o")).facts
    assert (facts.looked, facts.matched, facts.changed) == (1, 1, 1)


START = ("operation_set", "", 0, "o", "bee", 5000, "{}", "start")


@pytest.mark.parametrize(
    "words",
    [
        ("operation_set",), START[:7], (*START[:7], "begin"), (*START[:3], "", *START[4:]), (*START[:3], "a\nb", *START[4:]),
        (*START[:3], "n" * 201, *START[4:]), (*START[:4], "", *START[5:]), (*START[:5], 0, *START[6:]), (*START[:5], 3_600_001, *START[6:]),
        (*START[:5], "x", *START[6:]), (*START[:6], "s" * 16_385, "start"), ("operation_set", "", 0, "there", "", 0, "", "take"),
        ("operation_set", "", 0, "there", "bee", 0, "over", "finish"), ("operation_set", "", 0, "there", "bee", 0, "running", "finish"),
        ("operation_set", "", 0, "", "", 0, "done", "finish"), ("operations",), ("operations", -1, 5), ("operations", 0, 65), ("operations", 0),
        ("operations", "x", 5), ("operations", 2**53, 5), ("operation_get",), ("operation_get", "", 0, 5), ("operation_get", "o", -1, 5),
        ("operation_get", "o", 0, 65), ("operation_get", "o"), ("operation_get", "n" * 201, 0, 5),
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_refused(words, core, door: Door):
    start(core, "there")
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door(*words)
    assert door.dump() == before


# --- audited calls ---------------------------------------------------------------------------------------------------


def lines(core) -> list[tuple[str, str, str, str]]:
    return [(line.who, line.what, line.target, line.detail) for line in core(AuditList())]


def test_an_audited_call_leaves_a_line_and_returns_what_it_returns(core, clock, door: Door):
    door.put("q", "a", "b")
    assert core(Audited("ann", "pause", "q", "deploy", Pause(("q",), True, "ann", "deploy"))) == core(
        Pause(("r",))
    )
    clock.advance(seconds=1)
    assert core(Audited("ann", "priority", "2 jobs", "", SetPriority(3, ("a", "b")))) == [True, True]
    changed, refused = core(Audited("bob", "cancel", "", "", Act("cancel", [("a", ""), ("nobody", "")])))
    assert changed is True
    assert isinstance(refused, JobNotFound)
    assert core(CountQueues(["q"]))[0].paused is True
    assert lines(core) == [
        ("bob", "cancel", "", ""),
        ("ann", "priority", "2 jobs", ""),
        ("ann", "pause", "q", "deploy"),
    ]


def test_a_call_that_is_refused_leaves_no_line(core, door: Door):
    start(core)
    before = door.dump()
    for verb in (
        ("operation_set", "", 0, "o", "ant", 5000, "", "take"), ("throttle_set", "", 0, "", 1, 0), ("move", "", 0, "r", 0, "nobody", "", ""),
        ("act", "", 0, "vanish", "", "", "", "", 0, "", 0, 0), ("timeout", "", 0, "nobody"), ("config_set", "k"), ("pause",),
    ):  # fmt: skip
        with pytest.raises(StoreMessage, match=r"^HF_"):
            door("audited", "", 0, "ann", "does", "it", "", *verb)
    assert door.dump() == before


def test_a_spoilt_audit_log_keeps_the_change_from_happening(core, door: Door):
    door.put("q", "a")
    door.ask("SET", door.key("A"), "spoilt")
    before = door.dump()
    with pytest.raises(StoreMessage, match="WRONGTYPE"):
        door("audited", "line", 1, "ann", "cancel", "a", "", "cancel", "", 0, "a")
    assert door.dump() == before


def test_an_audited_call_that_comes_again_is_noted_once(core, door: Door):
    door.put("q", "a")
    words = (
        "audited",
        "line",
        1,
        "ann",
        "cancel",
        "a",
        "",
        "act",
        "",
        0,
        "cancel",
        "",
        "",
        "",
        "",
        0,
        "",
        0,
        0,
        "a",
        "",
        "b",
        "",
    )
    first = door(*words)
    assert first == [1, b"HF_JOB_NOT_FOUND b"] == door(*words)
    assert lines(core) == [("ann", "cancel", "a", "")]


def test_a_long_reply_of_an_audited_call_comes_again_as_it_was(core, door: Door):
    jobs = [word for n in range(250) for word in (f"j{n}".ljust(200, "x"), "")]
    begin = ("audited", "line", 1, "ann", "retry", "", "", "act", "", 0, "retry", "", "", "", "", 0, "", 0, 0)
    first = door(*begin, *jobs)
    assert len(first) == 250
    assert door(*begin, *jobs) == first


UNAUDITED = (
    "put", "put_x", "recur", "topic_put", "call", "await", "pop", "find_work", "complete", "complete_pop", "complete_x", "advance", "retry",
    "fail", "heartbeat", "resume", "release", "expire", "report", "topic_reserve", "topic_pull", "topic_release", "worker_seen", "worker_answer",
    "audited", "info", "clock", "describe", "scan", "counts", "job_get", "operations", "operation_get", "vanish", "",
)  # fmt: skip


@pytest.mark.parametrize("verb", UNAUDITED)
def test_what_is_no_change_of_an_operator_is_not_audited(verb: str, core, door: Door):
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT there is no verb to audit"):
        door("audited", "", 0, "ann", "does", "it", "", verb, "", 0, "q")
    assert door.dump() == before


def test_jobs_are_not_put_or_taken_by_the_way_of_an_audited_call(core, door: Door):
    door.put("q", "a")
    for command in (Pop("w", ("q",)), Heartbeat("w", door.job("a"))):
        with pytest.raises(Refused, match="no verb to audit"):
            core(Audited("ann", "does", "", "", command))


@pytest.mark.parametrize(
    "words",
    [
        (), ("ann",), ("ann", "does", "it", ""), ("", "does", "it", "", "pause"), ("ann", "", "it", "", "pause"), ("a\nb", "does", "it", "", "pause"),
        ("ann", "n" * 201, "it", "", "pause"), ("ann", "does", "a\nb", "", "pause"), ("ann", "does", "it", "d" * 4097, "pause"),
        ("ann", "does", "n" * 201, "", "pause"),
    ],
)  # fmt: skip
def test_an_audited_call_that_makes_no_sense_is_refused(words, core, door: Door):
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door("audited", "", 0, *words, *((1, "", "", 0, "q") if len(words) == 5 else ()))
    assert door.dump() == before


def test_an_audited_call_and_a_plain_line_have_one_order(core, clock):
    core(Audit("ann", "first"))
    core(Audited("bob", "second", "", "", ConfigSet("k", "v")))
    clock.advance(seconds=-60)
    core(Audited("bob", "third", "", "", ConfigSet("k", "w")))
    assert [line.what for line in core(AuditList())] == ["third", "second", "first"]
