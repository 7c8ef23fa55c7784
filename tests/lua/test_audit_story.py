"""The audit log: who did what to what."""

from holdfast.commands.admin import Audit, AuditList
from native_door import Door


def test_lines_are_read_newest_first_page_by_page(core, clock):
    ids = []
    for n in range(5):
        clock.advance(seconds=1)
        ids.append(core(Audit("ann", "pause", f"queue-{n}", "for a while")))
    newest = core(AuditList("", 2))
    assert [line.target for line in newest] == ["queue-4", "queue-3"]
    assert (newest[0].id, newest[0].when_ms) == (ids[-1], clock.now_ms)
    assert (newest[0].who, newest[0].what, newest[0].detail) == ("ann", "pause", "for a while")
    assert [line.target for line in core(AuditList(newest[-1].id, 9))] == ["queue-2", "queue-1", "queue-0"]
    assert core(AuditList(ids[0], 9)) == []
    assert core(AuditList("", 0)) == []


def test_lines_of_one_moment_and_of_a_clock_that_went_back_keep_their_order(core, clock):
    for n in range(3):
        core(Audit("", "first", str(n)))
    clock.advance(seconds=-60)
    core(Audit("", "later"))
    assert [line.what for line in core(AuditList("", 9))] == ["later", "first", "first", "first"]
    assert [line.target for line in core(AuditList("", 9))][1:] == ["2", "1", "0"]


def test_a_line_that_is_said_twice_stands_there_once(core, door: Door):
    first = door("audit", "line", 1, "ann", "pause", "q", "")
    assert door("audit", "line", 1, "ann", "pause", "q", "") == first
    assert len(core(AuditList())) == 1


def test_the_log_forgets_its_oldest_lines(door: Door):
    script = "for i = 1, 10300 do redis.call('XADD', KEYS[1], i .. '-0', 'who', '', 'what', i) end"
    door.ask("EVAL", script, 1, door.key("A"))
    door("audit", "", 0, "", "last", "", "")
    assert 10_000 <= door.ask("XLEN", door.key("A")) <= 10_200
