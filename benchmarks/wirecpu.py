"""Server CPU per operation: prepared bytes over one socket, `INFO cpu` before and after.

Method of the design page: requests are built beforehand and sent 100 jobs' worth at a time, every reply is checked
for an error, and only main-thread CPU counts, for the wall clock of a shared machine says nothing.
"""

import socket
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import hiredis

Word = bytes | str | int | float


def pack(*words: Word) -> bytes:
    """One command in the store's wire format."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        text = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(text), text))
    return b"".join(parts)


class Wire:
    """One connection that sends bytes and reads a known number of replies."""

    def __init__(self, url: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(url.removeprefix("unix://"))
        self._socket.settimeout(60)
        self._reader = hiredis.Reader()

    def replies(self, count: int) -> Iterator[Any]:
        """The next `count` replies. Raises RuntimeError on the first that is an error."""
        while count:
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self._socket.recv(1 << 20))
                continue
            if isinstance(reply, hiredis.ReplyError):
                raise RuntimeError(str(reply))
            count -= 1
            yield reply

    def send(self, requests: Sequence[bytes]) -> list[Any]:
        """Send requests in one piece and return their replies."""
        self._socket.sendall(b"".join(requests))
        return list(self.replies(len(requests)))

    def call(self, *words: Word) -> Any:
        return self.send([pack(*words)])[0]

    def in_waves(self, requests: Sequence[bytes], wave: int) -> list[Any]:
        """Send `wave` requests at a time."""
        found: list[Any] = []
        for first in range(0, len(requests), wave):
            found += self.send(requests[first : first + wave])
        return found

    def cpu(self) -> float:
        """Main-thread CPU of the server so far, microseconds."""
        fields = dict(
            line.split(":", 1) for line in self.call("INFO", "cpu").decode().splitlines() if ":" in line
        )
        seconds = float(fields["used_cpu_user_main_thread"]) + float(fields["used_cpu_sys_main_thread"])
        return seconds * 1e6

    def memory(self) -> int:
        """`used_memory` of the server, bytes."""
        text = self.call("INFO", "memory").decode()
        return int(next(line for line in text.splitlines() if line.startswith("used_memory:")).split(":")[1])


def chunks(items: Sequence[Any], size: int) -> Iterable[Sequence[Any]]:
    """`items` in pieces of `size`."""
    return (items[first : first + size] for first in range(0, len(items), size))
