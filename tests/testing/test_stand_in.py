"""While a test runs, every client of the process works on the test's namespace."""

import asyncio
import threading

import pytest

from holdfast import AsyncClient, Client
from holdfast.testing import LocalWorker, StandIn

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def app():
    """A program's client, whose store cannot be met."""
    return Client(NOWHERE, namespace="shop", hostname="box-7", timeout=0.1, deadline=0)


def test_a_client_that_exists_is_moved_and_given_back(app, url, namespace):
    with StandIn(url, namespace):
        jid = app.queues["mail"].put("k")
        with Client(url, namespace=namespace) as there:
            assert there.jobs[jid].klass_name == "k"
    assert (app.settings.url, app.settings.namespace, app.root) == (NOWHERE, "shop", "hf:{shop}:")


def test_what_hangs_on_a_client_goes_with_it(app, url, namespace):
    queue = app.queues["mail"]

    @app.job(queue="sums", name="stand_in.add30")
    def add(a, b):
        return a + b

    with StandIn(url, namespace), Client(url, namespace=namespace) as there:
        jid = queue.put("k")
        handle = add.put(1, 2)
        assert there.jobs[jid].queue_name == "mail"
        worker = LocalWorker(there, queues=["sums"])
        worker.drain()
        worker.close()
        assert handle.result(30) == 3


def test_callbacks_that_a_program_registered_are_called_for_the_jobs_of_the_test(app, url, namespace):
    seen = threading.Event()
    app.events.on("track", lambda jid: seen.set())
    with StandIn(url, namespace), app.events.thread():
        app.queues["mail"].put("k", jid="j")
        app.track("j")
        assert seen.wait(30)


def test_a_client_made_meanwhile_is_moved_too(url, namespace):
    with StandIn(url, namespace) as stand_in:
        late = Client(NOWHERE, timeout=0.1, deadline=0)
        assert late.queues["mail"].put("k")
        assert late in stand_in.clients
    assert late.settings.url == NOWHERE


def test_an_async_client_is_moved_for_any_loop(url, namespace):
    app = AsyncClient(NOWHERE, timeout=0.1, deadline=0)
    with StandIn(url, namespace), Client(url, namespace=namespace) as there:

        async def put():
            return await app.queues["mail"].put("k")

        jids = {asyncio.run(put()), asyncio.run(put())}
        assert {job.jid for job in there.jobs.get(*jids)} == jids


def test_names_and_what_a_program_hung_on_its_client_are_kept(url, namespace):
    class Shop(Client):
        def __init__(self, till):
            super().__init__(NOWHERE, hostname="box-7")
            self.till = till

    app = Shop("till-1")
    with StandIn(url, namespace):
        assert (app.till, app.worker_name) == ("till-1", "box-7")
        assert app.queues["mail"].put("k")


def test_clients_of_tests_are_left_alone(url, namespace):
    own = Client(url, namespace=f"{namespace}-own")
    with StandIn(url, namespace) as stand_in:
        assert own not in stand_in.clients
        assert own.settings.namespace == f"{namespace}-own"


def test_a_client_that_nobody_holds_is_not_kept_alive():
    from holdfast.client import opening

    made = Client(NOWHERE)
    place = id(made)
    assert any(id(client) == place for client in opening.clients())
    made.close()
    del made
    import gc

    gc.collect()
    assert all(id(client) != place for client in opening.clients())


def test_parts_that_were_in_use_are_those_of_the_place(app, url, namespace):
    before = app.config, app.throttles
    with StandIn(url, namespace):
        assert app.config is not before[0]
        assert app.config["heartbeat"] == 30
        app.throttles["printer"].set_maximum(3)
        with Client(url, namespace=namespace) as there:
            assert there.throttles["printer"].maximum() == 3
    assert (app.config, app.throttles) == before
