"""`holdfast topics push` as a process, against a receiver that succeeds, fails, hangs, redirects, trickles and is late."""

import asyncio
import hashlib
import hmac
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import programs
from command_line import holdfast
from holdfast import Client
from holdfast.client.signature import signature
from holdfast.client.topics.topic import Topic
from holdfast.testing.store import ScratchStore
from receiver import (
    ENDLESS,
    FAILED,
    NO_CONTENT,
    NONSENSE,
    OK,
    REDIRECT,
    Behaviour,
    Delivery,
    Receiver,
    closes,
    hangs,
    says,
    trickles,
)
from waiting import until


class Pusher:
    """A running command, and what it logs."""

    def __init__(self, place: tuple[str, ...], log: Path, words: tuple[str, ...]) -> None:
        self._log = log
        command = [sys.executable, "-m", "holdfast.cli.main", "topics", "push", *words, *place]
        with log.open("wb") as file:
            self.process = programs.popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=file, text=True
            )
        until(lambda: "pushing topic" in self.log, "it has begun")

    @property
    def log(self) -> str:
        return self._log.read_text()

    def stop(self) -> tuple[int, str]:
        """Send TERM; return the exit code and the output."""
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self) -> tuple[int, str]:
        text = self.process.communicate(timeout=60)[0]
        return self.process.returncode, text


Pushing = Callable[..., Pusher]


@pytest.fixture
def topic(client: Client) -> Topic:
    return client.topics["t"]


@pytest.fixture
def pushing(url: str, namespace: str, tmp_path: Path) -> Iterator[Pushing]:
    """Starts pushing the topic `t` to a URL, and ends it after the test."""
    made: list[Pusher] = []

    def start(hook: str, *words: str) -> Pusher:
        place = ("--url", url, "--namespace", namespace)
        topics = ("--topic", "t", "--webhook", hook) if hook else ()
        pusher = Pusher(place, tmp_path / f"push-{len(made)}.log", (*topics, *words))
        made.append(pusher)
        return pusher

    yield start
    for pusher in made:
        if pusher.process.poll() is None:
            pusher.process.kill()
        if pusher.process.stdout and not pusher.process.stdout.closed:
            pusher.end()


def is_gone(topic: Topic) -> bool:
    return len(topic) == 0


def first(behaviour: Behaviour) -> Callable[[Delivery, int], Behaviour]:
    """Behave so to the first delivery of a message, and accept the next ones."""
    return lambda _, before: says(OK) if before else behaviour


@contextmanager
def held() -> Iterator[tuple[Receiver, Callable[[], None]]]:
    """A receiver that accepts each delivery when the function is called, and later ones at once."""
    event = asyncio.Event()

    async def behave(writer: asyncio.StreamWriter) -> None:
        await event.wait()
        await says(OK)(writer)

    with Receiver(lambda *_: behave) as receiver:
        yield receiver, lambda: receiver.release(event)


@pytest.mark.full
def test_a_message_is_posted_as_json_and_deleted_after_a_2xx(topic: Topic, pushing: Pushing) -> None:
    topic.put("é 1", "one\n\x00two 🦑")
    topic.put("m2", {"user": 7}, delay=0.2)
    with Receiver(lambda delivery, _: says(NO_CONTENT if delivery.id == "m2" else OK)) as receiver:
        pusher = pushing(receiver.url)
        until(lambda: is_gone(topic), "both are delivered")
        assert pusher.stop() == (0, "delivered 2 messages, 0 failed, 0 late\n")
    one, two = receiver.deliveries
    assert (one.method, one.path, one.headers["content-type"]) == ("POST", "/hook", "application/json")
    assert one.json == {"topic": "t", "id": "é 1", "contents": "one\n\x00two 🦑"}
    assert two.json == {"topic": "t", "id": "m2", "contents": '{"user":7}'}
    assert "holdfast-signature" not in one.headers
    assert receiver.connections == 1  # which is kept


@pytest.mark.full
@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (says(FAILED), "status 500"),
        (says(REDIRECT), "status 307, a redirect, which is not followed"),
        (says(NONSENSE), "no valid response"),
        (closes, "the connection was closed before a response"),
        (hangs, "no response within 0.5 s"),
        (trickles(b"HTTP/1.1 200 OK\r\nX-Slow: "), "no response within 0.5 s"),
    ],
    ids=["fails", "redirects", "is no web server", "closes", "hangs", "trickles"],
)
def test_a_message_that_is_not_accepted_comes_back_when_its_ttr_is_over(
    topic: Topic, pushing: Pushing, behaviour: Behaviour, why: str
) -> None:
    topic.put("m", "x")
    with Receiver(first(behaviour)) as receiver:
        pusher = pushing(receiver.url, "--ttr", "1s", "--timeout", "500ms")
        until(lambda: receiver.deliveries, "it is sent")
        assert topic.counts.reserved == 1
        until(lambda: is_gone(topic), "it is sent again")
        code, text = pusher.stop()
    assert (code, text) == (0, "delivered 1 message, 1 failed, 0 late\n")
    line = f'topic t: "m" was not accepted by http://127.0.0.1:{receiver.port}: {why}'
    assert line in pusher.log
    assert "it will be delivered again when its ttr of 1 s" in pusher.log
    assert [delivery.path for delivery in receiver.deliveries] == ["/hook", "/hook"]


@pytest.mark.full
def test_the_status_counts_and_a_body_without_an_end_is_not_read(topic: Topic, pushing: Pushing) -> None:
    topic.put_many([(f"m{n}", "x") for n in range(3)])
    with Receiver(lambda *_: trickles(ENDLESS)) as receiver:
        pusher = pushing(receiver.url, "--timeout", "30")
        until(lambda: is_gone(topic), "all are accepted")
        assert pusher.stop() == (0, "delivered 3 messages, 0 failed, 0 late\n")
    assert receiver.connections == 3


def test_a_receiver_that_is_not_there_is_found_when_it_comes(topic: Topic, pushing: Pushing) -> None:
    with Receiver() as receiver:
        port = receiver.port
    topic.put("m", "x")
    pusher = pushing(f"http://127.0.0.1:{port}/", "--ttr", "100ms")
    until(lambda: "no connection" in pusher.log, "it has tried")
    assert pusher.process.poll() is None
    assert len(topic) == 1


@pytest.mark.full
def test_a_late_acceptance_does_not_delete_what_somebody_else_has_meanwhile(
    topic: Topic, pushing: Pushing
) -> None:
    topic.put("m", "x")
    with held() as (receiver, release):
        pusher = pushing(receiver.url, "--ttr", "300ms", "--timeout", "60s")
        until(lambda: receiver.deliveries, "it is under way")
        item = until(lambda: topic.reserve(ttr=600), "it is over, and somebody else reserves it")
        release()
        until(lambda: "was accepted after its ttr" in pusher.log, "the acceptance arrives")
        message = topic.get("m")
        assert message is not None
        assert message.deadline == item.deadline
        assert pusher.stop() == (0, "delivered 0 messages, 0 failed, 1 late\n")
    assert item.done()


@pytest.mark.full
def test_term_takes_no_more_and_waits_for_deliveries_under_way(topic: Topic, pushing: Pushing) -> None:
    topic.put_many([("m1", "x"), ("m2", "x")])
    with held() as (receiver, release):
        pusher = pushing(receiver.url, "--concurrency", "2", "--json")
        until(lambda: len(receiver.deliveries) == 2, "both are under way")
        topic.put("m3", "x")
        pusher.process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            pusher.process.wait(0.5)
        release()
        code, text = pusher.end()
    assert (code, json.loads(text)) == (0, {"delivered": 2, "failed": 0, "late": 0})
    assert (topic.counts.ready, topic.counts.reserved) == (1, 0)


@pytest.mark.full
def test_a_second_signal_breaks_deliveries_off_and_loses_nothing(topic: Topic, pushing: Pushing) -> None:
    topic.put("m", "x")
    with held() as (receiver, _):
        pusher = pushing(receiver.url)
        until(lambda: receiver.deliveries, "it is under way")
        pusher.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            pusher.process.wait(0.2)
        pusher.process.send_signal(signal.SIGINT)
        assert pusher.end() == (0, "delivered 0 messages, 1 failed, 0 late\n")
    assert topic.counts.reserved == 1
    assert "the delivery was interrupted" in pusher.log


@pytest.mark.full
def test_so_many_deliveries_run_at_once_and_no_more(topic: Topic, pushing: Pushing) -> None:
    topic.put_many([(f"m{n}", "x") for n in range(12)])
    with held() as (receiver, release):
        pusher = pushing(receiver.url, "--concurrency", "5")
        until(lambda: receiver.at_once == 5, "five are under way")
        assert topic.counts.reserved == 5
        release()
        until(lambda: is_gone(topic), "all are delivered")
        assert pusher.stop()[0] == 0
    assert receiver.most_at_once == 5
    assert receiver.connections <= 5
    assert set(receiver.ids.values()) == {1}


@pytest.mark.full
def test_deliveries_are_signed_with_the_time(topic: Topic, pushing: Pushing, tmp_path: Path) -> None:
    secret = tmp_path / "hook.secret"
    secret.write_text("0123456789abcdef\n")
    secret.chmod(0o600)
    topic.put("m", "x")
    with Receiver() as receiver:
        pusher = pushing(receiver.url, "--secret-file", str(secret))
        until(lambda: is_gone(topic), "it is delivered")
        assert pusher.stop()[0] == 0
    [delivery] = receiver.deliveries
    when, _, digest = delivery.headers["holdfast-signature"].removeprefix("t=").partition(",v1=")
    assert abs(int(when) - time.time()) < 600
    expected = hmac.new(b"0123456789abcdef", when.encode() + b"." + delivery.body, hashlib.sha256)
    assert digest == expected.hexdigest()


@pytest.mark.full
def test_a_name_and_password_of_the_url_are_sent_and_logged_nowhere(topic: Topic, pushing: Pushing) -> None:
    topic.put("m", "x")
    with Receiver(first(says(FAILED))) as receiver:
        pusher = pushing(f"http://ada:hunter2@127.0.0.1:{receiver.port}/s3cret?key=s3cret", "--ttr", "200ms")
        until(lambda: is_gone(topic), "it is delivered")
        assert pusher.stop()[0] == 0
    assert receiver.deliveries[0].headers["authorization"] == "Basic YWRhOmh1bnRlcjI="
    assert receiver.deliveries[0].path == "/s3cret?key=s3cret"
    assert "status 500" in pusher.log
    assert not any(secret in pusher.log for secret in ("hunter2", "s3cret", "ada"))


def test_topics_and_web_hooks_come_from_a_file(client: Client, pushing: Pushing, tmp_path: Path) -> None:
    (tmp_path / "hook.secret").write_text("0123456789abcdef")
    (tmp_path / "hook.secret").chmod(0o600)
    client.topics["mail"].put("m1", "x")
    client.topics["two words"].put("m2", "x")
    with Receiver() as receiver:
        config = tmp_path / "push.toml"
        config.write_text(f"""
            [[push]]
            topic = "mail"
            webhook = "{receiver.url}"
            secret-file = "hook.secret"

            [[push]]
            topic = "two words"
            webhook = "{receiver.url}/two"
            ttr = 5.5
            concurrency = 3
        """)
        pusher = pushing("", "--config", str(config))
        until(lambda: client.topics.names() == [], "both are delivered")
        assert pusher.stop()[0] == 0
    by_id = {delivery.id: delivery for delivery in receiver.deliveries}
    assert by_id["m1"].headers["holdfast-signature"]
    assert (by_id["m2"].path, "holdfast-signature" in by_id["m2"].headers) == ("/hook/two", False)


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "no topic to push: give --topic and --webhook"),
        (("--topic", "t"), "got 1 and 0"),
        (("--topic", "t", "--webhook", "ftp://s3cret@host/"), "url: expected a URL of a web hook"),
        (("--topic", "t", "--webhook", "http://s3cret:x y@host/"), "url: expected a URL of a web hook"),
        (("--topic", "t", "--webhook", "http://:80/"), "url: expected a URL of a web hook"),
        (("--topic", "t", "--webhook", "http://h:99999/"), "url: expected a URL of a web hook"),
        (("--topic", "", "--webhook", "http://h/"), "topic must have 1 to 200 bytes"),
        (("--topic", "t", "--webhook", "http://h/") * 2, 'topic "t" has two web hooks'),
        (("--topic", "t", "--webhook", "http://h/", "--concurrency", "0"), "--concurrency"),
        (("--topic", "t", "--webhook", "http://h/", "--config", "x"), "--config x: No such file"),
        (("--config", "nowhere.toml"), "No such file"),
    ],
)
def test_what_cannot_be_pushed_is_a_usage_error(url: str, words: tuple[str, ...], sentence: str) -> None:
    done = holdfast("topics", "push", *words, "--url", url)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr
    assert not any(text in done.stderr for text in ("Traceback", "s3cret"))


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[push]]\ntopic = 'a'\n", "missing required field `webhook`"),
        ("[[push]]\ntopic = 'a'\nwebhook = 5\n", "`$.push[0].webhook`"),
        ("[[push]]\ntopic = 'a'\nwebhook = 'http://h'\nretries = 5\n", "unknown field `retries`"),
        ("[[push]]\ntopic = 'a'\nwebhook = 'http://h'\nttr = nan\n", "ttr"),
        (
            "[[push]]\ntopic = 'a'\nwebhook = 'http://h'\nsecret-file = 'short'\n",
            "expected at least 16 bytes",
        ),
        ("[[push]]\ntopic = 'a'\nwebhook = 'http://h'\nsecret-file = 'open'\n", "chmod 600 it"),
        ("[[push]]\ntopic = 'a'\nwebhook = 'http://h'\nsecret-file = 'none'\n", "No such file"),
        ("push = []", "push.toml names none in [[push]]"),
        ("[[push", "push.toml: Expected"),
        ("\x00", "push.toml: Invalid"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_usage_error(
    url: str, tmp_path: Path, text: str, sentence: str
) -> None:
    for name, secret, mode in (("short", "123", 0o600), ("open", "0123456789abcdef", 0o644)):
        (tmp_path / name).write_text(secret)
        (tmp_path / name).chmod(mode)
    (tmp_path / "push.toml").write_text(text)
    done = holdfast("topics", "push", "--config", str(tmp_path / "push.toml"), "--url", url)
    assert (done.returncode, sentence in done.stderr, "Traceback" in done.stderr) == (2, True, False), (
        done.stderr
    )


def test_without_aiohttp_the_error_names_the_extra(url: str) -> None:
    program = (
        "import sys; sys.modules['aiohttp'] = None; from holdfast.cli.main import main; "
        f"sys.argv = ['holdfast', 'topics', 'push', '--topic', 't', '--webhook', 'http://h/', '--url', {url!r}]; main()"
    )
    done = programs.run([sys.executable, "-c", program])
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "holdfast-jobs[push]" in done.stderr
    assert "pushing" not in done.stderr  # before anything else, also before the store is looked for
    done = programs.run([sys.executable, "-c", program.replace(repr(url), "'redis://127.0.0.1:1'")])
    assert (done.returncode, "holdfast-jobs[push]" in done.stderr) == (2, True)


# Many messages.


def put_many(topic: Topic, count: int) -> set[str]:
    ids = {f"m{number}" for number in range(count)}
    topic.put_many([(id, "x") for id in ids])
    return ids


@pytest.mark.full
def test_a_pusher_that_is_killed_loses_no_message(topic: Topic, pushing: Pushing) -> None:
    ids = put_many(topic, 1000)
    words = ("--concurrency", "10", "--ttr", "1s")
    with Receiver() as receiver:
        killed = pushing(receiver.url, *words)
        until(lambda: len(receiver.deliveries) > 300, "some are delivered")
        killed.process.kill()
        killed.end()
        assert len(topic) > 0
        pusher = pushing(receiver.url, *words)
        until(lambda: is_gone(topic), "the rest is delivered", 120)
        assert pusher.stop()[0] == 0
    assert set(receiver.ids) == ids
    assert (
        sum(receiver.ids.values()) <= 1000 + 600
    )  # of the first, at most what was accepted and not yet deleted comes again


@pytest.mark.full
def test_two_pushers_deliver_each_message_once(topic: Topic, pushing: Pushing) -> None:
    ids = put_many(topic, 1000)
    with Receiver() as left, Receiver() as right:
        pushers = [pushing(one.url, "--concurrency", "5") for one in (left, right)]
        until(lambda: is_gone(topic), "all are delivered", 120)
        assert [pusher.stop()[0] for pusher in pushers] == [0, 0]
    both = left.ids + right.ids
    assert (set(both), set(both.values())) == (ids, {1})
    assert left.deliveries
    assert right.deliveries


@pytest.mark.full
def test_term_amid_many_messages_leaves_the_others_queued(topic: Topic, pushing: Pushing) -> None:
    ids = put_many(topic, 1000)
    with Receiver() as receiver:
        pusher = pushing(receiver.url, "--concurrency", "10", "--json")
        until(lambda: len(receiver.deliveries) > 100, "some are delivered")
        code, text = pusher.stop()
        assert (code, json.loads(text)["delivered"]) == (0, len(receiver.deliveries))
        assert (topic.counts.reserved, topic.counts.queued) == (0, 1000 - len(receiver.deliveries))
        pushing(receiver.url, "--concurrency", "10")
        until(lambda: is_gone(topic), "the rest is delivered", 120)
    assert (set(receiver.ids), set(receiver.ids.values())) == (ids, {1})


def test_programs_push_too_and_an_async_client_is_needed(client: Client) -> None:
    from holdfast.errors import UsageError
    from holdfast.push import Push, Webhook

    hook = Webhook(topic="t", url="http://ada:hunter2@host/s3cret", secret=b"x" * 16)
    assert repr(hook) == "Webhook(topic='t', url='http://host/…')"
    sync: Any = client
    with pytest.raises(UsageError, match="AsyncClient"):
        Push(sync, [hook])


@pytest.mark.full
def test_an_outage_of_the_store_is_survived_and_loses_no_message(namespace: str, tmp_path: Path) -> None:
    with (
        ScratchStore(durability="fsync") as store,
        Client(store.url, namespace=namespace) as client,
        Receiver() as receiver,
    ):
        topic = client.topics["t"]
        ids = put_many(topic, 600)
        words = ("--topic", "t", "--webhook", receiver.url, "--concurrency", "5", "--ttr", "5s")
        pusher = Pusher(
            ("--url", store.url, "--namespace", namespace, "--wait", "1"), tmp_path / "push.log", words
        )
        for turn in (1, 2):
            until(lambda turn=turn: len(receiver.deliveries) > 150 * turn, "some are delivered")  # type: ignore[misc]
            store.kill()
            until(
                lambda turn=turn: pusher.log.count("the store is unavailable") == turn,  # type: ignore[misc]
                "it is noticed",
            )
            store.restart()
        until(lambda: is_gone(topic), "all are delivered", 120)
        assert pusher.stop()[0] == 0
        assert set(receiver.ids) == ids
        assert pusher.log.count("the store is available again") == 2


# The signature, by the code that the guide shows.

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "topics.md"
SECRET, BODY = b"0123456789abcdef", '{"id":"é"}'.encode()


def signatures() -> list[tuple[str, bytes, bool]]:
    """Headers and bodies, and whether they are genuine now: a run of all tests takes longer than a signature is valid."""
    now = int(time.time())
    good = signature(SECRET, BODY, now)
    return [
        (good, BODY, True),
        (good, BODY + b" ", False),
        (signature(SECRET + b"x", BODY, now), BODY, False),
        (signature(SECRET, BODY, now - 3600), BODY, False),
        (good.replace("t=1", "t=2"), BODY, False),
        ("t=x,v1=", BODY, False),
        ("", BODY, False),
        ("é", BODY, False),
        (good.replace("t=1", "t=1_"), BODY, False),
        (good.replace("v1=", "v1=é"), BODY, False),
        ("t=" + "9" * 5000 + ",v1=" + "0" * 64, BODY, False),
    ]


def shown(language: str) -> str:
    """The code of the guide about signatures."""
    section = GUIDE.read_text().split("### Signature")[1]
    return section.split(f"```{language}\n")[1].split("```")[0]


def test_the_python_code_of_the_guide_accepts_genuine_deliveries_only() -> None:
    names: dict[str, Any] = {}
    exec(shown("python"), names)
    for header, body, is_genuine in signatures():
        assert names["is_genuine"](SECRET, header, body) is is_genuine, header


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_javascript_code_of_the_guide_accepts_genuine_deliveries_only() -> None:
    given = signatures()
    rows = [(header, body.decode()) for header, body, _ in given]
    program = shown("js") + (
        f"const rows = {json.dumps(rows)};\n"
        f"console.log(JSON.stringify(rows.map(([h, b]) => isGenuine({SECRET.decode()!r}, h, Buffer.from(b)))));"
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(done.stdout) == [is_genuine for *_, is_genuine in given]
