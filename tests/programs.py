"""Starting Python programs, as `subprocess` does, in the time of a fork: `program_server.py` has imported holdfast already.

Programs that want an interpreter as it is when it starts (gevent, flags of Python, an environment with other settings of
Python) get one.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import IO, Any

SERVER = Path(__file__).with_name("program_server.py")
LARGEST = 1 << 17
OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")
FREE = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")


def is_loader(pid: int) -> bool:
    """Whether a process of a worker loads its code and forks its children, and is none of them."""
    try:
        title = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b": Loading code" in title or b": Forking children" in title


class Server:
    """The process that forks programs, one for each process that runs tests."""

    def __init__(self) -> None:
        self.settings = settings_of(os.environ)
        self.owner = os.getpid()
        self._door, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self._ended: dict[int, int] = {}
        self._lock = threading.Lock()
        atexit.register(self.stop)

    def stop(self) -> None:
        if os.getpid() == self.owner:
            self._door.close()
            self._process.wait(30)

    def start(self, request: bytes, files: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._door, [request], files)
            while True:
                pid = self._read()
                if pid:
                    self._ended.pop(pid, None)  # of an earlier process of this number
                    return pid

    def status(self, pid: int, within: float) -> int | None:
        """The exit status of a program, by its sign as `subprocess` has it; None if it runs on for so long."""
        deadline = monotonic() + within
        while True:
            with self._lock:
                while pid not in self._ended and self._is_ready(min(0.02, deadline - monotonic())):
                    self._read()
                if pid in self._ended:
                    return self._ended[pid]
            if monotonic() >= deadline:
                return None

    def _is_ready(self, within: float) -> bool:
        return bool(select.select([self._door], [], [], max(0.0, within))[0])

    def _read(self) -> int:
        """Take one message. Returns the pid of a program that was started, else 0."""
        text = self._door.recv(LARGEST)
        assert text, "the server of programs has ended"
        message = json.loads(text)
        if "ended" in message:
            self._ended[message["ended"]] = message["status"]
        return int(message.get("started", 0))


_servers: list[Server] = []


def server() -> Server:
    if not _servers or _servers[-1].owner != os.getpid():
        _servers.append(Server())
    return _servers[-1]


def settings_of(environment: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads when it starts."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(OF_THE_INTERPRETER) and name not in FREE
    }


class Program:
    """A program that was forked, with what tests use of `subprocess.Popen`."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path | str | None,
        env: Mapping[str, str],
        files: Sequence[Any],
        session: bool,
        text: bool,
    ) -> None:
        self.args = words
        self.returncode: int | None = None
        self._opened: list[int] = []
        self._readers: list[threading.Thread] = []
        self._written: dict[str, Any] = {}
        numbers = [self._number(file, default) for default, file in enumerate(files)]
        self.stdout = self._piped(files[1], 1, numbers, text)
        self.stderr = self._piped(files[2], 2, numbers, text)
        if files[2] == subprocess.STDOUT:
            numbers[2] = numbers[1]
        request = {
            "words": list(map(str, words[1:])),
            "directory": str(cwd or Path.cwd()),
            "environment": dict(env),
            "session": session,
        }
        try:
            self.pid = server().start(json.dumps(request).encode(), numbers)
        finally:
            for number in self._opened:
                os.close(number)

    def _number(self, file: Any, default: int) -> int:
        if file is None or file in (subprocess.PIPE, subprocess.STDOUT):
            return default
        if file == subprocess.DEVNULL:
            self._opened.append(os.open(os.devnull, os.O_RDWR))
            return self._opened[-1]
        return int(file if isinstance(file, int) else file.fileno())

    def _piped(self, file: Any, index: int, numbers: list[int], text: bool) -> IO[Any] | None:
        if file != subprocess.PIPE:
            return None
        reads, writes = os.pipe()
        numbers[index] = writes
        self._opened.append(writes)
        return os.fdopen(reads, "r" if text else "rb", encoding="utf-8" if text else None)

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = server().status(self.pid, 0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            within = 1e9 if timeout is None else timeout
            self.returncode = server().status(self.pid, within)
            if self.returncode is None:
                raise subprocess.TimeoutExpired(list(self.args), within)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Read all that it writes until it has ended; None for what is no pipe."""
        files = {"out": self.stdout, "err": self.stderr}
        if not self._readers:
            self._readers = [
                threading.Thread(target=self._read_all, args=(name, file), daemon=True)
                for name, file in files.items()
                if file is not None and not file.closed
            ]
            for reader in self._readers:
                reader.start()
        self.wait(timeout)
        for reader in self._readers:
            reader.join(30)
        return self._written.get("out"), self._written.get("err")

    def _read_all(self, name: str, file: IO[Any]) -> None:
        with file:
            self._written[name] = file.read()

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


AnyProgram = Program | subprocess.Popen[Any]


def popen(
    words: Sequence[str],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    start_new_session: bool = False,
    text: bool = False,
) -> Any:
    """`subprocess.Popen` for `[sys.executable, …]`. A session of its own has its standard input as its terminal, if it is one."""
    env = os.environ if env is None else env
    if is_plain(words, env) and stdin != subprocess.PIPE:
        return Program(words, cwd, env, (stdin, stdout, stderr), start_new_session, text)
    return subprocess.Popen(
        words,
        cwd=cwd,
        env=env,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=start_new_session,
        text=text,
    )


def is_plain(words: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a fork will do."""
    return (
        words[0] == sys.executable
        and (words[1] in ("-m", "-c") or not words[1].startswith("-"))
        and not any("gevent" in word for word in (*words, *_text_of(words[1])))
        and settings_of(env) == server().settings
    )


def _text_of(word: str) -> list[str]:
    """The text of a program that is a file."""
    return [Path(word).read_text()] if word.endswith(".py") and Path(word).is_absolute() else []


def run(
    words: Sequence[str],
    *,
    cwd: Path | str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    check: bool = False,
) -> "subprocess.CompletedProcess[str]":
    """`subprocess.run(words, capture_output=True, text=True, …)` for `[sys.executable, …]`."""
    program = popen(
        words,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        out, err = program.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        program.kill()
        program.communicate(timeout=30)
        raise
    ended = subprocess.CompletedProcess(list(words), program.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended


def calls_store(pid: int) -> bool:
    """Whether this is the process that calls the store for a supervisor."""
    try:
        return b"Calling the store" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
