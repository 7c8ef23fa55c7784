"""A store that is away, slow, busy, full, read-only or emptied: what a caller is told, and how it goes on."""

import threading
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from proxy import Proxy
from speakers import Speaker
from trouble import WRITTEN_AT_ONCE, busy, is_busy, meanwhile
from twins import say, state

from holdfast import Client
from holdfast.commands.admin import ConfigGet
from holdfast.commands.jobs import Cancel, JobGet, Move, Put
from holdfast.commands.leases import Complete, CompletePop, Done, Heartbeat, Pop
from holdfast.commands.queues import QueueNames
from holdfast.core.library import NAME
from holdfast.errors import ConnectionLost, StoreBusy, StoreFull, StoreTimeout, StoreUnavailable
from holdfast.testing.store import ScratchStore
from waiting import pause, until

MakeSpeaker = Callable[..., Speaker]


def after(seconds: float, work: Callable[[], object]) -> Callable[[], None]:
    def later() -> None:
        pause(seconds)
        work()

    return later


redis_when_slow = pytest.mark.parametrize(
    "engine", ["valkey", pytest.param("redis", marks=pytest.mark.full)], indirect=True
)


# ReconnectGate longer than the deadline.


def test_a_store_that_refuses_connections_is_lost_and_nothing_was_sent(
    speaker: MakeSpeaker, proxy: Proxy
) -> None:
    proxy.refuse()
    begun = monotonic()
    with pytest.raises(ConnectionLost, match="nothing was sent"):
        speaker(proxy.url, deadline=0.4).run(Put("q", "K"))
    assert monotonic() - begun < 30


def test_a_store_that_goes_under_way_is_lost_and_it_may_have_happened(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    one = speaker(proxy.url, deadline=0.4)
    one.run(QueueNames())
    aim = proxy.aim("cut-reply", "hf1_put")
    with (
        meanwhile(lambda: (aim.hit.wait(30), proxy.refuse())),
        pytest.raises(ConnectionLost, match="may have"),
    ):
        one.run(Put("q", "K", jid="a1"))
    with Client(store.url, namespace=namespace) as onlooker:
        assert onlooker.queues["q"].counts["waiting"] == 1


def test_a_store_that_swallows_everything_times_out_and_it_may_have_happened(
    speaker: MakeSpeaker, proxy: Proxy
) -> None:
    one = speaker(proxy.url, timeout=1, deadline=1.5)
    one.run(QueueNames())
    proxy.black_hole()
    begun = monotonic()
    with pytest.raises(StoreTimeout, match="may have happened"):
        one.run(Put("q", "K"))
    assert monotonic() - begun < 30


# Black holes, and coming back.


@pytest.mark.full
def test_callers_recover_after_a_black_hole_of_three(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    black_hole(speaker, proxy, store, namespace, 3.0)


@pytest.mark.full
def test_callers_recover_after_a_short_black_hole(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    black_hole(speaker, proxy, store, namespace, 0.7)


def black_hole(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str, seconds: float
) -> None:
    one = speaker(proxy.url, timeout=0.3)
    one.run(Put("q", "K", jid="a1"))
    one.run(Put("q", "K", jid="a2"))
    healed: list[float] = []
    proxy.black_hole()
    with meanwhile(after(seconds, lambda: (healed.append(monotonic()), proxy.heal()))):
        [job] = one.run(Pop("bee", ("q",)))
        back = monotonic()
    assert 0 <= back - healed[0] < 30
    # What was sent into the hole arrives too, late: nothing of it may count twice.
    with Client(store.url, namespace=namespace) as onlooker:
        until(lambda: proxy.quiet(), "the stragglers have arrived")
        counts = onlooker.queues["q"].counts
        assert (counts["running"], counts["waiting"]) == (1, 1)
    one.run(Complete("bee", job))


def connections_in(speaker: MakeSpeaker, proxy: Proxy, seconds: float) -> int:
    one = speaker(proxy.url, deadline=seconds)
    one.run(QueueNames())
    proxy.reject()
    before = len(proxy.accepted)
    with pytest.raises(ConnectionLost):
        one.run(Put("q", "K"))
    return len(proxy.accepted) - before


@pytest.mark.full
def test_a_caller_backs_off_from_a_store_that_hangs_up(speaker: MakeSpeaker, proxy: Proxy) -> None:
    assert 1 <= connections_in(speaker, proxy, 0.6) <= 9


@pytest.mark.full
def test_a_caller_knocks_about_once_a_second(speaker: MakeSpeaker, proxy: Proxy) -> None:
    assert 5 <= connections_in(speaker, proxy, 15.0) <= 20


# Slow answers.


@pytest.mark.full
@pytest.mark.parametrize("fault", ["delay", "drip"])
def test_slow_answers_are_answers(speaker: MakeSpeaker, proxy: Proxy, fault: Any) -> None:
    one = speaker(proxy.url)
    one.run(Put("q", "K", b'"x"', "a1"))
    aim = proxy.aim(fault, "hf1_pop", seconds=0.3)
    [job] = one.run(Pop("bee", ("q",)))
    assert aim.hit.is_set()
    assert (job.jid, job.data) == ("a1", b'"x"')
    aim = proxy.aim(fault, "hf1_heartbeat", seconds=0.3)
    assert one.run(Heartbeat("bee", job)) > job.expires_ms
    assert aim.hit.is_set()


@pytest.mark.full
def test_an_answer_that_drips_longer_than_the_timeout_is_asked_for_again(
    speaker: MakeSpeaker, proxy: Proxy
) -> None:
    one = speaker(proxy.url, timeout=0.2)
    one.run(Put("q", "K", jid="a1"))
    proxy.aim("delay", "hf1_pop", seconds=0.6)
    [job] = one.run(Pop("bee", ("q",)))
    assert job.attempts == 1


# Stragglers: a request held back on a cut connection, which arrives when its caller has gone on.


def straggle(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str, first: Any, *then: Any
) -> None:
    """Hold back the first try of `first`; its repeat and `then` go through; then the first try arrives."""
    one = speaker(proxy.url)
    one.run(QueueNames())
    aim = proxy.aim("hold", f"hf1_{first.verb}")
    one.run(first)
    for command in then:
        one.run(command)
    with Client(store.url, namespace=namespace) as onlooker:
        before = state(onlooker)
        proxy.release(aim)
        assert state(onlooker) == before


def some_jobs(store: ScratchStore, namespace: str, *jids: str, pop: int = 0) -> list[Any]:
    with Client(store.url, namespace=namespace) as client:
        for jid in jids:
            client.run(Put("q", "K", b"1", jid))
        return client.run(Pop("bee", ("q",), pop)) if pop else []


@pytest.mark.full
def test_a_pop_that_arrives_late_takes_nothing(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    some_jobs(store, namespace, "a1", "a2", "a3")
    straggle(speaker, proxy, store, namespace, Pop("bee", ("q",)), Pop("bee", ("q",)))


@pytest.mark.full
def test_a_pop_that_arrives_right_after_its_repeat_takes_nothing_more(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    some_jobs(store, namespace, "a1", "a2")
    straggle(speaker, proxy, store, namespace, Pop("bee", ("q",)))


@pytest.mark.full
def test_a_completion_and_pop_that_arrives_late_does_nothing(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    [job] = some_jobs(store, namespace, "a1", "a2", "a3", pop=1)
    ended = CompletePop("bee", ("q",), [Done(job.jid, job.token)])
    straggle(speaker, proxy, store, namespace, ended, Pop("bee", ("q",)))


@pytest.mark.full
def test_a_put_under_ones_own_jid_that_arrives_late_does_not_take_the_job_back(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    here, there = (Put(queue, "K", b"1", "mine", mode="move") for queue in ("here", "there"))
    straggle(speaker, proxy, store, namespace, here, there)


@pytest.mark.full
def test_a_move_and_a_cancel_that_arrive_late_change_nothing(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    some_jobs(store, namespace, "a1", "a2")
    straggle(speaker, proxy, store, namespace, Move("r", "a1"), Move("s", "a1"))
    again = Put("q", "K", b"2", "a1", mode="move")
    straggle(speaker, proxy, store, namespace, Cancel(("a1",)), again)


@pytest.mark.full
def test_a_completion_that_arrives_when_the_job_runs_elsewhere_is_refused(
    speaker: MakeSpeaker, proxy: Proxy, store: ScratchStore, namespace: str
) -> None:
    [job] = some_jobs(store, namespace, "a1", pop=1)
    straggle(
        speaker,
        proxy,
        store,
        namespace,
        Complete("bee", job),
        Put("q", "K", b"1", "a1", mode="move"),
        Pop("bee", ("q",)),
    )


# "Not now": the store answers, and nothing is applied.


@pytest.mark.full
@redis_when_slow
def test_a_busy_store_is_waited_for(speaker: MakeSpeaker, own_store: ScratchStore) -> None:
    one = speaker(own_store.url)
    one.run(Put("q", "K", jid="a1"))
    with busy(own_store) as end, meanwhile(after(0.3, end)):
        assert one.run(Put("q", "K", jid="a2")) == "a2"
        assert not is_busy(own_store)


@pytest.mark.full
@redis_when_slow
def test_a_store_that_stays_busy_is_given_up_and_nothing_was_applied(
    speaker: MakeSpeaker, own_store: ScratchStore
) -> None:
    one = speaker(own_store.url, deadline=0.1)
    one.run(QueueNames())
    with busy(own_store), pytest.raises(StoreBusy, match="nothing was applied"):
        one.run(Put("q", "K", jid="a1"))
    assert one.run(JobGet(("a1",))) == [None]


@pytest.mark.full
@redis_when_slow
def test_a_store_that_loads_its_data_is_waited_for(speaker: MakeSpeaker, own_store: ScratchStore) -> None:
    with ScratchStore(own_store.engine, "process", settings=WRITTEN_AT_ONCE) as own:
        one = speaker(own.url)
        for number in range(200):
            one.run(Put("q", "K", jid=f"a{number}"))
        own.kill()
        own._settings.update({"key-load-delay": "500", "loading-process-events-interval-bytes": "1024"})
        begun = monotonic()
        with meanwhile(own.restart):
            assert len(one.run(Pop("bee", ("q",), 200))) == 200
        assert monotonic() - begun > 0.1


@pytest.mark.full
@redis_when_slow
def test_a_full_store_refuses_work_at_once_and_can_be_drained(
    speaker: MakeSpeaker, own_store: ScratchStore
) -> None:
    one = speaker(own_store.url)
    for number in range(20):
        one.run(Put("q", "K", b'"%s"' % (b"x" * 600), f"a{number}"))
    own_store.ask("CONFIG", "SET", "maxmemory", "1mb")
    begun = monotonic()
    with pytest.raises(StoreFull):
        one.run(Put("q", "K", jid="more"))
    assert monotonic() - begun < 30  # not the minute of its deadline
    jobs = one.run(Pop("bee", ("q",), 20))
    one.run(Heartbeat("bee", jobs[0]))
    for job in jobs:
        one.run(Complete("bee", job))
    assert one.run(JobGet(("more",))) == [None]
    own_store.ask("CONFIG", "SET", "maxmemory", "0")
    assert one.run(Put("q", "K", jid="more")) == "more"


@pytest.mark.full
@redis_when_slow
def test_a_replica_is_waited_for_until_it_may_be_written(
    speaker: MakeSpeaker, own_store: ScratchStore
) -> None:
    one = speaker(own_store.url)
    one.run(Put("q", "K", jid="a1"))
    own_store.ask("REPLICAOF", "127.0.0.1", "1")
    with meanwhile(after(0.3, lambda: own_store.ask("REPLICAOF", "NO", "ONE"))):
        assert one.run(Put("q", "K", jid="a2")) == "a2"
    assert len(one.run(Pop("bee", ("q",), 5))) == 2


@pytest.mark.full
@redis_when_slow
def test_a_store_that_stays_a_replica_is_unwell(speaker: MakeSpeaker, own_store: ScratchStore) -> None:
    one = speaker(own_store.url, deadline=0.2)
    one.run(Put("q", "K", jid="a1"))
    own_store.ask("REPLICAOF", "127.0.0.1", "1")
    with pytest.raises(StoreUnavailable, match="nothing was applied"):
        one.run(Put("q", "K", jid="a2"))
    assert [job and job.jid for job in one.run(JobGet(("a1", "a2")))] == ["a1", None]


# Emptied behind the caller's back.


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [("FUNCTION", "FLUSH"), ("FUNCTION", "DELETE", NAME)], ids=["flush", "delete"]
)
@redis_when_slow
def test_a_library_that_vanished_is_loaded_again(
    speaker: MakeSpeaker, own_store: ScratchStore, words: tuple[str, ...]
) -> None:
    one = speaker(own_store.url)
    one.run(Put("q", "K", jid="a1"))
    own_store.ask(*words)
    [job] = one.run(Pop("bee", ("q",)))
    own_store.ask(*words)
    assert one.run(Complete("bee", job)) == "complete"
    own_store.ask(*words)
    assert one.run(ConfigGet(("heartbeat",))) == {"heartbeat": "30"}


@pytest.mark.full
@redis_when_slow
def test_a_store_that_was_emptied_gets_its_root_again(speaker: MakeSpeaker, own_store: ScratchStore) -> None:
    one = speaker(own_store.url)
    one.run(Put("q", "K", jid="a1"))
    for with_functions in (False, True):
        own_store.flush()
        if with_functions:
            own_store.ask("FUNCTION", "FLUSH")
        assert one.run(Pop("bee", ("q",))) == []
        own_store.flush()
        assert one.run(Put("q", "K", jid="a1")) == "a1"
        [job] = one.run(Pop("bee", ("q",)))
        assert job.jid == "a1"


@pytest.mark.full
@redis_when_slow
def test_many_callers_find_an_emptied_store_at_once(own_store: ScratchStore, namespace: str) -> None:
    with Client(own_store.url, namespace=namespace) as client:
        client.run(QueueNames())
        for _ in range(3):
            own_store.flush()
            own_store.ask("FUNCTION", "FLUSH")
            puts = [threading.Thread(target=client.run, args=(Put("q", "K"),)) for _ in range(8)]
            for put in puts:
                put.start()
            for put in puts:
                put.join()
            assert client.queues["q"].counts["waiting"] == 8
        assert say(client, "EXISTS", client.root) == 1
