"""A relay between clients and a store that misbehaves on purpose. Loopback only.

    with Proxy(store.url) as proxy:                    # proxy.url: a Unix socket; Proxy(…, tcp=True): a port
        proxy.aim("cut-reply", "hf1_complete", nth=3)  # the reply of the third complete never arrives
        proxy.black_hole()                             # nothing goes through until proxy.heal()

What an aim does to the n-th request of that name (counted from the aim on):

    cut-request   the connection ends before the request is forwarded
    cut-reply     it ends after the store has answered, before a byte of the answer is passed on
    cut-middle    it ends in the middle of the answer
    delay         the answer comes `seconds` late
    drip          the answer comes byte by byte, over `seconds`
    hold          the connection ends; the request reaches the store when `release` is called: a straggler
"""

import asyncio
import contextlib
import random
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from time import monotonic
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from resp import name_of, value_end, words_of

from waiting import pause_async

Action = Literal["cut-request", "cut-reply", "cut-middle", "delay", "drip", "hold"]


class Aim:
    """One planned fault; `hit` is set when it happened."""

    def __init__(self, action: Action, name: str, nth: int, seconds: float, root: str) -> None:
        self.action = action
        self.name = name
        self.root = root
        self.left = nth
        self.seconds = seconds
        self.hit = threading.Event()
        self.released = asyncio.Event()
        self.delivered = threading.Event()


class Talk:
    """One connection of a client and the connection to the store behind it."""

    def __init__(self, writer: asyncio.StreamWriter, store: asyncio.StreamWriter) -> None:
        self.writer = writer
        self.store = store
        self.asked: deque[Aim | None] = deque()
        self.tasks: list[asyncio.Task[None]] = []

    def cut(self) -> None:
        for writer in (self.writer, self.store):
            if writer.transport is not None:
                writer.transport.abort()
        for task in self.tasks:
            if task is not asyncio.current_task():
                task.cancel()


class Proxy:
    """The relay; its loop runs in a thread of its own, so that clients of both colours can use it.

    `accepted` are the moments (monotonic) at which clients connected, `seen` the names of all requests.
    """

    def __init__(self, target: str, *, tcp: bool = False) -> None:
        self._target = urlsplit(target)
        self._tcp = tcp
        self._directory = Path(tempfile.mkdtemp(prefix="hfp-", dir="/tmp"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self._talks: set[Talk] = set()
        self._aims: list[Aim] = []
        self._stragglers: list[asyncio.Task[None]] = []
        self._through = asyncio.Event()
        self._through.set()
        self._rejecting = False
        self._latency = 0.0
        self._held = 0
        self.port = 0
        self.accepted: list[float] = []
        self.seen: list[str] = []

    @property
    def url(self) -> str:
        if self._tcp:
            return f"redis://127.0.0.1:{self.port}"
        return f"unix://{self._directory / 'socket'}"

    def aim(self, action: Action, name: str, nth: int = 1, *, seconds: float = 0.2, root: str = "") -> Aim:
        """Plan a fault for the n-th request called `name` from now on, in any root or in that one."""
        planned = Aim(action, name, nth, seconds, root)
        self._aims.append(planned)
        return planned

    def release(self, aim: Aim, within: float = 30.0) -> None:
        """Let a held request reach the store; returns when the store has answered it."""
        self._loop.call_soon_threadsafe(aim.released.set)
        assert aim.delivered.wait(within), "the held request was not answered"

    def cut(self) -> None:
        """End all connections now."""
        self._do(self._cut_all())

    def black_hole(self) -> None:
        """Pass nothing on, in either direction; what is sent meanwhile is passed on when the hole ends."""
        self._loop.call_soon_threadsafe(self._through.clear)

    def slow(self, seconds: float) -> None:
        """Pass every answer on about so many seconds late, some sooner and some later."""
        self._latency = seconds

    def reject(self) -> None:
        """End every connection, and every new one as soon as it is made."""
        self._rejecting = True
        self.cut()

    def refuse(self) -> None:
        """End every connection, and listen no more."""
        self._do(self._stop_listening())
        self.cut()

    def heal(self) -> None:
        """Be a good relay again."""
        self._rejecting = False
        self._latency = 0.0
        self._aims.clear()
        self._loop.call_soon_threadsafe(self._through.set)
        if self._server is None:
            self._do(self._listen())

    def quiet(self) -> bool:
        """Whether nothing is held up, and every request that was passed on has its answer."""
        return not self._held and not any(talk.asked for talk in list(self._talks))

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self._do(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self) -> None:
        if self._tcp:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]
        else:
            self._server = await asyncio.start_unix_server(self._accept, self._directory / "socket")

    async def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            (self._directory / "socket").unlink(missing_ok=True)

    async def _cut_all(self) -> None:
        for talk in list(self._talks):
            talk.cut()

    async def _end_tasks(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others, timeout=2)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted.append(monotonic())
        if self._rejecting:
            writer.transport.abort()
            return
        try:
            from_store, store = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        talk = Talk(writer, store)
        self._talks.add(talk)
        talk.tasks = [
            asyncio.ensure_future(self._requests(talk, reader)),
            asyncio.ensure_future(self._replies(talk, from_store)),
        ]
        try:
            await asyncio.wait(talk.tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._talks.discard(talk)
            talk.cut()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._target.scheme == "unix":
            return await asyncio.open_unix_connection(self._target.path)
        return await asyncio.open_connection(self._target.hostname, self._target.port)

    async def _requests(self, talk: Talk, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            async for request in _values(reader):
                self._held += 1
                try:
                    await self._through.wait()
                finally:
                    self._held -= 1
                aim = self._aimed(request)
                if aim is not None and aim.action in ("cut-request", "hold"):
                    if aim.action == "hold":
                        self._stragglers.append(asyncio.ensure_future(self._straggle(aim, request)))
                    talk.cut()
                    aim.hit.set()
                    return
                talk.asked.append(aim)
                talk.store.write(request)
                await talk.store.drain()

    async def _replies(self, talk: Talk, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            async for reply in _values(reader, self._travel):
                await self._through.wait()
                aim = talk.asked.popleft() if talk.asked else None
                if aim is not None and not await self._spoil(talk, aim, reply):
                    return
                if aim is None:
                    talk.writer.write(reply)
                    await talk.writer.drain()

    async def _travel(self) -> None:
        if self._latency:
            await pause_async(self._latency * random.uniform(0.5, 1.5))

    async def _spoil(self, talk: Talk, aim: Aim, reply: bytes) -> bool:
        """Pass a reply on as badly as planned. Answers whether the connection lives."""
        writer, lives = talk.writer, True
        aim.hit.set()
        if aim.action == "delay":
            await pause_async(aim.seconds)
            writer.write(reply)
        elif aim.action == "drip":
            for at in range(len(reply)):
                writer.write(reply[at : at + 1])
                await pause_async(aim.seconds / len(reply))
        else:
            if aim.action == "cut-middle":
                writer.write(reply[: max(len(reply) // 2, 1)])
                await writer.drain()
                writer.close()
            talk.store.transport.abort()
            lives = False
        return lives

    async def _straggle(self, aim: Aim, request: bytes) -> None:
        await aim.released.wait()
        reader, writer = await self._connect()
        writer.write(request)
        async for _ in _values(reader):
            break
        writer.close()
        aim.delivered.set()

    def _aimed(self, request: bytes) -> Aim | None:
        name = name_of(request)
        self.seen.append(name)
        for aim in self._aims:
            if aim.name == name and aim.root in ("", words_of(request, 4)[-1]):
                aim.left -= 1
                if aim.left == 0:
                    self._aims.remove(aim)
                    return aim
        return None


async def _at_once() -> None:
    """What comes together goes on together, without delay."""


async def _values(
    reader: asyncio.StreamReader, travel: Callable[[], Coroutine[Any, Any, None]] = _at_once
) -> Any:
    """The whole values of a stream; each piece of it that arrives has to `travel`."""
    buffer = bytearray()
    while data := await reader.read(1 << 16):
        await travel()
        buffer += data
        while buffer and (end := value_end(buffer)) > 0:
            yield bytes(buffer[:end])
            del buffer[:end]
