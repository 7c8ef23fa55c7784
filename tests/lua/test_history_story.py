"""The history of a job: lines of its own and lines that somebody logged."""

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.attributes import Log
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Complete, Heartbeat, Pop
from holdfast.commands.outcomes import Advance, Fail, Retry
from holdfast.errors import LeaseLost
from native_door import Door


def whats(door: Door, jid: str) -> list[str]:
    job = door.job(jid)
    assert job
    return [line.what for line in job.history]


def test_a_line_that_somebody_logged_shows_its_data(core, clock, door: Door):
    door.put("q", "a")
    clock.advance(seconds=2)
    core(Log("a", "seen", b'{"by":"ann","when":1,"what":"other"}'))
    job = door.job("a")
    assert job
    put, seen = job.history
    assert put.what == "put"
    assert seen.as_dict() == {"what": "seen", "when": clock.now_ms / 1000, "by": "ann"}


def test_a_line_logged_while_a_worker_holds_the_job_names_the_attempt(core, door: Door):
    door.put("q", "a")
    [held] = door.pop("w", "q")
    core(Log("a", "put"))
    core(Complete("w", held))
    job = door.job("a")
    assert job
    assert whats(door, "a") == ["put", "popped", "put", "done"]
    assert (job.history[2].worker, job.history[2].attempt, job.history[2].data) == ("w", 1, {})


def test_a_completed_job_can_be_given_a_line(core, door: Door):
    door.put("q", "a")
    core(Complete("w", door.pop("w", "q")[0]))
    core(Log("a", "checked", b'{"ok":true}'))
    assert whats(door, "a") == ["put", "popped", "done", "checked"]
    core(ConfigSet("jobs-history-count", "0"))
    door("sweep", "", 0)
    assert {name for name in door.names() if name[:1] in set("xj")} == set()


@pytest.mark.parametrize(
    ("most", "left"),
    [(1, ["put"]), (2, ["put", "n9"]), (3, ["put", "n8", "n9"]), (0, ["put", *[f"n{n}" for n in range(10)]])],
)
def test_the_first_line_and_the_newest_stay(core, door: Door, most: int, left: list[str]):
    core(ConfigSet("max-job-history", str(most)))
    door.put("q", "a")
    for n in range(10):
        core(Log("a", f"n{n}"))
    assert whats(door, "a") == left


def test_a_limit_in_bytes_keeps_the_first_line_and_what_fits_of_the_newest(core, door: Door):
    door("setting", "", 0, "max-history-bytes", 2_000)
    door.put("q", "a")
    for n in range(10):
        core(Log("a", f"n{n}", b'{"d":"%s"}' % (b"x" * 500)))
    assert whats(door, "a") == ["put", "n7", "n8", "n9"]
    core(Log("a", "huge", b'{"d":"%s"}' % (b"x" * 5_000)))
    assert whats(door, "a") == ["put", "huge"]


def test_without_a_setting_a_quarter_of_a_megabyte_is_the_end(core, door: Door):
    core(ConfigSet("max-job-history", "0"))
    door.put("q", "a")
    for n in range(40):
        core(Log("a", f"n{n}", b'{"d":"%s"}' % (b"x" * 16_000)))
    assert whats(door, "a")[0] == "put"
    assert whats(door, "a")[-1] == "n39"
    assert 15 <= len(whats(door, "a")) < 20


def test_a_repeat_of_a_retry_is_known_behind_a_line_of_somebody_else(core, door: Door):
    door.put("q", "a")
    [held] = door.pop("w", "q")
    assert core(Retry("w", held)) == 4
    core(Log("a", "seen"))
    assert door("retry", "w", 0, "", "", "a", held.token, "") == [4]


def late(core, jid: str = "a") -> list[tuple[str, str, float]]:
    """The reports of workers that came back too late: who, what, and how long after the loss."""
    [facts] = core(JobGet([jid]))
    return [(line.worker, line.reason, line.data["after"]) for line in facts.history if line.refusal]


def test_a_late_return_of_a_frozen_worker_is_in_the_history(core, clock, door: Door):
    door.put("q", "a")
    [old] = core(Pop("frozen", ["q"]))
    clock.advance(seconds=31)
    core(Pop("w", ["q"]))
    clock.advance(seconds=6)
    [new] = core(Pop("w", ["q"]))
    clock.advance(seconds=64)
    before = door.ask("GET", door.key("j:a"))
    with pytest.raises(LeaseLost):
        core(Heartbeat("frozen", old))
    with pytest.raises(LeaseLost):
        core(Complete("frozen", old))
    with pytest.raises(LeaseLost):
        core(Fail("frozen", old, "G"))
    with pytest.raises(LeaseLost):
        core(Retry("frozen", old))
    assert late(core) == [("frozen", what, 70.0) for what in ("heartbeat", "complete", "fail", "retry")]
    [facts] = core(JobGet(["a"]))
    assert facts.history[-3].refusal == "worker frozen came back after 70 s; its result was refused"
    assert facts.history[-3].attempt == 1
    assert door.ask("GET", door.key("j:a")) == before
    core(Complete("w", new))
    clock.advance(seconds=1)
    with pytest.raises(LeaseLost):
        core(Advance("frozen", "next", old))
    assert len(late(core)) == 4
    assert core(JobGet(["a"]))[0].state == "complete"


def test_a_report_is_noted_once_and_only_of_an_attempt_that_there_was(core, clock, door: Door):
    door.put("q", "a", "plain")
    [old, plain] = core(Pop("frozen", ["q"], limit=2))
    clock.advance(seconds=31)
    core(Pop("w", ["q"]))
    door("release", "", 0, "crashed", "SIGKILL", "g", "frozen", "a", old.token)
    names = door.dump()
    for token in (1, old.token + 1, old.token - 1, 2**53):
        for worker in ("frozen", "stranger"):
            assert door("complete", worker, "a", token, "", 0, "")[0] == 0
            assert door("heartbeat", 0, worker, "a", token, "") == [0]
    assert door("complete", "stranger", "a", old.token, "", 0, "")[0] == 0
    # One that was under way when the attempt ended.
    assert door("heartbeat", 0, "frozen", "a", old.token, "") == [0]
    assert door.dump() == names
    clock.advance(seconds=2)
    for _ in range(20):
        door("complete", "frozen", "a", old.token, "", 0, "", "nobody", old.token, "", 0, "")
        door("heartbeat", 0, "frozen", "a", old.token, "")
    assert [what for _, what, _ in late(core)] == ["complete", "heartbeat"]
    core(Complete("frozen", plain))
    assert core(Complete("frozen", plain)) is not None
    assert late(core, "plain") == []


def test_late_reports_keep_within_the_lines_that_a_job_may_have(core, clock, door: Door):
    core(ConfigSet("max-job-history", "5"))
    door.put("q", "a", retries=100)
    for _ in range(9):
        [job] = door.pop("frozen", "q")
        door("release", "", 0, "crashed", "SIGKILL", "g", "frozen", "a", job.token)
        door("complete", "frozen", "a", job.token, "", 0, "")
    [facts] = core(JobGet(["a"]))
    assert len(facts.history) == 5
    assert facts.history[-1].refusal
