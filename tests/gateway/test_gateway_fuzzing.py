"""Requests that nobody would write: none of them is an error of the server, and it goes on serving."""

import http.client
import json
import random
import socket
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from callers import Verbs
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, GenerationMode
from test_gateway_verbs import EXAMPLES

from holdfast import Client
from holdfast.testing.store import ScratchStore
from web_process import serving

pytestmark = pytest.mark.full

EACH = 8
"""Requests for each verb, as described and not as described."""
ODD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, -(2**70), 1e308, -0.5, "", "q", "\x00", "é" * 150, "x" * 300, "\ud800", "${jndi}", "../..", "*", "q\nr",
    [], [[]], [None], ["q"], ["q"] * 600, {}, {"jid": "a"}, {"": ""}, [{"jid": "a", "token": 1}], [["a", "b"]], "2026-01-01", 1795739189568,
]  # fmt: skip


def test_no_request_that_the_document_describes_or_not_is_an_error_of_the_server(
    verbs: Verbs, client: Client
) -> None:
    for at in range(6):
        client.queues["q"].put("K", at, jid=f"j{at}", tags=["t"])
    schema = schemathesis.openapi.from_dict(
        verbs.http.get("/v1/openapi.json", headers={"Authorization": "Bearer ada"}).json()
    )
    statuses: Counter[int] = Counter()

    def send(case: Case) -> None:
        words = case.as_transport_kwargs(base_url="http://testserver/v1")
        headers = {**words["headers"], "Authorization": "Bearer ada"}
        headers = {
            name: value.encode("latin-1", "replace") for name, value in headers.items() if "\n" not in value
        }
        body = words.get("json")
        if isinstance(body, dict) and body.get("wait"):
            body["wait"] = 0.01
        more = {"json": body} if "data" not in words else {"content": words["data"]}
        found = verbs.http.request(case.method, words["url"], headers=headers, **more)
        statuses[found.status_code] += 1
        assert found.status_code < 500, (words["url"], body, found.text)

    quick = settings(
        max_examples=EACH,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        for operation in schema.get_all_operations():
            with suppress(Unsatisfiable):
                quick(given(operation.ok().as_strategy(generation_mode=mode))(send))()
    assert sum(statuses.values()) > 800
    assert {200, 400, 404, 409} <= set(statuses), statuses


def odd_request(rng: random.Random) -> tuple[str, bytes]:
    """A request of a verb with some fields changed, taken away, or added."""
    verb = rng.choice(list(EXAMPLES))
    fields = dict(EXAMPLES[verb])
    for _ in range(rng.randrange(1, 4)):
        if fields and rng.random() < 0.7:
            name = rng.choice(list(fields))
        else:
            name = rng.choice(["queue", "jid", "data", "jobs", "token", "x", "queues", "limit"])
        fields[name] = rng.choice(ODD)
        if rng.random() < 0.15:
            del fields[name]
    if isinstance(fields.get("wait"), int | float):
        del fields["wait"]
    return verb, json.dumps(fields).encode()


def spoiled(request: bytes, rng: random.Random) -> bytes:
    """Return a request with some bytes changed, cut, doubled, or none of it a request."""
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(1, 3000))
    found = bytearray(request)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(found)) if found else 0
        kind = rng.randrange(4)
        if kind == 0 and found:
            found[at] = rng.randrange(256)
        elif kind == 1:
            del found[at : at + rng.randrange(40)]
        elif kind == 2:
            found[at:at] = found[at : at + 60] * rng.randrange(20)
        else:
            found[at:at] = rng.choice(
                [b"\0", b"\r\n\r\n", b"%00", b"[" * 2000, b"\xff", b"Content-Length: -1\r\n", b'{"']
            )
    return bytes(found)


def test_a_server_still_serves_after_ten_thousand_random_requests(
    client: Client, store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    rng, statuses = random.Random(23), Counter[int]()
    with serving(store.url, namespace, tmp_path / "web", "--only", "gateway", "--auth", "none") as (
        address,
        process,
    ):
        port = int(address.rpartition(":")[2])
        kept = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for _ in range(8000):
            verb, body = odd_request(rng)
            kept.request("POST", f"/v1/{verb}", body, {"Content-Type": "application/json"})
            found = kept.getresponse()
            statuses[found.status] += 1
            content = json.loads(found.read())
            assert found.status < 500, (verb, body, content)
            assert ("result" in content) is (found.status == 200)
        kept.close()
        for _ in range(2000):
            verb, body = odd_request(rng)
            head = f"POST /v1/{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            with socket.create_connection(("127.0.0.1", port), 30) as connection, suppress(OSError):
                connection.sendall(spoiled(head.encode() + body, rng))
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(1 << 16)
                assert not answer or answer.startswith(b"HTTP/1.1 "), answer
                assert b" 500 " not in answer.split(b"\r\n")[0], answer
        assert process.poll() is None
        jid = httpx.post(f"{address}/v1/put", json={"queue": "last", "klass": "K"}, timeout=30).json()[
            "result"
        ]
        [job] = httpx.post(f"{address}/v1/pop", json={"worker": "w", "queues": ["last"]}, timeout=30).json()[
            "result"
        ]
        assert job["jid"] == jid
    assert {200, 400, 404, 409} <= set(statuses), statuses
    assert "Traceback" not in (tmp_path / "web.log").read_text()
