"""Topics as people use them (spec/schedules.md 3, 4, 8.1 to 8.3), for both clients."""

import time

import pytest

from holdfast import AsyncClient, AsyncScheduler, Client, CodecError, Scheduler, UsageError
from holdfast.testing.clock import START_MS, StoppedClock

NOW = START_MS / 1000


@pytest.fixture
def clock(do, url, namespace):
    """The stopped clock of the namespace that `do` works on."""
    with Client(url, namespace=namespace) as made:
        clock = StoppedClock(made, START_MS)
        clock.advance(seconds=0)
        yield clock


@pytest.fixture
def mail(do):
    return do.client.topics["mail"]


@pytest.fixture
def sched(do):
    """A scheduler with its own times."""
    kind = Scheduler if isinstance(do.client, Client) else AsyncScheduler
    return kind(do.client, ttr=30, reserve_interval=0.5, requeue_interval=1.0)


def ids(do, topic, state="queued"):
    return [message.id for message in do(lambda: topic.messages(state)).messages]


def test_a_message_waits_for_its_time(do, clock, mail):
    assert do(lambda: mail.put("help-42", "text", delay=3 * 86400)) is True
    assert do(mail.reserve) is None
    clock.advance(seconds=3 * 86400)
    item = do(mail.reserve)
    assert (item.id, item.body, item.topic, item.deadline) == ("help-42", "text", "mail", clock.now + 60)
    assert do(lambda: mail.done(item.id)) is True
    assert do(mail.length) == 0


def test_a_message_may_be_put_for_a_moment(do, clock, mail):
    do(lambda: mail.put("a", "x", at=NOW + 1.5))
    assert do(lambda: mail.get("a")).ready == NOW + 1.5
    assert do(lambda: mail.reserve(max=NOW + 1.499)) is None
    assert do(lambda: mail.reserve(max=NOW + 1.5)).deadline == NOW + 61.5


def test_what_is_put_for_now_by_the_clock_of_this_machine_is_ready_at_once(do, mail):
    for number in range(20):
        do(lambda: mail.put(str(number), "x", at=time.time()))  # noqa: B023
        assert do(lambda: mail.pull(max=time.time() + 0.001)).id == str(number)


def test_a_moment_that_was_read_is_the_same_when_it_is_written(do, mail):
    for number in range(200):
        moment = (START_MS + 7919 * number) / 1000
        do(lambda: mail.put("a", "x", at=moment))  # noqa: B023
        assert do(lambda: mail.get("a")).ready == moment
        do(lambda: mail.delete("a"))


def test_an_id_that_is_there_is_put_no_second_time(do, clock, mail):
    assert do(lambda: mail.put("a", "first"))
    assert do(lambda: mail.put("a", "second", delay=5)) is False
    do(mail.reserve)
    assert do(lambda: mail.put("a", "third")) is False
    assert do(lambda: mail.get("a")).body == "first"
    assert do(lambda: mail.delete("a")) is True
    assert do(lambda: mail.put("a", "fourth"))


def test_a_message_is_deleted_wherever_it_is(do, clock, mail):
    do(lambda: mail.put_many({"a": "x", "b": "y"}))
    do(mail.reserve)
    assert [do(lambda id=id: mail.delete(id)) for id in ("a", "b", "b")] == [True, True, False]
    assert do(mail.length) == 0


def test_what_is_pulled_is_gone(do, clock, mail):
    do(lambda: mail.put("a", "x"))
    pulled = do(mail.pull)
    assert (pulled.id, pulled.body, pulled.deadline, pulled.ready) == ("a", "x", None, None)
    assert do(mail.pull) is None
    assert not do(lambda: mail.exists("a"))


def test_what_is_not_done_in_time_comes_back_when_somebody_asks(do, clock, mail):
    do(lambda: mail.put("a", "x"))
    item = do(lambda: mail.reserve(ttr=10))
    assert item.deadline == NOW + 10
    clock.advance(seconds=9.999)
    assert do(mail.requeue) == 0
    clock.advance(seconds=0.001)
    assert do(mail.requeue) == 1
    again = do(mail.reserve)
    assert again.id == "a"
    assert do(lambda: mail.done(item)) is False
    assert do(lambda: item.done()) is False
    assert do(lambda: item.give_back()) is False
    assert do(lambda: again.done()) is True


def test_no_more_come_back_than_were_asked_for(do, clock, mail):
    do(lambda: mail.put_many([(f"m{number:04}", "x") for number in range(1200)]))
    for _ in range(1200):
        do(mail.reserve)
    clock.advance(seconds=60)
    assert [do(lambda most=most: mail.requeue(limit=most)) for most in (5, 1100)] == [5, 1100]
    assert [do(mail.requeue) for _ in range(2)] == [95, 0]


def test_a_message_is_given_back_for_later(do, clock, mail):
    do(lambda: mail.put("a", "x"))
    item = do(mail.reserve)
    assert do(lambda: mail.give_back(item.id, delay=30)) is True
    assert do(lambda: mail.give_back(item.id, delay=30)) is False
    assert do(mail.reserve) is None
    clock.advance(seconds=30)
    item = do(mail.reserve)
    assert do(lambda: item.give_back(2)) is True
    assert do(lambda: mail.get("a")).ready == NOW + 32


def test_a_queued_message_is_put_off_or_delivered_now(do, clock, mail):
    do(lambda: mail.put("a", "x", delay=5))
    assert do(lambda: mail.reschedule("a", 50)) is True
    assert do(lambda: mail.get("a")).ready == NOW + 50
    assert do(lambda: mail.reschedule("a", at=NOW + 7)) is True
    assert do(lambda: mail.get("a")).ready == NOW + 7
    assert do(lambda: mail.reschedule("a")) is True
    assert do(mail.reserve).id == "a"
    assert do(lambda: mail.reschedule("a")) is False
    assert do(lambda: mail.reschedule("nobody")) is False


def test_release_is_done_without_a_moment_and_gives_back_with_one(do, clock, mail):
    do(lambda: mail.put_many({"a": "x", "b": "y", "c": "z"}))
    do(mail.reserve)
    do(mail.reserve)
    assert do(lambda: mail.release("a")) is True
    assert do(lambda: mail.release("b", NOW + 7)) is True
    assert do(lambda: mail.release("b", at=NOW + 8)) is False
    assert do(lambda: mail.release("c")) is False
    assert do(lambda: mail.get("a")) is None
    assert do(lambda: mail.get("b")).ready == NOW + 7
    assert do(lambda: mail.get("c")).state == "queued"


def test_counts_tell_ready_from_delayed_and_reserved(do, clock, mail):
    do(lambda: mail.put_many({"a": "1", "b": "2", "c": "3"}))
    do(lambda: mail.put("d", "4", delay=5))
    do(mail.reserve)
    assert do(mail.ready_count) == 2
    assert do(mail.length) == 4
    counts = do(lambda: mail.counts)
    assert (counts.queued, counts.ready, counts.reserved) == (3, 2, 1)
    assert (counts.first_ready_ms, counts.first_deadline_ms) == (START_MS, START_MS + 60_000)


def test_topics_are_listed_while_they_hold_messages(do, clock):
    topics = do.client.topics
    assert do(topics.names) == []
    do(lambda: topics["b"].put("1", "x"))
    clock.advance(seconds=1)
    do(lambda: topics["a"].put("1", "x"))
    assert do(topics.names) == ["b", "a"]
    assert [(row.name, row.queued) for row in do(lambda: topics.counts)] == [("b", 1), ("a", 1)]
    do(topics["b"].pull)
    assert do(topics.names) == ["a"]


def test_many_topics_are_listed_page_by_page(do):
    for number in range(600):
        do.client.topics["t"]  # naming asks nobody
        do(lambda: do.client.topics.put(f"t{number}", "1", "x", 0))  # noqa: B023
    assert len(do(do.client.topics.names)) == len(do(lambda: do.client.topics.counts)) == 600


def test_messages_are_listed_with_their_times_page_by_page(do, clock, mail):
    for number in range(5):
        do(lambda: mail.put(f"m{number}", {"n": number}, delay=5 - number))  # noqa: B023
    page = do(lambda: mail.messages(count=2))
    assert [(found.id, found.data, found.ready) for found in page.messages] == [
        ("m4", {"n": 4}, NOW + 1),
        ("m3", {"n": 3}, NOW + 2),
    ]
    rest = do(lambda: mail.messages(after=page.next, count=5))
    assert ([found.id for found in rest.messages], rest.next) == (["m2", "m1", "m0"], None)
    assert do(lambda: mail.messages(direction="down")).messages[0].id == "m0"
    do(lambda: mail.reserve(max=NOW + 9))
    [held] = do(lambda: mail.messages("reserved")).messages
    assert (held.id, held.deadline, held.ready) == ("m4", NOW + 69, None)
    with pytest.raises(UsageError, match="state"):
        do(lambda: mail.messages("sleeping"))


def test_many_messages_are_put_at_once(do, clock, mail):
    do(lambda: mail.put("m7", "x"))
    added = do(lambda: mail.put_many([(f"m{number}", "x" * 3000) for number in range(1100)], at=NOW + 5))
    assert (len(added), added.count(False), added.index(False)) == (1100, 1, 7)
    assert do(lambda: mail.get("m1099")).ready == NOW + 5
    assert do(lambda: mail.put_many({})) == []


def test_long_messages_leave_in_calls_of_a_mebibyte(client, monkeypatch):
    sizes = []
    send = client.link.send
    client.topics.names()
    monkeypatch.setattr(client.link, "send", lambda step: sizes.append(len(step.calls[0])) or send(step))
    assert client.topics["t"].put_many([(f"m{number}", "x" * 400_000) for number in range(5)]) == [True] * 5
    head = len(("FCALL", "hf1_topic_put", 1, client.root, "line", 1, "t", "in"))
    assert [(size - head) / 3 for size in sizes] == [2, 2, 1]


@pytest.mark.parametrize(
    ("body", "text"),
    [("text", "text"), ("", ""), (" \n", " \n"), ("ü😀", "ü😀"), (b"bytes", "bytes"), ({"a": [1]}, '{"a":[1]}'), (7, "7"), (None, "null")],
)  # fmt: skip
def test_a_body_is_text_and_any_other_value_is_json(do, mail, body, text):
    do(lambda: mail.put("a", body))
    found = do(mail.pull)
    assert found.body == text
    if not isinstance(body, (str, bytes)):
        assert found.data == body


def test_a_body_that_is_no_json_is_not_read_as_such(do, mail):
    do(lambda: mail.put("a", "text"))
    with pytest.raises(CodecError):
        _ = do(mail.reserve).data


def test_items_are_done_at_the_end_of_their_block(do, clock, mail):
    async def handled(item):
        async with item as same:
            assert same is item

    async def broken(item):
        async with item:
            raise RuntimeError("boom")

    async def given_back(item):
        async with item:
            await item.give_back(5)

    def use(how, item):
        if isinstance(do.client, AsyncClient):
            do(lambda: how(item))
        else:
            with item as same:
                assert same is item
                if how is broken:
                    raise RuntimeError("boom")
                if how is given_back:
                    item.give_back(5)

    do(lambda: mail.put_many({"a": "x", "b": "y", "c": "z"}))
    use(handled, do(mail.reserve))
    with pytest.raises(RuntimeError, match="boom"):
        use(broken, do(mail.reserve))
    use(given_back, do(mail.reserve))
    assert (ids(do, mail), ids(do, mail, "reserved")) == (["c"], ["b"])


def test_a_blocking_topic_has_a_length_and_knows_its_ids(client):
    mail = client.topics["mail"]
    assert (len(mail), bool(mail), "a" in mail) == (0, True, False)
    mail.put("a", "x")
    assert (len(mail), "a" in mail) == (1, True)


def test_the_functions_of_older_clients_answer_as_they_did(do, clock, sched):
    def ask(name, *args):
        return do(lambda: getattr(sched, name)(*args))

    assert [ask("put", "t", "a", "body", NOW), ask("put", "t", "a", "body", NOW)] == [1, 0]
    assert ask("put", "t", "b", "later", NOW + 5) == 1
    assert ask("ready_count", "t") == 1
    assert ask("reserve", "t", NOW, 10) == ("a", "body")
    assert ask("reserve", "t", NOW, 10) is None
    assert ask("requeue", "t", NOW + 9.999) == 0
    assert ask("requeue", "t", NOW + 10, 1000) == 1
    assert ask("pull", "t", NOW + 4) is None
    assert ask("pull", "t", NOW + 5) == ("b", "later")
    assert ask("reserve", "t", NOW + 10) == ("a", "body")
    assert ask("release", "t", "a", NOW + 20) == 1
    assert ask("release", "t", "a") == 0
    assert ask("reserve", "t", NOW + 20) == ("a", "body")
    assert [ask("release", "t", "a"), ask("release", "t", "a")] == [1, 0]
    assert ask("put", "t", "c", {"n": 1}, NOW) == 1
    assert [ask("delete", "t", "c"), ask("delete", "t", "c")] == [1, 0]


def test_a_scheduler_has_times_of_its_own(do, clock, sched):
    do(lambda: sched["mail"].put("a", "x"))
    assert do(sched["mail"].reserve).deadline == NOW + 30
    assert do(lambda: sched.put("mail", "b", "x", NOW)) == 1
    assert do(lambda: sched.reserve("mail")) == ("b", "x")
    assert do(lambda: sched["mail"].get("b")).deadline == NOW + 30


def test_schedules_are_the_same_as_topics(do):
    assert do.client.schedules is do.client.topics


@pytest.mark.parametrize("missing", [None, "", 7])
def test_a_topic_or_id_that_is_missing_is_a_value_error(do, sched, missing):
    calls = [
        lambda: sched.put(missing, "a", "x", 0), lambda: sched.put("t", missing, "x", 0), lambda: sched.reserve(missing),
        lambda: sched.pull(missing), lambda: sched.release(missing, "a"), lambda: sched.release("t", missing),
        lambda: sched.delete(missing, "a"), lambda: sched.delete("t", missing), lambda: sched.requeue(missing),
        lambda: sched.ready_count(missing), lambda: sched[missing], lambda: sched.subscribe(missing, print),
        lambda: sched.unsubscribe(missing), lambda: sched["t"].put(missing, "x"), lambda: sched["t"].done(missing),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match=r"topic|id"):
            do(call)
    assert not do.client.shard.met


BAD = [
    (lambda topic: topic.put("a", "x", delay=1, at=2), "delay and at"), (lambda topic: topic.put("a", "x", delay=-1), "delay"),
    (lambda topic: topic.put("a", "x", delay="soon"), "delay"), (lambda topic: topic.put("a", "x", at=float("nan")), "at"),
    (lambda topic: topic.put("a", "x", at=-5), "at"), (lambda topic: topic.put("a", object()), "JSON"),
    (lambda topic: topic.put("a", b"\xff"), "UTF-8"), (lambda topic: topic.put("a", "\ud800"), "UTF-8"),
    (lambda topic: topic.put("a", "x" * (1 << 20) + "x"), "more than"), (lambda topic: topic.put("a\n", "x"), "id"),
    (lambda topic: topic.put_many(["ab"]), "pairs"), (lambda topic: topic.put_many("ab"), "messages"),
    (lambda topic: topic.reserve(ttr=0), "ttr"), (lambda topic: topic.reserve(max="now"), "max"),
    (lambda topic: topic.requeue(limit=0), "limit"), (lambda topic: topic.give_back("a", -1), "delay"),
    (lambda topic: topic.release("a", at="now"), "at"), (lambda topic: topic.messages(count=0), "count"),
    (lambda topic: topic.messages(after="x"), "after"), (lambda topic: topic.messages(direction="sideways"), "direction"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "why"), BAD, ids=[str(index) for index in range(len(BAD))])
def test_what_cannot_be_is_refused_before_anything_is_sent(do, mail, call, why):
    with pytest.raises(UsageError, match=why):
        do(lambda: call(mail))
    assert not do.client.shard.met


def test_a_scheduler_is_of_the_kind_of_its_client(do):
    with pytest.raises(UsageError, match="client"):
        (AsyncScheduler if isinstance(do.client, Client) else Scheduler)(do.client)
    with pytest.raises(UsageError, match="client"):
        Scheduler("redis://")


@pytest.mark.parametrize("name", ["ttr", "reserve_interval", "requeue_interval"])
def test_the_times_of_a_scheduler_are_checked(do, name):
    kind = Scheduler if isinstance(do.client, Client) else AsyncScheduler
    for wrong in (0, -1, "soon", float("inf")):
        with pytest.raises(UsageError, match=name):
            kind(do.client, **{name: wrong})


def test_handles_say_what_they_are(do, mail):
    do(lambda: mail.put("a", "x"))
    item = do(mail.reserve)
    assert ("mail" in repr(mail), "a of mail" in repr(item)) == (True, True)
    assert "Scheduler" in repr(do.client.topics)
