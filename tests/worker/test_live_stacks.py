"""`holdfast jobs stack`, `job.stack()`: where a running job is just now, in every pool; workers.md, observability of the issue."""

import asyncio
import contextlib
import importlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import msgspec
import pytest
from worker_kit import until

import holdfast
from holdfast import AsyncClient, JobNotFound
from holdfast.cli.main import run
from holdfast.client.stacks import LiveStack, StackReply
from holdfast.commands.workers import WorkerAnswer, WorkerAsk
from holdfast.errors import WrongState
from holdfast.worker.observe.stacks import Dumped, stack_of_job
from holdfast.worker.supervisor.messages import StoreMessage, StoreMessages

SITES = """
import os
from chores import HERE, app, await_for, note, wait_for


def inner_wait(name):
    note(f"begin {name}")
    wait_for("gate")


@app.job(queue="q")
def plain(name: str) -> None:
    inner_wait(name)


@app.job(queue="q")
def tried(name: str) -> None:
    note(f"begin {name} {os.getpid()}")
    wait_for("gate")


async def inner_await(name):
    note(f"begin {name}")
    await await_for("gate")


@app.job(queue="q")
async def awaiting(name: str) -> None:
    await inner_await(name)


@app.job(queue="q")
def busy(name: str) -> None:
    note(f"begin {name}")
    while not (HERE / "gate").exists():
        spin(3)


def spin(depth):
    return spin(depth - 1) if depth else sum(range(2000))


class Klass:
    @staticmethod
    def process(job):
        inner_wait(job["name"])
        job.complete()


@app.job(queue="q")
async def stuck(name: str) -> None:
    note(f"begin {name}")
    sum(range(10**13))
"""


@pytest.fixture
def site(shop: Any) -> Iterator[Any]:
    (shop.here / "sites.py").write_text(SITES)
    importlib.import_module("sites")
    yield shop
    del sys.modules["sites"]


def put(shop: Any, klass: str, name: str) -> str:
    thing = getattr(sys.modules["sites"], klass.removeprefix("sites."))
    return str(shop.q.put(thing, {"name": name}) if isinstance(thing, type) else thing.put(name).jid)


def names_of(stack: str) -> list[str]:
    """The functions of a stack, outermost first."""
    return [line.rpartition(" in ")[2] for line in stack.splitlines() if line.startswith("  File ")]


CASES = {
    "sites.plain": ["plain", "inner_wait", "wait_for"],
    "sites.awaiting": ["awaiting", "inner_await", "await_for"],
    "sites.Klass": ["process", "inner_wait", "wait_for"],
}


@pytest.mark.full
def test_the_stack_of_a_running_job_is_its_own_code_innermost_last(site: Any, pool: str) -> None:
    slots = 1 if pool in ("process", "serial", "fork") else len(CASES)
    stack_of = site.client.jobs.stack
    site.start(pool, "-m", "sites", "-n", "w", workers=len(CASES) if pool in ("process", "fork") else 1)
    for klass, functions in CASES.items() if pool != "serial" else [*CASES.items()][:2]:
        jid = put(site, klass, klass)
        until(lambda: site.notes(f"begin {klass}"), f"{klass} runs")  # noqa: B023
        if pool == "gevent" and functions[-1] == "wait":
            functions = functions[:-1]
        # It may be met between two waits.
        until(lambda: names_of(str(stack_of(jid)))[: len(functions)] == functions, "it is met in a wait")  # noqa: B023
        found = stack_of(jid)
        assert "wait_for(" in str(found) or "await_for(" in str(found)
        assert found.worker.startswith("w-")
        assert found.note == ""
        if slots == 1 and pool == "serial":
            site.open()
            until(lambda: site.state(jid) == "complete", "it ends")  # noqa: B023
            (site.here / "gate").unlink()
    site.open()
    until(lambda: not site.client.workers["w-0"]["jobs"], "all have ended")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["serial", "thread", "asyncio"])
def test_a_process_whose_threads_run_survives_any_number_of_requests(site: Any, pool: str) -> None:
    """A thread that read the stack of another one, which changes meanwhile, would crash it."""
    worker = site.start(pool, "-m", "sites", "-n", "w")
    count = 1 if pool == "serial" else 4
    jids = [put(site, "sites.busy", f"it{number}") for number in range(count)]
    until(lambda: len(site.notes("begin")) == count, "all run", 60)
    for number in range(200):
        assert "in busy" in str(site.client.jobs.stack(jids[number % count], 30))
    site.open()
    until(lambda: all(site.state(jid) == "complete" for jid in jids), "they end", 60)
    assert {site.job(jid).attempts for jid in jids} == {1}
    assert worker.process.poll() is None


@pytest.mark.full
def test_a_request_that_was_sent_before_its_worker_listened_is_sent_again(site: Any) -> None:
    site.q.put("sites.plain", {"kwargs": {"name": "it"}})
    held = site.q.pop()
    client = holdfast.Client(site.url, namespace=site.namespace, hostname=held.worker_name)
    with closing(client), ThreadPoolExecutor(1) as beside:
        found = beside.submit(site.client.jobs.stack, held.jid, 30)
        sent: list[StoreMessage] = []
        listening = StoreMessages(client, [held.worker_name])
        until(lambda: client.database.pubsub_channels(f"{client.root}e:s:*"), "it waits for a reply")
        assert not found.done()
        assert listening.open() >= 0
        until(lambda: sent.extend(listening.read()) or sent, "the request comes again")
        client.run(WorkerAnswer(sent[0].question, msgspec.json.encode(StackReply(stack="here"))))
        assert str(found.result(30)) == "here"
        listening.close()


@pytest.mark.full
def test_the_stack_of_a_job_whose_earlier_tries_were_killed_is_that_of_its_living_process(site: Any) -> None:
    site.start("fork", "-m", "sites", "-n", "w")
    jid = put(site, "sites.tried", "it")
    until(lambda: site.notes("begin it"), "it runs")
    os.kill(int(site.notes("begin it")[0].split()[-1]), signal.SIGKILL)
    until(lambda: len(site.notes("begin it")) == 2, "it runs again")
    assert names_of(site.client.jobs.stack(jid).stack)[0] == "tried"


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio"])
def test_code_that_cannot_be_interrupted_is_shown_as_its_process_dumps_it(site: Any, pool: str) -> None:
    site.start(pool, "-m", "sites", "-n", "w")
    jid = put(site, "sites.stuck", "it")
    until(lambda: site.notes("begin it"), "it runs")
    found = site.client.jobs.stack(jid)
    assert names_of(found.stack) == ["stuck"], found
    assert "sum(range(10**13))" in found.stack
    assert found.note.startswith("the process runs code that cannot be interrupted")


@pytest.mark.full
def test_the_command_and_the_async_client_show_it_too_and_say_clearly_when_there_is_nothing_to_show(
    site: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    site.start("asyncio", "-m", "sites", "-n", "w")

    def stack(*words: str) -> tuple[int, str, str]:
        return run(["jobs", "stack", *words, *place]), *capsys.readouterr()

    place = ("--url", site.url, "--namespace", site.namespace)
    jid = put(site, "sites.awaiting", "it")
    until(lambda: site.notes("begin it"), "it runs")
    code, said, problem = stack(jid)
    assert (code, problem) == (0, "")
    assert said.startswith(f"job {jid}, worker w-0, process ")
    assert "in inner_await" in said
    found = json.loads(stack(jid, "--json")[1])
    assert (found["jid"], found["worker"]) == (jid, "w-0")

    async def ask() -> LiveStack:
        async with AsyncClient(site.url, namespace=site.namespace) as client:
            job = await client.jobs[jid]
            assert job is not None
            assert str(await job.stack()) == str(await client.jobs.stack(jid))
            with pytest.raises(JobNotFound):
                await client.jobs.stack("nobody")
            return await client.jobs.stack(jid)

    assert "await await_for" in str(asyncio.run(ask()))
    assert str(site.job(jid).stack()) == str(site.client.jobs.stack(jid))

    late = str(site.q.put("sites.Klass", delay=60))
    for name, sentence in (
        ("nobody", "job nobody does not exist"),
        (late, "is scheduled, not running"),
    ):
        code, said, problem = stack(name)
        assert (code, said, problem.count("\n")) == (1, "", 1)
        assert sentence in problem
    with pytest.raises(WrongState):
        site.client.jobs.stack(late)

    site.client.queues["r"].put("K")
    by_hand = site.client.queues["r"].pop()
    assert by_hand is not None
    code, said, problem = stack(by_hand.jid, "--timeout", "0.2")
    assert (code, said, problem.count("\n")) == (1, "", 1)
    assert "no worker of that name is listening" in problem
    site.open()


@pytest.mark.full
def test_a_flood_of_questions_and_nonsense_keeps_a_worker_from_nothing(site: Any) -> None:
    worker = site.start("process", "-m", "sites", "-n", "w")
    jid = put(site, "sites.plain", "it")
    until(lambda: site.notes("begin it"), "it runs")
    for number in range(40):
        site.client.run(WorkerAsk("w-0", "another" if number % 2 else jid, f"question-{number}"))
    for wrong in (
        b"{",
        b'{"event":"stack"}',
        b'{"event":"stack","jid":"' + b"x" * 300 + b'","question":"q"}',
    ):
        site.client.redis.publish(site.client.shard.worker_channel("w-0"), wrong)

    def answers() -> bool:
        with contextlib.suppress(TimeoutError):
            return "inner_wait" in str(site.client.jobs.stack(jid, 0.5))
        return False

    until(answers, "it answers again")
    site.open()
    until(lambda: site.state(jid) == "complete", "the job ends")
    assert worker.process.poll() is None
    assert "Traceback" not in worker.said()


@pytest.mark.full
def test_a_process_that_does_not_perform_a_job_has_no_stack_of_it() -> None:
    assert stack_of_job("nobody's") is None


@pytest.mark.full
def test_looking_for_stacks_loads_no_lazy_object() -> None:
    pytest.importorskip("greenlet")  # only greenlets are looked for among all objects

    class Lazy:
        @property
        def __class__(self) -> type:
            raise RuntimeError("loaded")

    lazy = Lazy()
    assert stack_of_job("nobody's") is None
    del lazy


@pytest.fixture
def dump(tmp_path: Any) -> Callable[[], str]:
    """What the fault handler writes of this process."""
    import faulthandler

    def write() -> str:
        with (tmp_path / "dump").open("w+") as file:
            faulthandler.dump_traceback(file, all_threads=True)
            file.seek(0)
            return file.read()

    return write


def test_a_dump_is_read_as_stacks_innermost_last(dump: Callable[[], str]) -> None:
    gate, begun = threading.Event(), threading.Event()

    def linger() -> None:
        begun.set()
        gate.wait()

    thread = threading.Thread(target=linger)
    thread.start()
    begun.wait()
    try:
        stacks = Dumped(dump()).of_all()
    finally:
        gate.set()
        thread.join()
    [lingering] = [stack for stack in stacks if "in linger" in stack]
    assert names_of(lingering)[names_of(lingering).index("linger") + 1] == "wait"
    assert "    gate.wait()" in lingering
    assert Dumped(dump()).of_jobs() == []
    assert Dumped('nonsense\n  File "x", line one in y\n').of_all() == []
