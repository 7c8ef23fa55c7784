"""Puts that are collected and leave together: `with client.batch():`."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from holdfast.commands.jobs import Put
from holdfast.commands.wishes import PutWished
from holdfast.errors import HoldfastError
from holdfast.settings import MAX_BATCH

OnePut = Put | PutWished
ONE_PUT: Final = (Put, PutWished)


class Batch:
    """The puts of one thread that have not left yet, and what was refused so far."""

    def __init__(self, send: Callable[[Sequence[OnePut]], list[Any]]) -> None:
        self._send = send
        self._puts: list[OnePut] = []
        self.refused: dict[str, HoldfastError] = {}

    def add(self, put: OnePut) -> str:
        """Collect one put; answers its jid."""
        self._puts.append(put)
        if len(self._puts) >= MAX_BATCH:
            self.send()
        return put.jid

    def send(self) -> None:
        """Send what was collected."""
        puts, self._puts = self._puts, []
        if not puts:
            return
        for put, answer in zip(puts, self._send(puts), strict=True):
            if isinstance(answer, HoldfastError):
                self.refused[put.jid] = answer

    def check(self) -> None:
        """Raise the first refusal, if there was one; `refused` holds them all by jid."""
        for error in self.refused.values():
            error.add_note(f"{len(self.refused)} jobs of this batch were not put; the others were")
            raise error
