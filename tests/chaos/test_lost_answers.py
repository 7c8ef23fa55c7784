"""Every verb, with its first answer lost on the way: the repeat answers the same, and nothing happens twice."""

import asyncio
from collections.abc import Iterator

import pytest
from proxy import Aim, Proxy

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Complete, CompletePop, Done, Pop
from holdfast.commands.outcomes import Expire
from holdfast.models import JobFacts
from holdfast.testing.store import ScratchStore


def bill(n: int) -> None: ...


class Rig:
    """A client whose answers can be lost, and one that looks on undisturbed."""

    def __init__(self, store: ScratchStore, namespace: str, proxy: Proxy) -> None:
        self.proxy = proxy
        self.aims: list[Aim] = []
        self.client = Client(proxy.url, namespace=namespace)
        self.onlooker = Client(store.url, namespace=namespace)
        self.client.queues["mail"].counts  # noqa: B018 - meets the store

    def cut(self, verb: str) -> None:
        """Lose the next answer of `verb`."""
        self.aims.append(self.proxy.aim("cut-reply", f"hf1_{verb}"))

    def look(self, jid: str) -> JobFacts:
        [facts] = self.onlooker.run(JobGet((jid,)))
        assert facts is not None
        return facts


@pytest.fixture
def rig(engine_store: ScratchStore, namespace: str) -> Iterator[Rig]:
    with Proxy(engine_store.url) as proxy:
        made = Rig(engine_store, namespace, proxy)
        yield made
        assert [aim.hit.is_set() for aim in made.aims] == [True]
        made.client.close()
        made.onlooker.close()


@pytest.mark.full
def test_a_put_is_one_put(rig):
    rig.cut("put")
    jid = rig.client.queues["mail"].put("K", {"n": 1})
    assert rig.look(jid).state == "waiting"
    assert len(rig.onlooker.queues["mail"]) == 1


@pytest.mark.parametrize("how", ["keep", "raise", "cancel", "replace"])
def test_the_handles_of_a_unique_batch_are_right(rig, how: str):
    job = rig.client.job(queue="mail", unique=True, on_conflict=how)(bill)
    rig.cut("put_x")
    handles = job.put_many([(n,) for n in range(512)])
    assert len({one.jid for one in handles}) == 512
    assert all(one.is_new for one in handles)
    assert len(rig.onlooker.queues["mail"]) == 512


@pytest.mark.full
def test_a_put_under_a_jid_of_ones_own_moves_nothing_twice(rig):
    rig.cut("put")
    rig.client.queues["mail"].put("K", {"n": 1}, jid="mine")
    assert [entry.what for entry in rig.look("mine").history] == ["put"]


@pytest.mark.full
def test_only_new_is_new_on_its_repeat(rig):
    rig.cut("put")
    assert rig.client.queues["mail"].put("K", {"n": 1}, jid="mine", only_new=True) == "mine"


@pytest.mark.full
def test_a_batch_of_puts_is_one_batch(rig):
    rig.cut("put")
    jids = rig.client.queues["mail"].put_many([("K", n) for n in range(50)])
    assert len(jids) == 50
    assert len(rig.onlooker.queues["mail"]) == 50


@pytest.mark.full
def test_a_pop_grants_the_same_job_under_the_same_token(rig):
    queue = rig.client.queues["mail"]
    queue.put_many([("K", n) for n in range(3)])
    rig.cut("pop")
    job = queue.pop()
    assert job.token == rig.look(job.jid).token
    counts = rig.onlooker.queues["mail"].counts
    assert (counts["running"], counts["waiting"]) == (1, 2)
    job.complete()


@pytest.mark.full
def test_a_completion_counts_once(rig):
    queue = rig.client.queues["mail"]
    queue.put("K")
    job = queue.pop()
    rig.cut("complete")
    assert job.complete() == "complete"
    assert rig.onlooker.queues["mail"].stats()["run"]["count"] == 1


def test_a_completion_and_pop_grants_the_same_next_job(rig):
    queue = rig.client.queues["mail"]
    jids = queue.put_many([("K", n) for n in range(3)])
    [first] = rig.client.run(Pop("w", ("mail",)))
    rig.cut("complete_pop")
    settlement = rig.client.run(
        CompletePop("w", ("mail",), [Done(first.jid, first.token, b"", 60_000, b"7")])
    )
    assert settlement.lost == {}
    assert [job.jid for job in settlement.jobs] == [jids[1]]
    assert rig.look(first.jid).state == "complete"
    counts = rig.onlooker.queues["mail"].counts
    assert (counts["running"], counts["waiting"]) == (1, 1)
    rig.client.run(Complete("w", settlement.jobs[0]))


def test_a_job_goes_on_once(rig):
    queue = rig.client.queues["mail"]
    queue.put("K")
    job = queue.pop()
    rig.cut("advance")
    assert job.complete("next") is True
    assert len(rig.onlooker.queues["next"]) == 1


@pytest.mark.full
def test_a_retry_costs_one(rig):
    queue = rig.client.queues["mail"]
    queue.put("K", retries=5)
    job = queue.pop()
    rig.cut("retry")
    assert job.retry() == 4
    assert rig.look(job.jid).remaining == 4


@pytest.mark.full
def test_a_failure_fails_once(rig):
    queue = rig.client.queues["mail"]
    queue.put("K")
    job = queue.pop()
    rig.cut("fail")
    assert job.fail("group", "message") == job.jid
    assert rig.onlooker.jobs.failed() == {"group": 1}
    assert rig.onlooker.queues["mail"].stats()["failures"] == 1


def test_a_heartbeat_is_one_a_little_later(rig):
    queue = rig.client.queues["mail"]
    queue.put("K")
    job = queue.pop()
    rig.cut("heartbeat")
    assert job.heartbeat() * 1000 == pytest.approx(rig.look(job.jid).expires_ms)


@pytest.mark.full
def test_a_cancelled_job_was_there(rig):
    jid = rig.client.queues["mail"].put("K")
    rig.cut("cancel_by")
    assert rig.client.jobs.cancel(jid) == [True]


@pytest.mark.full
def test_a_move_moves_once(rig):
    jid = rig.client.queues["mail"].put("K")
    job = rig.client.jobs[jid]
    rig.cut("move")
    assert job.move("other") == jid
    assert [entry.what for entry in rig.look(jid).history].count("put") == 2


@pytest.mark.full
def test_a_priority_is_set(rig):
    job = rig.client.jobs[rig.client.queues["mail"].put("K")]
    rig.cut("priority")
    job.priority = 7
    assert rig.look(job.jid).priority == 7


@pytest.mark.full
def test_a_lease_taken_away_is_taken_once(rig):
    queue = rig.client.queues["mail"]
    queue.put("K")
    job = queue.pop()
    rig.cut("timeout")
    job.timeout()
    assert rig.look(job.jid).state == "stalled"


@pytest.mark.full
def test_what_a_dead_worker_held_is_given_back_once(rig):
    queue = rig.client.queues["mail"]
    queue.put("K", retries=5)
    [facts] = rig.client.run(Pop("w", ("mail",)))
    rig.cut("expire")
    rig.client.run(Expire([facts]))
    [again] = rig.client.run(Pop("w", ("mail",)))
    assert (again.jid, again.remaining, again.losses) == (facts.jid, 4, 1)


@pytest.mark.full
def test_a_pause_pauses(rig):
    rig.cut("pause")
    rig.client.queues["mail"].pause()
    assert rig.onlooker.queues["mail"].paused is True


@pytest.mark.full
def test_a_question_is_asked_again(rig):
    rig.cut("counts")
    assert rig.client.queues["mail"].counts["waiting"] == 0


@pytest.mark.full
def test_gathered_calls_each_get_their_own_answer(engine_store, namespace):
    async def story(url: str, proxy: Proxy) -> None:
        async with AsyncClient(url, namespace=namespace) as client:
            queue = client.queues["mail"]
            await queue.put("K")
            aim = proxy.aim("cut-reply", "hf1_put")
            jids = await asyncio.gather(
                *[queue.put("K", n, priority=n % 3) for n in range(50)],
                *[queue.put("K", n, jid=f"own-{n}") for n in range(10)],
            )
            assert len(set(jids)) == 60
            assert aim.hit.is_set()
            assert await queue.length() == 61

    with Proxy(engine_store.url) as proxy:
        asyncio.run(story(proxy.url, proxy))
