"""A web hook in a thread: it notes each delivery, and behaves for each as the test says."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple, Self

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"
FAILED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
REDIRECT = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
NONSENSE = b"SSH-2.0-OpenSSH_9.6\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


class Delivery(NamedTuple):
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return str(self.json["id"])


async def answer(writer: asyncio.StreamWriter, response: bytes) -> None:
    writer.write(response)
    await writer.drain()


Behaviour = Callable[[asyncio.StreamWriter], Any]
"""An async function that writes a response, or part of one."""


def says(response: bytes) -> Behaviour:
    """Respond with these bytes."""
    return lambda writer: answer(writer, response)


async def hangs(_: asyncio.StreamWriter) -> None:
    """Respond nothing."""
    await asyncio.Event().wait()


async def closes(writer: asyncio.StreamWriter) -> None:
    """Close the connection without a response."""
    writer.transport.abort()


def trickles(first: bytes) -> Behaviour:
    """Respond with these bytes, and then a byte every now and then, without an end."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        await answer(writer, first)
        while True:
            await answer(writer, b"x")
            await asyncio.sleep(0.05)

    return behave


class Receiver:
    """A server of one web hook. `behave` returns the behaviour for a delivery and how often its message has come before."""

    def __init__(self, behave: Callable[[Delivery, int], Behaviour] = lambda *_: says(OK)) -> None:
        self.behave = behave
        self.deliveries: list[Delivery] = []
        self.connections = 0
        self.at_once = self.most_at_once = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def ids(self) -> Counter[str]:
        """How often each message came."""
        return Counter(delivery.id for delivery in list(self.deliveries))

    def release(self, event: asyncio.Event) -> None:
        """Set an event that a behaviour waits for."""
        self._loop.call_soon_threadsafe(event.set)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._serve(), self._loop).result(30)
        self.port = int(self._server.sockets[0].getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}/hook"
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _close(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                await self._respond(await self._read(reader), writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the other side, or the test, has ended it
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Delivery:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        method, path, _ = first.split()
        return Delivery(
            method, path, headers, await reader.readexactly(int(headers.get("content-length", "0")))
        )

    async def _respond(self, delivery: Delivery, writer: asyncio.StreamWriter) -> None:
        before = self.ids[delivery.id]
        self.deliveries.append(delivery)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await self.behave(delivery, before)(writer)
        finally:
            self.at_once -= 1
