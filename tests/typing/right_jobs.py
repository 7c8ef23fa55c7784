"""What type checkers must accept of jobs, queues and recurring jobs, and with which types; nothing here is run."""

from typing import Any, assert_type

import holdfast
from holdfast.client.recurring import AsyncRecurringJob

client = holdfast.Client("redis://nowhere")
aclient = holdfast.AsyncClient("redis://nowhere")


class Report:
    """A job class."""


def queues() -> None:
    queue = client.queues["mail"]
    assert_type(queue, holdfast.Queue)
    assert_type(queue.put(Report, {"a": 1}, priority=3, tags=["a"], only_new=True), str)
    assert_type(queue.put("app.Report", "{}", 3, ["a"], 1.5, 2, "jid", ["p"], ["t"]), str)
    assert_type(queue.requeue(Report, jid="j", backoff="exponential"), str)
    assert_type(queue.recur(Report, {}, 60, offset=-5, backlog=2, timeout=30), str)
    assert_type(queue.pop(), holdfast.Job | None)
    assert_type(queue.pop(3), list[holdfast.Job])
    assert_type(queue.peek(1, 2), list[holdfast.Job])
    assert_type(queue.jobs.scheduled(0, 10), list[str])
    assert_type(queue.max_concurrency, int)
    queue.max_concurrency = 5
    queue.heartbeat = 30
    queue.pause(stop_jobs=True, why="a deploy")
    assert_type(queue.class_string(Report), str)
    assert_type(len(queue), int)


def jobs(job: holdfast.Job) -> None:
    assert_type(job.queue, holdfast.Queue)
    assert_type(job.tags, list[str])
    assert_type(job.klass_name, str)
    assert_type(job.expires_at, float)
    assert_type(job.sandbox, str | None)
    job.tags, job.klass_name, job.klass, job.queue_name = ["a"], "app.Other", Report, "post"
    job.data, job["key"], job.priority = {"a": 1}, 2, 5
    assert_type(job.move("post", delay=5, depends=["p"]), str)
    assert_type(job.requeue(job.queue, data={}, tags=[], retries=0), str)
    assert_type(job.complete("next", delay=3), str | bool)
    assert_type(job.retry(), int)
    assert_type(job.load(), holdfast.Job)
    assert_type(job.to_hash(), dict[str, Any])
    job.before_complete(print)

    @job.after_fail
    def told(given: Any) -> None: ...


def found() -> None:
    assert_type(client.jobs["j"], holdfast.Job | holdfast.RecurringJob | None)
    assert_type(client.jobs.get("a", "b"), list[holdfast.Job])
    assert_type(client.jobs.multiget("a"), list[holdfast.Job])
    assert_type(client.jobs.failed(), dict[str, int])
    holdfast.Job(client, jid="j", klass=Report, tags=["a"], state="running", expires=1.5)
    assert_type(holdfast.Job.build(None, Report, data={}), holdfast.Job)


def recurring(job: holdfast.RecurringJob) -> None:
    job.priority, job.retries, job.interval, job.backlog = 1, 2, 3.5, 4
    job.data, job.klass = {"a": 1}, Report
    assert_type(job.interval, float)
    assert_type(job.next, float | None)
    assert_type(job.count, int)
    assert_type(job.move("post"), bool)
    assert_type(job.cancel(), list[str])
    assert_type(job.tag("a"), list[str])
    assert_type(job.last_spawned_jid, str | None)
    assert_type(job.pause(), bool)
    assert_type(job.resume(), bool)
    assert_type(job.run_now(), str)
    assert_type(job.paused, bool)


async def awaited(job: holdfast.AsyncJob, recurring: AsyncRecurringJob) -> None:
    queue = aclient.queues["mail"]
    assert_type(await queue.put(Report, priority=3), str)
    assert_type(await queue.pop(), holdfast.AsyncJob | None)
    assert_type(await queue.jobs.running(), list[str])
    assert_type(await queue.max_concurrency, int)
    await queue.set_max_concurrency(5)
    assert_type(await job.requeue("post", tags=["a"]), str)
    assert_type(await job.set_priority(5), int)
    assert_type(await job.load(), holdfast.AsyncJob)
    assert_type(job.queue, holdfast.AsyncQueue)
    await recurring.set_interval(60)
    assert_type(await recurring.cancel(), list[str])
    assert_type(await recurring.resume(), bool)
    assert_type(await recurring.run_now(), str)
    assert_type(await aclient.jobs["j"], holdfast.AsyncJob | AsyncRecurringJob | None)
