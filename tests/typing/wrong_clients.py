"""What type checkers must find wrong about clients: each line marked so, and no other."""

import redis
import redis.asyncio

import holdfast

holdfast.Client(7)  # wrong: no URL
holdfast.Client("redis://box", 6379)  # wrong: the second argument is the worker name
holdfast.Client(namespce="a")  # wrong: an option that does not exist
holdfast.Client(durability="fsycn")  # wrong: no such level
holdfast.Client(port="6379")  # wrong: no number
holdfast.Client(redis.asyncio.Redis())  # wrong: a connection of the other kind
holdfast.AsyncClient(redis.Redis())  # wrong: a connection of the other kind
holdfast.Client(on_lua_script_reload_callback=7)  # wrong: nothing to call

client = holdfast.Client("redis://nowhere")
aclient = holdfast.AsyncClient("redis://nowhere")


def blocking() -> None:
    client.unfail("group", 7)  # wrong: no queue
    client.unfail_all("many")  # wrong: no number
    client.bulk_cancel(7)  # wrong: no list
    client.nonsense()  # wrong: no such member
    client.stats.get()  # wrong: a queue is missing
    client.worker_name = 7  # wrong: no name
    client.config.nonsense()  # wrong: no such member of a part that is loaded late
    holdfast.LuaPlugin("p", client)  # wrong: the script is missing


async def awaited() -> None:
    found: int = aclient.unfail_all()  # wrong: not awaited
    print(found)
    with aclient:  # wrong: async with
        pass
