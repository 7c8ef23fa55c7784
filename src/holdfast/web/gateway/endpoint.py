"""The endpoint of all verbs: a plain ASGI application, because a request costs little beside what its call in the store costs."""

import secrets
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Receive, Scope, Send

from holdfast.client.aio import AsyncClient
from holdfast.commands import Command
from holdfast.errors import HoldfastError
from holdfast.printable import one_line
from holdfast.web.auth import Authentication
from holdfast.web.gate import refused_by
from holdfast.web.gateway.problems import Problem, response_to
from holdfast.web.gateway.results import encode, failed
from holdfast.web.gateway.verbs import Verb, verbs
from holdfast.web.namespaces import HEADER, Namespaces, NotAllowed
from holdfast.web.options import Options
from holdfast.web.parts import place_of
from holdfast.web.users import User

MOST_BYTES: Final = 8 << 20
"""Of a request: a job may have a megabyte of data, and a batch several jobs."""
_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class Gateway:
    """The ASGI application of `/v1`."""

    def __init__(self, namespaces: Namespaces, options: Options, auth: Authentication) -> None:
        self._namespaces, self._options, self._auth = namespaces, options, auth
        self._verbs = verbs()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        scope["holdfast.request"] = secrets.token_hex(6)
        headers = Headers(scope=scope)
        refused = refused_by(self._options, scope, headers, MOST_BYTES)
        if refused is not None:
            await refused(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        user = await self._auth.user(connection)
        if user is None:
            await self._auth.refused(connection)(scope, receive, send)
            return
        try:
            content = await self._content(scope, headers, user, receive)
        except Exception as error:
            await response_to(scope, error)(scope, receive, send)
            return
        length = b"%d" % len(content)
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [*_HEADERS, (b"content-length", length)],
            }
        )
        await send({"type": "http.response.body", "body": content})

    async def _content(self, scope: Scope, headers: Headers, user: User, receive: Receive) -> bytes:
        """Return the body of the response. Raises Problem, HoldfastError."""
        verb = self._verb(scope)
        self._check_rights(verb, user)
        try:
            client = self._namespaces.chosen(user, headers.get(HEADER, ""))
        except NotAllowed as refused:
            raise Problem(403, "forbidden", str(refused)) from None
        body = await _body(receive)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and (body or kind):
            raise Problem(415, "not-json", "The body has to be JSON, with Content-Type: application/json.")
        request = verb.read(body or b"{}")
        return encode({"result": await self._result(verb, request, client, user)})

    def _verb(self, scope: Scope) -> Verb:
        name = place_of(scope).removeprefix("/v1/")
        found = self._verbs.get(name)
        if found is None:
            raise Problem(404, "unknown-verb", _unknown(name, tuple(self._verbs)))
        if scope["method"] != "POST":
            raise Problem(405, "method-not-allowed", "A verb is called by POST.", Allow="POST")
        return found

    def _check_rights(self, verb: Verb, user: User) -> None:
        if self._options.read_only and not verb.reads and verb.name != "info":
            raise Problem(403, "forbidden", "This application is read only.")
        if not all(user.may_call(function) for function in verb.functions):
            name = one_line(user.name)[:100]
            raise Problem(403, "forbidden", f"{name!r} is a {user.role}, which may not call {verb.name}.")

    async def _result(self, verb: Verb, request: Any, client: AsyncClient, user: User) -> Any:
        commands = verb.commands(request, user.name)
        if not verb.is_batch(request):
            [command] = commands
            return verb.result(command, await client.run(command))
        found = await _run_all(client, verb, commands)
        return [
            failed(one) if isinstance(one, HoldfastError) else verb.result(command, one)
            for command, one in zip(commands, found, strict=True)
        ]

    def end_waits(self) -> None:
        """End the requests that wait, with no jobs."""

    async def close(self) -> None:
        """End what this gateway still does."""
        self.end_waits()


def _unknown(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name[:100], known, 1)
    advice = f"did you mean {close[0]!r}?" if close else "GET /v1/openapi.json describes them."
    return f"There is no verb {one_line(name)[:100]!r}; {advice}"


async def _run_all(client: AsyncClient, verb: Verb, commands: list[Command[Any]]) -> list[Any]:
    if verb.name == "put":
        return await client._put_together(commands)  # type: ignore[arg-type]  # pyright: ignore
    return await client.run_all(commands)


async def _body(receive: Receive) -> bytes:
    """Return the whole body. Raises Problem if it is too large, or the connection ended before."""
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        return bytes(message.get("body", b""))
    parts, size = [bytes(message.get("body", b""))], 0
    while message["type"] == "http.request" and message.get("more_body") and size <= MOST_BYTES:
        message = await receive()
        parts.append(bytes(message.get("body", b"")))
        size += len(parts[-1])
    if message["type"] != "http.request":
        raise Problem(400, "bad-request", "The connection ended before the body did.")
    if size > MOST_BYTES:
        raise Problem(413, "too-large", f"The body is larger than {MOST_BYTES:,} bytes.")
    return b"".join(parts)
