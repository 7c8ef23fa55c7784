"""Sentry as worker middleware: what a job raises reaches a real endpoint, although the process ends right after it."""

import gzip
import json
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from worker_kit import until

WATCHED = """
import os
import sentry_sdk
from holdfast.middleware import Sentry

sentry_sdk.init(
    f"http://key@127.0.0.1:{os.environ['CHORES_SENTRY']}/1",
    default_integrations=False,
    auto_enabling_integrations=False,
)
reporter = Sentry()
"""


class Endpoint:
    """Takes what Sentry sends."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                for line in body.splitlines():
                    said = json.loads(line)
                    if "exception" in said:
                        endpoint.events.append(said)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """It is not of interest."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    yield made
    made.close()


@pytest.mark.full
@pytest.mark.parametrize(("pool", "flags"), [("fork", ()), ("process", ("--max-jobs", "1")), ("thread", ())])
def test_what_a_job_raises_is_reported_before_its_process_ends(
    shop: Any, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, pool: str, flags: tuple[str, ...]
) -> None:
    monkeypatch.setenv("CHORES_SENTRY", str(endpoint.port))
    (shop.here / "watched.py").write_text(WATCHED)
    worker = shop.start(pool, "--middleware", "watched:reporter", *flags)
    handle = shop.chores.hopeless.put()
    until(lambda: shop.state(handle.jid) == "failed", "it fails")
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0, worker.said()
    until(lambda: endpoint.events, "it was reported")
    [event] = endpoint.events
    assert event["exception"]["values"][-1]["value"] == "no hope"
    assert event["tags"]["jid"] == handle.jid
    assert event["contexts"]["job"]["queue"] == "q"
    assert shop.job(handle.jid).failure["group"] == "q-LookupError"
