"""A call without `await` in an `async def` job: the worker logs the job type, the method, and what to write."""

import sys

import pytest
from worker_kit import until

FORGETTING = """
import chores
import holdfast

aapp = holdfast.AsyncClient(chores.app.settings.url, namespace=chores.app.settings.namespace)


@aapp.job(queue="later")
def later() -> None: ...


async def step() -> None: ...


@chores.app.job(queue="q")
async def forget(name: str) -> str:
    job = holdfast.current_async_job()
    job.progress(0.5)
    job.tag("late")
    later.put()
    step()
    aapp.queues["other"].put("K")
    await aapp.queues["other"].length()
    return name


@chores.app.job(queue="q")
async def remember(name: str) -> str:
    job = holdfast.current_async_job()
    await job.progress(0.5)
    await job.tag("late")
    await later.put()
    return name
"""


@pytest.fixture
def forgetting(shop):
    (shop.here / "forgetting.py").write_text(FORGETTING)
    import forgetting

    yield forgetting
    del sys.modules["forgetting"]


def test_a_missing_await_in_a_job_is_one_warning_in_the_log_of_its_worker(shop, pool, forgetting):
    worker = shop.start(pool, "-m", "forgetting", "--workers", "1")
    handles = [forgetting.forget.put("me") for _ in range(3)]
    remembered = forgetting.remember.put("me")
    for handle in handles:
        assert handle.result(30) == "me"
        until(lambda one=handle: shop.job(one.jid).state == "complete", "it is complete")
    assert remembered.result(30) == "me"
    for call in ("job.progress(...)", "job.tag(...)", "function.put(...)", "step(...)", "queue.put(...)"):
        text = f"(forgetting.forget) called {call} without await, so it may not have happened: write `await {call}`"
        until(lambda text=text: text in worker.said(), text)
        lines = [line for line in worker.said().splitlines() if text in line]
        assert len(lines) == (3 if pool == "fork" else 1)  # there each job has a process of its own
        assert all("[WARNING]" in line for line in lines)
        assert any(handle.jid in lines[0] for handle in handles)
    assert "forgetting.remember) called" not in worker.said()
    assert "never awaited" not in worker.said()
