"""What tests call the gateway with."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import httpx
import uvicorn

from holdfast.web.auth import Tokens
from holdfast.web.credentials import Credentials, hash_token, parsed_users
from holdfast.web.sessions import Sessions

TOKENS: Final[Mapping[str, str]] = {
    "ada": "admin",
    "oli": "operator",
    "vic": "viewer",
    "pam": "producer",
    "wes": "worker",
    "lea": "worker::queues=mail,image-*;topics=help",
    "leo": "producer::queues=mail,image-*",
    "len": "viewer::queues=mail",
    "lou": "operator::queues=mail,image-*",
    "nia": "worker::namespaces=test-other",
    "old": "admin:2020-01-01",
}
"""Lines of the users file without the secret, which is the name."""


def tokens(lines: Mapping[str, str] = TOKENS) -> Tokens:
    """The users of a file; the token of each is its name."""
    text = "\n".join(
        f"{name}:{line.partition(':')[0]}:{hash_token(name)}{line[line.find(':') :] if ':' in line else ''}"
        for name, line in lines.items()
    )
    return Tokens(Credentials(parsed_users(text, "users")), Sessions(b"x" * 32))


class Verbs:
    """Calls verbs as one of the users, `ada` unless told otherwise."""

    def __init__(self, http: Any, base: str = "/v1/") -> None:
        self.http, self._base = http, base

    def post(
        self, verb: str, user: str = "ada", headers: Mapping[str, str] | None = None, **fields: Any
    ) -> httpx.Response:
        """Return the response."""
        sent = {"Authorization": f"Bearer {user}", **(headers or {})}
        found: httpx.Response = self.http.post(self._base + verb, json=fields, headers=sent)
        return found

    def __call__(
        self, verb: str, user: str = "ada", headers: Mapping[str, str] | None = None, **fields: Any
    ) -> Any:
        """Return the result."""
        found = self.post(verb, user, headers, **fields)
        assert found.status_code == 200, (verb, fields, found.text)
        return found.json()["result"]

    def refused(
        self, verb: str, user: str = "ada", headers: Mapping[str, str] | None = None, **fields: Any
    ) -> tuple[int, str]:
        """Return status and title of a problem document."""
        found = self.post(verb, user, headers, **fields)
        assert found.headers["content-type"] == "application/problem+json", found.text
        problem = found.json()
        assert problem["status"] == found.status_code
        assert problem["type"].startswith("holdfast:")
        return found.status_code, problem["title"]


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application on a free loopback port, and yield the URL of its verbs."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, ws="none"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/"
    finally:
        server.should_exit = True
        thread.join(30)
        listening.close()
