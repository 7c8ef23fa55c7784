"""Tracked jobs: what happens to them is published; and what changes is told while somebody watches."""

from collections.abc import Iterator

import pytest
import redis

from holdfast.commands.attributes import Mark, Tag, Track, Tracked
from holdfast.commands.jobs import Cancel, Move, Put, PutMany
from holdfast.commands.leases import Complete, CompleteMany, Done
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import Advance, Expire, Fail, Retry
from holdfast.errors import JobNotFound
from holdfast.testing.store import ScratchStore
from native_door import Door


class Ear:
    """Hears what is published below a root."""

    def __init__(self, url: str, root: str) -> None:
        self._client = redis.Redis.from_url(url)
        self._sub = self._client.pubsub()
        self._root = root
        self._sub.psubscribe(root.replace("{", "[{]") + "e:*")
        assert self._sub.get_message(timeout=30)

    def heard(self) -> list[tuple[str, str]]:
        """What came since the last time, in order: channel without root, and message."""
        self._client.publish(self._root + "e:end", "")
        found: list[tuple[str, str]] = []
        while True:
            message = self._sub.get_message(timeout=30)
            assert message
            channel = message["channel"].decode().removeprefix(self._root + "e:")
            if channel == "end":
                return found
            found.append((channel, message["data"].decode()))

    def close(self) -> None:
        self._sub.close()
        self._client.close()


@pytest.fixture
def ear(engine_store: ScratchStore, door: Door) -> Iterator[Ear]:
    ear = Ear(engine_store.url, door.root)
    yield ear
    ear.close()


def of(ear: Ear, jid: str) -> list[str]:
    return [channel for channel, message in ear.heard() if message == jid]


def test_tracking_answers_whether_it_changed_anything_and_says_so(core, door: Door, ear: Ear):
    door.put("q", "a")
    assert [core(Track(True, "a")), core(Track(True, "a"))] == [True, False]
    job = door.job("a")
    assert job
    assert job.tracked
    assert [core(Track(False, "a")), core(Track(False, "a"))] == [True, False]
    assert of(ear, "a") == ["track", "track", "untrack", "untrack"]
    with pytest.raises(JobNotFound):
        core(Track(True, "nobody"))


def test_a_tracked_job_is_followed_through_its_life_and_no_other_is(core, door: Door, ear: Ear):
    door.put("q", "a", "plain")
    core(Track(True, "a"))
    [first, plain] = door.pop("w", "q", n=2)
    core(Retry("w", first))
    [second] = door.pop("w", "q")
    core(Advance("w", "next", second))
    [third] = door.pop("w", "next")
    core(Fail("w", third, "G", "m"))
    core(Move("q", "a"))
    [fourth] = door.pop("w", "q")
    core(CompleteMany("w", [Done("a", fourth.token), Done("plain", plain.token)]))
    assert of(ear, "a") == [
        "track",
        "popped",
        "popped",
        "completed",
        "popped",
        "failed",
        "put",
        "popped",
        "completed",
    ]
    assert of(ear, "plain") == []


def test_losing_a_lease_and_using_up_all_retries_are_told(core, clock, door: Door, ear: Ear):
    door.put("q", "lost", retries=0)
    door.put("q", "tried", retries=0)
    for jid in ("lost", "tried"):
        core(Track(True, jid))
    lost, tried = door.pop("w", "q", n=2)
    core(Retry("w", tried))
    core(Expire([lost]))
    door.pop("w", "q")
    events = ear.heard()
    assert [channel for channel, message in events if message == "tried"] == ["track", "popped", "failed"]
    assert [channel for channel, message in events if message == "lost"] == [
        "track",
        "popped",
        "stalled",
        "failed",
    ]


def test_a_mark_outlives_its_job_and_can_be_taken_away_then(core, clock, door: Door, ear: Ear):
    door.put("q", "a", "b")
    core(Track(True, "a"))
    clock.advance(seconds=1)
    core(Track(True, "b"))
    core(Cancel(["a"]))
    assert of(ear, "a") == ["track", "canceled"]
    assert core(Tracked()) == [Mark("a", clock.now_ms - 1000, False), Mark("b", clock.now_ms, True)]
    assert core(Track(False, "a"))
    assert [mark.jid for mark in core(Tracked())] == ["b"]


@pytest.mark.parametrize(
    "put",
    [
        Put("q", "k", b"{}", "a", mode="move"),
        Put("q", "k", b"{}", "a", mode="only"),
        PutMany("q", ["a", "k", b"{}", "b", "k", b"{}"], mode="move"),
        PutX("q", [JobWithOptions("k", b"{}", "a", ExtraOptions(tags=["red"]))], mode="move"),
        Put("q", "k", b"%s" % (b"1" * 600), "a", mode="move"),
    ],
    ids=["move", "only", "many", "wished", "long"],
)
def test_a_job_put_later_under_a_marked_jid_is_tracked(core, door: Door, ear: Ear, put):
    door.put("q", "a")
    core(Track(True, "a"))
    core(Cancel(["a"]))
    ear.heard()
    core(put)
    job = door.job("a")
    assert job
    assert job.tracked
    assert of(ear, "a") == ["put"]
    core(Track(False, "a"))
    core(Cancel(["a"]))
    core(put)
    job = door.job("a")
    assert job
    assert not job.tracked


def test_what_changes_is_told_once_a_call_and_only_while_somebody_watches(core, clock, door: Door, ear: Ear):
    def told() -> set[str]:
        messages = [message for channel, message in ear.heard() if channel == "c"]
        assert len(messages) == len(set(messages))
        return set(messages)

    door.put("q", "before")
    assert told() == set()
    door("watch", 5_000)
    told()
    door.put("q", "a", "b", "c")
    assert told() == {"queue:q"}
    door.put("new", "d")
    assert told() == {"queues", "queue:new"}
    jobs = door.pop("w", "q", n=3)
    assert told() == {"queue:q", *(f"job:{job.jid}" for job in jobs)}
    core(CompleteMany("w", [Done(job.jid, job.token) for job in jobs[:2]]))
    assert told() == {"queue:q", *(f"job:{job.jid}" for job in jobs[:2])}
    core(Complete("w", jobs[2]))
    assert told() == {"queue:q", f"job:{jobs[2].jid}"}
    core(Tag("add", "d", ["red"]))
    assert told() == {"queue:new", "job:d"}
    core(Cancel(["d"]))
    assert told() == {"queue:new", "job:d"}
    door.put("q", "later", delay=1_000)
    assert "queue:q" in told()
    clock.advance(seconds=2)
    door.pop("w", "q")
    assert {"queue:q"} <= told()
    clock.advance(seconds=5)
    door.put("q", "e")
    assert told() == set()
