"""Push: deliver the messages of topics to web hooks.

Each message is sent as `POST {"topic", "id", "contents"}`. A 2xx status deletes it, by its own reservation; anything else, or no
response in time, leaves it reserved until its ttr is over. Reservations and deletions of one moment share a call to the store.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from traceback import format_tb
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from holdfast.client.aio import AsyncClient
from holdfast.client.signature import check_secret, signed_headers
from holdfast.client.topics.delivery import SHORTEST
from holdfast.client.topics.scheduler import AsyncScheduler, AsyncSubscription
from holdfast.code.steps import Steps
from holdfast.commands.topics import Message, TopicRelease
from holdfast.errors import HoldfastError, UsageError, missing_extra
from holdfast.settings import MAX_BATCH, check_name, check_seconds, check_whole, is_host
from holdfast.text import one_line
from holdfast.wire.outage import Outage

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

log = logging.getLogger("holdfast")

MOST_CONCURRENT: Final = 1000
_KEPT_ALIVE: Final = 4.0
"""Seconds that an idle connection is kept: servers close theirs after 5 or more, and would lose a message sent at that moment."""
_MOST_READ: Final = 4096
_READ_SECONDS: Final = 1.0
"""The bytes of a response body that are read, and the seconds for it; the connection is closed if there is more."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
"""Seconds without reservations after a delivery that failed; they double until one succeeds."""
_LAST_CALL: Final = 10.0
"""Seconds in which the last deletions have to reach the store when push ends."""


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """Where the messages of a topic are sent, and how. Raises UsageError.

    `url`: http or https; a name and password in it are sent as basic authentication. `ttr`: seconds of a reservation.
    `timeout`: seconds of a delivery, from connecting to the status of the response. `concurrency`: deliveries at once.
    `secret`: signs each delivery; 16 bytes or more, b"" for no signature.
    """

    topic: str
    url: str
    ttr: float = 60.0
    timeout: float = 10.0
    concurrency: int = 1
    secret: bytes = b""

    def __post_init__(self) -> None:
        check_name("topic", self.topic)
        _check_url(self.url)
        check_seconds("ttr", self.ttr, SHORTEST)
        check_seconds("timeout", self.timeout, SHORTEST, 3600.0)
        check_whole("concurrency", self.concurrency, 1, MOST_CONCURRENT)
        check_secret(self.secret)

    @property
    def origin(self) -> str:
        """Scheme, host and port of the URL. The rest is often a secret, and is not logged."""
        split = urlsplit(self.url)
        return f"{split.scheme}://{split.netloc.rpartition('@')[2]}"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("topic", self.topic), ("url", f"{self.origin}/…")]

    def __repr__(self) -> str:
        return f"Webhook(topic={self.topic!r}, url='{self.origin}/…')"


def _check_url(url: object) -> None:
    try:
        split = urlsplit(url) if isinstance(url, str) and url.isprintable() and " " not in url else None
        is_valid = split is not None and split.scheme in ("http", "https") and is_host(split.hostname or "")
        _ = split and split.port
    except ValueError:
        is_valid = False
    if not is_valid:  # its text may be a secret
        raise UsageError("url: expected a URL of a web hook, such as https://host/path")


class PushCounts(msgspec.Struct):
    """What became of the deliveries: `delivered`: the message is deleted; `failed`: it comes back when its ttr is over;
    `late`: it was accepted after its ttr, when somebody else may have had it, and comes again.
    """

    delivered: int = 0
    failed: int = 0
    late: int = 0


class Push:
    """Delivers the messages of topics, each to its web hook, from `run` to `stop`.

    It needs the package aiohttp, extra `push`. Any number of programs may push the same topic: each message goes to one of
    them at a time. Raises UsageError.
    """

    def __init__(self, client: AsyncClient, webhooks: Sequence[Webhook]) -> None:
        if not isinstance(client, AsyncClient):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"client: push needs a holdfast.AsyncClient, not {client!r}")
        topics = [webhook.topic for webhook in webhooks]
        if not topics:
            raise UsageError("push: expected at least one web hook")
        for topic in topics:
            if topics.count(topic) > 1:
                raise UsageError(
                    f'topic "{topic}" has two web hooks; expected one, because each message is delivered to one place'
                )
        self.counts = PushCounts()
        self._client, self._webhooks = client, tuple(webhooks)
        self._ending = asyncio.Event()
        self._deliveries: list[_Delivery] = []
        self._is_stopped = False

    async def run(self) -> None:
        """Deliver until `stop`, then wait for the deliveries under way. Raises HoldfastError, UsageError without aiohttp."""
        scheduler = AsyncScheduler(self._client)
        async with _session(sum(webhook.concurrency for webhook in self._webhooks)) as session:
            self._deliveries = [
                _Delivery(scheduler, one, session, self.counts, self._ending.set) for one in self._webhooks
            ]
            for delivery in self._deliveries:
                delivery.start()
            try:
                await self._ending.wait()
            finally:
                await asyncio.gather(*(delivery.stop() for delivery in self._deliveries))
        if not self._is_stopped:
            raise HoldfastError("push has ended because of an error, which was logged")

    def stop(self) -> None:
        """Reserve no more messages. A second call breaks off the deliveries under way: their messages come back."""
        if self._is_stopped:
            for delivery in self._deliveries:
                delivery.break_off()
        self._is_stopped = True
        self._ending.set()


class _Delivery(AsyncSubscription):
    """The messages of one topic on their way to its web hook."""

    def __init__(
        self,
        scheduler: AsyncScheduler,
        webhook: Webhook,
        session: "ClientSession",
        counts: PushCounts,
        on_end: Callable[[], None],
    ) -> None:
        super().__init__(scheduler, webhook.topic, self._send, webhook.ttr, None, None, None, {})
        self._webhook, self._session, self._counts, self._on_end = webhook, session, counts, on_end
        self._under_way: set[asyncio.Task[None]] = set()
        self._free = asyncio.Event()
        self._accepted: list[Message] = []
        self._deleting: asyncio.Task[None] | None = None
        self._has_failed, self._pause_before = False, 0.0

    async def stop(self) -> None:
        """Reserve no more, wait for the deliveries under way, and delete what was accepted."""
        self.stopping = True
        self._free.set()
        await super().stop()

    def break_off(self) -> None:
        """Cancel the deliveries under way."""
        for task in self._under_way:
            task.cancel()

    def _end(self) -> None:
        super()._end()
        self._on_end()

    # Take.

    def _room(self) -> Steps[int]:
        room: int = yield self._free_slots()
        return room

    async def _free_slots(self) -> int:
        if self._has_failed:
            self._has_failed = False
            self._pause_before = min(2 * self._pause_before or _FIRST_PAUSE, _LONGEST_PAUSE)
            await self._pause(self._pause_before)
        while not self.stopping:
            free = self._webhook.concurrency - len(self._under_way)
            if free > 0 and len(self._accepted) < MAX_BATCH:
                return min(free, MAX_BATCH)
            self._free.clear()
            await self._free.wait()
        return 0

    def _deliver(self, messages: Sequence[Message]) -> Steps[None]:
        for message in messages:
            task = self._loop.create_task(self._send(message))
            self._under_way.add(task)
            task.add_done_callback(self._is_over)
        yield None

    def _is_over(self, task: "asyncio.Task[None]") -> None:
        self._under_way.discard(task)
        self._free.set()

    def _finish(self) -> Steps[None]:
        yield self._end_deliveries()

    async def _end_deliveries(self) -> None:
        while self._under_way:
            await asyncio.wait(self._under_way)
        if self._deleting is not None:
            await asyncio.wait((self._deleting,), timeout=_LAST_CALL)
            self._deleting.cancel()
        if self._accepted:
            sentence = "topic %s: %d accepted messages could not be deleted, and will be delivered again"
            log.error(sentence, self.topic, len(self._accepted))

    # Send.

    async def _send(self, message: Message) -> None:
        try:
            response = await self._post(message)
        except asyncio.CancelledError:
            self._note_failure(message, "the delivery was interrupted")
            raise
        except Exception as error:
            self._note_failure(message, _cause(error, self._webhook.timeout))
            return
        if 200 <= response.status < 300:
            self._note_acceptance(message)
        else:
            is_redirect = 300 <= response.status < 400
            what = ", a redirect, which is not followed" if is_redirect else ""
            self._note_failure(message, f"status {response.status}{what}")
        await _read_rest(response)

    async def _post(self, message: Message) -> "ClientResponse":
        body = msgspec.json.encode({"topic": message.topic, "id": message.id, "contents": message.body})
        headers = {"Content-Type": "application/json"}
        if self._webhook.secret:
            headers |= signed_headers(self._webhook.secret, body, f"{message.topic}/{message.id}")
        url, limits = self._webhook.url, _limits(self._webhook.timeout)
        return await self._session.post(
            url, data=body, headers=headers, allow_redirects=False, timeout=limits
        )

    def _note_failure(self, message: Message, why: str) -> None:
        self._counts.failed += 1
        self._has_failed = True
        sentence = 'topic %s: "%s" was not accepted by %s: %s; it will be delivered again when its ttr of %g s is over'
        log.error(sentence, self.topic, message.id, self._webhook.origin, why, self._webhook.ttr)

    # Delete.

    def _note_acceptance(self, message: Message) -> None:
        self._pause_before, self._has_failed = 0.0, False
        self._accepted.append(message)
        if self._deleting is None:
            self._deleting = self._loop.create_task(self._delete())

    async def _delete(self) -> None:
        """Delete accepted messages, all in one call that were accepted during the call before."""
        outage = Outage(self.client.shard.gate)
        try:
            while self._accepted:
                some = self._accepted[:MAX_BATCH]
                held = [(message.id, message.when_ms) for message in some]
                try:
                    ended: list[bool] = await self.client.run(TopicRelease(self.topic, held))
                except HoldfastError as error:
                    await asyncio.sleep(outage.pause(error))
                    continue
                outage.over()
                del self._accepted[: len(some)]
                self._free.set()
                self._count(some, ended)
        finally:
            self._deleting = None

    def _count(self, messages: Sequence[Message], ended: Sequence[bool]) -> None:
        for message, has_ended in zip(messages, ended, strict=True):
            if has_ended:
                self._counts.delivered += 1
            else:
                self._counts.late += 1
                sentence = 'topic %s: "%s" was accepted after its ttr of %g s, so it will be delivered again'
                log.warning(sentence, self.topic, message.id, self._webhook.ttr)


def _session(connections: int) -> "ClientSession":
    """Make the HTTP client: it follows no redirect, keeps no cookies, and takes no proxy from the environment."""
    try:
        import aiohttp
    except ImportError as error:
        raise UsageError(missing_extra("push", "push", error)) from None
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=_KEPT_ALIVE),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "holdfast"},
        auto_decompress=False,
    )


def _limits(seconds: float) -> Any:
    from aiohttp import ClientTimeout

    return ClientTimeout(total=seconds)


async def _read_rest(response: "ClientResponse") -> None:
    """Read a short body, so that the connection can be used again; else close the connection."""
    left = _MOST_READ
    try:
        async with asyncio.timeout(_READ_SECONDS):
            while left > 0 and not response.content.at_eof():
                left -= len(await response.content.read(left))
    except Exception as error:
        log.debug("the body of a response was not read: %r", error)  # the status counts
    finally:
        if not response.content.at_eof():
            response.close()


def _cause(error: Exception, seconds: float) -> str:
    """Return why there was no response, without parts of the URL. An unexpected error is logged."""
    from aiohttp import ClientConnectorError, ClientError, ServerDisconnectedError

    if isinstance(error, TimeoutError):
        return f"no response within {seconds:g} s"
    if isinstance(error, ClientConnectorError):
        return f"no connection: {one_line(error.os_error.strerror or type(error.os_error).__name__)[:200]}"
    if isinstance(error, (ServerDisconnectedError, OSError)):
        return "the connection was closed before a response"
    if not isinstance(error, ClientError):
        where = "".join(
            format_tb(error.__traceback__)
        )  # without the text of the error, which may have the URL
        log.error("a delivery failed unexpectedly: %s\n%s", type(error).__name__, where)
    return f"no valid response ({type(error).__name__})"
