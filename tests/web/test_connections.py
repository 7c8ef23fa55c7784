"""Clients that send nothing, half a request, or read nothing; against servers with few descriptors, over real sockets."""

import asyncio
import json
import logging
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web import connections
from holdfast.web.connections import Thinned
from holdfast.web.credentials import hash_token
from holdfast.web.places import AllTaken, Places
from waiting import until
from web_process import free_port, serving

DESCRIPTORS = 512
HALF = (
    b"",
    b"GET /v1/health HTTP/1.1\r\nHost: x\r\nX-",
    b"POST /v1/info HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
)


@contextmanager
def idle(address: str, number: int) -> Iterator[list[socket.socket]]:
    """Open connections that send nothing, half a header, or a header without its body."""
    host, _, port = address.removeprefix("http://").partition(":")
    with ExitStack() as stack:
        opened = []
        for index in range(number):
            one = stack.enter_context(socket.create_connection((host, int(port)), 30))
            one.sendall(HALF[index % len(HALF)])
            opened.append(one)
        yield opened


def is_open(one: socket.socket) -> bool:
    """Return whether the other side has not closed a connection."""
    while select.select([one], [], [], 0)[0]:
        try:
            if not one.recv(4096):
                return False
        except ConnectionError:
            return False
    return True


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [["--only", "gateway"], ["--only", "topics"], []], ids=["gateway", "topics", "all"]
)
def test_more_idle_connections_than_descriptors_leave_the_server_at_work_and_its_log_short(
    store: ScratchStore, namespace: str, tmp_path: Path, words: list[str]
) -> None:
    folder = tmp_path / "web"
    path = "/ready/t" if "topics" in words else "/v1/health"
    with serving(store.url, namespace, folder, "--auth", "none", *words, descriptors=DESCRIPTORS) as (
        address,
        _,
    ):
        with idle(address, DESCRIPTORS + 200) as opened:
            for _ in range(3):
                assert httpx.get(address + path, timeout=30).status_code == 200
            until(lambda: sum(map(is_open, opened)) == 0, "each idle connection is closed", 60)
            assert httpx.get(address + path, timeout=30).status_code == 200
        for _ in range(100):
            with socket.create_connection(
                (address[7:].partition(":")[0], int(address.rpartition(":")[2])), 30
            ) as bad:
                bad.sendall(b"\0\r\n\r\n")
                bad.recv(100)
    assert (tmp_path / "web.log").stat().st_size < 20_000


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["metrics", "serve", "--port"], "/metrics"),
        (["worker", "--queue", "q", "--health-port"], "/ready"),
        (["worker", "--queue", "q", "--pool", "serial", "--metrics-port"], "/metrics"),
    ],
    ids=["metrics", "probes", "metrics of a worker"],
)
def test_more_idle_connections_than_descriptors_leave_probes_and_metrics_at_work(
    store: ScratchStore, namespace: str, tmp_path: Path, words: list[str], path: str
) -> None:
    port = free_port()
    command = [sys.executable, "-m", "holdfast.cli.main", *words, str(port)]
    command += ["--url", store.url, "--namespace", namespace]
    with (tmp_path / "log").open("wb") as log:
        limited = ["sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh", *command]
        process = subprocess.Popen(limited, stdout=log, stderr=log, cwd=tmp_path)
    try:
        until(lambda: is_listening(port), "it listens", 60)
        with idle(f"http://127.0.0.1:{port}", DESCRIPTORS + 200) as opened:
            for _ in range(3):
                assert httpx.get(f"http://127.0.0.1:{port}{path}", timeout=30).status_code == 200
            until(lambda: sum(map(is_open, opened)) == 0, "each idle connection is closed", 60)
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
    assert (tmp_path / "log").stat().st_size < 20_000


@pytest.mark.full
def test_one_user_gets_a_part_of_the_waiting_requests_and_streams_and_others_are_served(
    store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    users = tmp_path / "users"
    lines = [f"{name}:{role}:{hash_token(name)}" for name, role in (("greedy", "admin"), ("other", "admin"))]
    users.write_text("\n".join(lines))
    users.chmod(0o600)
    words = ["--auth", "bearer", "--users", str(users)]

    async def story(address: str) -> None:
        host, port = "127.0.0.1", int(address.rpartition(":")[2])

        async def begun(who: str, method: str, path: str, body: bytes = b"") -> asyncio.StreamReader:
            reader, writer = await asyncio.open_connection(host, port)
            writers.append(writer)
            head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {who}\r\nContent-Length: {len(body)}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\n\r\n".encode() + body)
            return reader

        def pop(wait: int) -> bytes:
            return json.dumps({"worker": "w", "queues": ["none"], "wait": wait}).encode()

        writers: list[asyncio.StreamWriter] = []
        waits = [await begun("greedy", "POST", "/v1/pop", pop(20)) for _ in range(200)]
        streams = [await begun("greedy", "GET", "/live") for _ in range(100)]
        for refused, text in ((waits[-1], b"429"), (streams[-1], b"event: bye")):
            found = b""
            while text not in found:
                part = await asyncio.wait_for(refused.read(4096), 30)
                assert part, found
                found += part
        served = await begun("other", "POST", "/v1/pop", pop(1))
        assert b" 200 " in await asyncio.wait_for(served.readline(), 30)
        served = await begun("other", "GET", "/live")
        assert await asyncio.wait_for(served.readuntil(b"event: tick"), 30)
        for writer in writers:
            writer.close()

    with serving(store.url, namespace, tmp_path / "web", *words, descriptors=DESCRIPTORS) as (address, _):
        asyncio.run(story(address))


@pytest.mark.full
def test_a_client_that_does_not_read_its_response_is_dropped(client: Client) -> None:
    """The deadlines are short here; the sockets and the server are real."""
    code = (
        "import sys; from holdfast.web import connections, serving\n"
        "connections.WRITE_SECONDS = 1.0\n"
        "import asyncio\n"
        "async def app(scope, receive, send):\n"
        "    if scope['type'] != 'http': return\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    async def sending():\n"
        "        while True: await send({'type': 'http.response.body', 'body': b'x' * 65536, 'more_body': True})\n"
        "    task = asyncio.create_task(sending())\n"
        "    while (await receive())['type'] != 'http.disconnect': pass\n"
        "    task.cancel()\n"
        "    print('dropped', flush=True)\n"
        "serving.serve(app, serving.bound('127.0.0.1', int(sys.argv[1])))\n"
    )
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", code, str(port)], stdout=subprocess.PIPE)
    try:
        until(lambda: is_listening(port), "it listens", 60)
        with socket.create_connection(("127.0.0.1", port), 30) as silent:
            silent.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 60)[0]
            assert process.stdout.readline() == b"dropped\n"
    finally:
        process.kill()
        process.communicate()


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 30).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.mark.full
def test_a_user_of_places_leaves_some_for_others_and_several_get_the_same_number() -> None:
    places = Places(100)
    with ExitStack() as stack:

        def taken(who: str) -> int:
            for number in range(200):
                try:
                    stack.enter_context(places.taken(who))
                except AllTaken:
                    return number
            return 200

        assert [taken(who) for who in ("ada", "bob", "eve")] == [75, 19, 5]
        with pytest.raises(AllTaken, match="75 are taken"):
            stack.enter_context(places.taken("ada"))
    assert (places._total, dict(places._taken)) == (0, {})


def test_many_lines_of_one_kind_are_thinned_and_their_number_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(connections, "monotonic", lambda: now)
    thinned = Thinned()

    def passes(text: str, *args: object) -> logging.LogRecord | None:
        record = logging.LogRecord("holdfast", logging.WARNING, "", 1, text, args, None)
        return record if thinned.filter(record) else None

    assert sum(passes("request %s", number) is not None for number in range(100)) == 20
    assert passes("another %s", 1) is not None
    now = 61.0
    record = passes("request %s", 7)
    assert record is not None
    assert record.getMessage() == "request 7 (80 similar lines omitted)"
    assert passes("request %s", 8) is not None
