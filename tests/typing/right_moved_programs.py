"""Right calls of a program that moved from the released package by one import."""

from holdfast.compat import reqless
from holdfast.compat.reqless.abstract import AbstractJob, AbstractQueue
from holdfast.compat.reqless.workers import ForkingWorker


def perform(job: AbstractJob) -> None:
    job.complete("next", delay=3)


def put(queue: AbstractQueue) -> str:
    return queue.put("K", "{}", priority=3)


client = reqless.Client("redis://localhost", hostname="box")
jid: str = put(client.queues["mail"])
worker = ForkingWorker(["mail", client.queues["print"]], client, interval=1, workers=2)
