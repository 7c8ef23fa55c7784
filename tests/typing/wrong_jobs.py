"""What type checkers must find wrong about jobs, queues and recurring jobs: each line marked so, and no other."""

import holdfast
from holdfast.client.recurring import AsyncRecurringJob

client = holdfast.Client("redis://nowhere")


def queues() -> None:
    queue = client.queues["mail"]
    queue.put("K", {}, prioritie=3)  # wrong: an option that does not exist
    queue.put("K", {}, priority="high")  # wrong: an option of another type
    queue.put("K", {}, backlog=3)  # wrong: an option of recurring jobs
    queue.recur("K", {}, 60, only_new=True)  # wrong: an option of puts
    queue.recur("K", {}, "daily")  # wrong: no time
    queue.pop().complete()  # wrong: there may be none
    queue.max_concurrency = "two"  # wrong: no number
    queue.jobs.waiting()  # wrong: no such view


def jobs(job: holdfast.Job) -> None:
    job.priority = "high"  # wrong: no number
    job.tags = "red"  # wrong: no list
    job.queue = client.queues["post"]  # wrong: move says that
    job.state = "failed"  # wrong: fail says that
    job.requeue("post", dely=3)  # wrong: an option that does not exist
    job.before_complete(7)  # wrong: nothing to call
    holdfast.Job(client, jid="j")  # wrong: a klass is missing
    holdfast.Job(client, jid="j", klass="K", state="lost")  # wrong: no such state
    client.jobs["j"].cancel()  # wrong: there may be none


def recurring(job: holdfast.RecurringJob) -> None:
    job.interval = "daily"  # wrong: no time
    job.next = 5.0  # wrong: interval says that
    job.update(count=3)  # wrong: only the store counts


async def awaited(job: holdfast.AsyncJob, recurring: AsyncRecurringJob) -> None:
    recurring.set_interval("daily")  # wrong: no time
    await job.set_priority("high")  # wrong: no number
