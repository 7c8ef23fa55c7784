"""Receivers of notices for tests: an HTTP server and an SMTP server, which do what they are told."""

import json
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certificates import make_certificates


class HttpReceiver:
    """An HTTP server that keeps what is posted, and answers with the codes it is told, then 200; None: it hangs."""

    def __init__(self) -> None:
        receiver = self
        self.got: list[tuple[str, Any]] = []
        self.raw: list[tuple[bytes, dict[str, str]]] = []
        self.codes: list[int | None] = []
        self.headers: dict[str, str] = {}
        self.ends = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                assert self.headers["Content-Type"] == "application/json"
                receiver.raw.append((body, dict(self.headers)))
                receiver.got.append((self.path, json.loads(body)))
                code = receiver.codes.pop(0) if receiver.codes else 200
                if code is None:
                    receiver.ends.wait(60)
                    return
                self.send_response(code)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                if 300 <= code < 400:
                    self.send_header("Location", f"{receiver.url}/elsewhere")
                self.end_headers()

            def do_GET(self) -> None:
                receiver.got.append((self.path, None))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body in list(self.got)]


@contextmanager
def serving(receiver: "HttpReceiver | SmtpReceiver") -> Iterator[None]:
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        receiver.ends.set()
        receiver.server.shutdown()
        thread.join()
        receiver.server.server_close()


class SmtpReceiver:
    """An SMTP server that keeps the mails it gets.

    `replies` has the reply to each verb in place of the good one, `hangs` a verb that gets none. With `tls` it offers
    STARTTLS, or with `is_tls` speaks TLS from the first byte on; with `users` it wants a login.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, is_tls: bool = False) -> None:
        self.mails: list[EmailMessage] = []
        self.raw: list[bytes] = []
        self.verbs: list[str] = []
        self.recipients: list[str] = []
        self.logins: list[str] = []
        self.replies: dict[str, list[str]] = {}
        self.hangs = ""
        self.tls, self.is_tls = tls, is_tls
        self.ends = threading.Event()
        receiver = self

        class Session(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                conversation = None
                with suppress(OSError):
                    conversation = _Conversation(receiver, self.request)
                    conversation.run()
                if conversation:
                    conversation.file.close()
                    conversation.connection.close()

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]


class _Conversation:
    """One session of an SMTP server."""

    def __init__(self, receiver: SmtpReceiver, connection: socket.socket) -> None:
        self.receiver = receiver
        connection.settimeout(30)
        if receiver.is_tls:
            assert receiver.tls is not None
            connection = receiver.tls.wrap_socket(connection, server_side=True)
        self.connection, self.file = connection, connection.makefile("rb")
        self.is_secure = receiver.is_tls

    def run(self) -> None:
        if not self.send("", "220 ready"):
            return
        while line := self.file.readline():
            verb = line.split(b":")[0].split()[0].decode().upper()
            self.receiver.verbs.append(verb)
            if verb == "QUIT" or not self.perform(verb, line.strip().decode()):
                return

    def perform(self, verb: str, line: str) -> bool:
        if verb == "EHLO":
            return self.send(verb, "\r\n".join([*(f"250-{one}" for one in self.extensions()), "250 HELP"]))
        if verb == "STARTTLS":
            return self.send(verb, "220 go ahead") and self.encrypt()
        if verb == "AUTH":
            self.receiver.logins.append(line)
        if verb == "RCPT":
            self.receiver.recipients.append(line.partition(":")[2])
        if verb == "DATA":
            return self.send(verb, "354 end with a dot") and (self.refused or self.take())
        return self.send(verb, "235 welcome" if verb == "AUTH" else "250 fine")

    def extensions(self) -> list[str]:
        offers = ["AUTH PLAIN"] if self.is_secure or self.receiver.tls is None else []
        return ["mail.example", *offers, *(["STARTTLS"] if self.receiver.tls and not self.is_secure else [])]

    def encrypt(self) -> bool:
        assert self.receiver.tls is not None
        self.connection = self.receiver.tls.wrap_socket(self.connection, server_side=True)
        self.file = self.connection.makefile("rb")
        self.is_secure = True
        return True

    def take(self) -> bool:
        lines: list[bytes] = []
        while (line := self.file.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b".") else line)
        raw = b"".join(lines)
        if not self.receiver.replies.get("."):
            self.receiver.raw.append(raw)
            self.receiver.mails.append(message_from_bytes(raw, policy=policy.default))  # type: ignore[arg-type]
        return self.send(".", "250 kept")

    def send(self, verb: str, good: str) -> bool:
        if self.receiver.hangs == verb and verb:
            self.receiver.ends.wait(60)
            return False
        given = self.receiver.replies.get(verb)
        reply = given.pop(0) if given else good
        self.refused = reply[:1] in "45"
        self.connection.sendall(f"{reply}\r\n".encode())
        return True


def certificates(directory: Path) -> tuple[ssl.SSLContext, Path]:
    """The context of a server named `localhost`, and the file of the authority that signed its certificate."""
    make_certificates(directory, "server")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "server.pem", directory / "server.key")
    return context, directory / "ca.pem"
