"""Tags: labels of jobs, and the index of who has one."""

import pytest

from holdfast.commands.admin import ConfigSet
from holdfast.commands.attributes import Tag, Tagged, Tags
from holdfast.commands.jobs import Cancel, Move
from holdfast.commands.leases import Complete, CompleteMany, Done
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from native_door import Door, StoreMessage


def put_tagged(core, jid: str, *tags: str, mode="new") -> None:
    core(PutX("q", [JobWithOptions("K", b"{}", jid, ExtraOptions(tags=tags))], mode=mode))


def tags_of(door: Door, jid: str) -> tuple[str, ...]:
    job = door.job(jid)
    assert job
    return job.tags


def test_tags_keep_the_order_they_came_in_and_come_once(core, door: Door):
    put_tagged(core, "a", "red")
    assert core(Tag("add", "a", ["blue", "red", "blue", "green"])) == ["red", "blue", "green"]
    assert core(Tag("remove", "a", ["red", "unknown"])) == ["blue", "green"]
    assert tags_of(door, "a") == ("blue", "green")
    assert core(Tag("remove", "a", ["blue", "green"])) == []
    assert {name for name in door.names() if name[:1] in set("gG")} == set()
    assert core(Tag("add", "a", [])) == []


def test_a_job_has_at_most_64_tags_however_they_come(core, door: Door):
    put_tagged(core, "a", *[f"t{n}" for n in range(63)])
    assert len(core(Tag("add", "a", ["last", "t0"]))) == 64
    before = door.dump()
    with pytest.raises(StoreMessage, match="TOO_MANY"):
        door("tag", "add", "a", "one-more")
    assert door.dump() == before


def test_popularity_counts_each_job_once(core, door: Door):
    for jid in ("a", "b", "c"):
        put_tagged(core, jid, "red")
    for _ in range(3):
        core(Tag("add", "a", ["red", "red"]))
        core(Tag("remove", "a", ["blue"]))
        put_tagged(core, "b", "red", mode="move")
    put_tagged(core, "d", "blue")
    put_tagged(core, "e", "blue", "azure")
    put_tagged(core, "f", "azure")
    assert core(Tags()) == {"red": 3, "blue": 2, "azure": 2}
    assert list(core(Tags())) == ["red", "blue", "azure"]
    assert list(core(Tags(1, 1, 1))) == ["blue"]
    core(Cancel(["b", "c"]))
    assert core(Tags(1)) == {"blue": 2, "azure": 2, "red": 1}


def test_a_page_of_jobs_goes_by_when_the_tag_was_attached_then_by_jid(core, clock, door: Door):
    put_tagged(core, "b", "red")
    put_tagged(core, "a", "red")
    clock.advance(seconds=1)
    put_tagged(core, "z", "red")
    assert core(Tagged("red")) == (3, ["a", "b", "z"])
    clock.advance(seconds=1)
    core(Tag("add", "a", ["red"]))
    assert core(Tagged("red", 1, 5)) == (3, ["z", "a"])
    assert core(Tagged("red", 0, 0)) == (3, [])
    assert core(Tagged("unknown")) == (0, [])


def test_a_job_that_is_purged_leaves_the_index_even_in_the_call_that_completes_it(core, door: Door):
    put_tagged(core, "a", "red", "blue")
    [job] = door.pop("w", "q")
    core(ConfigSet("jobs-history-count", "0"))
    core(Complete("w", job))
    assert door.job("a") is None
    assert core(Tags(1)) == {}
    assert {name for name in door.names() if name[:1] in set("gGxbj")} == set()


def test_a_completed_job_that_is_tagged_later_takes_all_it_has_along(core, door: Door):
    door.put("q", "a", "b")
    core(CompleteMany("w", [Done(job.jid, job.token) for job in door.pop("w", "q", n=2)]))
    core(Tag("add", "a", ["red"]))
    core(Tag("add", "a", ["blue"]))
    assert core(Tagged("red")) == (1, ["a"])
    core(ConfigSet("jobs-history-count", "0"))
    door("sweep", "", 0)
    assert {name for name in door.names() if name[:1] in set("gGxbjc")} == set()


def test_moving_a_completed_job_that_was_tagged_later_leaves_no_entry_behind(core, door: Door):
    door.put("q", "a")
    core(Complete("w", door.pop("w", "q")[0]))
    core(Tag("add", "a", ["red"]))
    core(Move("q", "a"))
    assert "c" not in door.names()
    assert tags_of(door, "a") == ("red",)


def test_a_purge_of_many_tags_goes_on_in_later_calls(core, door: Door):
    for n in range(16):
        put_tagged(core, f"j{n}", *[f"{n}-{k}" for k in range(64)])
    core(CompleteMany("w", [Done(job.jid, job.token) for job in door.pop("w", "q", n=16)]))
    assert len(core(Tags(1, 0, 2_000))) == 1024
    core(ConfigSet("jobs-history-count", "0"))
    left = []
    while door("sweep", "", 0):
        left.append(len(core(Tags(1, 0, 2_000))))
    assert left[0] == 0 or left[0] >= 64
    assert left[-1] == 0
    assert door.ask("EXISTS", door.key("c")) == 0
