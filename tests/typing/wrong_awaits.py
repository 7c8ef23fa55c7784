"""A missing `await`, as type checkers find it: mypy with `unused-coroutine`, pyright with `reportUnusedCoroutine`.

Both are on unless they were switched off. What returns futures is found by `unused-awaitable` of mypy, which is off.
"""

import holdfast

aapp = holdfast.AsyncClient("redis://nowhere")


@aapp.job()
async def report(number: int) -> None:
    job = holdfast.current_async_job()
    job.progress(0.5)  # wrong: not awaited
    job.log("half way")  # wrong: not awaited
    job.heartbeat()  # wrong: not awaited
    job.tag("late")  # wrong: not awaited
    job.depend("other")  # wrong: not awaited
    job.complete()  # wrong: not awaited
    job.load()  # wrong: not awaited
    job.result()  # wrong: not awaited
    report.put(number)  # wrong: not awaited
    report.put_many([number])  # wrong: not awaited
    report.every(60).put(number)  # wrong: not awaited
    aapp.queues["q"].put("K")  # unused-awaitable: not awaited
    aapp.queues["q"].pop()  # wrong: not awaited
    aapp.queues["q"].put_many([("K", {})])  # wrong: not awaited
    aapp.throttles["t"].delete()  # unused-awaitable: not awaited
    await holdfast.current_job().progress(0.5)  # wrong: the job of plain code is not awaited
    await job.progress(0.5)
    await job.heartbeat()
