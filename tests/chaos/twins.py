"""Two namespaces with one past: what a disturbed call does to one is compared with an undisturbed one on the other."""

from typing import Any
from uuid import uuid4

import msgspec

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import Outcome
from holdfast.commands.leases import Popped, Settlement
from holdfast.errors import HoldfastError
from holdfast.models import CoreInfo
from holdfast.testing.clock import START_MS
from holdfast.wire.plans import Replies, Step

EPOCH = slice(16, 24)
"""Where the packed root keeps the eight bytes that no two roots share."""

IDLE = 1 << 45
"""The lowest bit of what rides on a queue's sequence."""


def a_namespace() -> str:
    return f"test-{uuid4().hex[:12]}"


def stopped(client: Any) -> Any:
    """The client, whose namespace begins with a stopped clock."""
    client.shard.test_clock_ms = START_MS
    return client


def in_stopped_time(url: str, namespace: str) -> Client:
    """A blocking client of a test root, whose clock stands still."""
    client: Client = stopped(Client(url, namespace=namespace, hostname="bee"))
    return client


def in_stopped_time_async(url: str, namespace: str) -> AsyncClient:
    """The same for an event loop."""
    client: AsyncClient = stopped(AsyncClient(url, namespace=namespace, hostname="bee"))
    return client


def say(client: Client, *words: str | bytes | int) -> Any:
    """One plain command on the connection of a client; an error comes back as ErrorReply."""
    return say_all(client, [words])[0]


def say_all(client: Client, calls: list[tuple[str | bytes | int, ...]]) -> Replies:
    return client.link.send(Step(calls)) if calls else []


_READ: dict[bytes, tuple[str, ...]] = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"zset": ("ZRANGE", "0", "-1", "WITHSCORES"),
    b"list": ("LRANGE", "0", "-1"),
    b"set": ("SMEMBERS",),
    b"stream": ("XRANGE", "-", "+"),
}


def state(client: Client) -> dict[str, Any]:
    """All keys of the namespace with their contents, without replay records and lines of minutes, and without what no twins share."""
    root = client.root.encode()
    names = [
        name
        for name in say(client, "KEYS", client.root + "*")
        if not name.startswith((root + b"i:", root + b"m:"))
    ]
    kinds = say_all(client, [("TYPE", name) for name in names])
    reads = [_READ[kind] for kind in kinds]
    found = say_all(client, [(read[0], name, *read[1:]) for name, read in zip(names, reads, strict=True)])
    return {
        name.removeprefix(root).decode(): _settled(name.removeprefix(root), kind, content)
        for name, kind, content in zip(names, kinds, found, strict=True)
    }


def _settled(name: bytes, kind: bytes, content: Any) -> Any:
    if name.startswith(b"s:") and kind == b"string":
        # The sequence may have gaps: a repeated put takes a number and does not use it.
        return int(content) // IDLE
    if kind == b"set":
        return sorted(content)
    if kind != b"hash":
        return content
    fields = dict(zip(content[::2], content[1::2], strict=True))
    packed = fields.get(b"h")
    if b"clock" in fields and packed:
        fields[b"h"] = packed[: EPOCH.start] + packed[EPOCH.stop :]
    return fields


def plain(answer: Any) -> Any:
    """An answer in a form that can be compared: errors by class and code, jobs with the due time beside."""
    if isinstance(answer, HoldfastError):
        return type(answer).__name__, getattr(answer, "code", "")
    if isinstance(answer, Settlement):
        return {jid: plain(error) for jid, error in answer.lost.items()}, plain(answer.jobs)
    if isinstance(answer, Popped):
        return list(answer), answer.due
    if isinstance(answer, Outcome):
        return answer.status, answer.result, plain(answer.error)
    if isinstance(answer, CoreInfo):
        return msgspec.structs.replace(answer, epoch="")
    if isinstance(answer, list):
        return [plain(one) for one in answer]
    if isinstance(answer, dict):
        return {key: plain(one) for key, one in answer.items()}
    return answer


def outcome(ask: Any) -> Any:
    """What `ask()` answers or raises, plain."""
    try:
        return plain(ask())
    except HoldfastError as error:
        return plain(error)
