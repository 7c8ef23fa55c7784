"""A minimal client for a server's Unix socket.

The embedded store must start without the driver, so this has just enough of the protocol (RESP) for PING, INFO,
CONFIG and the like: replies of one line, one block of text, or a list of them.
"""

import os
import socket
import struct
from typing import Final, Self

_PEER: Final = struct.Struct("3i")


class ErrorReply(Exception):
    """An error reply of the server; the text is its own, such as ``LOADING …``."""


class Connection:
    """One connection to a server's Unix socket, for one command at a time.

    `timeout` is in seconds, for each read and write. A failed connection raises OSError.
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

    def call(self, *words: str) -> str:
        """Send one command and return its reply as text, a list as lines. Raises ErrorReply for an error reply."""
        parts = [b"*%d\r\n" % len(words)]
        for word in words:
            encoded = word.encode()
            parts.append(b"$%d\r\n%s\r\n" % (len(encoded), encoded))
        self._socket.sendall(b"".join(parts))
        return self._reply()

    def _reply(self) -> str:
        head = self._reader.readline()
        if not head.endswith(b"\r\n"):
            raise ConnectionResetError("the server closed the connection")
        kind, rest = head[:1], head[1:-2].decode(errors="replace")
        if kind == b"-":
            raise ErrorReply(rest)
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
            raise ConnectionResetError("the server closed the connection")
        return body[:-2].decode(errors="replace")

    def info(self, *sections: str) -> dict[str, str]:
        """Return the fields of these sections of INFO, by name."""
        lines = self.call("INFO", *sections).splitlines()
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
    """Raise PermissionError if another user (not root) listens: that user would get our jobs."""
    if not hasattr(socket, "SO_PEERCRED"):
        return  # the socket is in a directory that only this user can open
    _, user, _ = _PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
    if user not in (0, os.geteuid()):
        raise PermissionError(f"user {user} listens at the socket of this store")


def call(path: str, *words: str, timeout: float = 1.0) -> str:
    """Send one command on a connection of its own. Returns and raises as `Connection.call`."""
    with Connection(path, timeout) as connection:
        return connection.call(*words)


def info(path: str, *sections: str, timeout: float = 1.0) -> dict[str, str]:
    """Read sections of INFO on a connection of its own."""
    with Connection(path, timeout) as connection:
        return connection.info(*sections)
