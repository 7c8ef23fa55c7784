"""The stand-in as a program uses it: moved by one import, its workers, its events, its typed data."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from textwrap import dedent

import pytest

import holdfast
import programs
from holdfast import Client, UsageError
from holdfast.compat import reqless
from holdfast.compat.reqless.workers import ForkingWorker, MainWorker, SerialWorker
from holdfast.testing import StandIn, drain_worker_queues, run_worker_concurrently_with
from waiting import until

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "reqless"))
sys.path.append(str(HERE.parent / "reqless" / "real"))

PROGRAM = """
    import json, sys
    {import_line}
    from {package}.exceptions import LostLockError
    from {package}.job import Job

    client = reqless.Client(sys.argv[1], hostname="box")

    class Parcel:
        @staticmethod
        @reqless.retry(KeyError)
        def pack(job):
            box = dict(json.loads(job.data))
            if job.retries_left == job.original_retries:
                raise KeyError("weight")
            job.data = json.dumps({{**box, "weight": 3}})
            job.complete()

    queue = client.queues["pack"]
    jid = queue.put(Parcel, json.dumps({{"to": "ann"}}), priority=2, tags=["parcel"])
    for _ in range(2):
        job = queue.pop()
        assert isinstance(job, Job)
        print(job.klass_name.rpartition(".")[2], job.data, job.retries_left)
        job.process()
    done = client.jobs[jid]
    print(done.state, json.loads(done.data)["weight"], done.tags, done.history[0]["what"], done.history[-1]["what"])
    queue.put(Parcel, "{{}}")
    lost = queue.pop()
    client.jobs[lost.jid].cancel()
    try:
        lost.heartbeat()
    except LostLockError as error:
        print("lost", str(error) == lost.jid)
    queue.put(Parcel, "3", jid="broken")
    queue.pop().process()
    print(client.jobs["broken"].state, client.jobs.failed())
"""
SEEN = [
    'Parcel {"to": "ann"} 5',
    'Parcel {"to": "ann"} 4',
    "complete 3 ['parcel'] put done",
    "lost True",
    "failed {'pack-TypeError': 1}",
]


def run(package: str, import_line: str, url: str, environment: dict[str, str], folder: Path) -> list[str]:
    file = folder / "program.py"
    file.write_text(dedent(PROGRAM).format(package=package, import_line=import_line))
    done = programs.run([sys.executable, str(file), url], env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_program_moves_by_one_import(store, tmp_path):
    source = Path(holdfast.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    line = "from holdfast.compat import reqless"
    assert run("holdfast.compat.reqless", line, store.url, environment, tmp_path) == SEEN


@pytest.mark.full
def test_that_program_saw_the_same_before(store, tmp_path):
    from packages import environment
    from reference import PACKAGE

    found = environment(PACKAGE)
    if found is None:
        pytest.skip(f"LOUD SKIP: {PACKAGE} cannot be fetched, so the program was run on the stand-in only")
    assert run("reqless", "import reqless", f"{store.url}?db=8", found, tmp_path) == SEEN


def test_the_usual_address_is_the_local_one_whatever_the_environment_says(monkeypatch):
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere:1")
    assert reqless.Client().settings.url == "redis://localhost:6379"
    assert reqless.Client(hostname="box").worker_name == "box"


@pytest.fixture
def client(url, namespace):
    with reqless.Client(url, hostname="box", namespace=namespace) as made:
        yield made


def test_its_errors_are_one_tree():
    assert reqless.ReqlessError is holdfast.HoldfastError
    assert reqless.exceptions.LostLockError is holdfast.LeaseLost


def test_events_of_a_connection_are_those_of_its_namespace(client):
    heard = []
    events = reqless.Events(client.database)
    events.on("completed", heard.append)
    with events.thread():
        client.queues["mail"].put("K", "{}", jid="j")
        client.track("j")
        client.queues["mail"].pop().complete()
        until(lambda: heard == ["j"], "the event was heard")


def test_a_listener_over_a_connection(client):
    listener = reqless.listener.Listener(client.database, ["news"])
    heard = []

    def listen():
        for message in listener.listen():
            heard.append((message["channel"], message["data"]))
            listener.unlisten()

    thread = threading.Thread(target=listen)
    thread.start()
    listener.wait_until_listening()
    client.database.publish("news", "hello")
    thread.join(30)
    assert heard == [("news", "hello")]


def test_the_next_of_a_template_is_the_stores(client):
    client.queues["mail"].recur("K", "{}", interval=60, jid="daily")
    template = client.jobs["daily"]
    first = template.next
    client.queues["mail"].pop()
    assert template.next == pytest.approx(first + 60)
    template.cancel()
    assert template.next is None


def test_the_class_of_the_data_is_inherited():
    class Data(dict, reqless.abstract.AbstractJobData):
        def to_json(self):
            return json.dumps(self)

        @classmethod
        def from_json(cls, data):
            return cls(json.loads(data))

    class Sends(reqless.abstract.AbstractJobProcessor[Data]):
        @staticmethod
        def process(job):
            pass

    class Also(Sends):
        pass

    assert Also.data_class() is Data
    assert Also.deserialize_data_json(Data(a=1).to_json()) == {"a": 1}


def test_the_snippet_of_typed_data_works_as_written(url, namespace):
    from holdfast.compat.reqless import AbstractJobData, AbstractJobProcessor

    class Invoice(dict, AbstractJobData):
        def to_json(self):
            return json.dumps(self)

        @classmethod
        def from_json(cls, text):
            return cls(json.loads(text))

    class SendInvoice(AbstractJobProcessor[Invoice]):
        @staticmethod
        def process(job):
            invoice = SendInvoice.deserialize_data_json(job.data)
            told.append(invoice)
            job.complete()

    told: list[Invoice] = []
    queue = Client(url, namespace=namespace).queues["q"]
    queue.put(SendInvoice, Invoice(total=7).to_json(), jid="typed")
    SendInvoice.process(queue.pop())
    assert (told, type(told[0])) == ([{"total": 7}], Invoice)
    assert Client(url, namespace=namespace).jobs["typed"].state == "complete"

    class Untyped(AbstractJobProcessor):  # type: ignore[type-arg]
        @staticmethod
        def process(job):
            pass

    with pytest.raises(RuntimeError):
        Untyped.deserialize_data_json("{}")


JOBS = """
    import os

    class Note:
        @staticmethod
        def process(job):
            with open(job["to"], "a") as file:
                file.write(f"{os.getpid()}\\n")
            job.complete()
    """
WORKER = """
    import sys
    from holdfast.compat import reqless
    from holdfast.compat.reqless.workers import ForkingWorker

    client = reqless.Client(sys.argv[1], namespace=sys.argv[2])
    ForkingWorker(["notes"], client, interval=1, workers=2).run()
    """


@pytest.fixture
def notes(tmp_path, monkeypatch, client, namespace):
    """Puts a job that writes into a file, which is read by what it answers."""
    module = namespace.replace("-", "_")
    (tmp_path / f"{module}.py").write_text(dedent(JOBS))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "notes"

    def read():
        return file.read_text().split() if file.exists() else []

    client.queues["notes"].put(f"{module}.Note", json.dumps({"to": str(file)}))
    return read


@pytest.mark.parametrize("kind", [SerialWorker, MainWorker])
def test_a_worker_performs_jobs_in_this_process_until_it_is_told_to_stop(client, notes, kind):
    worker = kind([client.queues["notes"]], client, interval=1)
    assert worker.queues == [client.queues["notes"]]
    thread = threading.Thread(target=worker.run)
    thread.start()
    until(notes, "the job was performed")
    worker.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert notes() == [str(os.getpid())]


def test_the_helpers_for_tests_take_such_a_worker(client, notes):
    worker = SerialWorker(["notes"], client, interval=1)
    [job] = client.queues["notes"].peek(0, 1)
    drain_worker_queues(worker)
    assert notes() == [str(os.getpid())]
    client.queues["notes"].put(job.klass_name, job.data)
    with run_worker_concurrently_with(worker):
        until(lambda: len(notes()) == 2, "the second job was performed")


@pytest.mark.full
def test_a_forking_worker_performs_jobs_in_children_until_it_is_told_to_stop(url, namespace, notes, tmp_path):
    source = Path(holdfast.__file__).parents[1]
    process = subprocess.Popen(
        [sys.executable, "-c", dedent(WORKER), url, namespace],
        env={**os.environ, "PYTHONPATH": str(source)},
        cwd=tmp_path,
    )
    try:
        until(notes, "the job was performed")
        assert notes() != [str(process.pid)]
        process.send_signal(signal.SIGQUIT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_queues_may_come_from_a_resolver_of_ones_own(client, notes):
    class Mine(reqless.abstract.AbstractQueueResolver):
        def resolve(self):
            return ["notes", "others"]

    assert [queue.name for queue in SerialWorker(Mine(), client).queues] == ["notes", "others"]


def test_a_worker_looks_once_a_minute_unless_told_as_before(client):
    from holdfast.compat.reqless.workers import BaseWorker, gevent_worker

    for kind in (SerialWorker, MainWorker, ForkingWorker, gevent_worker.GeventWorker):
        worker = kind(["q"], client)
        assert worker.interval == 60.0
        assert isinstance(worker, BaseWorker)
    assert ForkingWorker(["q"], client).klass is SerialWorker
    assert (
        ForkingWorker(["q"], client, klass="holdfast.compat.reqless.workers.MainWorker").klass is MainWorker
    )


def test_what_workers_are_made_of_is_where_it_was(tmp_path):
    from holdfast.compat.reqless.workers.util import clean, create_sandbox, divide, get_title, set_title

    assert divide([1, 2, 3], 2) == [[1, 3], [2]]
    with create_sandbox(str(tmp_path / "s")):
        (tmp_path / "s" / "file").touch()
    assert list((tmp_path / "s").iterdir()) == []
    (tmp_path / "s" / "file").touch()
    clean(str(tmp_path / "s"))
    assert list((tmp_path / "s").iterdir()) == []
    assert callable(get_title)
    assert callable(set_title)


def test_an_option_of_a_worker_that_there_is_not_is_refused(client):
    with pytest.raises(UsageError, match="did you mean 'workers'"):
        ForkingWorker(["q"], client, worker=2)


def test_a_worker_goes_to_the_store_of_its_client_with_all_it_was_given(client, monkeypatch):
    from holdfast.worker.classes import forking

    told = []
    monkeypatch.setattr(forking, "run_worker", lambda *given: told.append(given[:2]))
    given = reqless.Client(
        "redis://ann:secret@far:7000/2", hostname="box", namespace="n", socket_keepalive=False
    )
    ForkingWorker(["q"], given, workers=2).run()
    [(settings, store)] = told
    assert (settings.queues, settings.workers, settings.name) == (("q",), 2, "box")
    again = store.client("box-0")
    assert again == Client("redis://ann:secret@far:7000/2", namespace="n")
    assert store.options["socket_keepalive"] is False


def test_a_moved_program_is_tested_as_any_other(url, namespace):
    app = reqless.Client(timeout=0.1, deadline=0)
    with StandIn(url, namespace):
        app.queues["mail"].recur("K", "{}", interval=60, jid="daily")
        assert type(app.jobs["daily"]) is reqless.RecurringJob
    assert app.settings.url == "redis://localhost:6379"
