"""Notices by e-mail, with a real SMTP server on loopback: one that takes, refuses, hangs, and has good and bad certificates."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from email import message_from_bytes
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import pytest
from receiving import SmtpReceiver, certificates, serving

from holdfast.cli.notices import receivers as mailing
from holdfast.cli.notices.notice import Digest, JobNotice
from holdfast.cli.notices.receivers import MailServer, MailSink, mail_server
from holdfast.cli.notices.sinks import Undelivered
from holdfast.errors import UsageError

FAILED = JobNotice(
    event="failed",
    when=1764000000.0,
    jid="order-7",
    what="failed by box-1",
    link="https://jobs.example/jobs/order-7",
    job={"tags": ["vip"]},
    failure={"message": "no route\n.\nto host"},
)


@pytest.fixture
def started() -> Iterator[Any]:
    with ExitStack() as stack:

        def start(*args: Any, **options: Any) -> SmtpReceiver:
            made = SmtpReceiver(*args, **options)
            stack.enter_context(serving(made))
            return made

        yield start


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    return certificates(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def trusted(secured: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    monkeypatch.setenv("SSL_CERT_FILE", str(secured[1]))
    return secured[0]


def plain(receiver: SmtpReceiver, **options: Any) -> MailSink:
    server = MailServer("127.0.0.1", receiver.port, is_plain=True, **options)
    return MailSink(server, "jobs@example.org", "ops@example.org")


def over_tls(receiver: SmtpReceiver, **options: Any) -> MailSink:
    return MailSink(MailServer("localhost", receiver.port, **options), "jobs@example.org", "ops@example.org")


@pytest.mark.full
def test_a_mail_has_the_headers_that_it_should_have_and_plain_text(started: Any) -> None:
    receiver = started()
    plain(receiver).deliver(FAILED)
    [mail] = receiver.mails
    assert mail["Subject"] == "[holdfast] order-7 failed by box-1"
    assert (mail["From"], mail["To"]) == ("holdfast <jobs@example.org>", "ops@example.org")
    assert mail["Auto-Submitted"] == "auto-generated"
    assert parsedate_to_datetime(mail["Date"]).timestamp() == 1764000000
    assert mail["Message-ID"].endswith("@example.org>")
    assert mail.get_content_type() == "text/plain"
    assert mail.get_content().replace("\r\n", "\n") == (
        "order-7 failed by box-1 [vip]\n\nno route\n.\nto host\n\nhttps://jobs.example/jobs/order-7\n"
    )
    assert receiver.recipients == ["<ops@example.org>"]


@pytest.mark.full
def test_each_try_of_a_mail_has_the_same_id_and_other_mails_have_others(started: Any) -> None:
    sink = plain(started())
    first, again = sink.message(FAILED), sink.message(FAILED)
    assert first["Message-ID"] == again["Message-ID"]
    other = sink.message(msgspec.structs.replace(FAILED, when=1764000000.5))
    assert other["Message-ID"] != first["Message-ID"]


@pytest.mark.full
@pytest.mark.parametrize(
    "text",
    [
        "a\r\nBcc: evil@example.org",
        "\n\nbody",
        "ünïcode ⚙",
        "\u202ebidi",
        "\udcff",
        "=?utf-8?q?x?=",
        "x" * 100_000,
        "\x00",
    ],
    ids=range(8),
)
def test_no_text_of_a_job_becomes_a_header(started: Any, text: str) -> None:
    receiver = started()
    hostile = JobNotice(
        event="failed", when=0.0, jid=text, what=f"failed by {text}", job={"tags": [text]},
        failure={"message": (text + "\r\n.\r\nQUIT\r\n")[:4000]},
    )  # fmt: skip
    plain(receiver).deliver(hostile)
    [mail] = receiver.mails
    assert set(mail.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type", "Content-Transfer-Encoding",
    }  # fmt: skip
    assert "Bcc" not in message_from_bytes(receiver.raw[0])
    assert len(mail["Subject"]) < 200
    assert all(len(line) <= 998 for line in receiver.raw[0].split(b"\r\n"))
    assert receiver.raw[0].isascii()
    assert receiver.verbs.count("DATA") == 1


def test_a_subject_in_other_letters_arrives(started: Any) -> None:
    receiver = started()
    plain(receiver).deliver(msgspec.structs.replace(FAILED, jid="bestellung-ü-⚙", what="failed by größe"))
    assert receiver.mails[0]["Subject"] == "[holdfast] bestellung-ü-⚙ failed by größe"


def test_a_digest_is_one_mail(started: Any) -> None:
    receiver = started()
    plain(receiver).deliver(Digest(event="digest", when=1.0, counts={"failed": 12}, listed=[FAILED]))
    [mail] = receiver.mails
    assert mail["Subject"] == "[holdfast] 12 notices: 12 failed"
    assert "order-7 failed by box-1 [vip]" in mail.get_content()
    assert "and 11 more" in mail.get_content()


@pytest.mark.full
@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA", "."])
@pytest.mark.parametrize(("code", "is_lasting"), [(451, False), (552, True)])
def test_a_refusal_is_lasting_from_five_hundred_on(
    started: Any, verb: str, code: int, is_lasting: bool
) -> None:
    receiver = started()
    receiver.replies[verb] = [f"{code} not \x1b[31mtoday"]
    with pytest.raises(Undelivered, match=f"SMTP status {code}: not") as caught:
        plain(receiver).deliver(FAILED)
    assert caught.value.is_lasting is is_lasting
    assert receiver.mails == []
    plain(receiver).deliver(FAILED)
    assert len(receiver.mails) == 1


@pytest.mark.full
@pytest.mark.parametrize("replies", [{"": ["421 busy"]}, {"": ["554 no"]}])
def test_a_server_that_greets_with_a_refusal_is_tried_again(started: Any, replies: Any) -> None:
    receiver = started()
    receiver.replies = replies
    with pytest.raises(Undelivered, match="SMTP status") as caught:
        plain(receiver).deliver(FAILED)
    assert not caught.value.is_lasting


@pytest.mark.full
@pytest.mark.parametrize("verb", ["EHLO", "MAIL", "RCPT", "DATA", "."])
def test_a_server_that_hangs_is_given_up(started: Any, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailing, "TIMEOUT", 0.3)
    receiver = started()
    receiver.hangs = verb
    begun = monotonic()
    with pytest.raises(Undelivered, match="timed out"):
        plain(receiver).deliver(FAILED)
    assert monotonic() - begun < 20


@pytest.mark.full
def test_a_server_that_is_slow_at_each_step_is_cut_off(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailing, "LONGEST", 0.3)
    receiver = started()
    receiver.hangs = "RCPT"
    begun = monotonic()
    with pytest.raises(Undelivered):
        plain(receiver).deliver(FAILED)
    assert monotonic() - begun < 9


@pytest.mark.full
def test_a_server_that_does_not_end_the_session_has_the_mail(started: Any) -> None:
    receiver = started()
    receiver.hangs = "QUIT"
    plain(receiver).deliver(FAILED)
    assert len(receiver.mails) == 1


@pytest.mark.full
def test_nobody_listening_is_undelivered(started: Any) -> None:
    receiver = started()
    receiver.server.server_close()
    with pytest.raises(Undelivered) as caught:
        plain(receiver).deliver(FAILED)
    assert not caught.value.is_lasting


@pytest.mark.full
def test_starttls_is_used_and_the_certificate_checked(started: Any, trusted: ssl.SSLContext) -> None:
    receiver = started(trusted)
    over_tls(receiver, user="jobs", password="s3cret").deliver(FAILED)
    assert len(receiver.mails) == 1
    assert receiver.verbs.index("STARTTLS") < receiver.verbs.index("AUTH") < receiver.verbs.index("MAIL")
    assert len(receiver.logins) == 1


@pytest.mark.full
def test_smtps_is_encrypted_from_the_first_byte(started: Any, trusted: ssl.SSLContext) -> None:
    receiver = started(trusted, is_tls=True)
    over_tls(receiver, is_tls=True, user="jobs", password="s3cret").deliver(FAILED)
    assert len(receiver.mails) == 1
    assert "STARTTLS" not in receiver.verbs


@pytest.mark.full
@pytest.mark.parametrize("is_tls", [False, True])
def test_a_certificate_that_nobody_trusts_gets_no_mail(
    started: Any, secured: tuple[ssl.SSLContext, Path], is_tls: bool
) -> None:
    receiver = started(secured[0], is_tls=is_tls)
    with pytest.raises(Undelivered, match="the certificate of localhost: ") as caught:
        over_tls(receiver, is_tls=is_tls, user="jobs", password="s3cret").deliver(FAILED)
    assert not caught.value.is_lasting
    assert "AUTH" not in receiver.verbs
    assert receiver.mails == []


def test_a_certificate_of_another_host_gets_no_mail(started: Any, trusted: ssl.SSLContext) -> None:
    receiver = started(trusted)
    sink = MailSink(MailServer("127.0.0.1", receiver.port), "jobs@example.org", "ops@example.org")
    with pytest.raises(Undelivered, match=r"the certificate of 127\.0\.0\.1: "):
        sink.deliver(FAILED)
    assert receiver.mails == []


@pytest.mark.full
def test_a_server_without_starttls_gets_neither_password_nor_mail(started: Any) -> None:
    receiver = started()
    with pytest.raises(Undelivered, match="offers no STARTTLS; --smtp-plain") as caught:
        over_tls(receiver, user="jobs", password="s3cret").deliver(FAILED)
    assert not caught.value.is_lasting
    assert receiver.verbs[:1] == ["EHLO"]
    assert not {"AUTH", "MAIL"} & set(receiver.verbs)


@pytest.mark.full
def test_a_login_that_is_refused_shows_no_password(started: Any, trusted: ssl.SSLContext) -> None:
    receiver = started(trusted)
    receiver.replies["AUTH"] = ["535 wrong"] * 5
    with pytest.raises(Undelivered, match="SMTP status 535: wrong") as caught:
        over_tls(receiver, user="jobs", password="s3cret").deliver(FAILED)
    assert not caught.value.is_lasting
    assert "s3cret" not in repr(caught.value.__context__)


# Options.


def test_servers_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "password"
    secret.write_text("from-file\n")
    secret.chmod(0o600)
    monkeypatch.setenv("HOLDFAST_SMTP_PASSWORD", "from-variable")
    assert mail_server("mail.example", False, None) == MailServer("mail.example", 587)
    assert mail_server("mail.example:2525", False, None) == MailServer("mail.example", 2525)
    assert mail_server("[::1]:25", True, None) == MailServer("::1", 25, is_plain=True)
    assert mail_server("mail.example", True, None) == MailServer("mail.example", 25, is_plain=True)
    assert mail_server("smtps://me%40x@mail.example", False, secret) == MailServer(
        "mail.example", 465, is_tls=True, user="me@x", password="from-file"
    )
    assert mail_server("smtp://me@mail.example/", False, None) == MailServer(
        "mail.example", 587, user="me", password="from-variable"
    )
    assert mail_server("smtp://me@localhost", True, None).is_plain


@pytest.mark.parametrize(
    ("text", "is_plain", "problem"),
    [
        ("", False, "must be HOST"),
        ("http://mail.example", False, "must be HOST"),
        ("a..b", False, "must be HOST"),
        ("mail.example:x", False, "must be HOST"),
        ("mail.example:0", False, "must be HOST"),
        ("mail.example:99999", False, "must be HOST"),
        ("smtp://mail.example/path", False, "must be HOST"),
        ("smtp://mail.example?x=pa55word", False, "must be HOST"),
        ("smtp://[", False, "must be HOST"),
        ("smtp://me:pa55word@mail.example", False, "must not contain the password"),
        ("smtp://me:@mail.example", False, "must not contain the password"),
        ("smtps://mail.example", True, "cannot be used with smtps"),
        ("smtp://me@mail.example", True, "without encryption"),
        ("smtp://me@mail.example", False, "requires --smtp-password-file or the variable"),
    ],
)
def test_a_server_that_cannot_be_is_refused_without_its_password(
    text: str, is_plain: bool, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_SMTP_PASSWORD", raising=False)
    with pytest.raises(UsageError, match=problem) as caught:
        mail_server(text, is_plain, None)
    assert "pa55word" not in str(caught.value)


def test_a_password_without_a_user_or_in_other_letters_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "password"
    secret.write_text("pässwörd")
    secret.chmod(0o600)
    with pytest.raises(UsageError, match="requires a user"):
        mail_server("mail.example", False, secret)
    with pytest.raises(UsageError, match="must be ASCII") as caught:
        mail_server("smtp://me@mail.example", False, secret)
    assert "pässwörd" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ops",
        "ops@",
        "@example.org",
        "a b@example.org",
        "ops@example.org\nBcc: x@y",
        "ops@a..b",
        "ö@x.org",
        "<a@b.c>",
        "a@b,c@d",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    for sender, to in ((address, "ops@example.org"), ("ops@example.org", address)):
        with pytest.raises(UsageError, match=r"--mail-(from|to): expected an address"):
            MailSink(MailServer("localhost", 25, is_plain=True), sender, to)
