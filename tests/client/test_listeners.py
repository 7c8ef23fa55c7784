"""python-api 11: `Listener` and `Subscriber`."""

import asyncio
import json
import logging
import threading

import pytest
import redis

from holdfast import AsyncClient, Client, ConnectionLost, StoreUnsupported, UsageError
from holdfast.listener import AsyncListener, AsyncSubscriber, Listener, Subscriber
from holdfast.testing.store import ScratchStore
from waiting import until


class Hearing:
    """A listener in a thread, and what it heard."""

    def __init__(self, listener: Listener) -> None:
        self.messages: list[dict[str, str]] = []
        self.listener = listener
        self.thread = threading.Thread(target=self.run)
        self.thread.start()
        listener.wait_until_listening(timeout=30)

    def run(self) -> None:
        for message in self.listener.listen():
            self.messages.append(dict(message))

    def end(self) -> None:
        self.listener.unlisten()
        self.thread.join(30)
        assert not self.thread.is_alive()


@pytest.fixture
def channel(namespace: str) -> str:
    return f"{namespace}-news"


@pytest.fixture
def listener(client: Client, channel: str) -> Listener:
    return Listener(client, [channel, channel + "-2"])


def subscribers(store: ScratchStore, channel: str) -> int:
    return int(store.ask("PUBSUB", "NUMSUB", channel).splitlines()[-1])


def subscriptions(store: ScratchStore) -> int:
    return int(store.ask("INFO", "commandstats").split("cmdstat_subscribe:calls=")[1].split(",")[0])


def test_only_messages_are_yielded_each_with_type_channel_and_data(store, listener, channel):
    hearing = Hearing(listener)
    assert listener.is_listening
    store.ask("PUBLISH", channel, "one")
    store.ask("PUBLISH", channel + "-2", "two")
    until(lambda: len(hearing.messages) == 2, "both were heard")
    assert hearing.messages == [
        {"type": "message", "channel": channel, "data": "one"},
        {"type": "message", "channel": channel + "-2", "data": "two"},
    ]
    hearing.end()
    assert not listener.is_listening


def test_it_ends_at_once_whatever_it_waits_for(client, channel, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("holdfast.client.listener.GLANCE", 60.0)
    monkeypatch.setattr("holdfast.wire.repeat.FIRST_PAUSE", 60.0)
    Hearing(Listener(client, [channel])).end()
    gate = Listener(Client(f"unix://{tmp_path}/nobody"), [channel], deadline=float("inf"))
    trying = threading.Thread(target=lambda: list(gate.listen()))
    with caplog.at_level(logging.WARNING, "holdfast"):
        trying.start()
        until(lambda: caplog.records, "it says that the store is not heard")
    gate.unlisten()
    trying.join(30)
    assert not trying.is_alive()


def test_a_signal_handler_may_end_it_while_its_own_thread_holds_the_lock_of_a_wait(listener):
    def handler() -> None:
        with listener._woken._cond:
            listener.unlisten()

    listener.on_active = handler
    listening = threading.Thread(target=lambda: list(listener.listen()), daemon=True)
    listening.start()
    listening.join(30)
    assert not listening.is_alive()


def test_a_store_that_refuses_the_client_is_an_error_at_once(url, channel):
    """Trying again would not help, however long the deadline is."""
    found = []

    def listen() -> None:
        try:
            list(Listener(Client(f"{url}?db=999", deadline=3600), [channel]).listen())
        except StoreUnsupported as error:
            found.append(error)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    listening.join(30)
    assert len(found) == 1


def test_it_can_listen_again_after_it_ended(store, listener, channel):
    Hearing(listener).end()
    assert subscribers(store, channel) == 0
    hearing = Hearing(listener)
    store.ask("PUBLISH", channel, "again")
    until(lambda: hearing.messages, "it was heard")
    hearing.end()


def test_a_loop_that_is_left_leaves_no_subscription(store, listener, channel):
    teller = threading.Thread(
        target=lambda: (listener.wait_until_listening(30), store.ask("PUBLISH", channel, "one"))
    )
    teller.start()
    for message in listener.listen():
        assert message["data"] == "one"
        break
    teller.join(30)
    until(lambda: subscribers(store, channel) == 0, "nobody is subscribed")


def test_an_async_listener_does_the_same(store, aclient, channel):
    async def story() -> list[str]:
        heard: list[str] = []
        listener = AsyncListener(aclient, [channel])

        async def tell() -> None:
            await listener.wait_until_listening(timeout=30)
            for word in ("one", "two"):
                await asyncio.to_thread(store.ask, "PUBLISH", channel, word)

        for _ in range(2):
            telling = asyncio.create_task(tell())
            async for message in listener.listen():
                heard.append(message["data"])
                if message["data"] == "two":
                    listener.unlisten()
            await telling
            assert not listener.is_listening
        return heard

    assert asyncio.run(story()) == ["one", "two"] * 2


def test_an_async_listener_that_shall_try_for_ever_waits_for_the_store(tmp_path, channel, caplog):
    async def story() -> None:
        client = AsyncClient(f"unix://{tmp_path}/nobody", deadline=0.01)
        listener = AsyncListener(client, [channel], deadline=float("inf"))
        trying = asyncio.ensure_future(anext(aiter(listener.listen())))
        _, late = await asyncio.wait([trying], timeout=0.1)
        assert late, "it goes on trying"
        trying.cancel()
        await asyncio.wait([trying])

    with caplog.at_level(logging.WARNING, "holdfast"):
        asyncio.run(story())
    assert ["was lost" in record.getMessage() for record in caplog.records] == [True]


def test_a_silent_store_is_asked_by_an_async_listener_too(aclient, channel, store, monkeypatch):
    monkeypatch.setattr("holdfast.client.listener.QUIET", 0.01)

    async def story() -> None:
        listener = AsyncListener(aclient, [channel])

        async def tell() -> None:
            await listener.wait_until_listening(timeout=30)
            first = await asyncio.to_thread(subscriptions, store)
            while await asyncio.to_thread(subscriptions, store) < first + 3:
                pass
            await asyncio.to_thread(store.ask, "PUBLISH", channel, "still here")

        telling = asyncio.create_task(tell())
        async for message in listener.listen():
            assert message["data"] == "still here"
            break
        await telling

    asyncio.run(story())


def test_a_silent_store_is_asked_whether_it_is_there(client, channel, store, monkeypatch):
    monkeypatch.setattr("holdfast.client.listener.QUIET", 0.01)
    listener = Listener(client, [channel])
    hearing = Hearing(listener)
    first = subscriptions(store)
    until(lambda: subscriptions(store) > first + 2, "it asked again and again")
    store.ask("PUBLISH", channel, "still here")
    until(lambda: hearing.messages, "it was heard")
    hearing.end()


def test_a_connection_of_the_driver_will_do(client, url, store, channel):
    database = redis.Redis.from_url(url, decode_responses=True)
    hearing = Hearing(Listener(database, [channel]))
    store.ask("PUBLISH", channel, "one")
    until(lambda: hearing.messages, "it was heard")
    hearing.end()
    with pytest.raises(UsageError, match="database"):
        Listener(url, [channel])
    database.close()


def test_channels_must_be_names(client):
    with pytest.raises(UsageError, match="channels"):
        Listener(client, "news")
    with pytest.raises(UsageError, match="channels"):
        Listener(client, [])
    with pytest.raises(UsageError, match="channel"):
        Listener(client, [7])


def test_a_subscriber_is_subscribed_when_it_has_started_and_decodes_what_it_hears(store, client, channel):
    seen: list[object] = []
    subscriber = Subscriber(client, channel, seen.append).start()
    assert subscribers(store, channel) == 1
    store.ask("PUBLISH", channel, json.dumps({"jid": "j", "event": "lock_lost"}))
    until(lambda: seen, "it was heard")
    assert seen == [{"jid": "j", "event": "lock_lost"}]
    subscriber.stop()


def test_a_stopped_subscriber_leaves_neither_thread_nor_subscription(store, client, channel):
    threads = threading.active_count()
    subscriber = Subscriber(client, channel, print)
    for _ in range(2):
        with subscriber:
            assert (threading.active_count(), subscribers(store, channel)) == (threads + 1, 1)
        assert threading.active_count() == threads
        until(lambda: subscribers(store, channel) == 0, "nobody is subscribed")


def test_what_a_callback_raises_and_what_is_no_json_is_logged(store, client, channel, caplog):
    seen: list[object] = []

    def told(message: object) -> None:
        seen.append(message)
        if message == 1:
            raise OSError("broken")

    with caplog.at_level(logging.ERROR, "holdfast"), Subscriber(client, channel, told):
        for text in ("1", "no json", "2"):
            store.ask("PUBLISH", channel, text)
        until(lambda: seen == [1, 2], "the callback goes on")
    assert [record.exc_info[0].__name__ for record in caplog.records] == ["OSError", "CodecError"]


def test_a_subscription_that_fails_is_raised(tmp_path, channel):
    client = Client(f"unix://{tmp_path}/nobody", deadline=0.1)
    with pytest.raises(ConnectionLost):
        Subscriber(client, channel, print).start()


def test_a_callback_may_stop_its_own_subscriber(store, client, channel):
    stopped = threading.Event()
    subscriber = Subscriber(client, channel, lambda message: (subscriber.stop(), stopped.set())).start()
    store.ask("PUBLISH", channel, "{}")
    assert stopped.wait(30)
    until(lambda: subscribers(store, channel) == 0, "nobody is subscribed")


def test_a_worker_hears_of_its_lost_leases_on_its_channel(client):
    seen: list[object] = []
    client.worker_name = "w"
    client.queues["q"].put("K", jid="j")
    job = client.queues["q"].pop()
    with Subscriber(client, client.shard.worker_channel("w"), seen.append):
        client.jobs["j"].timeout()
        until(lambda: seen, "it was told")
    assert seen == [{"jid": job.jid, "event": "lock_lost", "worker": "w"}]


def test_an_async_subscriber_does_the_same_in_a_task(store, aclient, channel, caplog):
    async def story() -> list[object]:
        seen: list[object] = []
        done = asyncio.Event()

        async def told(message: object) -> None:
            seen.append(message)
            if message == 2:
                done.set()
            else:
                raise OSError("broken")

        subscriber = AsyncSubscriber(aclient, channel, told)
        for _ in range(2):
            done.clear()
            async with subscriber:
                assert await asyncio.to_thread(subscribers, store, channel) == 1
                for text in ("1", "no json", "2"):
                    await asyncio.to_thread(store.ask, "PUBLISH", channel, text)
                await asyncio.wait_for(done.wait(), 30)
            while await asyncio.to_thread(subscribers, store, channel):
                pass
        return seen

    with caplog.at_level(logging.ERROR, "holdfast"):
        assert asyncio.run(story()) == [1, 2, 1, 2]
    assert [record.exc_info[0].__name__ for record in caplog.records] == ["OSError", "CodecError"] * 2


def test_an_async_subscription_that_fails_is_raised(tmp_path, channel):
    async def story() -> None:
        client = AsyncClient(f"unix://{tmp_path}/nobody", deadline=0.1)
        with pytest.raises(ConnectionLost):
            await AsyncSubscriber(client, channel, print).start()

    asyncio.run(story())


def test_what_is_no_callback_is_named(client, aclient, channel):
    async def told(message: object) -> None: ...

    for wrong in ("print", told):
        with pytest.raises(UsageError, match="fn"):
            Subscriber(client, channel, wrong)
    with pytest.raises(UsageError, match="fn"):
        AsyncSubscriber(aclient, channel, None)
