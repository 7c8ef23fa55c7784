"""What was done to workers and when, by the clock of the machine; and when the store was too slow for any of them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import time

from laws import Harm

from holdfast import Client
from holdfast.commands.admin import ConfigSet
from holdfast.errors import HoldfastError
from waiting import pause


class Witness(threading.Thread):
    """Connects and writes to the store all the time, as supervisors do. If that takes `patience` seconds, all are harmed.

    So neither an outage of the store nor a machine that is too slow counts against the workers.
    """

    def __init__(self, url: str, namespace: str, patience: float) -> None:
        super().__init__(name="witness", daemon=True)
        self._client = Client(url, namespace=namespace, deadline=0.2)
        self._patience = patience * 1000
        self._harms: list[Harm] = []
        self._stopping = threading.Event()

    def run(self) -> None:
        last, recovers = now_ms(), 0.0
        while not self._stopping.is_set():
            pause(0.05)
            try:
                self._client.run(ConfigSet("witness", "1"))
                self._client.link.close()
            except HoldfastError:
                recovers = 4 * self._patience  # workers try again a while after an outage has ended
                continue
            now = now_ms()
            if now - last > self._patience:
                self._harms.append(Harm("", last, now + recovers))
            last, recovers = now, 0.0

    @contextmanager
    def harm(self, worker: str) -> Iterator[None]:
        """Note that this worker is harmed in the block; it has recovered a while later."""
        harm = Harm(worker, now_ms())
        self._harms.append(harm)
        yield
        harm.end = now_ms() + self._patience

    def stop(self) -> list[Harm]:
        """Stop, and return all harm that was done."""
        self._stopping.set()
        self.join()
        self._client.close()
        return self._harms


def now_ms() -> float:
    """The clock of the machine, which the store reads too."""
    return time() * 1000
