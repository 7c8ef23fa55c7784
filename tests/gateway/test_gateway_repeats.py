"""Journey 55: a program with nothing but HTTP. Its connections are cut at each point and it repeats: nothing is done twice."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from callers import Verbs, served, tokens

from holdfast import Client
from holdfast.web import create_app


class Cut(Exception):
    """The connection was cut before the response was read."""


class Program:
    """Calls verbs over plain sockets, and cuts its connections where it is told."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses
        self.calls = 0

    def once(self, verb: str, key: str, cut: str, fields: dict[str, Any]) -> Any:
        """Call a verb through the next gateway. `cut`: before, within, after the request, or within the response."""
        address = urlsplit(self._addresses[self.calls % len(self._addresses)])
        self.calls += 1
        body = json.dumps(fields).encode()
        head = f"POST /v1/{verb} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ada\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        with socket.create_connection((address.hostname, address.port or 80), timeout=30) as made:
            if cut == "before":
                raise Cut
            sent = head + body
            made.sendall(sent[: len(head) + len(body) // 2] if cut == "within" else sent)
            if cut in ("within", "after"):
                if cut == "after":
                    self._let_it_work(made)
                raise Cut
            found = b""
            while part := made.recv(1 if cut == "response" and len(found) < 20 else 65536):
                found += part
                if cut == "response" and len(found) >= 20:
                    raise Cut
        status, _, rest = found.partition(b"\r\n")
        content = json.loads(rest.partition(b"\r\n\r\n")[2])
        assert b" 200 " in status, (verb, content)
        return content["result"]

    @staticmethod
    def _let_it_work(made: socket.socket) -> None:
        """Return when the response has begun to arrive; it is not read."""
        made.recv(1, socket.MSG_PEEK)

    def __call__(self, verb: str, key: str, cut: str, **fields: Any) -> Any:
        """Call a verb with one connection that is cut, and repeat it."""
        with suppress(Cut):
            found = self.once(verb, key, cut, fields)
            assert cut == "", found
            return found
        first = self.once(verb, key, "", fields)
        assert self.once(verb, key, "", fields) == first  # and once more
        return first


@pytest.fixture
def gateways(client: Client) -> Iterator[list[str]]:
    """Two gateways of one namespace, as behind a load balancer."""
    with served(create_app(client, auth=tokens())) as one, served(create_app(client, auth=tokens())) as other:
        yield [one, other]


CUTS = ["", "before", "within", "after", "response"]


@pytest.mark.full
@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_connection_repeated_does_nothing_twice(client: Client, gateways: list[str], cut: str) -> None:
    program = Program(gateways)
    jid = program("put", "k1", cut, queue="mail", klass="Mail.send", data={"to": "a"})
    moved = program("put", "k2", cut, queue="mail", klass="Mail.send", data={"to": "b"}, jid="b", tags=["t"])
    assert (moved, client.queues["mail"].counts["waiting"]) == ("b", 2)
    jobs = program("pop", "k3", cut, worker="w", queues=["mail"], limit=2)
    assert [job["jid"] for job in jobs] == [jid, "b"]
    assert [job["attempts"] for job in jobs] == [1, 1]
    lease = {"worker": "w", "jid": jid, "token": jobs[0]["token"]}
    with suppress(Cut):
        program.once("heartbeat", "k4", cut, lease)
    assert program.once("heartbeat", "k4", "", lease) >= jobs[0]["lease_ends"]
    assert program("log", "k5", cut, jid=jid, message="half") is True
    assert program("complete", "k6", cut, **lease, result=1) == "complete"
    other = {"worker": "w", "jid": "b", "token": jobs[1]["token"]}
    assert program("retry", "k7", cut, **other) == 4
    [again] = program("pop", "k8", cut, worker="w", queues=["mail"])
    assert (again["jid"], again["attempts"]) == ("b", 2)
    assert program("fail", "k9", cut, worker="w", jid="b", token=again["token"], group="g") == "b"
    assert program("unfail", "k10", cut, queue="mail", group="g") == 1
    assert program("cancel", "k11", cut, jids=["b"]) == [True]
    assert (
        program("recur", "k12", cut, queue="mail", klass="K", interval=60, offset=60)
        == program.once("list", "-", "", {"set": "recurring", "name": "mail"})["entries"][0]["member"]
    )
    assert client.queues["mail"].counts["waiting"] == 0
    history = client.jobs.get(jid)[0].history
    assert [line["what"] for line in history] == ["put", "popped", "half", "done"]
    lines = [line.what for line in client.audit.newest(100)]
    assert sorted(lines) == ["cancel", "log", "unfail"]


def test_a_batch_is_put_once_and_each_job_keeps_its_jid(verbs: Verbs, client: Client) -> None:
    key = {"Idempotency-Key": "batch"}
    jobs: list[dict[str, Any]] = [{"data": 1}, {"data": 2, "jid": "two"}, {"data": 3, "tags": ["t"]}]
    first = verbs("put", headers=key, queue="q", klass="K", jobs=jobs)
    assert verbs("put", headers=key, queue="q", klass="K", jobs=jobs) == first
    assert (first[1], client.queues["q"].counts["waiting"]) == ("two", 3)


def test_another_request_under_the_same_key_is_another_request(verbs: Verbs, client: Client) -> None:
    key = {"Idempotency-Key": "same"}
    made = {
        verbs("put", headers=key, queue="q", klass="K", data=1),
        verbs("put", headers={"Idempotency-Key": "other"}, queue="q", klass="K", data=1),
        verbs("put", "pam", headers=key, queue="q", klass="K", data=1),
    }
    assert (len(made), client.queues["q"].counts["waiting"]) == (3, 3)
    assert verbs("pause", headers=key, queues=["a"]) == verbs("pause", headers=key, queues=["b"]) == 1


PUT = {"queue": "q", "klass": "K", "data": 1}


@pytest.mark.parametrize(
    "change", [{"data": 2}, {"klass": "L"}, {"queue": "r"}, {"tags": ["t"]}, {"priority": 3}]
)
def test_another_put_under_the_key_of_one_is_refused_and_not_dropped(
    verbs: Verbs, client: Client, change: dict[str, Any]
) -> None:
    key = {"Idempotency-Key": "same"}
    jid = verbs("put", headers=key, **PUT)
    status, title = verbs.refused("put", headers=key, **{**PUT, **change})
    assert (status, "use a new key" in title) == (422, True)
    assert verbs("put", headers=key, **PUT) == jid
    assert client.queues["q"].counts["waiting"] == 1


def test_another_put_under_a_key_is_refused_by_any_gateway(client: Client, gateways: list[str]) -> None:
    key = {"Idempotency-Key": "same"}
    with httpx.Client(timeout=30) as http:
        one, other = (Verbs(http, address) for address in gateways)
        jid = one("put", headers=key, **PUT)
        assert other.refused("put", headers=key, **{**PUT, "data": 2})[0] == 422
        assert other("put", headers=key, **PUT) == jid
        [job] = one("pop", worker="w", queues=["q"])
        one("retry", worker="w", jid=jid, token=job["token"], data=3)
        assert (
            one("put", headers=key, **PUT) == jid
        )  # a repeat, though the data of the job were changed since
    assert client.queues["q"].counts["waiting"] == 1


def test_a_repeated_pop_finds_what_is_still_leased_and_takes_nothing_else(verbs: Verbs) -> None:
    key = {"Idempotency-Key": "pop"}
    first = [verbs("put", queue="q", klass="K") for _ in range(3)][:2]
    jobs = verbs("pop", headers=key, worker="w", queues=["q"], limit=2, wait=5)
    assert [job["jid"] for job in jobs] == first
    verbs("complete", worker="w", jid=first[0], token=jobs[0]["token"])
    for wait in (0, 0.3):
        [job] = verbs("pop", headers=key, worker="w", queues=["q"], limit=2, wait=wait)
        assert job["jid"] == first[1]


def test_a_pop_that_waited_under_a_key_is_repeated_with_the_same_jobs(
    client: Client, gateways: list[str]
) -> None:
    import threading

    def post(address: str) -> Any:
        body = {"worker": "w", "queues": ["q"], "wait": 20}
        sent = {"Authorization": "Bearer ada", "Idempotency-Key": "waits"}
        return httpx.post(address + "pop", json=body, headers=sent, timeout=60).json()["result"]

    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(post(gateways[0])))
    thread.start()
    client.queues["q"].put("K", 1, jid="a")
    thread.join(60)
    client.queues["q"].put("K", 2, jid="b")
    assert [job["jid"] for job in found[0]] == ["a"]
    assert post(gateways[1]) == found[0]


@pytest.mark.parametrize("key", ["", "x" * 201, "a\x7fb", "é", "a\tb"])
def test_a_key_that_is_none_is_refused(verbs: Verbs, key: str) -> None:
    sent = {"Authorization": b"Bearer ada", "Idempotency-Key": key.encode("latin-1")}
    found = verbs.http.post("/v1/put", json={"queue": "q", "klass": "K"}, headers=sent)
    assert (found.status_code, found.json()["title"]) == (
        400,
        "Idempotency-Key: expected 1 to 200 printable characters.",
    )
