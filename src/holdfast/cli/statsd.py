"""Gauges as a statsd takes them: names without odd characters, lines packed into packets, sent again and again."""

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import Final

from holdfast.cli.figures import figures_of
from holdfast.cli.output import echo_text, say_json
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError

MOST_BYTES: Final = 1400
"""Of one packet: it fits into one frame of a network."""

_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
_ODD_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")


class Statsd:
    """Where gauges go, and what their names begin and end with. Raises UsageError."""

    def __init__(self, host: str, port: int, prefix: str = "", postfix: str = "") -> None:
        for what, text in (("prefix", prefix), ("postfix", postfix)):
            if _ODD_IN_NAME.search(text):
                raise UsageError(f"--{what} {text!r} must be letters, digits, dots, dashes and underscores")
        self.host, self.port = host, port
        self._before = f"{prefix.strip('.')}." if prefix.strip(".") else ""
        self._after = f".{postfix.strip('.')}" if postfix.strip(".") else ""

    def packets(self, gauges: dict[tuple[str, ...], float]) -> Iterator[bytes]:
        """The gauges as lines, as many in one packet as have room."""
        packet = b""
        for words, number in gauges.items():
            line = f"{self._name(words)}:{number:.6f}".rstrip("0").rstrip(".").encode() + b"|g"
            if packet and len(packet) + len(line) >= MOST_BYTES:
                yield packet
                packet = b""
            packet += (b"\n" if packet else b"") + line
        if packet:
            yield packet

    def send(self, gauges: dict[tuple[str, ...], float]) -> int:
        """Send them; answers how many packets it took. Raises OSError if the host has no address."""
        family, kind, _, _, address = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_DGRAM)[0]
        packets = list(self.packets(gauges))
        with socket.socket(family, kind) as wire:
            for packet in packets:
                wire.sendto(packet, address)
        return len(packets)

    def _name(self, words: tuple[str, ...]) -> str:
        return self._before + ".".join(_ODD.sub("_", word) for word in words) + self._after


def emit(client: Client, target: Statsd, interval: float, count: int, as_json: bool = False) -> int:
    """Send the figures of a store every `interval` seconds, `count` times, or until INT where that is 0 or less.

    Answers 1 if the last time failed, else 0.
    """
    done, trouble, due, pause = 0, "", monotonic(), threading.Event()
    with suppress(KeyboardInterrupt):
        while True:
            before, trouble = trouble, _emit_once(client, target, as_json)
            if trouble and trouble != before:
                echo_text(f"{trouble}; tried again every {interval:g} s", err=True)
            done += 1
            if done == count:
                break
            due = max(due + interval, monotonic())
            pause.wait(due - monotonic())
    return 1 if trouble else 0


def _emit_once(client: Client, target: Statsd, as_json: bool) -> str:
    """Answers what went wrong."""
    try:
        gauges = figures_of(client).gauges()
        packets = target.send(gauges)
    except HoldfastError as error:
        return f"the store cannot be asked: {error}"
    except OSError as error:
        return f"{target.host}:{target.port} cannot be reached: {error}"
    if as_json:
        say_json({"gauges": len(gauges), "packets": packets})
    return ""
