"""What only the async client has: gathering, twins of assignments, and waiting for many ends at once."""

import asyncio

import pytest

from holdfast import AsyncClient, ConnectionLost
from holdfast.commands.jobs import Put, PutMany
from holdfast.commands.queues import QueueNames
from holdfast.errors import JobExists, Refused
from holdfast.wire.gather import packed
from waiting import until_async


def test_puts_of_one_queue_and_options_become_one_call_in_their_order():
    puts = [Put("a", "K", b"%d" % n, f"j{n}") for n in range(5)]
    calls, places = packed(
        [puts[0], Put("b", "K"), puts[1], QueueNames(), puts[2], Put("a", "K", priority=1)]
    )
    assert [type(call) for call in calls] == [PutMany, Put, QueueNames, Put]
    assert calls[0].jobs == ["j0", "K", b"0", "j1", "K", b"1", "j2", "K", b"2"]
    assert places == [[0, 2, 4], [1], [3], [5]]


def test_a_call_carries_at_most_512_jobs_and_about_a_mebibyte():
    calls, _ = packed([Put("a", "K") for _ in range(1030)])
    assert [len(call.jobs) // 3 for call in calls] == [512, 512, 6]
    calls, _ = packed([Put("a", "K", b"x" * 400_000) for _ in range(5)])
    assert [len(call.words()) for call in calls] == [5 + 6, 5 + 6, 8]


@pytest.mark.parametrize("mode", ["move", "only"])
def test_puts_of_other_modes_do_not_mix(mode):
    calls, _ = packed([Put("a", "K"), Put("a", "K", mode=mode), Put("a", "K")])
    assert [len(call.words()) for call in calls] == [5 + 6, 8]


def steps_of(client):
    """Write down how many calls each step carries from now on."""
    carried = []
    send = client.link.send

    async def counted(step):
        carried.append(len(step.calls))
        return await send(step)

    client.runner.link = type("Counting", (), {"send": staticmethod(counted)})()
    return carried


def test_what_is_awaited_in_one_turn_leaves_as_one(aclient):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            await queue.put("K")
            carried = steps_of(aclient)
            jids = await asyncio.gather(*[queue.put("K", n) for n in range(100)])
            assert carried == [1]
            await asyncio.gather(queue.length(), aclient.config.get("heartbeat"), queue.put("K"))
            assert carried == [1, 3]
            assert len(set(jids)) == 100

    asyncio.run(story())


def test_each_caller_gets_its_own_answer(aclient):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            await queue.put("K", 1, jid="mine")
            answers = await asyncio.gather(
                queue.put("K", 2, jid="new", only_new=True),
                queue.put("K", 2, jid="mine", only_new=True),
                queue.put("K", 1, jid="mine", only_new=True),
                aclient.jobs["mine"],
                return_exceptions=True,
            )
            assert answers[0] == "new"
            assert isinstance(answers[1], JobExists)
            assert answers[2] == "mine"
            assert answers[3].jid == "mine"

    asyncio.run(story())


def test_an_error_before_the_call_reaches_every_caller(url, namespace):
    async def story():
        client = AsyncClient(f"{url}-nobody", namespace=namespace, deadline=0.1)
        answers = await asyncio.gather(
            *[client.queues["q"].put("K") for _ in range(3)], return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [ConnectionLost] * 3

    asyncio.run(story())


def test_assignments_name_their_awaitable_twin(aclient):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            job = await aclient.jobs[await queue.put("K")]
            with pytest.raises(TypeError, match="set_priority"):
                job.priority = 3
            with pytest.raises(TypeError, match="set_heartbeat"):
                queue.heartbeat = 3

    asyncio.run(story())


def test_settings_are_awaited(aclient):
    async def story():
        async with aclient:
            await aclient.config.set("mine", 7)
            assert await aclient.config.get("mine") == 7
            await aclient.config.update({"a": 1}, b=2)
            assert (await aclient.config.all)["b"] == "2"
            assert await aclient.config.unset("mine") is True
            assert await aclient.config.get("mine", "gone") == "gone"

    asyncio.run(story())


def test_many_wait_for_their_ends_on_one_connection(aclient, store):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            jids = await queue.put_many([("K", n) for n in range(20)])
            before = store.ask("CLIENT", "LIST").count("\n")
            waiting = [asyncio.ensure_future(aclient.wait_for(jid, 30)) for jid in jids]
            jobs = await queue.pop(20)
            for job in jobs:
                await job.complete()
            outcomes = await asyncio.gather(*waiting)
            assert [outcome.status for outcome in outcomes] == ["done"] * 20
            assert store.ask("CLIENT", "LIST").count("\n") <= before + 1

    asyncio.run(story())


async def until_heard(store, client, jid):
    """Wait until somebody listens for the end of `jid`."""
    channel = client.shard.result_channel(jid)
    await until_async(
        lambda: "1" in store.ask("PUBSUB", "NUMSUB", channel).splitlines()[-1], "somebody listens"
    )


def test_an_end_is_not_missed_when_the_listening_connection_is_lost(aclient, store):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            jid = await queue.put("K")
            waiting = asyncio.ensure_future(aclient.wait_for(jid, 30))
            await until_heard(store, aclient, jid)
            store.ask("CLIENT", "KILL", "TYPE", "pubsub")
            job = await queue.pop()
            await job.complete()
            assert (await waiting).status == "done"

    asyncio.run(story())


def test_the_end_comes_by_message_and_not_by_asking_again_and_again(aclient, store):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            jid = await queue.put("K")
            job = await queue.pop()
            waiting = asyncio.ensure_future(aclient.wait_for(jid, 30))
            await until_heard(store, aclient, jid)
            await aclient.queues.names
            carried = steps_of(aclient)
            await job.complete()
            async with asyncio.timeout(2):
                assert (await waiting).status == "done"
            # The completion, the question it answers, and perhaps the one asked when listening had begun.
            assert len(carried) <= 3

    asyncio.run(story())


def test_a_refused_step_does_not_stop_the_gatherer(aclient):
    async def story():
        async with aclient:
            queue = aclient.queues["q"]
            await queue.put("K")
            job = await queue.pop()
            await job.complete()
            with pytest.raises(Refused):
                await job.fail("too", "late")
            assert await queue.put("K")

    asyncio.run(story())


def test_ends_are_heard_again_and_again_and_on_another_loop(url, namespace):
    client = AsyncClient(url, namespace=namespace)

    async def story():
        queue = client.queues["q"]
        for _ in range(20):
            jid = await queue.put("K")
            waiting = asyncio.ensure_future(client.wait_for(jid, 30))
            job = await queue.pop()
            await asyncio.sleep(0)
            await job.complete()
            async with asyncio.timeout(5):
                assert (await waiting).status == "done"
        await client.close()

    asyncio.run(story())
    asyncio.run(story())
