"""Delivery of notices: tries, limits, digests whose counts add up, and receivers that hang, refuse or redirect."""

import hashlib
import hmac
import json
import re
import socket
import threading
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, time
from typing import Any

import msgspec
import pytest
from receiving import HttpReceiver, serving

from holdfast.cli.notices import delivery as delivering
from holdfast.cli.notices import receivers as http_sinks
from holdfast.cli.notices.delivery import Delivery, RateLimit, parse_limit
from holdfast.cli.notices.notice import Backlog, Digest, JobNotice, Notice, SurgeNotice
from holdfast.cli.notices.receivers import ChatSink, ServiceSink, WebhookSink
from holdfast.cli.notices.sinks import Sink, Undelivered
from holdfast.client.signature import signature
from holdfast.errors import UsageError
from waiting import until


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    made = HttpReceiver()
    with serving(made):
        yield made


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "PAUSES", (0.01, 0.02))
    monkeypatch.setattr(delivering, "RESTS", (0.05,))


def notice(number: int = 0, event: str = "track") -> JobNotice:
    return JobNotice(event=event, jid=f"jid-{number}", when=float(number), what="is being tracked")


def surge(number: int = 0) -> SurgeNotice:
    return SurgeNotice(
        event="surge", when=float(number), group=f"group-{number}", what="grows", count=1, hour=1
    )


def ended(delivery: Delivery, within: float = 30.0) -> None:
    delivery.end(monotonic() + within)
    delivery.close()
    assert not delivery.is_alive


class Keeping(Sink):
    """Keeps what it gets; while `gate` is closed it takes nothing, and fails with what `errors` has."""

    name = "keeping"

    def __init__(self) -> None:
        self.got: list[Notice] = []
        self.gate = threading.Event()
        self.errors: list[Undelivered] = []

    def deliver(self, notice: Notice) -> None:
        self.gate.wait(60)
        if self.errors:
            raise self.errors.pop(0)
        self.got.append(notice)


def total(got: list[Notice]) -> int:
    return sum(one.total if isinstance(one, Digest) else 1 for one in got)


@pytest.mark.full
def test_a_post_is_tried_again_where_that_helps_and_what_was_refused_is_counted(
    receiver: HttpReceiver, no_pauses: None
) -> None:
    receiver.codes = [503, 429, 200, 404]
    delivery = Delivery(WebhookSink(f"{receiver.url}/token"))
    for number in range(3):
        delivery.give(notice(number))
    until(lambda: len(receiver.got) == 5, "all tries are made")
    ended(delivery)
    *single, digest = receiver.bodies
    assert [body["jid"] for body in single] == ["jid-0"] * 3 + ["jid-1"]
    assert (digest["event"], digest["counts"], digest["total"]) == ("digest", {"track": 2}, 2)
    assert [one["jid"] for one in digest["listed"]] == ["jid-2"]  # the text of the other one was refused
    assert digest["text"] == "2 notices: 2 track"


@pytest.mark.full
def test_an_outage_of_a_receiver_is_printed_once_without_secrets_and_nothing_is_lost(
    no_pauses: None, capsys: pytest.CaptureFixture[str], receiver: HttpReceiver
) -> None:
    receiver.codes = [500] * 7
    delivery = Delivery(WebhookSink(f"{receiver.url}/token"))
    for number in range(3):
        delivery.give(notice(number))
    until(lambda: len(receiver.got) == 8, "it works again")
    ended(delivery)
    assert capsys.readouterr().err.splitlines() == [
        f"{receiver.url}: not delivered, trying again later: HTTP status 500",
        f"{receiver.url}: delivered again",
    ]
    last = receiver.bodies[-1]
    assert last["total"] == 3
    assert [one["jid"] for one in last["listed"]] == ["jid-0", "jid-1", "jid-2"]


@pytest.mark.full
def test_what_is_above_the_limit_comes_as_a_digest_whose_counts_add_up() -> None:
    sink = Keeping()
    sink.gate.set()
    delivery = Delivery(sink, RateLimit(3, 1.0))
    for number in range(40):
        delivery.give(notice(number, "failed" if number % 4 else "completed"))
    until(lambda: total(sink.got) == 40, "all are delivered")
    ended(delivery)
    assert [one.title for one in sink.got[:3]] == [f"jid-{number} is being tracked" for number in range(3)]
    [digest] = sink.got[3:]
    assert isinstance(digest, Digest)
    assert digest.counts == {"failed": 28, "completed": 9}
    assert digest.message.splitlines() == [f"jid-{n} is being tracked" for n in (3, 5, 6, 7, 9)] + [
        "and 32 more"
    ]


@pytest.mark.full
def test_one_notice_above_the_limit_comes_as_itself() -> None:
    sink = Keeping()
    sink.gate.set()
    delivery = Delivery(sink, RateLimit(1, 0.5))
    delivery.give(notice(1))
    delivery.give(notice(2))
    until(lambda: len(sink.got) == 2, "both are delivered")
    ended(delivery)
    assert sink.got == [notice(1), notice(2)]


@pytest.mark.full
def test_no_more_than_the_limit_are_sent_in_any_window() -> None:
    sink, moments = Keeping(), list[float]()
    sink.deliver = lambda notice: (moments.append(monotonic()), sink.got.append(notice))[0]  # type: ignore[method-assign]
    delivery = Delivery(sink, RateLimit(3, 0.4))
    for number in range(300):
        delivery.give(notice(number))
        threading.Event().wait(0.005)
    until(lambda: total(sink.got) == 300, "all are delivered")
    ended(delivery)
    assert all(later - earlier >= 0.399 for earlier, later in zip(moments, moments[3:], strict=False))


@pytest.mark.full
def test_more_than_a_thousand_that_wait_are_counted_and_take_no_memory() -> None:
    sink = Keeping()
    delivery = Delivery(sink)
    for number in range(5000):
        delivery.give(notice(number))
    assert len(delivery._waiting) <= delivering.MOST_WAITING
    sink.gate.set()
    until(lambda: total(sink.got) == 5000, "all are delivered")
    ended(delivery)
    assert len(sink.got) < 1010


def test_a_digest_lists_surges_and_failures_first_and_merges_with_a_later_one() -> None:
    backlog = Backlog()
    for number in range(10):
        backlog.add(notice(number))
    backlog.add(notice(50, "failed"))
    backlog.add(surge(99))
    first = backlog.take()
    assert isinstance(first, Digest)
    assert first.when == 0.0
    assert first.message.splitlines()[:2] == ["failure group group-99: grows", "jid-50 is being tracked"]
    backlog.add(first)
    backlog.add(notice(100, "failed"))
    merged = backlog.take()
    assert isinstance(merged, Digest)
    assert merged.counts == {"track": 10, "surge": 1, "failed": 2}
    assert len(merged.listed) == 5
    assert len(backlog) == 0


@pytest.mark.full
def test_a_receiver_that_wants_to_be_left_alone_is_left_alone(receiver: HttpReceiver) -> None:
    receiver.codes = [429]
    receiver.headers = {"Retry-After": "7"}
    with pytest.raises(Undelivered) as caught:
        WebhookSink(receiver.url).deliver(notice())
    assert (caught.value.after, caught.value.is_lasting) == (7.0, False)
    receiver.codes, receiver.headers = [503], {"Retry-After": "9" * 9}
    with pytest.raises(Undelivered) as caught:
        WebhookSink(receiver.url).deliver(notice())
    assert caught.value.after == 3600.0


def test_the_end_delivers_what_waits_although_the_limit_is_met() -> None:
    sink = Keeping()
    sink.gate.set()
    delivery = Delivery(sink, RateLimit(1, 3600.0))
    for number in range(5):
        delivery.give(notice(number))
    until(lambda: sink.got, "the first is delivered")
    ended(delivery)
    assert total(sink.got) == 5
    assert len(sink.got) == 2


@pytest.mark.full
def test_the_end_of_a_sink_that_is_stuck_comes_in_time_and_says_what_is_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sink = Keeping()
    delivery = Delivery(sink)
    for number in range(10):
        delivery.give(notice(number))
    begun = monotonic()
    delivery.end(begun + 0.3)
    delivery.close()
    assert monotonic() - begun < 10
    assert capsys.readouterr().err == "keeping: 10 notices not delivered\n"
    sink.gate.set()


@pytest.mark.full
def test_a_sink_that_rests_gets_one_more_try_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delivering, "PAUSES", ())
    sink = Keeping()
    sink.gate.set()
    sink.errors = [Undelivered("down")]
    delivery = Delivery(sink)
    delivery.give(notice())
    until(lambda: "trying again later: down" in capsys.readouterr().err, "it rests")
    ended(delivery)
    assert sink.got == [notice()]


def test_a_sink_that_is_down_at_the_end_is_tried_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(delivering, "PAUSES", ())
    sink = Keeping()
    sink.gate.set()
    sink.errors = [Undelivered("down")] * 3
    delivery = Delivery(sink)
    delivery.give(notice())
    until(lambda: len(sink.errors) == 2, "it rests")
    ended(delivery)
    assert len(sink.errors) == 1
    assert "keeping: 1 notice not delivered" in capsys.readouterr().err


@pytest.mark.full
def test_posts_are_signed_over_the_time_and_the_body_as_sent(receiver: HttpReceiver) -> None:
    WebhookSink(f"{receiver.url}/x", b"s3cret").deliver(notice())
    [(body, headers)] = receiver.raw
    moment, found = headers["Holdfast-Signature"].removeprefix("t=").split(",v1=")
    assert hmac.new(b"s3cret", f"{moment}.".encode() + body, hashlib.sha256).hexdigest() == found
    assert abs(int(moment) - time()) < 60
    WebhookSink(f"{receiver.url}/x").deliver(notice())
    assert "Holdfast-Signature" not in receiver.raw[1][1]


of_apprise = pytest.mark.filterwarnings(
    "ignore:'imghdr' is deprecated:DeprecationWarning"
)  # one of its imports


@pytest.mark.parametrize(
    ("secret", "key"), [(b"s3cret", b"s3cret"), (b"whsec_" + b64encode(b"k" * 24), b"k" * 24)]
)
def test_a_signed_post_has_the_headers_of_standard_webhooks_too(
    receiver: HttpReceiver, secret: bytes, key: bytes
) -> None:
    for number in (0, 0, 1):
        WebhookSink(receiver.url, secret).deliver(notice(number))
    sent = [
        (body, {name.lower(): value for name, value in headers.items()}) for body, headers in receiver.raw
    ]
    body, headers = sent[0]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    first, again, other = (headers["webhook-id"] for _, headers in sent)
    assert first == again != other


@of_apprise
def test_a_service_of_apprise_gets_each_notice(receiver: HttpReceiver) -> None:
    service = ServiceSink(receiver.url.replace("http://", "json://") + "/hook")
    service.deliver(notice())
    [sent] = receiver.bodies
    assert (sent["title"], sent["type"]) == (notice().title, "info")
    assert notice().head in sent["message"]
    assert service.name == "json://"


@of_apprise
def test_a_service_that_does_not_take_a_notice_is_tried_again_and_says_why() -> None:
    with pytest.raises(Undelivered, match="error") as caught:
        ServiceSink("json://secret:word@127.0.0.1:1/hook").deliver(notice())
    assert not caught.value.is_lasting
    assert "word" not in str(caught.value)


@of_apprise
def test_a_url_that_apprise_does_not_know_is_refused_without_being_shown() -> None:
    with pytest.raises(UsageError) as caught:
        ServiceSink("nothing-of-the-kind://word@host")
    assert "word" not in str(caught.value)


def test_the_receiver_of_the_guide_knows_a_genuine_post(receiver: HttpReceiver) -> None:
    page = (Path(__file__).parents[2] / "docs" / "guide" / "notices.md").read_text(encoding="utf-8")
    [code] = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    place: dict[str, Any] = {}
    exec(code, place)
    WebhookSink(receiver.url, b"s3cret").deliver(notice())
    [(body, headers)] = receiver.raw
    header = headers["Holdfast-Signature"]
    assert place["is_genuine"](b"s3cret", header, body)
    assert not place["is_genuine"](b"other", header, body)
    assert not place["is_genuine"](b"s3cret", header, body + b" ")
    for malformed in (
        "",
        "t",
        "t=1",
        "t=x,v1=0",
        f"t=1,v1={'é' * 64}",
        f"t={'9' * 5000},v1={'0' * 64}",
        ",,=,",
    ):
        assert not place["is_genuine"](b"s3cret", malformed, body)
    old = signature(b"s3cret", body, int(time()) - 400)
    assert not place["is_genuine"](b"s3cret", old, body)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "file:///etc/passwd",
        "http://",
        "ftp://host/",
        "http://[",
        "http://a..b/",
        "http://h:x/",
        "http://user:pw@host/",
        "http://host/a b",
        "http://host/a\nb",
        "http://host/\x01",
        "http://host/ä",
    ],
)
@pytest.mark.parametrize("kind", [WebhookSink, ChatSink])
def test_what_is_no_url_is_refused(kind: type[WebhookSink], url: str) -> None:
    with pytest.raises(UsageError, match=r"^--(webhook|chat) must be a URL such as https://host/path$"):
        kind(url)


@pytest.mark.full
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_nothing_counts_as_delivered(
    receiver: HttpReceiver, code: int
) -> None:
    receiver.codes = [code]
    with pytest.raises(Undelivered, match=f"{code}, a redirect") as caught:
        WebhookSink(f"{receiver.url}/here").deliver(notice())
    assert caught.value.is_lasting
    assert [path for path, _ in receiver.got] == ["/here"]


@pytest.mark.full
def test_a_receiver_that_sends_its_response_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sinks, "LONGEST", 0.5)
    ends = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                while not ends.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        return

        thread = threading.Thread(target=drip)
        thread.start()
        begun = monotonic()
        with pytest.raises(Undelivered):
            WebhookSink(f"http://127.0.0.1:{server.getsockname()[1]}/secret").deliver(notice())
        assert monotonic() - begun < 20
        ends.set()
        thread.join()


@pytest.mark.full
@pytest.mark.parametrize(
    "reply", [b"nonsense\r\n\r\n", b"", b"POST /T0KEN HTTP/1.1\r\n\r\n", b"\x00" * 100_000]
)
def test_a_receiver_that_speaks_no_http_is_undelivered_without_the_path(reply: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def respond() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100_000)
                connection.sendall(reply)

        thread = threading.Thread(target=respond)
        thread.start()
        with pytest.raises(Undelivered) as caught:
            WebhookSink(f"http://127.0.0.1:{server.getsockname()[1]}/T0KEN").deliver(notice())
        thread.join()
    assert "T0KEN" not in str(caught.value)
    assert not caught.value.is_lasting


@pytest.mark.full
@pytest.mark.parametrize(
    "call",
    ["@channel", "@everyone", "<!channel>", "<@U123>", "@here", "[x](http://e)", "![x](http://e)", "[x][y]"],
)
def test_the_text_of_a_job_calls_nobody_and_hides_no_link_in_a_chat(
    receiver: HttpReceiver, call: str
) -> None:
    words = f"look {call} at a@example.com"
    failing = msgspec.structs.replace(notice(), what=words, failure={"message": words}, job={"tags": [call]})
    ChatSink(receiver.url).deliver(failing)
    [body] = receiver.bodies
    assert call not in body["text"]
    assert "a@example" not in body["text"].replace("\u200b", "|")
    assert "a@example.com" in body["text"].replace("\u200b", "")


def test_a_digest_in_a_chat_has_a_line_with_its_link_for_each(receiver: HttpReceiver) -> None:
    linked = msgspec.structs.replace(notice(1), link="https://jobs.example/jobs/1", what="@here")
    ChatSink(receiver.url).deliver(
        Digest(event="digest", when=1.0, counts={"track": 3}, listed=[linked, notice(2)])
    )
    assert receiver.bodies[0]["text"].splitlines() == [
        "3 notices: 3 track",
        "jid-1 @\u200bhere https://jobs.example/jobs/1",
        "jid-2 is being tracked",
        "and 1 more",
    ]


def test_the_link_of_a_chat_message_stays_whole(receiver: HttpReceiver) -> None:
    linked = msgspec.structs.replace(notice(), link="https://jobs.example/jobs/a%40b?x=1&y=2")
    ChatSink(receiver.url).deliver(linked)
    assert receiver.bodies[0]["text"].endswith(" https://jobs.example/jobs/a%40b?x=1&amp;y=2")


HOSTILE: list[Any] = [
    "a\r\nBcc: x@example.org",
    "\u202egnp.exe",
    "<script>alert(1)</script>",
    "```\n@channel",
    "\x1b]0;title\x07\x9b31m",
    "\udcff lone",
    "{{7*7}} %s %(x)s",
    "x" * 1_000_000,
    "\n" * 1_000_000,
    "-e --help",
]


@pytest.mark.full
@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_stays_one_short_line_everywhere(receiver: HttpReceiver, text: str) -> None:
    job = {"tags": [text, text]}
    hostile = JobNotice(
        event="failed",
        when=0.0,
        jid=text,
        what=f"failed by {text}",
        job=job,
        failure={"message": text[:4000]},
    )
    for line in (hostile.title, hostile.head, hostile.line):
        assert line.isprintable()
        assert len(line) <= 500
    ChatSink(receiver.url).deliver(hostile)
    [body] = receiver.bodies
    assert len(body["text"]) < 8000
    assert body["text"].count("```") in (0, 2)
    assert all(letter.isprintable() or letter in "\n\t\u200b" for letter in body["text"])


@pytest.mark.full
def test_nobody_at_the_other_end_is_undelivered(receiver: HttpReceiver) -> None:
    receiver.server.server_close()
    with pytest.raises(Undelivered) as raised:
        WebhookSink(receiver.url).deliver(notice())
    assert not raised.value.is_lasting


def test_limits_are_read(receiver: HttpReceiver) -> None:
    assert parse_limit("30/min") == RateLimit(30, 60.0)
    assert parse_limit("5/s") == RateLimit(5, 1.0)
    assert parse_limit("100/h") == RateLimit(100, 3600.0)
    assert parse_limit("none") is None


@pytest.mark.parametrize("text", ["", "0/min", "30", "30/day", "-1/s", "99999/s", "1.5/s", "٣/s", "nan/s"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--limit: expected a limit such as 30/min"):
        parse_limit(text)


@pytest.mark.full
def test_a_digest_as_json_has_what_its_notices_have(receiver: HttpReceiver) -> None:
    backlog = Backlog()
    backlog.add(notice(1))
    backlog.add(surge(2))
    WebhookSink(receiver.url).deliver(backlog.take())
    [body] = receiver.bodies
    assert json.dumps(body)
    assert [one["text"] for one in body["listed"]] == [
        "failure group group-2: grows",
        "jid-1 is being tracked",
    ]
