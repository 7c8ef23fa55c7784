"""The program of python-api 5.6 as it is written there, for both clients, performed by a worker."""

import asyncio
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from works import Works

SYNC = """
import holdfast

app = holdfast.Client()                      # or AsyncClient(): then the calls are awaited

@app.job(queue="mail", retries=5)            # also backoff, priority, tags, throttles, delay, result_keep, name
def welcome(user_id: int, lang: str = "en") -> str: ...

def main():
    handle = welcome.put(7, lang="de")           # statically typed; welcome(7) still just calls the function
    assert welcome(7) is None
    found = handle.jid, handle.result(timeout=10)        # the return value, pushed, not polled; a failure raises JobFailed
    welcome.options(delay=60, queue="slow").put(7)
    return found
"""
ASYNC = (
    SYNC.replace("holdfast.Client()  ", "holdfast.AsyncClient()  ")
    .replace("def main", "async def main")
    .replace("handle = welcome.put", "handle = await welcome.put")
    .replace("handle.result(", "await handle.result(")
    .replace("    welcome.options", "    await welcome.options")
    .replace("    return found", "    await app.close()\n    return found")
)


@pytest.fixture(params=[SYNC, ASYNC], ids=["sync", "async"])
def program(
    request: pytest.FixtureRequest, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    name = f"mailing_{uuid4().hex[:8]}"
    # A function without a body answers None, which says too little here.
    (tmp_path / f"{name}.py").write_text(request.param.replace("-> str: ...", "-> str | None: return None"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HOLDFAST_URL", url)
    yield importlib.import_module(name)
    del sys.modules[name]


def test_the_program_of_the_page_works_as_written(program, url):
    works = Works(url, "default", "mail")
    with works.running():
        main = program.main()
        jid, result = asyncio.run(main) if asyncio.iscoroutine(main) else main
    job = works.client.jobs[jid]
    assert (job.klass_name, job.state, result) == (f"{program.__name__}.welcome", "complete", None)
    assert (job.original_retries, job.data) == (5, '{"args":[7],"kwargs":{"lang":"de"}}')
    slow = works.client.queues["slow"]
    [later] = slow.jobs.scheduled()
    works.client.jobs.cancel(later)
    works.close()
