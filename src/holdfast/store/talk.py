"""The few words a store's owner says to its server, over a Unix socket.

The embedded store must be able to start without the store driver, so this speaks just enough of the wire
format for PING, INFO, CONFIG and the like: replies of one line, or one block of text.
"""

import os
import socket
import struct
from typing import Final, Self

_PEER: Final = struct.Struct("3i")


class Refusal(Exception):
    """The server answered with an error; the text is its own, such as ``LOADING …``."""


class Line:
    """One connection to a server's Unix socket, for plain questions one after the other.

    `timeout` is in seconds and holds for each step. Every failure to talk is an OSError.
    """

    def __init__(self, path: str, timeout: float = 1.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(timeout)
            self._socket.connect(path)
            _check_peer(self._socket)
            self._reader = self._socket.makefile("rb")
        except BaseException:
            self._socket.close()
            raise

    def ask(self, *words: str) -> str:
        """Send one command and return its one-line or block reply as text; raise Refusal for an error."""
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            encoded = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(encoded), encoded))
        self._socket.sendall(b"".join(parts))
        return self._reply()

    def _reply(self) -> str:
        head = self._reader.readline()
        if not head.endswith(b"\r\n"):
            raise ConnectionResetError("the server hung up")
        kind, rest = head[:1], head[1:-2].decode(errors="replace")
        if kind == b"-":
            raise Refusal(rest)
        if kind == b"$":
            return self._block(int(rest))
        if kind == b"*":
            return "\n".join(self._reply() for _ in range(int(rest)))
        return rest

    def _block(self, length: int) -> str:
        if length < 0:
            return ""
        body = self._reader.read(length + 2)
        if len(body) != length + 2:
            raise ConnectionResetError("the server hung up")
        return body[:-2].decode(errors="replace")

    def facts(self, *sections: str) -> dict[str, str]:
        """What INFO says of these sections, by name."""
        lines = self.ask("INFO", *sections).splitlines()
        pairs = (line.partition(":") for line in lines if not line.startswith("#"))
        return {name: value for name, colon, value in pairs if colon}

    def close(self) -> None:
        self._reader.close()
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _check_peer(connection: socket.socket) -> None:
    """Raise PermissionError where another user, but root, listens: it would be told our jobs."""
    if not hasattr(socket, "SO_PEERCRED"):
        return  # the socket lies in a directory that only we can open
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if user not in (0, os.geteuid()):
        raise PermissionError(f"user {user} listens at the socket of this store")


def ask(path: str, *words: str, timeout: float = 1.0) -> str:
    """One question on a connection of its own."""
    with Line(path, timeout) as line:
        return line.ask(*words)


def facts(path: str, *sections: str, timeout: float = 1.0) -> dict[str, str]:
    """INFO on a connection of its own."""
    with Line(path, timeout) as line:
        return line.facts(*sections)
