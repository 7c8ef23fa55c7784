"""The application under servers of WSGI: wsgiref, gunicorn, Django's `manage.py runserver`, and a2wsgi itself."""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client
from holdfast.web import User, create_wsgi_app
from web_process import free_port

PYTHON = sys.executable
APPLICATION = """
from holdfast.web import User, create_wsgi_app
application = create_wsgi_app({url!r}, {auth})
"""
WSGIREF = """
import sys, wsgiref.simple_server
from served import application
server = wsgiref.simple_server.make_server("127.0.0.1", int(sys.argv[1]), application)
server.serve_forever()
"""
DJANGO = """
import os
from django.core.wsgi import get_wsgi_application
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from served import application as ui
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site_of_test.settings")
application = DispatcherMiddleware(get_wsgi_application(), {"/ops": ui})
"""
ADMIN = 'auth=lambda _: User("ada", "admin")'


def wsgiref(folder: Path, port: int) -> list[str]:
    (folder / "serve.py").write_text(WSGIREF)
    return [PYTHON, "serve.py", str(port)]


def gunicorn(_: Path, port: int) -> list[str]:
    return [PYTHON, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--threads", "2", "served:application"]


def preloading_gunicorn(folder: Path, port: int) -> list[str]:
    return [*gunicorn(folder, port), "--preload"]


def runserver(folder: Path, port: int) -> list[str]:
    command = [PYTHON, "-m", "django", "startproject", "site_of_test", "."]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    (folder / "site_of_test" / "wsgi.py").write_text(DJANGO)
    return [PYTHON, "manage.py", "runserver", f"127.0.0.1:{port}"]


SERVERS = {
    "wsgiref": wsgiref,
    "gunicorn": gunicorn,
    "gunicorn --preload": preloading_gunicorn,
    "runserver": runserver,
}


@contextmanager
def served(name: str, client: Client, folder: Path, auth: str = ADMIN) -> Iterator[tuple[int, str]]:
    """Serve the application while the block runs, which gets the port and the path below which it lies."""
    (folder / "served.py").write_text(APPLICATION.format(url=client.store_url, auth=auth))
    port = free_port()
    env = {**os.environ, "HOLDFAST_NAMESPACE": client.settings.namespace, "PYTHONUNBUFFERED": "1"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            SERVERS[name](folder, port), cwd=folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until = time.monotonic() + 60
        while True:
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 30).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
        yield port, "/ops" if name == "runserver" else ""
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the child of runserver, which reloads
        process.wait(30)


def status(port: int, method: str, path: str, *lines: str, body: bytes = b"") -> int:
    """Send a request with these headers alone, and return the status of the response."""
    head = "\r\n".join((f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: close", *lines))
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        connection.sendall(head.encode("latin-1") + b"\r\n\r\n" + body)
        return int(connection.makefile("rb").readline().split()[1])


@pytest.mark.full
@pytest.mark.parametrize("name", SERVERS)
def test_a_request_without_a_length_has_no_body_and_a_length_that_is_no_number_is_refused(
    client: Client, tmp_path: Path, name: str
) -> None:
    client.queues["mail"].put("Mail.send", {})
    kind = "Content-Type: application/json"
    with served(name, client, tmp_path) as (port, below):
        queues, info, pause = f"{below}/api/v1/queues", f"{below}/v1/info", f"{below}/api/v1/queues/pause"
        origin = f"Origin: http://127.0.0.1:{port}"
        assert status(port, "GET", queues) == 200
        assert status(port, "GET", below + "/queues") == 200
        assert status(port, "GET", queues, "Content-Length: 0") == 200
        assert status(port, "POST", info) == 200
        for wrong in ("abc", "-1", "1" * 5000):
            assert status(port, "GET", queues, f"Content-Length: {wrong}") in (400, 413), wrong
        body = b'{"name": ["mail"]}'
        assert status(port, "POST", pause, kind, origin, f"Content-Length: {len(body)}", body=body) == 200
        assert client.queues["mail"].paused
        chunked = (kind, origin, "Transfer-Encoding: chunked")
        assert status(port, "POST", pause, *chunked, body=b"0\r\n\r\n") in (400, 411)
        for strange in ("/%ff", "/\xff", "/jobs?q=\xff", "/queues/%ff%fe"):
            assert status(port, "GET", below + strange) < 500, strange


@pytest.mark.full
@pytest.mark.parametrize("name", SERVERS)
def test_without_authentication_a_request_of_this_machine_is_served(
    client: Client, tmp_path: Path, name: str
) -> None:
    with served(name, client, tmp_path, "auth=None") as (port, below):
        assert status(port, "GET", below + "/api/v1/queues") == 200


def environ(**more: str) -> dict[str, Any]:
    """A request as wsgiref makes it: the address has no port, and what is missing is empty."""
    return {
        "REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": "/api/v1/queues", "QUERY_STRING": "",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "localhost",
        "REMOTE_ADDR": "127.0.0.1", "wsgi.url_scheme": "http", "wsgi.input": io.BytesIO(), **more,
    }  # fmt: skip


def called(ui: Any, environ: dict[str, Any]) -> tuple[str, Any]:
    """Call a WSGI application, and return the status and the JSON of its response."""
    heads: list[str] = []
    body = b"".join(ui(environ, lambda status, *_: heads.append(status)))
    return heads[0], json.loads(body)


def test_below_a2wsgi_each_length_is_no_body_a_number_or_refused(client: Client) -> None:
    ui = create_wsgi_app(client, auth=lambda _: User("ada", "admin"))
    without = environ()
    assert called(ui, without)[0] == "200 OK"
    assert called(ui, environ(CONTENT_LENGTH=""))[0] == "200 OK"
    assert called(ui, environ(CONTENT_LENGTH="0"))[0] == "200 OK"
    for wrong in ("abc", "-1", "1.5", " ", "\xb2"):
        response, problem = called(ui, environ(CONTENT_LENGTH=wrong))
        assert (response, problem["type"]) == ("400 Bad Request", "holdfast:bad-request"), wrong
    assert called(ui, environ(CONTENT_LENGTH="9" * 5000))[0].startswith("413 ")
    chunked = environ(HTTP_TRANSFER_ENCODING="chunked", REQUEST_METHOD="POST", PATH_INFO="/v1/info")
    assert called(ui, chunked)[0] == "411 Length Required"


@pytest.mark.full
def test_below_wsgi_an_address_without_a_port_is_not_taken_for_this_machine(client: Client) -> None:
    ui = create_wsgi_app(client)
    assert called(ui, environ())[0] == "200 OK"
    assert called(ui, environ(REMOTE_ADDR="203.0.113.9"))[0] == "403 Forbidden"


@pytest.mark.full
@pytest.mark.parametrize("name", SERVERS)
def test_a_body_that_ends_before_its_length_is_refused_and_holds_no_thread(
    client: Client, tmp_path: Path, name: str
) -> None:
    with served(name, client, tmp_path) as (port, below):
        head = f"POST {below}/v1/info HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 10\r\nContent-Type: application/json\r\n\r\n{{}}"
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port), 30) as connection:
                connection.sendall(head.encode())
                connection.shutdown(socket.SHUT_WR)
                assert connection.makefile("rb").readline().split()[1] == b"400"
        assert status(port, "GET", f"{below}/api/v1/health") == 200
