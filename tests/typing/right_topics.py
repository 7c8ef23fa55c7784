"""What type checkers must find right about topics."""

from typing import assert_type

import holdfast
from holdfast.client.topics.messages import AsyncItem, Item
from holdfast.commands.topics import Message, TopicCounts

client = holdfast.Client("redis://nowhere")
aclient = holdfast.AsyncClient("redis://nowhere")


def blocking() -> None:
    sched = holdfast.Scheduler(client, ttr=60, reserve_interval=0.5, requeue_interval=1.0)
    mail = sched["mail"]
    assert_type(mail.put("a", {"any": "value"}, delay=3 * 86400), bool)
    assert_type(mail.put("a", "text", at=1.7e9), bool)
    assert_type(mail.put_many({"a": "x"}), list[bool])
    assert_type(mail.get("a"), Message | None)
    assert_type(mail.counts, TopicCounts)
    assert_type(len(mail), int)
    item = mail.reserve()
    assert_type(item, Item | None)
    if item:
        with item as same:
            assert_type(same.body, str)
        assert_type(mail.done(item), bool)
    assert_type(mail.requeue(limit=10), int)
    assert_type(sched.reserve("mail", 1.7e9, 60), tuple[str, str] | None)
    assert_type(sched.put("mail", "a", "x", 1.7e9), int)
    sched.subscribe(
        "mail", lambda item: item.give_back(5), on_error=lambda item, error: print(item.id, error)
    )
    sched.subscribe("mail", to_queue="q", klass="K", retries=2)
    assert_type(client.topics.names(), list[str])
    assert_type(client.schedules.is_subscribed("mail"), bool)


async def awaited() -> None:
    async def handler(item: AsyncItem) -> None:
        await item.done()

    mail = aclient.topics["mail"]
    assert_type(await mail.put("a", "x"), bool)
    assert_type(await mail.counts, TopicCounts)
    assert_type(await mail.reserve(), AsyncItem | None)
    assert_type(await mail.pull(), Message | None)
    assert_type(await aclient.topics.counts, list[TopicCounts])
    await aclient.topics.subscribe("mail", handler, ttr=5)
    await aclient.topics.unsubscribe("mail")
