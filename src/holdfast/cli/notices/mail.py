"""Notices by e-mail, as plain text, over SMTP."""

import hashlib
import os
import re
import smtplib
import ssl
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from holdfast.cli.notices.notice import Notice, cut
from holdfast.cli.notices.sinks import LONGEST, TIMEOUT, Sink, Undelivered, ended_after
from holdfast.client.signature import read_secret
from holdfast.errors import UsageError
from holdfast.settings import is_host

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
            f"--smtp takes no password: put it into a file for --smtp-password-file, or into {PASSWORD}"
        )
    is_tls = split.scheme == "smtps"
    if is_tls and is_plain:
        raise UsageError("--smtp-plain cannot be used with smtps://, which is encrypted")
    if user and is_plain and not _is_this_machine(host):
        raise UsageError(
            "--smtp-plain with a user would send the password over the network without encryption"
        )
    usual = _PLAIN_PORT if is_plain else _PORTS[split.scheme]
    return MailServer(host, port or usual, is_tls, is_plain, user, _password(user, password_file))


def _is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _password(user: str, file: Path | None) -> str:
    if not user:
        if file is not None:
            raise UsageError("--smtp-password-file needs a user: --smtp smtp://USER@HOST")
        return ""
    found = read_secret(file).decode(errors="replace") if file else os.environ.get(PASSWORD, "")
    if not found:
        raise UsageError(f"--smtp with a user needs --smtp-password-file or the variable {PASSWORD}")
    if not (found.isascii() and user.isascii()):
        raise UsageError("the user and the password of --smtp must be ASCII")
    return found


def check_address(flag: str, text: str) -> str:
    """Return an e-mail address such as `ops@example.org`. Raises UsageError."""
    if not _ADDRESS.fullmatch(text) or not is_host(text.rpartition("@")[2]):
        raise UsageError(f"{flag}: expected an address such as ops@example.org, got {text!r:.80}")
    return text


class _Session(smtplib.SMTP):
    """A session whose greeting has to come in time."""

    def connect(
        self, host: str = "localhost", port: int = 0, source_address: Any = None
    ) -> tuple[int, bytes]:
        with ended_after(lambda: self.sock, LONGEST):
            return super().connect(host, port, source_address)


class _TlsSession(_Session, smtplib.SMTP_SSL):
    """The same, with TLS from the first byte on."""


class Mail(Sink):
    """One address that gets each notice as a mail of its own. Raises UsageError for what is no address."""

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
            raise _refused(*error.recipients[self._to]) from None
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise _refused(error.smtp_code, error.smtp_error) from None
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
                session.putcmd("QUIT")  # whatever the server makes of it, it has the mail

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


def _refused(code: int, reply: bytes | str) -> Undelivered:
    """Return the error for a mail that the server did not take; with a code from 500 on it never will."""
    return Undelivered(_sentence(code, reply), is_lasting=code >= 500)


def _sentence(code: int, reply: bytes | str) -> str:
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    return f"SMTP status {code}: {text}"
