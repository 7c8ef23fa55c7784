"""What is killed comes back, and nothing that was acknowledged is lost."""

import os
import resource
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import store as embedded
from holdfast.errors import StoreUnavailable
from holdfast.store import files, processes, resp

Say = Callable[..., str]
Eventually = Callable[..., None]


def socket_of(address: embedded.StoreAddress) -> str:
    return address.url.removeprefix("unix://")


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


class Writer:
    """Writes 0, 1, 2 … into a list, and remembers how many were acknowledged."""

    def __init__(self, address: embedded.StoreAddress, room: int = 0) -> None:
        self.acknowledged = 0
        self._line = resp.Connection(socket_of(address), timeout=30)
        self._filling = "x" * room
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        try:
            while True:
                self._line.call("RPUSH", "numbers", f"{self.acknowledged}{self._filling}")
                self.acknowledged += 1
        except OSError:
            self._line.close()

    def wait_for_the_end(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


def numbers_kept(address: embedded.StoreAddress) -> int:
    with resp.Connection(socket_of(address), timeout=30) as line:
        kept = line.call("LRANGE", "numbers", "0", "-1").split()
    assert [number.rstrip("x") for number in kept] == [str(index) for index in range(len(kept))]
    return len(kept)


def test_a_killed_server_comes_back_with_its_data(home: Path, say: Say) -> None:
    before = embedded.ensure(home)
    say(before, "SET", "kept", "yes")
    kill(before.pid)
    after = embedded.ensure(home)
    assert after.pid != before.pid
    assert after.warden_pid == before.warden_pid
    assert say(after, "GET", "kept") == "yes"
    assert embedded.status(home).crashes == 1


def test_the_server_of_a_killed_warden_ends_and_the_next_who_needs_it_starts_another(
    home: Path, say: Say, eventually: Eventually
) -> None:
    before = embedded.ensure(home)
    say(before, "SET", "kept", "yes")
    kill(before.warden_pid)
    eventually(lambda: not processes.started(before.pid), "no server without an owner")
    after = embedded.ensure(home)
    assert (after.started, after.warden_pid != before.warden_pid) == (True, True)
    assert say(after, "GET", "kept") == "yes"


@pytest.mark.full
@pytest.mark.parametrize("count", range(3))
def test_a_server_killed_in_the_middle_of_writing_loses_nothing_acknowledged(
    home: Path, eventually: Eventually, count: int
) -> None:
    address = embedded.ensure(home)
    writers = [Writer(address)]
    eventually(lambda: writers[0].acknowledged > 200 * (count + 1), "it writes")
    kill(address.pid)
    writers[0].wait_for_the_end()
    assert numbers_kept(embedded.ensure(home)) >= writers[0].acknowledged


@pytest.mark.full
def test_a_warden_killed_in_the_middle_of_writing_loses_nothing_acknowledged(
    home: Path, eventually: Eventually
) -> None:
    address = embedded.ensure(home)
    writer = Writer(address)
    eventually(lambda: writer.acknowledged > 200, "it writes")
    kill(address.warden_pid)
    writer.wait_for_the_end()
    assert numbers_kept(embedded.ensure(home)) >= writer.acknowledged


@pytest.mark.full
@pytest.mark.skipif(not processes.ON_LINUX, reason="limits the file size of another process")
def test_a_full_disk_loses_nothing_acknowledged(home: Path, eventually: Eventually) -> None:
    address = embedded.ensure(home)
    resource.prlimit(address.pid, resource.RLIMIT_FSIZE, (400_000, 400_000))
    writer = Writer(address, room=1000)
    writer.wait_for_the_end()  # the server ends rather than acknowledge what it cannot write
    assert writer.acknowledged > 300
    eventually(lambda: embedded.status(home).crashes == 1, "the warden has seen it")
    assert numbers_kept(embedded.ensure(home)) >= writer.acknowledged


@pytest.mark.full
def test_a_server_that_crashes_five_times_within_a_minute_is_given_up(
    home: Path, eventually: Eventually, say: Say
) -> None:
    address = embedded.ensure(home)
    say(address, "SET", "kept", "yes")
    for crash in range(1, 6):
        kill(address.pid)
        if crash < 5:
            address = embedded.ensure(home)
    eventually(lambda: embedded.status(home).state == "unwell", "the warden gives up")
    status = embedded.status(home)
    assert status.crashes == 5
    assert "5 times within a minute, last: SIGKILL" in status.why
    eventually(lambda: not processes.started(address.warden_pid), "it is gone")
    # Who comes later tries again.
    assert say(embedded.ensure(home), "GET", "kept") == "yes"


def log_of(home: Path) -> Path:
    [log] = (home / files.DATA / "appendonlydir").glob("*.incr.aof")
    return log


@pytest.mark.full
def test_a_torn_end_of_the_log_costs_only_the_call_that_was_torn(home: Path, say: Say) -> None:
    address = embedded.ensure(home)
    say(address, "SET", "whole", "yes")
    say(address, "SET", "torn", "yes")
    embedded.stop(home)
    log = log_of(home)
    os.truncate(log, log.stat().st_size - 3)
    address = embedded.ensure(home)
    assert say(address, "MGET", "whole", "torn") == "yes\n"


@pytest.mark.full
def test_a_log_damaged_in_its_middle_is_not_opened_and_says_so(home: Path, say: Say) -> None:
    address = embedded.ensure(home)
    for number in range(100):
        say(address, "SET", f"key{number}", "value")
    embedded.stop(home)
    log = log_of(home)
    content = log.read_bytes()
    middle = content.index(b"key50") - 10
    log.write_bytes(content[:middle] + b"#" * 8 + content[middle + 8 :])
    damaged = log.read_bytes()
    with pytest.raises(StoreUnavailable, match="Bad file format reading the append only file"):
        embedded.ensure(home)
    assert embedded.status(home).state == "unwell"
    assert "Bad file format" in embedded.status(home).why
    assert log.read_bytes() == damaged
    with pytest.raises(StoreUnavailable):
        embedded.ensure(home)


@pytest.mark.full
@pytest.mark.skipif(not processes.ON_LINUX, reason="elsewhere the next warden ends it at once")
def test_two_servers_never_write_one_log(home: Path, eventually: Eventually, say: Say) -> None:
    """A server that outlives its warden, here because it is frozen, is waited for."""
    before = embedded.ensure(home)
    say(before, "SET", "kept", "yes")
    os.kill(before.pid, signal.SIGSTOP)
    kill(before.warden_pid)
    eventually(lambda: not files.is_locked(home / files.LOCK), "the old warden is gone")
    found: list[embedded.StoreAddress] = []
    asking = threading.Thread(target=lambda: found.append(embedded.ensure(home)))
    asking.start()
    eventually(lambda: "ending the server" in files.tail(home / files.WARDEN_LOG), "a new warden has seen it")
    assert processes.started(before.pid)
    assert found == []
    os.kill(before.pid, signal.SIGCONT)
    asking.join(30)
    assert not processes.started(before.pid)
    assert say(found[0], "GET", "kept") == "yes"


@pytest.mark.full
def test_a_server_that_outlives_its_warden_and_does_not_end_is_killed(home: Path, say: Say) -> None:
    before = embedded.ensure(home)
    say(before, "SET", "kept", "yes")
    os.kill(before.pid, signal.SIGSTOP)
    kill(before.warden_pid)
    after = embedded.ensure(home, wait=20)
    assert not processes.started(before.pid)
    assert say(after, "GET", "kept") == "yes"


def test_a_pid_that_was_used_again_is_left_alone(home: Path) -> None:
    """The record names a living process that is not the server: same pid, another start."""
    embedded.ensure(home)
    embedded.stop(home)
    ourselves = os.getpid()
    files.Record(
        state="running", pid=ourselves, started="long ago", run_id="x", socket=str(home / "socket")
    ).write(home)
    assert embedded.ensure(home).pid != ourselves
    assert not processes.send(ourselves, "long ago", signal.SIGKILL)


@pytest.mark.full
def test_a_store_is_handed_out_only_when_it_has_loaded_its_data(home: Path, say: Say) -> None:
    address = embedded.ensure(home)
    say(address, "EVAL", "for i = 1, 200000 do redis.call('RPUSH', 'long', i) end", "0")
    for _ in range(3):
        kill(address.pid)
        address = embedded.ensure(home)
        assert say(address, "LLEN", "long") == "200000"
