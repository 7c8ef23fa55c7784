"""Requests that nobody would write: none of them is an error of the server, and it goes on serving."""

import random
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from everything import put_flow
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.commands.flows import Edge
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.console.page_paths import segment
from holdfast.testing.store import ScratchStore
from web_process import serving

pytestmark = pytest.mark.full

EACH = 6
"""Requests of each kind for each of 83 operations: as described and not as described, in JSON, and the same to the page or form."""
API = "http://testserver/api/v1"
FIELDS = ("name", "jid", "id", "topic", "throttle", "queue", "jids", "ids")


@pytest.fixture
def names(client: Client) -> dict[str, str]:
    """One of everything, by the first segment of its page."""
    queue = client.queues["q"]
    for at in range(6):
        queue.put("K", {"n": at}, jid=f"j{at}", tags=["q"], throttles=["q"])
    client.throttles["q"].maximum = 3
    for job in queue.pop(2)[:1]:
        job.fail("q", "Traceback\nValueError: no luck")
    queue.recur("K", {}, interval=600, jid="r")
    client.topics["q"].put("m", "x", delay=60)
    put_flow(client, "f", [("K", ()), ("K", (Edge("f-0"),))], "flows")
    console = Console(client, "ada")
    done = console.run_operation(console.start_operation(Spec(action="track", filter="state:failed")))
    fixed = {
        "jobs": "j3",
        "recurring": "r",
        "flows": "f",
        "operations": done.id,
        "workers": console.workers().rows[0].name,
    }
    return dict.fromkeys(("queues", "tags", "failed", "topics", "throttles"), "q") | fixed


def aimed(body: object, names: Mapping[str, str], noun: str, rng: random.Random) -> object:
    """Return a body with some of its names as those of what there is."""
    if not isinstance(body, dict):
        return body
    known = [names.get(noun, "q"), *names.values(), "j1", "j2", "m"]
    changed = dict(body)
    for name in FIELDS:
        if name in body and rng.random() < 0.7:
            one = known[0] if rng.random() < 0.5 else rng.choice(known)
            changed[name] = [one] if isinstance(body[name], list) else one
    if isinstance(body.get("q"), str):
        changed["q"] = rng.choice(["", "queue:q", "state:failed", body["q"]])
    return changed


def each_case(
    operation: "APIOperation[Any, Any, Any, Any]", mode: GenerationMode, run: Callable[[Case], None]
) -> None:
    quick = settings(
        max_examples=EACH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with suppress(Unsatisfiable):  # an operation without parameters has no request that is not as described
        quick(given(operation.as_strategy(generation_mode=mode))(run))()


def test_no_request_that_the_document_describes_or_does_not_describe_is_an_error_of_the_server(
    web: TestClient, names: dict[str, str]
) -> None:
    rng, statuses = random.Random(17), dict[int, int]()
    schema = schemathesis.openapi.from_dict(web.get("/api/v1/openapi.json").json())

    def send(case: Case) -> None:
        words = case.as_transport_kwargs(base_url=API)
        noun = case.operation.path.split("/")[1]
        address, body = words["url"], aimed(words.get("json"), names, noun, rng)
        if "{name}" in case.operation.path and rng.random() < 0.7:
            address = f"{API}/{noun}/{segment(names[noun])}"
        more = {"headers": {**words["headers"], "Sec-Fetch-Site": "same-origin"}, "follow_redirects": False}
        place = address.replace("/api/v1", "/act" if case.method == "POST" else "")
        form = body if isinstance(body, dict) else {}
        for found in (
            web.request(
                case.method, address, params=words.get("params"), json=body, content=words.get("data"), **more
            ),
            web.get(place, params=words.get("params"), **more)
            if case.method == "GET"
            else web.post(
                place, data=form, headers={"Sec-Fetch-Site": "same-origin"}, follow_redirects=False
            ),
        ):
            statuses[found.status_code] = statuses.get(found.status_code, 0) + 1
            assert found.status_code < 500, (case.method, address, words, body, found.text)

    modes = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    for found, mode in product(schema.get_all_operations(), modes):
        each_case(found.ok(), mode, send)
    assert sum(statuses.values()) > 1000
    assert {200, 303, 400, 404, 409} <= set(statuses), statuses


# Bytes.

REQUEST = b"POST /api/v1/queues/pause HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n" + b'{"name": ["q"]}\n'  # fmt: skip


def spoiled(rng: random.Random) -> bytes:
    """Return a request with some bytes changed, cut, doubled, or none of it a request."""
    if rng.random() < 0.2:
        return rng.randbytes(rng.randrange(1, 3000))
    found = bytearray(REQUEST)
    for _ in range(rng.randrange(1, 9)):
        at = rng.randrange(len(found))
        kind = rng.randrange(4)
        if kind == 0:
            found[at] = rng.randrange(256)
        elif kind == 1:
            del found[at : at + rng.randrange(40)]
        elif kind == 2:
            found[at:at] = found[at : at + 60] * rng.randrange(50)
        else:
            found[at:at] = rng.choice(
                [b"\0", b"\r\n\r\n", b"%00", b"%ff/", b"../", b"\xff", b"Content-Length: -1\r\n"]
            )
        if not found:
            break
    return bytes(found)


def test_a_server_stays_up_whatever_bytes_it_is_sent(
    client: Client, store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    client.queues["q"].put("K", {})
    rng = random.Random(17)
    with serving(store.url, namespace, tmp_path / "web", "--auth", "none") as (address, process):
        port = int(address.rpartition(":")[2])
        for _ in range(500):
            with socket.create_connection(("127.0.0.1", port), 30) as connection, suppress(OSError):
                connection.sendall(spoiled(rng))
                connection.shutdown(socket.SHUT_WR)
                found = connection.recv(1 << 16)
                assert not found or found.startswith(b"HTTP/1.1 "), found
                assert b" 500 " not in found.split(b"\r\n")[0], found
        assert process.poll() is None
        assert httpx.get(f"{address}/api/v1/queues", timeout=30).json()["total"] == 1
    assert "Traceback" not in (tmp_path / "web.log").read_text()
