"""job.track, job.untrack and jobs.tracked."""

import pytest
from stories import popped, put, refusal
from two_doors import Door


def tracked(door: Door, now: float) -> tuple[object, object]:
    found = door.call("jobs.tracked", now)
    jobs = [job["jid"] for job in found["jobs"]]
    return jobs, found["expired"]


@pytest.mark.full
def test_a_tracked_job_is_told_of_on_channels_of_its_own(door: Door) -> None:
    put(door, 1, "j")
    door.messages()
    assert [door.raw("job.track", now, "j") for now in (2, 3)] == ["1", "0"]
    assert door.messages() == [("ql:track", "j"), ("ql:track", "j")]
    assert door.call("job.get", 3, "j")["tracked"] is True
    put(door, 4, "j")
    assert door.messages() == [("ql:log", '{"jid":"j","event":"put","queue":"q"}'), ("ql:put", "j")]
    assert [door.raw("job.untrack", now, "j") for now in (5, 6)] == ["1", "0"]
    assert door.messages() == [("ql:untrack", "j"), ("ql:untrack", "j")]
    popped(door, 7)
    assert door.messages() == []


def test_tracked_jobs_come_by_the_time_they_were_tracked_last(door: Door) -> None:
    for jid in "cab":
        put(door, 1, jid)
        door.call("job.track", 1 + "cab".index(jid), jid)
    assert tracked(door, 4) == (["c", "a", "b"], {})
    door.call("job.track", 5, "a")
    assert tracked(door, 6) == (["c", "b", "a"], {})


@pytest.mark.full
def test_a_tracked_job_is_shown_as_job_get_shows_it(door: Door) -> None:
    put(door, 1, "j", "q", 0, "tags", '["x"]')
    door.call("job.track", 2, "j")
    assert door.call("jobs.tracked", 3)["jobs"] == [door.call("job.get", 3, "j")]


def test_none_is_an_empty_object_twice(door: Door) -> None:
    assert door.raw("jobs.tracked", 1) == '{"jobs":{},"expired":{}}'


@pytest.mark.full
def test_the_mark_of_a_job_that_is_gone_stays_until_it_is_taken_away(door: Door) -> None:
    put(door, 1, "j")
    door.call("job.track", 2, "j")
    door.call("job.cancel", 3, "j")
    assert tracked(door, 4) == ([], ["j"])
    put(door, 5, "j")
    assert (tracked(door, 6), door.call("job.get", 6, "j")["tracked"]) == ((["j"], {}), True)
    door.call("job.cancel", 7, "j")
    assert door.call("job.untrack", 8, "j") == 1
    assert tracked(door, 9) == ([], {})


@pytest.mark.full
def test_a_job_that_retention_dropped_is_expired(door: Door) -> None:
    door.call("config.set", 0, "jobs-history", -1)
    put(door, 1, "j")
    door.call("job.track", 1, "j")
    popped(door, 2)
    door.messages()
    door.call("job.complete", 3, "j", "w", "q", "{}")
    assert door.messages()[0] == ("ql:completed", "j")
    assert tracked(door, 4) == ([], ["j"])


@pytest.mark.full
def test_only_what_exists_or_is_marked_can_be(door: Door) -> None:
    for command in ("job.track", "job.untrack"):
        assert refusal(door.call(command, 1)) == 'Track(): Arg "jid" missing'
        assert refusal(door.call(command, 1, "none")) == "Track(): Job does not exist"
    assert door.messages() == []


@pytest.mark.full
def test_all_are_listed_however_many(door: Door) -> None:
    for number in range(1100):
        put(door, 1, f"j{number:04}")
        door.call("job.track", number, f"j{number:04}")
    assert tracked(door, 2000) == ([f"j{number:04}" for number in range(1100)], {})
