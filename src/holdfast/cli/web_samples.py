"""Sample jobs for looking at the web UI: five queues with jobs in every state, failure groups, a schedule, a throttle, a topic."""

import random
from typing import Final

from holdfast import Client

NAMESPACE: Final = "web-samples"
QUEUES: Final = ("mailers", "thumbnails", "reports", "search-index", "webhooks")
_GROUPS: Final = ("httpx.ReadTimeout", "PIL.UnidentifiedImageError", "webhook-410-gone")
_TAGS: Final = ("vip", "eu", "backfill", "black-friday")
_TRACE: Final = """Traceback (most recent call last):
  File "jobs/deliver.py", line 22, in deliver
    reply = client.call(body, timeout=10)
{group}: no reply within 10.0 s"""


def fill(client: Client, seed: int | None = None) -> None:
    """Put about 350 sample jobs: a hundred wait, a hundred have failed, some run, are complete, or depend on others."""
    dice = random.Random(seed)
    for name in QUEUES:
        _work(client, name, dice)
        _wait(client, name, dice)
    first = client.queues["mailers"].put("Feed.fetch", {"feed": 1}, tags=["vip"])
    for klass in ("Search.index", "Mail.notify"):
        middle = client.queues["webhooks"].put(klass, {"feed": 1}, depends=[first])
        client.queues["reports"].put("Archive.store", {"feed": 1}, depends=[middle])
    client.job(first).track()
    client.throttles["stripe-api"].set_maximum(8)
    client.queues["reports"].recur("Reports.nightly", {}, 3600)
    client.queues["webhooks"].pause()
    for number in range(12):
        client.topics["greetings"].put(f"greeting-{number}", f"Welcome! {number}", delay=30.0 * (number + 1))


def _work(client: Client, name: str, dice: random.Random) -> None:
    """Put jobs and take them: most fail, some complete, the last ones run."""
    queue = client.queues[name]
    queue.put_many([(f"{name.title()}.deliver", _data(dice)) for _ in range(40)])
    for number, job in enumerate(queue.pop(40)):
        group = dice.choice(_GROUPS)
        if number < 20:
            job.fail(group, _TRACE.format(group=group))
        elif number < 36:
            job.complete()


def _wait(client: Client, name: str, dice: random.Random) -> None:
    queue = client.queues[name]
    for _ in range(20):
        tags = dice.sample(_TAGS, dice.randint(0, 2))
        delay = dice.choice((0.0, 0.0, 0.0, 900.0))
        queue.put(
            f"{name.title()}.deliver",
            _data(dice),
            priority=dice.choice((0, 0, 25, -25)),
            tags=tags,
            delay=delay,
        )


def _data(dice: random.Random) -> dict[str, object]:
    return {
        "account": dice.randint(1, 9999),
        "locale": dice.choice(("de-DE", "fr-FR", "en")),
        "order": {"id": dice.randint(1, 999)},
    }
