"""The clients of imported code name the store of a worker where nothing else does, and must not use another one."""

import signal
import textwrap

import pytest
from worker_kit import Worker, until

from holdfast import Client
from holdfast.testing.store import ScratchStore

NOWHERE = "redis://127.0.0.1:1/0"
STARTED = "working for q"


@pytest.fixture
def at(shop, monkeypatch):
    """Start a worker on module `m`, in an environment that names no store but what is given here."""
    monkeypatch.setenv("HOLDFAST_DIR", str(shop.here / "embedded"))

    def start(code, *flags, workers=1, pool="serial", modules=("m",), **environment):
        for name in ("HOLDFAST_URL", "HOLDFAST_NAMESPACE", "REDIS_URL"):
            monkeypatch.delenv(name, raising=False)
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        (shop.here / "m.py").write_text(textwrap.dedent(code))
        imports = [word for module in modules for word in ("--import", module)]
        words = ("-q", "q", "--pool", pool, "-w", str(workers), "-i", "0.1", *imports, *flags)
        worker = Worker(shop.here, len(shop.workers), *words)
        shop.workers.append(worker)
        return worker

    return start


def refused(worker):
    """The one line of a worker that did not start."""
    status, said = worker.wait(30), worker.said()
    assert status == 2, said
    assert STARTED not in said
    assert said.startswith("holdfast: ")
    return " ".join(said.split())


def module(*clients):
    return "import holdfast\n" + "\n".join(clients)


def function(client, name="f"):
    return f"@{client}.job(queue='q')\ndef {name}(n: int) -> int: return n + 1"


@pytest.mark.full
@pytest.mark.parametrize("pool", ["serial", "process", "asyncio"])
@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_worker_takes_jobs_from_the_store_and_namespace_of_the_client_that_it_imports(shop, at, kind, pool):
    client = f"app = holdfast.{kind}({shop.url!r}, namespace={shop.namespace!r})"
    worker = at(module(client, function("app")), pool=pool, REDIS_URL=NOWHERE)
    jid = shop.q.put("m.f", {"args": [1]})
    until(lambda: shop.state(jid) == "complete", "it is performed")
    assert f"namespace {shop.namespace}" in worker.said()


def test_a_client_without_functions_names_the_store_of_class_jobs(shop, at):
    client = f"app = holdfast.Client({shop.url!r}, namespace={shop.namespace!r})"
    at(module(client, "class K:\n    @staticmethod\n    def perform(job): job.complete()"))
    jid = shop.q.put("m.K", {})
    until(lambda: shop.state(jid) == "complete", "it is performed")


@pytest.mark.full
def test_a_sync_and_an_async_client_of_one_store_count_once_and_so_do_names_of_this_machine(shop, at):
    with ScratchStore(tcp=True) as store, Client(store.url, namespace=shop.namespace) as client:
        place = f"{store.port}/0', namespace={shop.namespace!r})"
        at(
            module(
                f"a = holdfast.Client('redis://127.0.0.1:{place}",
                f"b = holdfast.AsyncClient('redis://localhost:{place}",
                function("a"),
                function("b", "g"),
            )
        )
        jid = client.queues["q"].put("m.f", {"args": [1]})
        until(lambda: client.jobs[jid].state == "complete", "it is performed")


@pytest.mark.full
def test_a_client_beside_one_with_functions_may_be_for_another_program(shop, at):
    worker = at(
        module(
            f"app = holdfast.Client({shop.url!r}, namespace={shop.namespace!r})",
            f"elsewhere = holdfast.Client({NOWHERE!r})",
            function("app"),
        )
    )
    jid = shop.q.put("m.f", {"args": [1]})
    until(lambda: shop.state(jid) == "complete", "it is performed")
    assert "elsewhere" not in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("has_functions", [True, False])
def test_clients_of_two_stores_are_refused(shop, at, has_functions):
    functions = [function("app"), function("other", "g")] if has_functions else []
    code = module(f"app = holdfast.Client({shop.url!r})", f"other = holdfast.Client({NOWHERE!r})", *functions)
    said = refused(at(code))
    for part in ("use 2 stores", "m.app uses", "m.other uses redis://127.0.0.1:1/0", "name it with --url"):
        assert part in said


@pytest.mark.full
def test_clients_of_two_namespaces_are_refused_unless_one_is_named(shop, at):
    code = module(
        f"app = holdfast.Client({shop.url!r}, namespace={shop.namespace!r})",
        f"other = holdfast.Client({shop.url!r}, namespace='{shop.namespace}-b')",
        function("app"),
        function("other", "g"),
    )
    said = refused(at(code))
    assert "use 2 namespaces" in said
    assert "name it with --namespace" in said
    worker = at(code, "--namespace", shop.namespace)
    until(lambda: STARTED in worker.said(), "it starts")
    assert "WARNING] m.other uses" in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("variable", ["HOLDFAST_URL", "HOLDFAST_NAMESPACE"])
def test_a_client_that_differs_from_the_environment_is_refused(shop, at, variable):
    client = f"app = holdfast.Client({shop.url!r}, namespace={shop.namespace!r})"
    code = module(client, function("app"))
    value = NOWHERE if variable == "HOLDFAST_URL" else f"{shop.namespace}-b"
    said = refused(at(code, **{variable: value}))
    assert f"m.app uses {shop.url}, namespace {shop.namespace}, but this worker would use " in said
    assert (
        f"Start the worker with --url {shop.url} --namespace {shop.namespace}, or make the client with"
        in said
    )


@pytest.mark.full
def test_a_store_that_a_flag_names_wins_with_a_warning(shop, at):
    code = module(f"app = holdfast.Client({NOWHERE!r}, namespace={shop.namespace!r})", function("app"))
    worker = at(code, "--url", shop.url)
    jid = shop.q.put("m.f", {"args": [1]})
    until(lambda: shop.state(jid) == "complete", "it is performed")
    [line] = [line for line in worker.said().splitlines() if "WARNING" in line]
    assert f"m.app uses {NOWHERE}, namespace {shop.namespace}, but this worker uses {shop.url}" in line


@pytest.mark.full
def test_connections_of_a_sentinel_are_refused_with_what_to_write(shop, at):
    code = module(
        "from redis.sentinel import Sentinel",
        "app = holdfast.Client(Sentinel([('127.0.0.1', 1)]).master_for('main'))",
        function("app"),
    )
    said = refused(at(code))
    assert "cannot open again" in said
    assert "--url redis://HOST:PORT/DB" in said
    said = refused(at(code, HOLDFAST_URL=shop.url))
    assert "m.app uses the Sentinel service 'main', namespace default" in said
    worker = at(code, "--url", shop.url, "--namespace", shop.namespace)
    until(lambda: STARTED in worker.said(), "it starts")
    assert "WARNING] m.app uses the Sentinel service 'main'" in worker.said()


@pytest.mark.full
@pytest.mark.parametrize("module_of_driver", ["redis", "redis.asyncio"])
def test_a_plain_connection_of_the_driver_names_its_store(shop, at, module_of_driver):
    kind = "AsyncClient" if module_of_driver.endswith("asyncio") else "Client"
    at(
        module(
            f"import {module_of_driver} as driver",
            f"made = driver.Redis.from_url({shop.url!r}, socket_timeout=7, decode_responses=True)",
            f"app = holdfast.{kind}(made, namespace={shop.namespace!r})",
            function("app"),
        )
    )
    jid = shop.q.put("m.f", {"args": [1]})
    until(lambda: shop.state(jid) == "complete", "it is performed")


@pytest.mark.full
def test_the_setup_hook_may_name_store_and_namespace(shop, at):
    (shop.here / "hooks.py").write_text(
        f"import os\ndef hook(): os.environ.update(HOLDFAST_URL={shop.url!r}, HOLDFAST_NAMESPACE={shop.namespace!r})"
    )
    at(module("app = holdfast.Client()", function("app")), "--setup", "hooks:hook", REDIS_URL=NOWHERE)
    jid = shop.q.put("m.f", {"args": [1]})
    until(lambda: shop.state(jid) == "complete", "it is performed")


@pytest.mark.full
def test_code_without_clients_runs_on_the_store_of_the_environment(shop, at):
    code = "class K:\n    @staticmethod\n    def perform(job): job.complete()"
    at(code, REDIS_URL=shop.url, HOLDFAST_NAMESPACE=shop.namespace)
    jid = shop.q.put("m.K", {})
    until(lambda: shop.state(jid) == "complete", "it is performed")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["serial", "process"])
def test_a_module_that_is_imported_for_its_first_job_is_warned_of(shop, at, pool):
    code = module(f"app = holdfast.Client({NOWHERE!r})", function("app"))
    worker = at(code, modules=(), pool=pool, HOLDFAST_URL=shop.url, HOLDFAST_NAMESPACE=shop.namespace)
    jids = [shop.q.put("m.f", {"args": [1]}) for _ in range(3)]
    until(lambda: all(shop.state(jid) == "complete" for jid in jids), "they are performed")
    assert worker.said().count(f" m.app uses {NOWHERE}, namespace ") == 1


@pytest.mark.full
def test_a_worker_class_warns_of_functions_of_another_store(shop):
    (shop.here / "m.py").write_text(module(f"app = holdfast.Client({NOWHERE!r})", function("app")))
    worker = shop.run_code("""
        from holdfast.workers import ForkingWorker
        import chores
        ForkingWorker(["q"], chores.app, imports=["m"], workers=1).run()
    """)
    assert shop.chores.add.put(1).result(30) == 2
    assert (
        f"WARNING] m.app uses {NOWHERE}, namespace default, but this worker uses {shop.url}" in worker.said()
    )


@pytest.mark.full
def test_code_that_names_another_store_at_hup_leaves_the_old_children_at_work(shop, at):
    client = "app = holdfast.Client({!r}, namespace={!r})"
    worker = at(module(client.format(shop.url, shop.namespace), function("app")), pool="process")
    jid = shop.q.put("m.f", {"args": [1]})
    until(lambda: shop.state(jid) == "complete", "it is performed")
    (shop.here / "m.py").write_text(
        module(client.format(NOWHERE, shop.namespace), function("app"), "VERSION = 2")
    )
    worker.signal(signal.SIGHUP)
    until(lambda: "the old processes keep running" in worker.said(), "it is logged")
    assert f"it names the store {NOWHERE}, and this worker works on" in " ".join(worker.said().split())
    jid = shop.q.put("m.f", {"args": [2]})
    until(lambda: shop.state(jid) == "complete", "the old children are at work")
