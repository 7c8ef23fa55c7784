"""What type checkers must find right about making clients and about what they do as a whole."""

from collections.abc import Awaitable
from typing import Any, assert_type

import redis
import redis.asyncio

import holdfast
from holdfast.profile import Profiler

holdfast.Client()
holdfast.Client("redis://box", "box-7", namespace="a", durability="fsync", deadline=5)
holdfast.Client(host="box", port=7, db=2, username="ann", password="secret", ssl=True, ssl_ca_certs="/x")
holdfast.Client(unix_socket_path="/run/s", socket_timeout=3, client_name="mine", decode_responses=True)
holdfast.Client(redis.Redis(), hostname="box-7")
holdfast.Client(redis=redis.Redis(), ensure_minimum_version=False)
holdfast.AsyncClient(redis.asyncio.Redis())


def loaded(connection: redis.Redis, digest: str) -> None: ...


client = holdfast.Client("redis://nowhere", on_lua_script_reload_callback=loaded)
aclient = holdfast.AsyncClient("redis://nowhere", on_lua_script_reload_callback=loaded)


def blocking() -> None:
    assert_type(client.database, redis.Redis)
    assert_type(client.new_redis_connection(), redis.Redis)
    assert_type(client.config["heartbeat"], Any)
    assert_type(client.unfail_all(batch_size=5), int)
    assert_type(client.bulk_cancel(["a", "b"]), list[str])
    assert_type(client.deregister_workers("w1", "w2"), int)
    assert_type(client.stats.get("mail"), dict[str, Any])
    assert_type(client.unfail("group", "queue"), int)
    assert_type(client.throttles["printer"].maximum(), int)
    assert_type(client.worker_name, str)
    client.worker_name = "box-7"
    holdfast.LuaPlugin("p", client, "return 1").call("a", 2, b"c")
    with Profiler(client) as profiler:
        assert_type(profiler.report(), str)
    with client as same:
        assert_type(same, holdfast.Client)
    try:
        client.queues["mail"].put("app.Job")
    except holdfast.TransportError as error:
        assert_type(error.may_have_happened, bool)


async def awaited() -> None:
    assert_type(aclient.database, redis.asyncio.Redis)
    assert_type(aclient.unfail_all(), Awaitable[int])
    assert_type(await aclient.bulk_cancel({"a"}), list[str])
    assert_type(await aclient.stats.get("mail", "2030-01-01"), dict[str, Any])
    assert_type(await aclient.deregister_workers(), int)
    await holdfast.LuaPlugin("p", aclient, "return 1").call()
    async with Profiler(aclient, quiet=True):
        pass
