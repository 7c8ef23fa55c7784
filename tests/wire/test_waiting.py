"""Bells and listeners: connections that somebody waits on."""

import asyncio
import threading
import time

import pytest

from holdfast.errors import ConnectionLost


def drop_connections(store):
    """End every client's connection, as a restarted balancer does."""
    store.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def blocked(store):
    """How many connections wait for a bell."""
    [line] = [
        line for line in store.ask("INFO", "clients").splitlines() if line.startswith("blocked_clients")
    ]
    return int(line.partition(":")[2])


def until(condition):
    """Wait until `condition` holds, for at most half a minute."""
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end


def test_a_bell_rings_once_and_its_wait_ends(client, store):
    wake_up = client.link.wake_up()
    keys = [client.shard.wake_key("one"), client.shard.wake_key("two")]
    assert wake_up.wait(keys, 0.02) is None
    store.ask("LPUSH", keys[1], "1")
    assert wake_up.wait(keys, 5) == keys[1]
    assert wake_up.wait(keys, 0.02) is None
    wake_up.close()


def test_a_bell_can_be_selected_on_and_closed_from_elsewhere(client, store):
    key = client.shard.wake_key("one")
    wake_up = client.link.wake_up()
    wake_up.send([key], 30)
    assert wake_up.fileno() >= 0

    def close_when_waiting():
        until(lambda: blocked(store) > 0)
        wake_up.close()

    closing = threading.Thread(target=close_when_waiting)
    closing.start()
    with pytest.raises(ConnectionLost):
        wake_up.receive()
    closing.join()
    store.ask("LPUSH", key, "1")
    assert wake_up.wait([key], 30) == key
    wake_up.close()


def test_a_bell_survives_a_lost_connection(client, store):
    key = client.shard.wake_key("one")
    wake_up = client.link.wake_up()
    assert wake_up.wait([key], 0.01) is None
    drop_connections(store)
    assert wake_up.wait([key], 0.01) is None
    store.ask("LPUSH", key, "1")
    assert wake_up.wait([key], 30) == key
    wake_up.close()


def test_a_bell_of_a_loop_rings_and_can_be_cancelled(aclient, store):
    async def story():
        async with aclient:
            key = aclient.shard.wake_key("one")
            wake_up = aclient.link.wake_up()
            assert await wake_up.wait([key], 0.02) is None
            waiting = asyncio.ensure_future(wake_up.wait([key], 30))
            await asyncio.to_thread(until, lambda: blocked(store) > 0)
            waiting.cancel()
            await asyncio.wait([waiting])
            store.ask("LPUSH", key, "1")
            assert await wake_up.wait([key], 30) == key
            await wake_up.close()

    asyncio.run(story())


def test_a_listener_hears_its_channels_only(client, store):
    listener = client.link.listener()
    listener.subscribe("a", "b")
    for channel in ("a", "c", "b"):
        store.ask("PUBLISH", channel, f"to {channel}")
    assert listener.receive(5) == ("a", b"to a")
    assert listener.receive(5) == ("b", b"to b")
    assert listener.receive(0.02) is None
    listener.unsubscribe("a")
    store.ask("PUBLISH", "a", "nobody")
    assert listener.receive(0.02) is None
    listener.close()


def test_a_listener_of_a_loop_hears_while_it_changes_its_channels(aclient, store):
    async def story():
        async with aclient:
            listener = aclient.link.listener()
            await listener.subscribe("a")
            assert await listener.receive(0.01) is None
            store.ask("PUBLISH", "a", "1")
            await listener.subscribe("b")
            store.ask("PUBLISH", "b", "2")
            assert await listener.receive(5) == ("a", b"1")
            assert await listener.receive(5) == ("b", b"2")
            await listener.close()

    asyncio.run(story())
