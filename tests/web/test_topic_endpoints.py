"""Topics over HTTP, by the endpoints of the older servers and more: against a server that runs as a process."""

import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from starlette.testclient import TestClient

import programs
from command_line import holdfast
from holdfast import Client
from holdfast.client.topics.topic import Topic
from holdfast.console.handles import Console
from holdfast.testing.store import ScratchStore
from holdfast.web import User, auth, create_app
from holdfast.web.credentials import Credentials, hash_token, parsed_users
from holdfast.web.sessions import Sessions
from receiver import OK, Delivery, Receiver, says
from waiting import until
from web_process import free_port, serving

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NAMESPACE = f"test-{uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def server(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of the topic endpoints alone."""
    folder = tmp_path_factory.mktemp("server") / "web"
    with serving(url, NAMESPACE, folder, "--only", "topics", "--auth", "none") as (address, process):
        yield address
        assert process.poll() is None, "the server has ended"


@pytest.fixture(scope="module")
def url(store: ScratchStore) -> str:
    return store.url


@pytest.fixture
def topics(url: str) -> Iterator[Client]:
    """A client of the namespace that is served."""
    with Client(url, namespace=NAMESPACE) as made:
        yield made


@pytest.fixture
def topic(topics: Client) -> Topic:
    return topics.topics[f"t-{uuid4().hex[:8]}"]


Post = Callable[..., httpx.Response]


@pytest.fixture
def post(server: str, topic: Topic) -> Iterator[Post]:
    """Posts to an endpoint of the topic: the fields as JSON, `content` as it is."""
    with httpx.Client(base_url=server) as program:

        def send(endpoint: str, name: str = "", **fields: Any) -> httpx.Response:
            return program.post(f"/{endpoint}/{name or topic.name}", json=fields)

        yield send


def result(response: httpx.Response) -> Any:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


# Each operation.


def test_a_message_is_scheduled_once_and_cancelled_once(post: Post, topic: Topic) -> None:
    assert result(post("schedule", id="m", contents="Hello", delay=900)) == {
        "success": True,
        "created": True,
    }
    assert result(post("schedule", id="m", contents="other", delay=1)) == {"success": True, "created": False}
    message = topic.get("m")
    assert message is not None
    assert (message.body, message.state) == ("Hello", "queued")
    assert abs(message.when_ms / 1000 - time.time() - 900) < 100
    assert result(post("cancel", id="m")) == {"success": True, "removed": True}
    assert result(post("cancel", id="m")) == {"success": True, "removed": False}
    assert len(topic) == 0


def test_a_message_is_reserved_and_done_or_given_back(post: Post, topic: Topic) -> None:
    assert (post("reserve").status_code, post("reserve").content) == (204, b"")
    topic.put("m", "x")
    found = result(post("reserve", ttr=300))
    assert {**found, "deadline": 0} == {"topic": topic.name, "id": "m", "contents": "x", "deadline": 0}
    assert abs(found["deadline"] - time.time() - 300) < 100
    assert post("reserve").status_code == 204
    assert result(post("release", id="m", delay=0)) == {"success": True, "released": True}
    assert result(post("release", id="m", delay=0)) == {"success": True, "released": False}
    assert result(post("reserve"))["id"] == "m"
    assert result(post("release", id="m", at=time.time() + 1000)) == {"success": True, "released": True}
    assert post("reserve").status_code == 204
    assert result(post("reserve", max=time.time() + 2000))["id"] == "m"
    assert result(post("release", id="m")) == {"success": True, "released": True}
    assert len(topic) == 0


def test_a_release_with_a_deadline_ends_that_reservation_alone(post: Post, topic: Topic) -> None:
    topic.put("m", "x")
    deadline = result(post("reserve"))["deadline"]
    assert result(post("release", id="m", deadline=deadline - 1))["released"] is False
    assert result(post("release", id="m", deadline=deadline))["released"] is True
    assert len(topic) == 0


def test_a_message_is_pulled_for_good(post: Post, topic: Topic) -> None:
    topic.put("m", "é 🦑")
    assert result(post("pull")) == {"topic": topic.name, "id": "m", "contents": "é 🦑"}
    assert post("pull").status_code == 204
    topic.put("later", "x", delay=100)
    assert result(post("pull", max=time.time() + 200))["id"] == "later"


def test_what_was_not_released_in_time_is_queued_again_and_counted(
    post: Post, topic: Topic, server: str
) -> None:
    topic.put_many([("a", "x"), ("b", "x"), ("c", "x")])
    for _ in range(2):
        post("reserve", ttr=0.001)
    until(lambda: topic.counts.first_deadline_ms < Console(topic._client).now_ms(), "both are over")
    assert result(post("requeue", limit=1)) == {"requeued": 1}
    assert result(post("requeue")) == {"requeued": 1}
    assert result(post("requeue")) == {"requeued": 0}
    result(post("reserve"))
    counts = {"topic": topic.name, "ready": 2, "queued": 2, "reserved": 1}
    assert result(httpx.get(f"{server}/ready/{topic.name}")) == counts
    assert httpx.head(f"{server}/ready/{topic.name}").status_code == 200


def test_forms_are_taken_too_and_body_is_contents(server: str, topic: Topic) -> None:
    with httpx.Client(base_url=server) as program:
        fields = {"id": "a b", "body": "two words & é", "delay": "1.5", "other": "x"}
        assert result(program.post(f"/schedule/{topic.name}", data=fields))["created"] is True
        message = topic.get("a b")
        assert message is not None
        assert message.body == "two words & é"
        assert result(program.post(f"/cancel/{topic.name}", data={"id": "a b"}))["removed"] is True
        assert result(program.post(f"/schedule/{topic.name}", data={"id": "n", "contents": "", "delay": ""}))
        assert topic.ready_count() == 1
        assert result(program.post(f"/reserve/{topic.name}", data={"ttr": "60"}))["contents"] == ""


@pytest.mark.full
@pytest.mark.parametrize(
    ("contents", "stored"),
    [
        ('"x\\n\\u0000"', "x\n\x00"),
        ('{"a": [1, 1.50, 12345678901234567890]}', '{"a": [1, 1.50, 12345678901234567890]}'),
        ("[]", "[]"),
        ('""', ""),
    ],
)
def test_contents_are_text_or_the_json_of_an_object_or_list(
    server: str, topic: Topic, contents: str, stored: str
) -> None:
    body = f'{{"id": "m", "contents": {contents}}}'
    assert result(httpx.post(f"{server}/schedule/{topic.name}", content=body, headers=JSON))["created"]
    message = topic.get("m")
    assert message is not None
    assert message.body == stored


@pytest.mark.full
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("a/b", "a/b"), ("a%2Fb", "a/b"), ("a:b", "a:b"), ("50%25", "50%"), ("%252F", "%2F"), ("two%20words", "two words"),
        ("%F0%9F%A6%91", "🦑"), ("%EF%BF%BD", "\ufffd"), ("default", "default"), ("schedule/x", "schedule/x"), ("a//b/", "a//b/"), ("~x", "~x"),
        ("%3Fq%23", "?q#"), ("{}", "{}"), ("%E2%80%AE", "\u202e"),
    ],
)  # fmt: skip
def test_all_topics_are_accepted(server: str, topics: Client, path: str, name: str) -> None:
    with httpx.Client(base_url=server) as program:
        fields = {"id": "m", "contents": "x"}
        assert result(program.post(f"/schedule/{path}", json=fields))["created"] is True
        assert topics.topics[name].exists("m")
        assert result(program.get(f"/ready/{path}"))["topic"] == name
        assert result(program.post(f"/cancel/{path}", json=fields))["removed"] is True


# What cannot be.


def deep(levels: int) -> str:
    return '{"id": "m", "contents": ' + "[" * levels + "]" * levels + "}"


BAD: list[tuple[str, bytes | str, str]] = [
    ("schedule", "", "contents: is missing"),
    ("schedule", "{}", "contents: is missing"),
    ("schedule", '{"contents": "x"}', "id: is missing"),
    ("schedule", '{"id": null, "contents": "x"}', "id: is missing"),
    ("schedule", '{"id": "m", "contents": null}', "contents: is missing"),
    ("schedule", '{"id": "m", "contents": "x", "body": "y"}', "give one of them"),
    ("schedule", '{"id": 5, "contents": "x"}', "id: expected text, got 5"),
    ("schedule", '{"id": ["m"], "contents": "x"}', "id: expected text"),
    ("schedule", '{"id": "", "contents": "x"}', "1 to 200 bytes"),
    ("schedule", f'{{"id": "{"é" * 101}", "contents": "x"}}', "1 to 200 bytes"),
    ("schedule", '{"id": "a\\u0000", "contents": "x"}', "control characters"),
    ("schedule", b'{"id": "a\x01", "contents": "x"}', "not JSON"),
    ("schedule", '{"id": "\\ud800", "contents": "x"}', "not JSON"),
    ("schedule", '{"id": "m", "contents": 5}', "expected text, an object or a list, got 5"),
    ("schedule", '{"id": "m", "contents": true}', "expected text, an object or a list, got True"),
    ("schedule", '{"id": "m", "contents": "x", "delay": "soon"}', "delay: expected a number"),
    ("schedule", '{"id": "m", "contents": "x", "delay": "nan"}', "delay: expected a number"),
    ("schedule", '{"id": "m", "contents": "x", "delay": true}', "delay: expected a number"),
    ("schedule", '{"id": "m", "contents": "x", "delay": []}', "delay: expected a number"),
    ("schedule", '{"id": "m", "contents": "x", "delay": -1}', "delay must be from 0"),
    ("schedule", '{"id": "m", "contents": "x", "delay": 1e11}', "delay must be from 0"),
    ("schedule", '{"id": "m", "contents": "x", "delay": 1e999}', "delay: "),
    ("schedule", '{"id": "m", "contents": "x", "at": -1}', "at must be from 0"),
    ("schedule", '{"id": "m", "contents": "x", "at": 1' + "0" * 400 + "}", "at must be from 0"),
    ("schedule", '{"id": "m", "contents": "x", "delay": 1, "at": 1}', "give one of them"),
    ("schedule", '{"id": "m", "contents": "x", "delay": NaN}', "not JSON"),
    ("schedule", '{"id": "m", "contents": "x", "delay": Infinity}', "not JSON"),
    ("schedule", "[]", "expected a JSON object"),
    ("schedule", '"id"', "expected a JSON object"),
    ("schedule", "null", "expected a JSON object"),
    ("schedule", "{", "not JSON"),
    ("schedule", "id=m&contents=x", "not JSON"),
    ("schedule", b'{"id": "\xff", "contents": "x"}', "id: "),
    ("schedule", b'{"id": "m", "contents": ["\xff"]}', "JSON"),
    ("schedule", b"\x00\xff\xfe", "not JSON"),
    ("schedule", deep(101), "nested deeper than 100"),
    ("schedule", deep(100_000), "nested"),
    ("cancel", "{}", "id: is missing"),
    ("cancel", "[]", "expected a JSON object"),
    ("release", '{"id": "m", "at": "x"}', "at: expected a number"),
    ("release", '{"id": "m", "deadline": {}}', "deadline: expected a number"),
    ("reserve", '{"ttr": 0}', "ttr must be from 0.001"),
    ("reserve", '{"max": -1}', "max must be from 0"),
    ("pull", '{"max": false}', "max: expected a number"),
    ("requeue", '{"limit": 0}', "limit must be from 1"),
    ("requeue", '{"limit": 1.5}', "limit must be a whole number"),
    ("requeue", '{"limit": 1e9}', "limit must be from 1"),
]


@pytest.mark.full
@pytest.mark.parametrize(("endpoint", "body", "sentence"), BAD)
def test_a_body_that_cannot_be_used_is_400_with_a_sentence_and_changes_nothing(
    server: str, topic: Topic, endpoint: str, body: bytes | str, sentence: str
) -> None:
    topic.put("there", "x", delay=600)
    found = httpx.post(f"{server}/{endpoint}/{topic.name}", content=body, headers=JSON)
    assert (found.status_code, found.headers["content-type"]) == (400, "application/problem+json"), found.text
    assert sentence in found.json()["message"]
    assert len(found.json()["message"]) < 500
    assert (topic.counts.queued, topic.counts.ready, topic.counts.reserved) == (1, 0, 0)


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("id=m", "contents: is missing"),
        ("id=%FF&contents=x", "cannot be read"),
        ('{"id": "m", "contents": "x"}', "send it with Content-Type: application/json"),
        ("id=a%0Ab&contents=x", "control characters"),
        ("id=m&contents=x&delay=1_0", "delay: expected a number"),
        ("id=m&contents=x&delay=inf", "delay: expected a number"),
        ("a=1&" * 101, "cannot be read"),
    ],
)
def test_a_form_that_cannot_be_used_is_400_with_a_sentence(
    server: str, topic: Topic, body: str, sentence: str
) -> None:
    found = httpx.post(f"{server}/schedule/{topic.name}", content=body, headers=FORM)
    assert (found.status_code, sentence in found.json()["message"]) == (400, True), found.text
    assert len(topic) == 0


@pytest.mark.full
@pytest.mark.parametrize(
    ("method", "path", "headers", "size", "status"),
    [
        ("GET", "/", {}, 0, 404),
        ("GET", "/topics", {}, 0, 404),
        ("POST", "/schedule", {}, 0, 404),
        ("POST", "/schedule/", {}, 0, 404),
        ("POST", "/api/v1/topics/put", JSON, 0, 404),
        ("POST", "/v1/topic_put", JSON, 0, 404),
        ("GET", "/static/x/y.js", {}, 0, 404),
        ("GET", "/schedule/t", {}, 0, 405),
        ("DELETE", "/cancel/t", {}, 0, 405),
        ("POST", "/ready/t", {}, 0, 405),
        ("POST", "/schedule/t", {"Content-Type": "text/plain"}, 10, 415),
        ("POST", "/schedule/t", {"Content-Type": "multipart/form-data; boundary=x"}, 10, 415),
        ("POST", "/schedule/t", JSON, 1 << 20, 413),
        ("POST", "/schedule/%FF", JSON, 0, 400),
        ("POST", "/schedule/a%00b", JSON, 0, 400),
        ("POST", "/schedule/" + "x" * 201, JSON, 0, 400),
        ("POST", "/pull/t", {"Origin": "http://evil.example"}, 0, 403),
        ("POST", "/pull/t", {"Sec-Fetch-Site": "cross-site"}, 0, 403),
        ("POST", "/pull/t", {"Cookie": "a=b"}, 0, 403),
        ("POST", "/pull/t", {"Host": "evil.example"}, 0, 403),
    ],
)
def test_other_requests_are_refused_as_json_with_a_message(
    server: str, method: str, path: str, headers: dict[str, str], size: int, status: int
) -> None:
    content = b'"' + b"x" * size if size else b""
    found = httpx.request(method, server + path, headers=headers, content=content)
    assert (found.status_code, found.headers["content-type"]) == (status, "application/problem+json")
    assert len(found.json()["message"]) > 10
    assert (status == 405) == ("allow" in found.headers)


@pytest.mark.full
def test_random_bytes_do_not_end_the_server(server: str, topic: Topic) -> None:
    rng, address = random.Random(2026), ("127.0.0.1", int(server.rpartition(":")[2]))
    parts = [body if isinstance(body, bytes) else body.encode() for _, body, _ in BAD if len(body) < 1000]
    for _ in range(1500):
        body = bytearray(rng.choice(parts))
        for _ in range(rng.randrange(4)):
            if body:
                body[rng.randrange(len(body))] = rng.randrange(256)
        endpoint = rng.choice(("schedule", "cancel", "reserve", "pull", "release", "requeue", "ready", "x"))
        kind = rng.choice((*JSON.values(), *FORM.values(), "\xff"))
        length = len(body) + rng.choice((0, 0, 0, 5, -1))
        head = f"POST /{endpoint}/{rng.choice(('q', '%', '%zz', '%00', '~'))} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
        request = head.encode("latin-1") + b"Content-Length: %d\r\n\r\n" % length + bytes(body)
        with socket.create_connection(address, 30) as sent:
            sent.sendall(request[: rng.choice((len(request), len(request), rng.randrange(len(request))))])
            sent.shutdown(socket.SHUT_WR)
            status = sent.recv(4096)[9:12]
        assert status[:1] != b"5", (request, status)
    assert httpx.get(f"{server}/ready/{topic.name}").status_code == 200


def test_without_its_store_a_request_is_503(tmp_path: Path) -> None:
    app = create_app(f"redis://127.0.0.1:{free_port()}/0", parts=("topics",))
    with TestClient(app) as program:
        found = program.get("/ready/t")
        assert (found.status_code, "message" in found.json()) == (503, True)


# Who may do what.

ALLOWED = {
    "viewer": {"ready"},
    "producer": {"schedule", "cancel"},
    "worker": {"schedule", "reserve", "pull", "release", "requeue", "ready"},
    "operator": {"schedule", "cancel", "reserve", "pull", "release", "requeue", "ready"},
    "admin": {"schedule", "cancel", "reserve", "pull", "release", "requeue", "ready"},
}


def statuses(program: TestClient, name: str = "t", **options: Any) -> dict[str, int]:
    """The status of each endpoint for a good request."""
    found = {
        endpoint: program.post(f"/{endpoint}/{name}", json={"id": "m", "contents": "x"}, **options)
        for endpoint in ("schedule", "cancel", "reserve", "pull", "release", "requeue")
    }
    return {one: response.status_code for one, response in found.items()} | {
        "ready": program.get(f"/ready/{name}", **options).status_code
    }


@pytest.mark.full
@pytest.mark.parametrize("role", ALLOWED)
def test_each_role_may_use_its_endpoints_and_no_others(client: Client, role: str) -> None:
    user = User("ada", role)  # type: ignore[arg-type]
    with TestClient(create_app(client, auth=lambda _: user)) as program:
        for endpoint, status in statuses(program).items():
            assert (status < 300) == (endpoint in ALLOWED[role]), (endpoint, status)
            assert status < 300 or status == 403


def test_in_a_read_only_application_only_counts_are_shown(client: Client) -> None:
    with TestClient(create_app(client, read_only=True)) as program:
        found = statuses(program)
    assert found.pop("ready") == 200
    assert set(found.values()) == {403}


def test_a_token_is_limited_to_its_topics_and_namespaces(client: Client, url: str) -> None:
    other = f"{client.settings.namespace}-2"
    lines = f"mail:operator:{hash_token('t1')}::topics=mail-*\nother:worker:{hash_token('t2')}::namespaces={other}"
    users = Credentials(parsed_users(lines, "users"))
    app = create_app(client, auth=auth.Tokens(users, Sessions(b"s" * 32)), namespaces=[other])
    with TestClient(app) as program, Client(url, namespace=other) as others:
        assert set(statuses(program, "mail-eu", headers={"Authorization": "Bearer t1"}).values()) <= {
            200,
            204,
        }
        assert set(statuses(program, "chat", headers={"Authorization": "Bearer t1"}).values()) == {403}
        program.post("/schedule/x", json={"id": "m", "contents": "x"}, headers={"Authorization": "Bearer t2"})
        assert others.topics.names() == ["x"]
        assert client.topics.names() == []
        assert set(statuses(program, "mail-eu").values()) == {401}
        assert set(statuses(program, "mail-eu", headers={"Authorization": "Bearer no"}).values()) <= {
            401,
            429,
        }


def test_a_cancel_is_audited_by_the_name_of_the_user(client: Client) -> None:
    with TestClient(create_app(client, auth=lambda _: User("ada", "operator"))) as program:
        statuses(program)
    assert [(row.who, row.what) for row in Console(client).audit().rows] == [("ada", "delete messages")]


@pytest.mark.full
def test_the_endpoints_are_beside_the_pages_and_below_any_mount(client: Client) -> None:
    with TestClient(create_app(client), root_path="/jobs") as program:
        assert set(statuses(program).values()) <= {200, 204}
        assert program.get("/schedule/t").status_code == 405
        assert program.get("/topics").status_code == 200


# With push, as a program.


@pytest.mark.full
def test_scheduled_messages_are_pushed_and_cancelled_ones_are_not(
    post: Post, topic: Topic, url: str, tmp_path: Path
) -> None:
    def behave(delivery: Delivery, before: int) -> Any:
        return says(OK)

    with Receiver(behave) as receiver, (tmp_path / "push.log").open("wb") as log:
        words = ["--topic", topic.name, "--webhook", receiver.url, "--url", url, "--namespace", NAMESPACE]
        command = [sys.executable, "-m", "holdfast.cli.main", "topics", "push", *words]
        pusher = programs.popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        assert result(post("schedule", id="no", contents="x", delay=3600))["created"]
        for number in range(5):
            assert result(post("schedule", id=f"m{number}", contents="x", delay=f"0.{number}"))["created"]
        assert result(post("cancel", id="no"))["removed"]
        until(lambda: len(receiver.deliveries) == 5, "all are pushed")
        pusher.send_signal(signal.SIGTERM)
        pusher.communicate(timeout=60)
    assert receiver.ids == {f"m{number}": 1 for number in range(5)}
    assert len(topic) == 0


@pytest.mark.full
def test_topics_are_served_by_a_command_of_their_own(url: str, namespace: str, tmp_path: Path) -> None:
    port = free_port()
    words = ["topics", "serve", "--auth", "none", "--port", str(port), "--url", url, "--namespace", namespace]
    env = {"XDG_STATE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli.main", *words], stdout=subprocess.PIPE, env=env, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"http://127.0.0.1:{port}/\n"
        found = httpx.post(
            f"http://127.0.0.1:{port}/schedule/mail", json={"id": "m", "contents": "x"}, timeout=60
        )
        assert result(found)["created"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "Missing option '--auth'"),
        (("--auth", "token"), "'token' is not one of"),
        (("--auth", "bearer"), "requires --users FILE"),
        (("--auth", "none", "--bind", "0.0.0.0"), "would give other machines access"),
    ],
)
def test_it_is_not_served_without_a_way_to_know_programs(words: tuple[str, ...], sentence: str) -> None:
    done = holdfast("topics", "serve", *words)
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr


@pytest.mark.full
def test_the_default_port_is_that_of_the_older_servers() -> None:
    done = holdfast("topics", "serve", "--help")
    assert "[default: 7171;" in json.dumps(done.stdout)
