"""A producer and a worker of jobs with unique keys: `python keys_work.py produce|work URL NAMESPACE`. They run until they are killed."""

import random
import sys
from contextlib import suppress
from time import sleep

from holdfast import Client
from holdfast.commands.failures import Unfail
from holdfast.commands.jobs import JobGet, Move
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions, PutX
from holdfast.commands.views import ListSet
from holdfast.errors import HoldfastError
from holdfast.ids import mint_jid

KEYS = [f"k{number}" for number in range(5)]
REPLACED = [f"r{number}" for number in range(2)]
"""Keys of jobs that are replaced: beside one that runs, one more waits."""


def job(key: str, how: str, jid: str) -> JobWithOptions:
    return JobWithOptions(key, b"{}", jid, ExtraOptions(unique_key=key, on_conflict=how))


def put(client: Client, dice: random.Random) -> None:
    what = dice.random()
    if what < 0.15:
        keys = dice.choices(KEYS, k=4)
        client.run(PutX("q", [job(key, dice.choice(("keep", "cancel")), mint_jid()) for key in keys]))
    elif what < 0.25:
        key = dice.choice(KEYS)
        client.run(PutWithOptions("q", job(key, "keep", f"own-{key}"), mode="move"))
    elif what < 0.35:
        client.run(PutWithOptions("q", job(dice.choice(REPLACED), "replace", mint_jid())))
    elif what < 0.42:
        client.run(Unfail("q", "g", dice.choice((1, 50))))
    elif what < 0.5:
        ended = [entry.member for entry in client.run(ListSet("completed", count=20)).entries]
        named = (
            [one for one in client.run(JobGet(ended)) if one is not None and one.klass in KEYS]
            if ended
            else []
        )
        for one in named[:2]:
            client.run(Move("q", one.jid))
    else:
        how = dice.choice(("keep", "raise", "cancel", "keep"))
        client.run(
            PutWithOptions("q", job(dice.choice(KEYS), how, mint_jid()), delay_ms=dice.choice((0, 0, 30)))
        )


def produce(client: Client) -> None:
    dice = random.Random()
    while True:
        with suppress(HoldfastError):
            put(client, dice)
        sleep(0.003)


def work(client: Client) -> None:
    dice = random.Random()
    while True:
        with suppress(HoldfastError):
            for one in client.queues["q"].pop(dice.choice((1, 3))):
                sleep(dice.uniform(0, 0.01))
                if dice.random() < 0.25:
                    one.fail("g", "failed by a throw of the dice")
                else:
                    one.complete()
        sleep(0.002)


if __name__ == "__main__":
    role, url, namespace = sys.argv[1:]
    with Client(url, namespace=namespace, deadline=0.5) as own:
        {"produce": produce, "work": work}[role](own)
