"""The options of `holdfast notify` that name where notices are sent, and with which limit."""

import hashlib
import html
import json
import logging
import os
import re
import smtplib
import ssl
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import partial, wraps
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast
from urllib.error import HTTPError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import click

from holdfast.cli.notices.delivery import Delivery, RateLimit, parse_limit
from holdfast.cli.notices.notice import Digest, Notice, cut
from holdfast.cli.notices.sinks import LONGEST, TIMEOUT, Desktop, Lines, Sink, Undelivered, ended_after
from holdfast.client.signature import HEADER, check_secret, read_secret, signed_headers
from holdfast.errors import UsageError, missing_extra
from holdfast.release import VERSION
from holdfast.settings import is_authority, is_host

# Notices over HTTP: to programs as signed JSON, and to chats.

_MOST_CHAT: Final = 3000
_LONGEST_RETRY: Final = 3600.0


class _Connection(HTTPConnection):
    """A connection with a time limit for the whole response."""

    def getresponse(self) -> HTTPResponse:
        with ended_after(lambda: self.sock, LONGEST):
            return super().getresponse()


class _SecureConnection(HTTPSConnection):
    """The same with TLS."""

    def getresponse(self) -> HTTPResponse:
        with ended_after(lambda: self.sock, LONGEST):
            return super().getresponse()


class _Http(HTTPHandler):
    def http_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_Connection, req)


class _Https(HTTPSHandler):
    def https_open(self, req: Request) -> HTTPResponse:
        return self.do_open(_SecureConnection, req)


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirect, which would send the notice to another machine, as a GET without its body."""

    def redirect_request(
        self, req: Request, fp: object, code: int, msg: str, headers: object, newurl: str
    ) -> None:
        """Return None, which makes the redirect an error with its status."""


_open: Final = partial(build_opener(_NoRedirects, _Http, _Https).open, timeout=TIMEOUT)


def _base_of(url: str) -> str:
    """Return scheme and host of an HTTP URL, an empty string for any other text."""
    try:
        split = urlsplit(url)
    except ValueError:
        return ""
    is_plain = url.isascii() and url.isprintable() and " " not in url and "@" not in split.netloc
    valid = is_plain and split.scheme in ("http", "https") and is_authority(split.netloc)
    return f"{split.scheme}://{split.netloc}" if valid else ""


class WebhookSink(Sink):
    """A URL that each notice is posted to as JSON, signed if there is a secret. Raises UsageError for anything but an HTTP URL."""

    def __init__(self, url: str, secret: bytes = b"", flag: str = "--webhook") -> None:
        base = _base_of(url)
        if not base:
            raise UsageError(f"{flag} must be a URL such as https://host/path")  # its text may be a secret
        self._url, self._secret = url, secret
        self.name = base  # the rest is often a secret

    def deliver(self, notice: Notice) -> None:
        body = json.dumps(self.payload(notice)).encode()
        headers = {"Content-Type": "application/json", "User-Agent": f"holdfast/{VERSION}"}
        if self._secret:
            headers |= signed_headers(self._secret, body, repr((notice.when, notice.line)))
        try:
            with _open(Request(self._url, body, headers, method="POST")):
                pass
        except HTTPError as error:
            error.close()
            raise _refused(error) from None
        except OSError as error:
            raise Undelivered(getattr(error, "reason", error)) from None
        except (HTTPException, ValueError) as error:
            raise Undelivered(type(error).__name__) from None  # its text may have the path

    def payload(self, notice: Notice) -> dict[str, Any]:
        """Return what is posted."""
        return notice.as_dict()


def _refused(error: HTTPError) -> Undelivered:
    is_lasting = 300 <= error.code < 500 and error.code not in (408, 425, 429)
    what = ", a redirect, which is not followed" if error.code < 400 else ""
    after = str(error.headers.get("Retry-After", "")).strip()
    seconds = min(float(after), _LONGEST_RETRY) if re.fullmatch("[0-9]{1,9}", after) else 0.0
    return Undelivered(f"HTTP status {error.code}{what}", is_lasting, seconds)


class ChatSink(WebhookSink):
    """A URL that takes messages as Slack and Mattermost do: `{"text": …}`."""

    def __init__(self, url: str) -> None:
        super().__init__(url, flag="--chat")

    def payload(self, notice: Notice) -> dict[str, Any]:
        """Return what is posted: the head and the link, and the message of a failure in a block of its own."""
        if isinstance(notice, Digest):
            return {
                "text": "\n".join(filter(None, (notice.title, *map(_linked, notice.listed), notice.rest)))
            }
        message = cut(notice.message.strip(), _MOST_CHAT)
        block = f"\n```{_as_text(message)}```" if message else ""
        return {"text": _linked(notice) + block}


def _linked(notice: Notice) -> str:
    return f"{_as_text(notice.head)} {_escaped(notice.link)}".rstrip()


def _as_text(text: str) -> str:
    """Return text that mentions no user, hides no URL and ends no block: zero-width spaces are put after `@` and into links."""
    return re.sub(r"@(?=\w)|\](?=[(\[])", "\\g<0>\u200b", _escaped(text)).replace("```", "'''")


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)


class ServiceSink(Sink):
    """One of the services that the package apprise knows, by its URL. Raises UsageError."""

    def __init__(self, url: str) -> None:
        try:
            import apprise
        except ImportError as error:
            raise UsageError(missing_extra("--apprise", "notify", error)) from None
        self._service: Any = apprise.Apprise()
        self._log: Any = cast("Any", apprise).LogCapture
        scheme = url.partition("://")[0]
        with self._log():
            if not self._service.add(url):
                raise UsageError(
                    "--apprise must be a URL that apprise knows, such as slack://…"
                )  # it has secrets
        self.name = f"{scheme}://" if scheme.isascii() and scheme.isprintable() else "apprise"

    def deliver(self, notice: Notice) -> None:
        text = "\n\n".join(filter(None, (notice.head, cut(notice.message, _MOST_CHAT), notice.link)))
        with self._log(level=logging.WARNING, fmt="%(message)s") as captured:
            if not self._service.notify(body=text, title=notice.title, body_format="text"):
                raise Undelivered(captured.getvalue() or "the service did not accept it")


# Notices by e-mail, as plain text, over SMTP.

PASSWORD: Final = "HOLDFAST_SMTP_PASSWORD"
_POLICY: Final = SMTP.clone(cte_type="7bit")
_MOST_SUBJECT: Final = 120
_ADDRESS: Final = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}")
_PORTS: Final = {"smtp": 587, "smtps": 465}
_PLAIN_PORT: Final = 25


class MailServer(NamedTuple):
    """A server that takes mails: `is_tls` from the first byte on, or with STARTTLS unless `is_plain`; with a user if it has one."""

    host: str
    port: int
    is_tls: bool = False
    is_plain: bool = False
    user: str = ""
    password: str = ""


def mail_server(text: str, is_plain: bool, password_file: Path | None) -> MailServer:
    """Return the server that `HOST[:PORT]`, `smtp://USER@HOST:PORT` or `smtps://…` names. Raises UsageError, OSError.

    The password of a user is read from the file, or from the variable HOLDFAST_SMTP_PASSWORD.
    """
    try:
        split = urlsplit(text if "://" in text else f"smtp://{text}")
        port = split.port
    except ValueError:
        split, port = urlsplit(""), None
    host, user = split.hostname or "", unquote(split.username or "")
    is_bare = split.path in ("", "/") and not split.query and not split.fragment
    if split.scheme not in _PORTS or not is_host(host) or not is_bare or port == 0:
        raise UsageError(
            "--smtp must be HOST, HOST:PORT, or a URL such as smtp://user@host:587 or smtps://host"
        )
    if split.password is not None:
        raise UsageError(
            f"--smtp must not contain the password: put it into a file for --smtp-password-file, or into {PASSWORD}"
        )
    is_tls = split.scheme == "smtps"
    if is_tls and is_plain:
        raise UsageError("--smtp-plain cannot be used with smtps://, which is encrypted")
    if user and is_plain and not _is_this_machine(host):
        raise UsageError(
            "--smtp-plain with a user would send the password over the network without encryption"
        )
    default_port = _PLAIN_PORT if is_plain else _PORTS[split.scheme]
    return MailServer(host, port or default_port, is_tls, is_plain, user, _password(user, password_file))


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _password(user: str, file: Path | None) -> str:
    if not user:
        if file is not None:
            raise UsageError("--smtp-password-file requires a user: --smtp smtp://USER@HOST")
        return ""
    found = read_secret(file).decode(errors="replace") if file else os.environ.get(PASSWORD, "")
    if not found:
        raise UsageError(f"--smtp with a user requires --smtp-password-file or the variable {PASSWORD}")
    if not (found.isascii() and user.isascii()):
        raise UsageError("the user and the password of --smtp must be ASCII")
    return found


def check_address(flag: str, text: str) -> str:
    """Return an e-mail address such as `ops@example.org`. Raises UsageError."""
    if not _ADDRESS.fullmatch(text) or not is_host(text.rpartition("@")[2]):
        raise UsageError(f"{flag}: expected an address such as ops@example.org, got {text!r:.80}")
    return text


class _Session(smtplib.SMTP):
    """A session with a time limit for the greeting of the server."""

    def connect(
        self, host: str = "localhost", port: int = 0, source_address: Any = None
    ) -> tuple[int, bytes]:
        with ended_after(lambda: self.sock, LONGEST):
            return super().connect(host, port, source_address)


class _TlsSession(_Session, smtplib.SMTP_SSL):
    """The same, with TLS from the first byte on."""


class MailSink(Sink):
    """One address that gets each notice as a mail of its own. Raises UsageError for an invalid address."""

    def __init__(self, server: MailServer, sender: str, to: str) -> None:
        self._server = server
        self._sender = check_address("--mail-from", sender)
        self._to = check_address("--mail-to", to)
        self._tls = ssl.create_default_context()
        self.name = f"mail to {to}"

    def deliver(self, notice: Notice) -> None:
        mail = self.message(notice)
        try:
            with self._session() as session:
                session.send_message(mail, self._sender, [self._to])
        except smtplib.SMTPRecipientsRefused as error:
            raise _refused_by_server(*error.recipients[self._to]) from None
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise _refused_by_server(error.smtp_code, error.smtp_error) from None
        except smtplib.SMTPResponseException as error:  # of the greeting or the login, not about this mail
            raise Undelivered(_sentence(error.smtp_code, error.smtp_error)) from None
        except ssl.SSLCertVerificationError as error:
            raise Undelivered(f"the certificate of {self._server.host}: {error.verify_message}") from None
        except (OSError, ValueError) as error:  # errors of smtplib are OSErrors
            raise Undelivered(error) from None

    @contextmanager
    def _session(self) -> Generator[smtplib.SMTP]:
        """Connect, encrypt and log in."""
        host, port, is_tls, is_plain, user, password = self._server
        if is_tls:
            session: smtplib.SMTP = _TlsSession(host, port, timeout=TIMEOUT, context=self._tls)
        else:
            session = _Session(host, port, timeout=TIMEOUT)
        with ended_after(lambda: session.sock, LONGEST), closing(session):
            session.ehlo_or_helo_if_needed()
            if not is_tls and not is_plain:
                if not session.has_extn("starttls"):
                    raise Undelivered("the server offers no STARTTLS; --smtp-plain sends without encryption")
                session.starttls(context=self._tls)
            if user:
                session.login(user, password)
            yield session
            with suppress(OSError):
                session.putcmd("QUIT")  # whatever the reply is, the server has accepted the mail

    def message(self, notice: Notice) -> EmailMessage:
        """Return the mail. It is the same for each try, so that a server which got two keeps one."""
        mail = EmailMessage(_POLICY)
        mail["From"] = Address("holdfast", addr_spec=self._sender)
        mail["To"] = self._to
        mail["Subject"] = f"[holdfast] {cut(notice.title, _MOST_SUBJECT)}"
        mail["Date"] = format_datetime(datetime.fromtimestamp(notice.when, UTC))
        identity = repr((notice.when, notice.line, self._sender, self._to)).encode(errors="replace")
        domain = self._sender.rpartition("@")[2]
        mail["Message-ID"] = f"<{hashlib.sha256(identity).hexdigest()[:32]}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content("\n\n".join(filter(None, (notice.head, notice.message, notice.link))) + "\n")
        return mail


def _refused_by_server(code: int, reply: bytes | str) -> Undelivered:
    """Return the error for a mail that the server refused; a code of 500 or more is final."""
    return Undelivered(_sentence(code, reply), is_lasting=code >= 500)


def _sentence(code: int, reply: bytes | str) -> str:
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return f"SMTP status {code}: {text}"


F = TypeVar("F", bound=Callable[..., Any])

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOR_PEOPLE: Final = RateLimit(30, 60.0)
_OPTIONS: Final = (
    click.option(
        "--webhook",
        "webhooks",
        multiple=True,
        help="URL to post each notice to as JSON; may be repeated [default: none].",
    ),
    click.option(
        "--secret-file",
        type=_FILE,
        help=f"File with a secret: posts to webhooks are signed with it, in the header {HEADER} [default: unsigned].",
    ),
    click.option(
        "--chat",
        "chats",
        multiple=True,
        help='URL of a chat that accepts {"text": …}, such as Slack or Mattermost; may be repeated [default: none].',
    ),
    click.option(
        "--apprise",
        "services",
        metavar="URL",
        multiple=True,
        help="URL of a service that the package apprise knows, such as tgram://… or pover://…; may be repeated [default: none].",
    ),
    click.option(
        "--mail-to",
        "mail_to",
        multiple=True,
        help="Address to send mails to; may be repeated [default: none].",
    ),
    click.option("--mail-from", help="Address of the sender of mails; required with --mail-to."),
    click.option(
        "--smtp",
        metavar="SERVER",
        help="Server for mails: HOST, HOST:PORT, smtp://USER@HOST:PORT (with STARTTLS, port 587), or smtps://USER@HOST (port 465).",
    ),
    click.option(
        "--smtp-password-file", type=_FILE, help=f"File with the password of USER [default: {PASSWORD}]."
    ),
    click.option(
        "--smtp-plain",
        is_flag=True,
        help="Send mails without encryption (port 25), such as to a server on this machine [default: off].",
    ),
    click.option(
        "--desktop", is_flag=True, help="Show notices on the desktop with notify-send [default: off]."
    ),
    click.option(
        "--stdout",
        is_flag=True,
        help="Print notices to standard output too [default: only if there is no other receiver].",
    ),
    click.option(
        "--limit",
        metavar="N/UNIT",
        help="Limit of messages to each receiver, as N/s, N/min or N/h, or none; notices above it are sent as a digest [default: 30/min; none for webhooks].",
    ),
)


class Receivers(NamedTuple):
    """Where notices are sent, by the options of the command line."""

    webhooks: Sequence[str]
    secret_file: Path | None
    chats: Sequence[str]
    services: Sequence[str]
    mail_to: Sequence[str]
    mail_from: str | None
    smtp: str | None
    smtp_password_file: Path | None
    smtp_plain: bool
    desktop: bool
    stdout: bool
    limit: str | None

    def deliveries(self, as_json: bool) -> list[Callable[[], Delivery]]:
        """Return what starts a delivery for each receiver; standard output has no limit. Raises UsageError, OSError."""
        limit = None if self.limit is None else parse_limit(self.limit)
        for_people = _FOR_PEOPLE if self.limit is None else limit
        people: list[Sink] = [*map(ChatSink, self.chats), *map(ServiceSink, self.services), *self._mails()]
        people += [Desktop()] if self.desktop else []
        pairs: list[tuple[Sink, RateLimit | None]] = [(sink, limit) for sink in self._webhooks()]
        pairs += [(sink, for_people) for sink in people]
        if self.stdout or as_json or not pairs:
            pairs.append((Lines(as_json), None))
        return [partial(Delivery, sink, limit) for sink, limit in pairs]

    def _webhooks(self) -> list[Sink]:
        if self.secret_file is None:
            return [WebhookSink(url) for url in self.webhooks]
        if not self.webhooks:
            raise UsageError("--secret-file signs what is posted to --webhook: give --webhook too")
        secret = read_secret(self.secret_file)
        check_secret(secret)
        return [WebhookSink(url, secret) for url in self.webhooks]

    def _mails(self) -> list[Sink]:
        others = (self.mail_from, self.smtp, self.smtp_password_file, self.smtp_plain or None)
        if not self.mail_to:
            if any(one is not None for one in others):
                raise UsageError("--smtp and --mail-from require --mail-to, the address to send mails to")
            return []
        if self.smtp is None or self.mail_from is None:
            raise UsageError("--mail-to requires --smtp, the server for mails, and --mail-from, their sender")
        server = mail_server(self.smtp, self.smtp_plain, self.smtp_password_file)
        return [MailSink(server, self.mail_from, to) for to in dict.fromkeys(self.mail_to)]


def receiver_options(command: F) -> F:
    """Give a command the options of Receivers, passed on together as `receivers`."""

    @wraps(command)
    def with_receivers(*args: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in Receivers._fields}
        return command(*args, receivers=Receivers(**given), **options)

    for option in reversed(_OPTIONS):
        with_receivers = option(with_receivers)
    return cast("F", with_receivers)
