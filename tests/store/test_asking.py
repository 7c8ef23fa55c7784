"""Asking after a store, and stopping it."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import store as embedded
from holdfast.store import files, processes, resp

Say = Callable[..., str]


def test_asking_after_a_store_makes_nothing(home: Path) -> None:
    status = embedded.status(home)
    assert (status.state, status.directory, status.pid) == ("stopped", home.resolve(), 0)
    assert embedded.stop(home) is False
    assert not home.exists()


def test_stopping_a_directory_that_is_no_store_touches_nothing(home: Path) -> None:
    home.mkdir()
    assert embedded.stop(home) is False
    assert list(home.iterdir()) == []


@pytest.mark.full
def test_a_running_store_says_how_it_is(home: Path, say: Say) -> None:
    address = embedded.ensure(home, linger=60)
    say(address, "SET", "some", "data")
    with resp.Connection(address.url.removeprefix("unix://")) as line:
        line.call("PING")
        status = embedded.status(home)
    assert status.state == "running"
    assert (status.url, status.pid, status.warden_pid) == (address.url, address.pid, address.warden_pid)
    assert (status.engine, status.version, status.durability) == ("valkey", address.version, "fsync")
    assert (status.linger, status.crashes, status.why) == (60, 0, "")
    assert status.memory > 100_000
    assert status.disk > 50
    assert status.clients == 1


@pytest.mark.full
def test_a_stopped_store_is_gone_and_keeps_its_data(home: Path, say: Say) -> None:
    address = embedded.ensure(home)
    say(address, "SET", "kept", "yes")
    assert embedded.stop(home) is True
    assert not processes.started(address.pid)
    assert not processes.started(address.warden_pid)
    assert embedded.status(home).state == "stopped"
    assert not Path(address.url.removeprefix("unix://")).exists()
    assert say(embedded.ensure(home), "GET", "kept") == "yes"


@pytest.mark.full
def test_stopping_also_waits_for_a_server_whose_warden_was_killed(home: Path) -> None:
    address = embedded.ensure(home)
    os.kill(address.warden_pid, signal.SIGKILL)
    assert embedded.stop(home) is True
    assert not processes.started(address.pid)
    assert embedded.stop(home) is False


@pytest.mark.full
def test_a_record_that_cannot_be_read_is_no_record(home: Path, say: Say) -> None:
    address = embedded.ensure(home)
    say(address, "SET", "kept", "yes")
    embedded.stop(home)
    for content in ("", "{", "[1]", '{"state": "running", "from": "the future"}'):
        (home / "server.json").write_text(content)
        assert files.Record.read(home) is None
    assert say(embedded.ensure(home), "GET", "kept") == "yes"
