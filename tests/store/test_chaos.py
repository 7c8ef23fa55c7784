"""Servers and wardens killed at random, while several programs write."""

import random
import signal
import threading
from pathlib import Path

import pytest

from holdfast import store as embedded
from holdfast.errors import HoldfastError
from holdfast.store import processes, resp
from holdfast.store.files import Record

ROUNDS, WRITERS = 25, 4


class Writer(threading.Thread):
    """Adds 0, 1, 2 … to a list of its own, and starts again wherever it was when the connection breaks."""

    def __init__(self, home: Path, name: str, stopping: threading.Event) -> None:
        super().__init__(name=name)
        self.home = home
        self.stopping = stopping
        self.acknowledged = 0
        self.errors: list[Exception] = []

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                address = embedded.ensure(self.home, wait=20)
                with resp.Connection(address.url.removeprefix("unix://"), timeout=30) as line:
                    self.write(line)
            except OSError:
                continue
            except (HoldfastError, resp.ErrorReply) as error:
                self.errors.append(error)

    def write(self, line: resp.Connection) -> None:
        while not self.stopping.is_set():
            line.call("RPUSH", self.name, str(self.acknowledged))
            self.acknowledged += 1


@pytest.mark.full
def test_nothing_acknowledged_is_lost_whoever_is_killed_and_when(home: Path) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice, stopping = random.Random(seed), threading.Event()
    writers = [Writer(home, f"list{number}", stopping) for number in range(WRITERS)]
    embedded.ensure(home)
    for writer in writers:
        writer.start()
    for number in range(ROUNDS):
        stopping.wait(dice.uniform(0.0, 0.8))
        # Every third time the warden, for it gives up on a server that crashes five times within a minute.
        kill_one(home, the_warden=number % 3 == 0 or dice.random() < 0.4)
    stopping.set()
    for writer in writers:
        writer.join()
    assert [error for writer in writers for error in writer.errors] == []
    embedded.stop(home)  # also waits for one that is just being killed
    address = embedded.ensure(home, wait=20)
    for writer in writers:
        kept = {int(number) for number in say(address, "LRANGE", writer.name, "0", "-1").split()}
        assert kept == set(range(len(kept)))
        # One more may have been written than was acknowledged, never one fewer.
        assert writer.acknowledged <= len(kept) <= writer.acknowledged + 1
        assert writer.acknowledged > 100


def kill_one(home: Path, *, the_warden: bool) -> None:
    record = Record.read(home)
    if record is None:
        return
    if the_warden:
        processes.send(record.warden_pid, record.warden_started, signal.SIGKILL)
    else:
        processes.send(record.pid, record.started, signal.SIGKILL)


def say(address: embedded.StoreAddress, *words: str) -> str:
    return resp.call(address.url.removeprefix("unix://"), *words, timeout=30)
