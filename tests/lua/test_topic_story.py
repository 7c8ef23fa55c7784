"""Topics: delayed messages under ids that their callers chose."""

import json

import pytest

from holdfast.commands.admin import Watch
from holdfast.commands.leases import WILL_WAIT, WOKEN
from holdfast.commands.topics import (
    CountTopics,
    Message,
    TopicCounts,
    TopicDelete,
    TopicGet,
    TopicPull,
    TopicPut,
    TopicRelease,
    TopicRequeue,
    TopicReschedule,
    TopicReserve,
)
from holdfast.commands.views import ListSet
from native_door import Door, StoreMessage

TTR = 60_000


def put(core, *ids: str, delay: int = 0, topic: str = "t"):
    return core(TopicPut(topic, "in", [word for id in ids for word in (id, delay, f"body of {id}")]))


def reserve(core, limit: int = 1, **options) -> list[str]:
    return [message.id for message in core(TopicReserve("t", TTR, limit=limit, **options)).messages]


def pull(core, limit: int = 1, **options) -> list[str]:
    return [message.id for message in core(TopicPull("t", limit=limit, **options))]


def look(core, id: str) -> tuple[str, int] | None:
    [found] = core(TopicGet("t", (id,)))
    return found and (found.state, found.when_ms)


def woken(door: Door) -> bool:
    """Whether a subscriber was woken; takes the token away."""
    return bool(door.ask("DEL", door.key("tn:t")))


def test_a_message_is_ready_when_its_time_has_come_and_not_before(core, clock):
    assert put(core, "a", delay=3000) == [True]
    clock.advance(seconds=2.999)
    assert core(TopicReserve("t", TTR)).due == 0.001
    assert reserve(core) == []
    clock.advance(seconds=0.001)
    [message] = core(TopicReserve("t", TTR)).messages
    assert message == Message("t", "a", "body of a", "reserved", clock.now_ms + TTR)
    assert reserve(core) == []


def test_messages_come_by_their_ready_time_and_then_by_id(core, clock):
    put(core, "late", delay=2000)
    put(core, "b", "a", delay=1000)
    clock.advance(seconds=5)
    assert reserve(core, 2) == ["a", "b"]
    assert reserve(core, 5) == ["late"]


def test_a_moment_is_the_same_as_a_delay_from_now(core, clock):
    core(TopicPut("t", "at", ("a", clock.now_ms + 1000, "x", "past", 0, "y")))
    assert look(core, "a") == ("queued", clock.now_ms + 1000)
    assert reserve(core, 5) == ["past"]


def test_the_caller_may_say_up_to_when_and_the_boundary_is_included(core, clock):
    put(core, "a", delay=1000)
    then = clock.now_ms + 1000
    assert reserve(core, max_ms=then - 1) == []
    assert pull(core, max_ms=then - 1) == []
    assert reserve(core, max_ms=then) == ["a"]
    assert look(core, "a") == ("reserved", then + TTR)


def test_an_id_that_is_queued_or_reserved_is_not_put_again(core):
    assert put(core, "a", "b", "a") == [True, True, False]
    assert core(TopicPut("t", "in", ("a", 9000, "other"))) == [False]
    assert reserve(core) == ["a"]
    assert core(TopicPut("t", "in", ("a", 0, "other"))) == [False]
    assert core(TopicGet("t", ("a",)))[0].body == "body of a"
    assert core(TopicDelete("t", ("a",))) == [True]
    assert core(TopicPut("t", "in", ("a", 0, "other"))) == [True]


def test_what_is_pulled_is_gone(core):
    put(core, "a", "b")
    assert core(TopicPull("t")) == [Message("t", "a", "body of a")]
    assert core(TopicGet("t", ("a", "b"))) == [
        None,
        Message("t", "b", "body of b", "queued", look(core, "b")[1]),
    ]
    assert pull(core, 5) == ["b"]
    assert pull(core) == []


def test_done_deletes_what_is_reserved_and_leaves_what_is_queued(core):
    put(core, "a", "b")
    [held] = core(TopicReserve("t", TTR)).messages
    assert core(TopicRelease("t", [("a", None), ("b", None), ("nobody", None)])) == [True, False, False]
    assert core(TopicGet("t", ("a",))) == [None]
    assert look(core, "b")[0] == "queued"
    assert core(TopicRelease("t", [(held.id, held.when_ms)])) == [False]


def test_what_is_given_back_is_ready_when_it_was_said(core, clock):
    put(core, "a", "b", "c")
    reserve(core, 3)
    assert core(TopicRelease("t", [("a", None)], "in", 5000)) == [True]
    assert core(TopicRelease("t", [("b", None), ("b", None)], "at", clock.now_ms)) == [True, False]
    assert look(core, "a") == ("queued", clock.now_ms + 5000)
    assert reserve(core, 5) == ["b"]
    clock.advance(seconds=5)
    assert reserve(core, 5) == ["a"]


def test_a_reservation_that_is_over_comes_back_when_it_is_asked_for(core, clock):
    put(core, "a", "b")
    reserve(core)
    clock.advance(seconds=10)
    reserve(core)
    assert core(TopicRequeue("t")).due == 50
    clock.advance(seconds=50)
    assert reserve(core) == []
    found = core(TopicRequeue("t"))
    assert (found.moved, found.due) == (1, 10)
    assert look(core, "a") == ("queued", clock.now_ms)
    assert core(TopicRequeue("t", clock.now_ms + 10_000)).moved == 1
    assert look(core, "b") == ("queued", clock.now_ms + 10_000)
    assert core(TopicRequeue("t")).due is None


def test_no_more_come_back_than_the_limit_allows(core, clock):
    put(core, *[f"m{n}" for n in range(5)])
    reserve(core, 5)
    clock.advance(seconds=60)
    assert [core(TopicRequeue("t", limit=2)).moved for _ in range(4)] == [2, 2, 1, 0]


def test_who_comes_too_late_ends_nobody_elses_reservation(core, clock):
    put(core, "a")
    [first] = core(TopicReserve("t", TTR)).messages
    clock.advance(seconds=60)
    core(TopicRequeue("t"))
    [second] = core(TopicReserve("t", TTR)).messages
    assert core(TopicRelease("t", [("a", first.when_ms)])) == [False]
    assert core(TopicRelease("t", [("a", first.when_ms)], "in", 0)) == [False]
    assert core(TopicRelease("t", [("a", second.when_ms)])) == [True]


def test_a_queued_message_may_be_ready_at_another_time(core, clock, door: Door):
    put(core, "a", "b", delay=9000)
    put(core, "held", delay=0)
    reserve(core)
    reserve(core, mode=WILL_WAIT)
    assert core(TopicReschedule("t", ("a", "held", "nobody"), "in", 0)) == [True, False, False]
    assert woken(door)
    assert reserve(core, 5) == ["a"]
    assert core(TopicReschedule("t", ("b",), "at", clock.now_ms + 60_000)) == [True]
    assert look(core, "b") == ("queued", clock.now_ms + 60_000)
    assert [door("topic_reschedule", "l", 1, "t", "in", 5, "b") for _ in range(2)] == [[1]] * 2


def test_deleting_takes_a_message_from_wherever_it_is(core):
    put(core, "queued", "held")
    reserve(core)
    assert core(TopicDelete("t", ("queued", "held", "nobody"))) == [True, True, False]
    assert core(CountTopics(("t",))) == [TopicCounts("t", 0, 0, 0)]


def test_deleting_and_taking_repair_what_another_program_spoilt(core, door: Door):
    put(core, "bodiless", "placeless", "good")
    door.ask("HDEL", door.key("tb:t"), "bodiless")
    door.ask("ZREM", door.key("tq:t"), "placeless")
    assert reserve(core, 5) == ["good"]
    assert look(core, "bodiless") is None
    assert core(TopicDelete("t", ("placeless", "bodiless", "good"))) == [True, False, True]
    assert [name for name in door.names() if name.startswith("t")] == []
    put(core, "bodiless")
    door.ask("DEL", door.key("tb:t"))
    assert pull(core) == []
    assert [name for name in door.names() if name.startswith("t")] == []


def test_a_topic_is_listed_with_its_counts_while_it_holds_messages(core, clock):
    put(core, "a", "b")
    put(core, "c", delay=5000)
    put(core, "x", topic="u")
    reserve(core)
    assert core(ListSet("topics")).names == ["t", "u"]
    assert core(CountTopics(("t", "u", "nobody"))) == [
        TopicCounts("t", 2, 1, 1, clock.now_ms, clock.now_ms + TTR),
        TopicCounts("u", 1, 1, 0, clock.now_ms, -1),
        TopicCounts("nobody", 0, 0, 0, -1, -1),
    ]
    core(TopicDelete("u", ("x",)))
    assert core(ListSet("topics")).names == ["t"]
    core(TopicRelease("t", [("a", None)]))
    pull(core)
    pull(core, max_ms=clock.now_ms + 5000)
    assert core(ListSet("topics")).names == []


def test_queued_and_reserved_messages_are_listed_page_by_page(core, clock):
    put(core, "a", "b", "c", "d")
    reserve(core, 1)
    page = core(ListSet("queued", "t", count=2))
    assert page.names == ["b", "c"]
    assert core(ListSet("queued", "t", page.next)).names == ["d"]
    assert core(ListSet("queued", "t", direction="down")).names == ["d", "c", "b"]
    [held] = core(ListSet("reserved", "t")).entries
    assert (held.member, int(held.score)) == ("a", clock.now_ms + TTR)


def test_a_repeated_put_answers_as_before(door: Door):
    assert [door("topic_put", "l", 1, "t", "in", "a", 0, "x") for _ in range(2)] == [[1], [1]]
    assert door("topic_put", "l", 2, "t", "in", "a", 0, "x") == [0]


def test_a_repeated_reservation_answers_the_same_messages_while_they_are_held(door: Door, clock):
    long = "x" * 9000
    door("topic_put", "", 0, "t", "in", "a", 0, long, "b", 0, "y", "c", 0, "z", "d", 0, "z")
    first = door("topic_reserve", "l", 1, "t", 0, 3, "", TTR)
    assert first[1:4] == [b"a", clock.now_ms + TTR, long.encode()]
    assert door("topic_reserve", "l", 1, "t", 0, 3, "", TTR) == first
    door("topic_release", "", 0, "t", "done", "", "a", "")
    door("topic_release", "", 0, "t", "in", 0, "b", "")
    assert door("topic_reserve", "l", 1, "t", 0, 3, "", TTR)[1:] == [b"c", clock.now_ms + TTR, b"z"]
    clock.advance(seconds=1)
    assert door("topic_reserve", "m", 1, "t", 0, 1, "", TTR)[1] == b"b"
    assert door("topic_reserve", "l", 1, "t", 0, 3, "", TTR)[1:] == [b"c", clock.now_ms - 1000 + TTR, b"z"]
    with pytest.raises(StoreMessage, match="HF_STALE_NUMBER"):
        door("topic_reserve", "l", 0, "t", 0, 1, "", TTR)


def test_an_empty_reservation_is_not_kept(door: Door):
    door("topic_reserve", "l", 1, "t", 0, 1, "", TTR)
    assert "i:l" not in door.names()


def test_a_repeated_pull_answers_the_same_messages_however_long(door: Door):
    long = b"x" * 100_000
    door("topic_put", "", 0, "t", "in", "a", 0, long, "b", 0, "y")
    assert [door("topic_pull", "l", 1, "t", 1, "") for _ in range(2)] == [[b"a", long]] * 2
    assert door("topic_pull", "l", 2, "t", 1, "") == [b"b", b"y"]


def test_a_repeated_end_of_a_reservation_answers_as_before(door: Door):
    door("topic_put", "", 0, "t", "in", "a", 0, "x", "b", 0, "y")
    door("topic_reserve", "", 0, "t", 0, 2, "", 1)
    assert [door("topic_release", "l", 1, "t", "done", "", "a", "") for _ in range(2)] == [[1]] * 2
    assert [door("topic_release", "l", 2, "t", "in", 0, "b", "") for _ in range(2)] == [[1]] * 2
    assert [door("topic_delete", "l", 3, "t", "b") for _ in range(2)] == [[1]] * 2
    assert [door("topic_requeue", "l", 4, "t", "", 5) for _ in range(2)] == [[0, -1]] * 2


def test_an_answer_stays_below_its_bound_but_for_a_single_message(door: Door):
    door("setting", "", 0, "max-data", 8 << 20)
    body = b"x" * 5_000_000
    for id in "abc":
        door("topic_put", "", 0, "t", "in", id, 0, body)
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        door.look("topic_get", "t", "a", "b")
    assert len(door.look("topic_get", "t", "a")) == 1
    assert door("topic_reserve", "", 0, "t", 0, 5, "", TTR)[1::3] == [b"a"]
    assert door("topic_pull", "", 0, "t", 5, "")[::2] == [b"b"]


def test_only_subscribers_that_wait_are_woken(core, door: Door):
    put(core, "a")
    assert not woken(door)
    pull(core)
    assert reserve(core, mode=WILL_WAIT) == []
    put(core, "b")
    put(core, "c")
    assert woken(door)
    put(core, "d")
    assert not woken(door)


def test_who_waits_is_told_of_what_is_ready_sooner_than_was_known(core, door: Door):
    put(core, "a", delay=5000)
    reserve(core, mode=WILL_WAIT)
    put(core, "later", delay=6000)
    assert not woken(door)
    core(TopicPut("t", "in", ("sooner", 4000, "x", "also later", 6000, "x")))
    assert woken(door)


def test_what_comes_back_rings_too(core, clock, door: Door):
    put(core, "a", "b")
    reserve(core, 2)
    reserve(core, mode=WILL_WAIT)
    core(TopicRelease("t", [("a", None)], "in", 0))
    assert woken(door)
    reserve(core, 2, mode=WILL_WAIT)
    clock.advance(seconds=60)
    core(TopicRequeue("t"))
    assert woken(door)


def test_a_subscriber_that_was_woken_and_is_busy_wakes_another_one(core, door: Door):
    reserve(core, mode=WILL_WAIT)
    put(core, "a", "b")
    assert woken(door)
    reserve(core, mode=WOKEN)
    assert woken(door)
    reserve(core, mode=WOKEN)
    assert not woken(door)
    put(core, "soon", delay=4999)
    assert woken(door)
    assert reserve(core, 0, mode=WOKEN) == []
    assert woken(door)


def test_a_subscriber_that_gets_a_full_reply_wakes_another_one(core, door: Door):
    door("setting", "", 0, "max-data", 8 << 20)
    reserve(core, mode=WILL_WAIT)
    for id in "abc":
        core(TopicPut("t", "in", (id, 0, "x" * 5_000_000)))
    assert woken(door)
    core(Watch(60_000))
    listener = door._client.link.listener()
    listener.subscribe(door.root + "e:c")
    assert reserve(core, 100, mode=WOKEN) == ["a"]
    assert woken(door)
    assert listener.receive(5) is not None
    listener.close()


def test_messages_that_come_and_go_are_reported_by_id_while_somebody_watches(core, clock, door: Door):
    listener = door._client.link.listener()
    listener.subscribe(door.root + "e:m")
    put(core, "a0")
    core(Watch(60_000))
    put(core, "b", 'c"🐙')
    put(core, "b")
    put(core, "d", "b", "e")
    core(TopicReschedule("t", ["b"], "in", 0))
    core(TopicDelete("t", ["b", "nothing", "d"]))
    assert reserve(core) == ["a0"]
    core(TopicRelease("t", [("a0", None)], "in", 0))
    assert reserve(core, 9) == ["a0", 'c"🐙', "e"]
    core(TopicRelease("t", [("e", None), ("gone", None)]))
    core(TopicRelease("t", [('c"🐙', None), ("a0", None)], "in", 0))
    assert pull(core, 9) == ["a0", 'c"🐙']
    put(core, *(str(number) for number in range(100)))
    found = [json.loads(listener.receive(5)[1]) for _ in range(6)]
    assert {one["topic"] for one in found} == {"t"}
    assert [(one["event"].removeprefix("message_"), one["ids"], one["count"]) for one in found] == [
        ("scheduled", ["b", 'c"🐙'], 2),
        ("scheduled", ["d", "e"], 2),
        ("cancelled", ["b", "d"], 2),
        ("completed", ["e"], 1),
        ("completed", ["a0", 'c"🐙'], 2),
        ("scheduled", [str(number) for number in range(32)], 100),
    ]
    clock.advance(seconds=61)
    put(core, "late")
    assert listener.receive(0.05) is None
    listener.close()


def test_changes_of_a_topic_are_told_while_somebody_watches(core, door: Door):
    listener = door._client.link.listener()
    listener.subscribe(door.root + "e:c")
    core(Watch(60_000))
    put(core, "a")
    put(core, "a")
    reserve(core)
    core(TopicRelease("t", [("a", None)]))
    assert [listener.receive(5)[1] for _ in range(3)] == [b"topic:t"] * 3
    assert listener.receive(0.05) is None
    listener.close()
