"""How long a call is repeated while the store cannot be reached: a put inside a running event loop, which may serve people, less."""

import asyncio
import warnings
from typing import Any

import pytest
from scripted import Clock, ScriptedLink

from holdfast import AsyncClient, Client, ConnectionLost
from holdfast.commands.jobs import JobGet, Put
from holdfast.wire.exchange import exchange
from holdfast.wire.plans import LinkError, Runner
from holdfast.wire.shards import Shard

PUT, READ = Put("mail", "K"), JobGet(["j"])


def seconds_of(client: Any, command: Any, met: bool) -> float:
    """How long a call of a client is repeated if no connection can be made."""
    clock = Clock()
    begun = clock.now
    shard = Shard(client.settings, clock)
    shard.met = met
    with pytest.raises(ConnectionLost, match="no connection"):
        Runner(ScriptedLink(clock, LinkError("nobody", sent=False))).run(exchange(shard, command))
    return clock.now - begun


@pytest.mark.parametrize("met", [False, True])
@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize(
    ("options", "command", "expected"),
    [({}, PUT, 5), ({}, READ, 30), ({"deadline": 12}, PUT, 12), ({"deadline": 2}, PUT, 2)],
)
def test_a_put_inside_a_running_event_loop_ends_after_five_seconds_unless_a_deadline_was_given(
    kind: Any, options: dict[str, Any], command: Any, expected: float, met: bool
) -> None:
    async def inside() -> float:
        return seconds_of(kind("redis://nobody", **options), command, met)

    assert asyncio.run(inside()) == pytest.approx(expected, abs=0.5)


@pytest.mark.parametrize("command", [PUT, READ])
def test_outside_of_an_event_loop_every_call_is_repeated_for_thirty_seconds(command: Any) -> None:
    assert seconds_of(Client("redis://nobody"), command, True) == pytest.approx(30, abs=0.5)


def test_both_clients_give_up_at_their_deadline_inside_an_event_loop() -> None:
    async def request() -> None:
        async with AsyncClient("redis://127.0.0.1:1", deadline=0.2) as client:
            with pytest.raises(ConnectionLost):
                await client.queues["mail"].put("K")
        blocking = Client("redis://127.0.0.1:1", deadline=0.2)
        with warnings.catch_warnings(action="ignore"), pytest.raises(ConnectionLost):
            blocking.queues["mail"].put("K")

    asyncio.run(request())
