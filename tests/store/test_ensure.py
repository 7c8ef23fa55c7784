"""Making sure that a store runs: one server, private, found by everybody."""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import store as embedded
from holdfast.errors import StoreUnsupported, UsageError
from holdfast.store import files, processes, resp

Say = Callable[..., str]
Eventually = Callable[..., None]

STARTER = """
import json, sys
from pathlib import Path
from holdfast import store
print("ready", flush=True)
sys.stdin.readline()
address = store.ensure(Path(sys.argv[1]), linger=float(sys.argv[2]))
print(json.dumps([address.pid, address.started]), flush=True)
sys.stdin.readline()
"""


def starter(home: Path, linger: float = 10.0) -> subprocess.Popen[str]:
    """A process that calls `ensure` when it is told to, says what it got, and stays until it is told to go."""
    words = [sys.executable, "-c", STARTER, str(home), str(linger)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> tuple[int, bool]:
    assert process.stdout
    pid, started = json.loads(process.stdout.readline())
    return pid, started


def dismiss(processes: list[subprocess.Popen[str]]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.full
def test_eight_programs_that_start_at_once_get_one_server(home: Path) -> None:
    starters = [starter(home) for _ in range(8)]
    try:
        for process in starters:
            tell(process)
        answers = [hear(process) for process in starters]
    finally:
        dismiss(starters)
    assert len({pid for pid, _ in answers}) == 1
    assert sum(started for _, started in answers) == 1


@pytest.mark.full
@pytest.mark.parametrize("count", range(10))
def test_eight_programs_get_one_server_whenever_the_warden_has_just_been_killed(
    home: Path, eventually: Eventually, count: int
) -> None:
    first = embedded.ensure(home)
    starters = [starter(home) for _ in range(8)]
    try:
        os.kill(first.warden_pid, 9)
        eventually(lambda: not processes.started(first.warden_pid), "the warden is gone, its server not yet")
        for process in starters:
            tell(process)
        answers = [hear(process) for process in starters]
    finally:
        dismiss(starters)
    assert len({pid for pid, _ in answers}) == 1
    assert answers[0][0] != first.pid


@pytest.mark.full
def test_the_store_outlives_whoever_started_it(home: Path, say: Say) -> None:
    process = starter(home)
    tell(process)
    pid, started = hear(process)
    dismiss([process])  # with SIGKILL
    address = embedded.ensure(home)
    assert (address.pid, address.started) == (pid, False)
    assert started
    assert say(address, "PING") == "PONG"


def test_the_second_call_finds_the_first_ones_server(home: Path) -> None:
    first, second = embedded.ensure(home), embedded.ensure(home)
    assert (first.pid, first.started) == (second.pid, True)
    assert not second.started


def test_the_server_listens_to_its_user_alone(home: Path, say: Say) -> None:
    address = embedded.ensure(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    socket = Path(address.url.removeprefix("unix://"))
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert say(address, "CONFIG", "GET", "port") == "port\n0"


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "value"),
    [("appendonly", "yes"), ("appendfsync", "always"), ("save", ""), ("maxmemory-policy", "noeviction")],
)
def test_the_server_keeps_what_it_acknowledged(home: Path, say: Say, name: str, value: str) -> None:
    assert say(embedded.ensure(home), "CONFIG", "GET", name) == f"{name}\n{value}"


def test_the_server_takes_at_most_half_of_the_memory(home: Path, say: Say) -> None:
    limit = int(say(embedded.ensure(home), "CONFIG", "GET", "maxmemory").splitlines()[1])
    assert 0 < limit <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@pytest.mark.full
@pytest.mark.skipif(not processes.ON_LINUX, reason="reads /proc")
def test_the_warden_is_detached_and_inherits_nothing(home: Path) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        address = embedded.ensure(home)
        ours = os.readlink(f"/proc/self/fd/{writing}")
        held = {os.readlink(link) for link in Path(f"/proc/{address.warden_pid}/fd").iterdir()}
    finally:
        os.close(reading)
        os.close(writing)
    assert ours not in held
    assert os.getsid(address.warden_pid) != os.getsid(0)
    assert Path(os.readlink(f"/proc/{address.warden_pid}/cwd")) == home


@pytest.mark.full
def test_a_store_ends_when_nobody_needed_it_for_a_while(home: Path, eventually: Eventually) -> None:
    address = embedded.ensure(home, linger=0.3)
    eventually(lambda: not processes.started(address.warden_pid), "the warden is gone")
    assert not processes.started(address.pid)
    assert embedded.status(home).state == "stopped"


@pytest.mark.full
def test_a_store_stays_while_somebody_is_connected(home: Path, eventually: Eventually) -> None:
    busy = embedded.ensure(home, linger=1.5)
    with resp.Connection(busy.url.removeprefix("unix://")) as line:
        idle = embedded.ensure(home.with_name("idle"), linger=1.5)
        eventually(lambda: not processes.started(idle.warden_pid), "the store without visitors is gone")
        assert line.call("PING") == "PONG"
    eventually(
        lambda: not processes.started(busy.warden_pid), "the other one follows when its visitor has left"
    )


@pytest.mark.full
def test_the_longest_wish_for_staying_counts(home: Path, eventually: Eventually) -> None:
    kept = embedded.ensure(home, linger=1.5)
    embedded.ensure(home, linger=0)
    embedded.ensure(home, linger=1.5)
    idle = embedded.ensure(home.with_name("idle"), linger=1.5)
    eventually(lambda: not processes.started(idle.warden_pid), "a store that nobody asked to stay is gone")
    assert embedded.status(home).pid == kept.pid
    assert embedded.status(home).linger == 0


@pytest.mark.full
def test_a_store_can_live_at_a_path_too_long_for_a_socket(home: Path, say: Say) -> None:
    deep = home / ("long-" * 20) / ("longer-" * 10)
    deep.mkdir(parents=True)
    address = embedded.ensure(deep)
    try:
        socket = address.url.removeprefix("unix://")
        assert len(socket) <= 100
        assert json.loads((deep / "server.json").read_text())["socket"] == socket
        assert say(address, "SET", "kept", "here") == "OK"
        assert embedded.ensure(deep).pid == address.pid
        assert stat.S_IMODE(Path(socket).parent.stat().st_mode) == 0o700
        assert (deep / files.DATA / "appendonlydir").is_dir()
    finally:
        embedded.stop(deep)
    assert not Path(socket).exists()


@pytest.mark.full
def test_a_running_store_is_found_by_who_has_another_runtime_directory(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = home / ("long-" * 24)
    deep.mkdir(parents=True)
    address = embedded.ensure(deep)
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
        assert embedded.ensure(deep).url == address.url
    finally:
        embedded.stop(deep)


@pytest.mark.full
def test_a_store_ends_when_its_directory_is_removed(home: Path, eventually: Eventually) -> None:
    address = embedded.ensure(home)
    shutil.rmtree(home)
    eventually(lambda: not processes.started(address.warden_pid), "the warden is gone")
    assert not processes.started(address.pid)
    assert not home.exists()


@pytest.mark.full
def test_a_store_whose_socket_was_removed_gets_a_new_one(
    home: Path, say: Say, eventually: Eventually
) -> None:
    address = embedded.ensure(home)
    say(address, "SET", "kept", "yes")
    Path(address.url.removeprefix("unix://")).unlink()
    eventually(lambda: embedded.status(home).state == "running", "it runs again")
    assert say(embedded.ensure(home), "GET", "kept") == "yes"


def test_a_store_of_lower_durability_is_not_taken_for_a_higher_one(home: Path) -> None:
    embedded.ensure(home, durability="process")
    with pytest.raises(StoreUnsupported, match="runs at durability 'process'"):
        embedded.ensure(home, durability="fsync")
    assert embedded.ensure(home, durability="memory").durability == "process"


@pytest.mark.full
def test_a_store_without_a_log_is_not_opened_where_there_is_one(home: Path) -> None:
    embedded.ensure(home)
    embedded.stop(home)
    with pytest.raises(StoreUnsupported, match="use another directory"):
        embedded.ensure(home, durability="memory")


@pytest.mark.parametrize(
    "bad", [{"durability": "always"}, {"linger": -1.0}, {"linger": float("nan")}, {"wait": -1.0}]
)
def test_absurd_wishes_are_refused_before_anything_is_made(home: Path, bad: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        embedded.ensure(home, **bad)  # type: ignore[arg-type]
    assert not home.exists()
