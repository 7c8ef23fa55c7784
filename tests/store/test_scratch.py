"""Throwaway stores, which every other test stands on."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import StoreUnavailable, UsageError
from holdfast.store import processes
from holdfast.testing import ScratchStore

Eventually = Callable[..., None]


def test_a_scratch_store_speaks_and_leaves_nothing() -> None:
    with ScratchStore() as store:
        directory, pid = store.directory, store.pid
        assert store.ask("SET", "a", "1") == "OK"
        assert store.url == f"unix://{directory}/socket"
    assert not directory.exists()
    assert not processes.started(pid)


def test_both_engines_are_what_they_say(engine_store: ScratchStore) -> None:
    server = engine_store.ask("INFO", "server")
    assert ("valkey_version" in server) == (engine_store.engine == "valkey")
    assert engine_store.version in server


@pytest.mark.full
def test_a_scratch_store_with_a_log_keeps_what_it_acknowledged_when_killed() -> None:
    with ScratchStore(durability="fsync") as store:
        store.ask("SET", "kept", "yes")
        store.kill()
        with pytest.raises(OSError):
            store.ask("PING")
        store.restart()
        assert store.ask("GET", "kept") == "yes"


@pytest.mark.full
def test_a_scratch_store_without_a_log_forgets() -> None:
    with ScratchStore() as store:
        store.ask("SET", "kept", "no")
        store.restart()
        assert store.ask("GET", "kept") == ""


@pytest.mark.full
def test_flushing_forgets_data_and_keeps_libraries() -> None:
    library = (
        "#!lua name=try\nredis.register_function{function_name='try', callback=function() return 'yes' end}"
    )
    with ScratchStore() as store:
        store.ask("FUNCTION", "LOAD", library)
        store.ask("SET", "a", "1")
        store.flush()
        assert store.ask("DBSIZE") == "0"
        assert store.ask("FCALL", "try", "0") == "yes"


@pytest.mark.full
def test_a_port_is_opened_only_when_asked_for() -> None:
    with ScratchStore() as store, pytest.raises(UsageError):
        _ = store.tcp_url
    with ScratchStore(tcp=True) as store:
        assert store.ask("CONFIG", "GET", "port") == f"port\n{store.port}"
        assert store.tcp_url.endswith(str(store.port))


@pytest.mark.full
def test_settings_are_passed_on_and_bad_ones_named() -> None:
    with ScratchStore(settings={"maxmemory": "50000000"}) as store:
        assert store.ask("CONFIG", "GET", "maxmemory") == "maxmemory\n50000000"
    with pytest.raises(StoreUnavailable, match="ended while starting"):
        ScratchStore(settings={"no-such-setting": "1"}).start()


def test_an_engine_and_a_level_that_do_not_exist_are_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'valkey'"):
        ScratchStore(engine="valky")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 'fsync'"):
        ScratchStore(durability="fsycn")  # type: ignore[arg-type]


@pytest.mark.full
@pytest.mark.skipif(not processes.ON_LINUX, reason="other systems have no signal for the death of a parent")
def test_a_scratch_store_dies_with_the_process_that_started_it(eventually: Eventually) -> None:
    program = """
import sys
from holdfast.testing import ScratchStore
store = ScratchStore().start()
print(store.pid, store.directory, flush=True)
sys.stdin.readline()
"""
    words = [sys.executable, "-c", program]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid, directory = owner.stdout.readline().split()
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
    eventually(lambda: not processes.started(int(pid)), "the server follows")
    for path in sorted(Path(directory).rglob("*"), reverse=True):
        path.unlink()
    os.rmdir(directory)


@pytest.mark.full
def test_a_scratch_store_outlives_the_thread_that_started_it() -> None:
    store = ScratchStore()
    starting = threading.Thread(target=store.start)
    starting.start()
    starting.join()
    try:
        assert store.ask("PING") == "PONG"
        store.ask("DEBUG", "SLEEP", "0.05")  # a signal on its way would have arrived
        assert store.ask("PING") == "PONG"
    finally:
        store.stop()
