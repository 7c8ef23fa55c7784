"""A process that has imported holdfast once, and forks each program that a test starts: `programs.py` asks it.

A fork takes a hundredth of the time of the imports. In the forked process everything else is as after `python -m module`,
`python file` or `python -c code`: arguments, search path, environment, directory, standard files, and, where all tests run, its end.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import termios
import threading
import time
import types
from typing import Any

import holdfast

LARGEST = 1 << 18
NOT_HERE = (
    "holdfast.__main__",
    "holdfast.cli.bench",
    "holdfast.cli.main",
    "holdfast.cli.reference",
    "holdfast.compat",
    "holdfast.gnomes",
    "holdfast.store.launch",
    "holdfast.testing",
    "holdfast.worker.pools.greenlet",
    "holdfast.worker.startup",
)
"""Programs, and what imports packages that a program may want to load later or not at all."""


def import_all() -> None:
    for module in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
        if not module.name.startswith(NOT_HERE):
            importlib.import_module(module.name)
    title: Any = importlib.import_module("setproctitle")
    title.getproctitle()  # finds the memory of the title, while the environment is where the system put it
    gc.collect()
    gc.freeze()


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Fork what is asked for, and report how it ended. Returns in the forked process, with the request."""
    running: dict[int, int] = {}
    while True:
        ready, _, _ = select.select([door, *running], [], [])
        for one in ready:
            if one is not door:
                pid = running.pop(one)
                os.close(one)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                door.send(json.dumps({"ended": pid, "status": status}).encode())
                continue
            text, files, _, _ = socket.recv_fds(door, LARGEST, 3)
            if not text:
                end(running)
                return None
            pid = os.fork()
            if pid == 0:
                for other in running:
                    os.close(other)
                door.close()
                return {**json.loads(text), "files": files}
            for file in files:
                os.close(file)
            running[os.pidfd_open(pid)] = pid
            door.send(json.dumps({"started": pid}).encode())


def end(running: dict[int, int]) -> None:
    """The tests are over, or gone."""
    for pid in running.values():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def become(request: dict[str, Any], base: list[str]) -> None:
    """Take over what a new process would have been given. `base`: the search path without the program's own part."""
    for number, file in enumerate(request["files"]):
        os.dup2(file, number)
        os.close(file)
    if request["session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(request["directory"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    # It shares this memory with its own children only: it was made by an import, so ours would be that of all programs.
    outcome: Any = importlib.import_module("holdfast.worker.performing.outcome")
    outcome._names.__init__()
    named = os.environ.get("PYTHONPATH", "")
    sys.path[:] = [*(named.split(os.pathsep) if named else []), *base]


def run(words: list[str]) -> None:
    """`words` are those after `python`."""
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy._run_module_as_main(words[1])
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        sys.path.insert(0, "")
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
        return
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
    main.__file__ = os.path.abspath(words[0])
    with open(words[0], "rb") as file:
        code = compile(file.read(), words[0], "exec")
    exec(code, main.__dict__)


def run_and_end(words: list[str]) -> None:
    """Run, and end as Python does, but without taking each of hundreds of modules apart: that takes longer than most programs."""
    try:
        run(words)
        status = 0
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        status = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        file.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    base = [place for place in sys.path[1:] if place not in named]
    import_all()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        is_whole = os.environ.get("HOLDFAST_TESTS") != "everyday"
        become(request, base)
        (run if is_whole else run_and_end)(request["words"])
