"""`--health-port`: whether a worker lives and takes jobs, for whoever asks, and however badly they ask."""

import json
import signal
import socket
from contextlib import ExitStack

import pytest
from worker_kit import until

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.worker.observe.http import (
    MOST_CLIENTS,
    MOST_HEAD,
    HttpAddress,
    HttpResponse,
    HttpThread,
    answer_to,
)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def ask(port, request=b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n"):
    """The status and body of what is answered, (0, b"") if nothing is."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(request)
            heard = b""
            while more := connection.recv(65536):
                heard += more
    except ConnectionError:
        return 0, b""
    head, _, body = heard.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def ready(port):
    status, body = ask(port)
    return status == 200 and json.loads(body) == {"ready": True}


def why_not(port):
    status, body = ask(port)
    return json.loads(body)["why"] if status == 503 else []


@pytest.mark.full
def test_a_worker_says_whether_it_lives_and_takes_jobs(shop, pool):
    port = free_port()
    worker = shop.start(pool, "--health-port", str(port), "--name", "bee")
    until(lambda: ready(port), "it is ready")
    handle = shop.chores.block.put("a")
    until(lambda: shop.notes("begin a"), "it works")
    assert ask(port, b"GET /live?verbose HTTP/1.0\r\n\r\n") == (200, b'{"live": true}\n')
    shop.client.workers.quiet("bee-0")
    until(lambda: any("quiet" in reason for reason in why_not(port)), "it takes no jobs", 30)
    assert ask(port, b"GET /live HTTP/1.1\r\n\r\n")[0] == 200
    worker.signal(signal.SIGQUIT)
    until(lambda: "it is stopping" in why_not(port), "it is stopping")
    shop.open()
    assert handle.result(30) == "a"
    assert worker.wait() == 0
    assert ask(port) == (0, b"")


def listens(host, port):
    """Whether something accepts connections on this address of the machine."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


@pytest.mark.full
@pytest.mark.parametrize(("flags", "elsewhere"), [((), False), (("--health-host", "0.0.0.0"), True)])
def test_probes_are_answered_on_the_loopback_address_unless_told_otherwise(shop, flags, elsewhere):
    port = free_port()
    shop.start("serial", "--health-port", str(port), *flags)
    until(lambda: ready(port), "it is ready")
    assert listens("127.0.0.1", port)
    assert listens("127.0.0.2", port) is elsewhere


@pytest.mark.full
def test_a_worker_without_its_store_lives_and_takes_no_jobs(shop, namespace):
    port = free_port()
    with ScratchStore() as store, Client(store.url, namespace=namespace):
        shop.start("process", "--health-port", str(port), url=store.url)
        until(lambda: ready(port), "it is ready")
        store.kill()
        until(lambda: "the store does not respond" in why_not(port), "it has noticed", 30)
        assert ask(port, b"GET /live HTTP/1.1\r\n\r\n")[0] == 200
        store.restart()
        until(lambda: ready(port), "it is ready again")


@pytest.mark.full
def test_a_port_that_is_taken_is_said_before_anything_is_forked(shop, pool):
    with socket.create_server(("", 0)) as server:
        port = server.getsockname()[1]
        worker = shop.start(pool, "--health-port", str(port))
        assert worker.wait() == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in worker.said()
    assert "started as" not in worker.said()


@pytest.mark.full
@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("nowhere.invalid", "cannot listen on"),
        ("192.0.2.1", "cannot listen on"),
        ("a..b", "--health-host must be the name or address of a machine"),
        ("x" * 200, "--health-host must be the name or address of a machine"),
    ],
)
def test_an_address_that_is_not_of_this_machine_is_said_before_anything_is_forked(shop, host, why):
    worker = shop.start("process", "--health-port", str(free_port()), "--health-host", host)
    assert worker.wait() == 2
    assert why in worker.said()
    assert "Traceback" not in worker.said()
    assert "started as" not in worker.said()


@pytest.fixture
def port():
    """A port with a page and one that fails."""
    web, port = HttpThread(), free_port()
    web.http.serve(
        HttpAddress("127.0.0.1", port), "/page", lambda: HttpResponse(200, b"x" * 3_000_000, "text/plain")
    )
    web.http.serve(HttpAddress("127.0.0.1", port), "/broken", lambda: HttpResponse(1 // 0, b""))
    with web:
        yield port


@pytest.mark.full
@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /page HTTP/1.1\r\nA: b\r\n\r\n", 200),
        (b"GET /page HTTP/1.1\nA: b\n\n", 200),
        (b"HEAD /page HTTP/1.1\r\n\r\n", 200),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"GET /pag\xff\x85e HTTP/1.1\r\n\r\n", 400),
        (b"POST /page HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 405),
        (b"GET /broken HTTP/1.1\r\n\r\n", 500),
        (b"GET /page\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\n\n", 400),
        (b"GET /page HTTP/1.1\r\nA: " + b"a" * MOST_HEAD * 2, 431),
    ],
)
def test_whatever_is_asked_is_answered(port, request_, status):
    answered, body = ask(port, request_)
    assert answered == status
    whole = request_.startswith(b"GET") and status == 200
    assert len(body) == (3_000_000 if whole else 0)


@pytest.mark.full
def test_clients_that_say_nothing_or_read_nothing_keep_nobody_from_an_answer(port):
    with ExitStack() as stack:
        for number in range(MOST_CLIENTS * 3):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            if number % 2:
                client.sendall(b"GET /page HTTP/1.1\r\n\r\n")
        assert ask(port, b"GET /page HTTP/1.1\r\n\r\n")[0] == 200


def test_an_answer_says_how_long_it_is_and_is_kept_by_nobody():
    said = answer_to(b"GET / HTTP/1.1\r\n\r\n", {"/": lambda: HttpResponse(503, b"{}")}).decode()
    assert said.startswith("HTTP/1.1 503 Service Unavailable\r\n")
    assert "\r\nContent-Length: 2\r\n" in said
    assert "\r\nCache-Control: no-store\r\n" in said
    assert said.endswith("\r\n\r\n{}")


@pytest.mark.full
def test_clients_that_take_too_long_are_dropped(monkeypatch):
    monkeypatch.setattr("holdfast.worker.observe.http.PATIENCE", 0.05)
    web, port = HttpThread(), free_port()
    web.http.serve(HttpAddress("127.0.0.1", port), "/", lambda: HttpResponse(200, b""))
    with web, socket.create_connection(("127.0.0.1", port), 5) as client:
        client.sendall(b"GET /")
        assert client.recv(1) == b""
