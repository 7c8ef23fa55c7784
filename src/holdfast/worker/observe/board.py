"""Requests for the stack of a job: the memory that the processes of a worker share for them, and the replies.

The process that gets a request writes it into that memory and sends `SIGNAL` to the process that runs the job. There the
interpreter's fault handler first writes the stack of the thread that received it into a file, whatever that is stuck in; then, as soon
as Python code can run, the stack of the job itself is written. Where no Python code can run, each thread of that process gets the
signal, and writes its own stack: a thread that read the stack of another one that runs would crash the process. Processes without
a handler ignore that signal.
"""

import ctypes
import faulthandler
import fcntl
import logging
import mmap
import os
import signal
import struct
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Final, NamedTuple

import msgspec

from holdfast.client.stacks import StackReply
from holdfast.commands.workers import WorkerAnswer
from holdfast.wire.waiting import sleep
from holdfast.worker.observe.stacks import Dumped, stack_of_job
from holdfast.worker.supervisor.calls import StoreCalls, log_failure, run
from holdfast.worker.supervisor.messages import StoreMessage

SIGNAL: Final = signal.SIGURG
MOST_TEXT: Final = 49152  # bytes of a stack
MOST_DUMP: Final = 1 << 18

_NUMBER: Final = struct.Struct("<Q")
_JID: Final = struct.Struct("<H200s")
_REPLY: Final = struct.Struct("<II")
_ROW: Final = struct.Struct("<IH200s")
_JID_AT: Final = 8
_DONE_AT: Final = 216
_REPLY_AT: Final = 224
_TEXT_AT: Final = _REPLY_AT + _REPLY.size
_ROWS_AT: Final = _TEXT_AT + MOST_TEXT
_ROWS: Final = 128
_MOST_THREADS: Final = 128
_BETWEEN: Final = 0.001
"""Seconds between the signals to two threads of a process: what both write at one moment may be lost."""
_tgkill: Final[Callable[[int, int, int], int] | None] = getattr(ctypes.CDLL(None), "tgkill", None)
"""Send a signal to one thread of a process; None where the system has no such function."""
_FAR: Final = 256  # jobs that close what they did not open, and open something else, seldom come so far


class Reply(NamedTuple):
    """The stack of the job, "" if it does not run in this process."""

    pid: int
    stack: str


class Board:
    """The memory, and the file for what the fault handler writes: made before the first fork."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _ROWS_AT + _ROWS * _ROW.size)
        self._number = 0
        self._asked: list[int] = []
        with tempfile.TemporaryFile() as file:
            try:
                self._dump = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _FAR)
            except OSError:
                self._dump = os.dup(file.fileno())

    def close(self) -> None:
        """Free memory and file, in the process that sends requests."""
        os.close(self._dump)
        self._page.close()

    # In the processes that run jobs.

    def listen(self) -> None:
        """Handle requests in this process and in those forked from it. Call it in the main thread."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(SIGNAL, self._on_signal)
            faulthandler.register(SIGNAL, self._dump, all_threads=False, chain=True)

    def stop_listening(self) -> None:
        """Handle no more requests in this process."""
        if threading.current_thread() is threading.main_thread():
            faulthandler.unregister(SIGNAL)
            signal.signal(SIGNAL, signal.SIG_DFL)

    def note(self, jid: str) -> None:
        """Note that this process was forked for that job. Rows are few: of many such processes some are not found."""
        pid, name = os.getpid(), jid.encode()
        _ROW.pack_into(self._page, _ROWS_AT + pid % _ROWS * _ROW.size, pid, len(name), name)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        try:
            self.write_stack()
        except Exception:
            # Whatever it is, the job that was interrupted for this must not fail for it.
            pass

    def write_stack(self) -> None:
        """Write the stack of the requested job; an empty one, if this process does not run it."""
        [number] = _NUMBER.unpack_from(self._page, 0)
        size, jid = _JID.unpack_from(self._page, _JID_AT)
        stack = stack_of_job(jid[:size].decode()) or ""
        text = stack.encode(errors="backslashreplace")[-MOST_TEXT:]
        self._page[_TEXT_AT : _TEXT_AT + len(text)] = text
        _REPLY.pack_into(self._page, _REPLY_AT, os.getpid(), len(text))
        _NUMBER.pack_into(self._page, _DONE_AT, number)

    # In the process that sends requests.

    def ask(self, jid: str, pid: int) -> None:
        """Request the stack of a job from the process `pid`, or from the one that was forked for the job."""
        self._number += 1
        name = jid.encode()
        os.ftruncate(self._dump, 0)
        os.lseek(self._dump, 0, os.SEEK_SET)
        _JID.pack_into(self._page, _JID_AT, len(name), name)
        _NUMBER.pack_into(self._page, 0, self._number)
        # The processes of earlier tries of the job have left rows too.
        self._asked = [forked for forked in self._forked_for(name) if _signalled(forked)]
        if not self._asked and _signalled(pid):
            self._asked = [pid]

    def ask_threads(self) -> None:
        """Have the other threads of the processes that were asked write their stacks too, of processes where no Python code can run."""
        if _tgkill is None:
            return
        for pid in self._asked:
            for thread in _threads_of(pid):
                _tgkill(pid, thread, int(SIGNAL))
                sleep(_BETWEEN)

    def reply(self) -> Reply | None:
        """Return the reply, None if there is none yet."""
        if _NUMBER.unpack_from(self._page, _DONE_AT)[0] != self._number:
            return None
        pid, size = _REPLY.unpack_from(self._page, _REPLY_AT)
        text = self._page[_TEXT_AT : _TEXT_AT + min(size, MOST_TEXT)]
        return Reply(pid, text.decode(errors="replace"))

    def dump(self) -> str:
        """Return what the fault handler wrote."""
        return os.pread(self._dump, MOST_DUMP, 0).decode(errors="replace")

    def _forked_for(self, name: bytes) -> list[int]:
        rows = (_ROW.unpack_from(self._page, _ROWS_AT + row * _ROW.size) for row in range(_ROWS))
        return [pid for pid, size, jid in rows if pid and jid[:size] == name]


def _signalled(pid: int) -> bool:
    """Send the signal to the first thread of a process: one to the process may be taken by any thread. Return whether it exists."""
    if _tgkill is not None:
        return bool(_tgkill(pid, pid, int(SIGNAL)) == 0)
    try:
        os.kill(pid, SIGNAL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _threads_of(pid: int) -> list[int]:
    """The threads of a process but the first one, whose number is that of the process; none where the system does not list them."""
    with suppress(OSError):
        names = sorted(int(one.name) for one in Path(f"/proc/{pid}/task").iterdir())
        return [number for number in names if number != pid][:_MOST_THREADS]
    return []


class _Shared:
    """The board of this process and of those forked from it; a worker has one."""

    board: Board | None = None


def open_board() -> Board:
    """Return the board of this process; it must be made before the first fork."""
    board = _Shared.board = _Shared.board or Board()
    return board


def listen() -> None:
    """Handle requests in this process, if it has a board."""
    if _Shared.board is not None:
        _Shared.board.listen()


def stop_listening() -> None:
    """Handle no more requests in this process."""
    if _Shared.board is not None:
        _Shared.board.stop_listening()


def note_forked(jid: str) -> None:
    """Note that this process was forked for a job."""
    if _Shared.board is not None:
        _Shared.board.note(jid)


log = logging.getLogger("holdfast")

PATIENCE: Final = 1.0
"""Seconds that a process has to reply, before what the fault handler wrote must do."""
LONGEST_WAIT: Final = 3.0  # seconds that it has if that does not show the job
GLANCE: Final = 0.02  # seconds between two looks at whether it has replied
MOST_WAITING: Final = 16
LONGEST_NAME: Final = 200  # bytes of a name

STUCK: Final = (
    "the process runs code that cannot be interrupted; these are the stacks of its threads that run jobs"
)


class Asking:
    """Requests stacks from processes, and sends the replies to the store. Its owner calls `attend` at `due()`."""

    def __init__(self, calls: StoreCalls, board: Board) -> None:
        self._calls = calls
        self._board = board
        self._waiting: deque[StoreMessage] = deque()
        self._asked: StoreMessage | None = None
        self._has_asked_threads = False
        self._pid = 0
        self._until = 0.0
        self._look_at = inf

    def notify(self, messages: Iterable[StoreMessage]) -> None:
        """Take the requests among these messages; of too many the last are dropped."""
        for one in messages:
            if one.event == "stack":
                self._take(one)

    def _take(self, question: StoreMessage) -> None:
        names = (question.question, question.jid)
        if question == self._asked or question in self._waiting:
            return  # it was sent again: in a cluster the subscribers on other nodes are not counted
        if len(self._waiting) < MOST_WAITING and all(
            0 < len(name.encode()) <= LONGEST_NAME for name in names
        ):
            self._waiting.append(question)
            self._look_at = min(self._look_at, monotonic())

    def due(self) -> float:
        """Return when to call `attend`, on the monotonic clock."""
        return self._look_at

    def attend(self, processes: Mapping[str, int]) -> None:
        """Check for a reply, or send the next request. `processes`: the process of each worker."""
        now = monotonic()
        if now < self._look_at:
            return
        if self._asked is None and self._waiting:
            self._begin(self._waiting.popleft(), processes, now)
        elif self._asked is not None:
            answer = self._found(self._asked, now)
            if answer is not None:
                self._send(self._asked, answer)
                self._asked = None
        self._look_at = now + GLANCE if self._asked is not None or self._waiting else inf

    def _begin(self, asked: StoreMessage, processes: Mapping[str, int], now: float) -> None:
        self._pid = processes.get(asked.worker, 0)
        if not self._pid:
            self._send(
                asked, StackReply(asked.worker, problem=f"{asked.worker} has no process at the moment")
            )
            return
        stack = stack_of_job(asked.jid) if self._pid == os.getpid() else None
        if stack:  # of a thread of this process, which needs no signal
            self._send(asked, StackReply(asked.worker, self._pid, stack[-MOST_TEXT:]))
            return
        self._asked, self._has_asked_threads, self._until = asked, False, now + PATIENCE
        self._board.ask(asked.jid, self._pid)

    def _found(self, asked: StoreMessage, now: float) -> StackReply | None:
        reply = self._board.reply()
        if reply is None and now < self._until:
            return None
        if reply is not None and reply.stack:
            return StackReply(asked.worker, reply.pid, reply.stack)
        stacks = [] if reply is not None else Dumped(self._board.dump()).of_jobs()
        if reply is None and not stacks and not self._has_asked_threads:
            self._has_asked_threads = True
            self._board.ask_threads()
            return None
        if stacks:
            return StackReply(asked.worker, self._pid, "\n\n".join(stacks)[-MOST_TEXT:], STUCK)
        if reply is None and now < self._until + LONGEST_WAIT - PATIENCE:
            return None
        return StackReply(
            asked.worker, self._pid, problem=f"process {self._pid} is not running it at the moment"
        )

    def _send(self, asked: StoreMessage, answer: StackReply) -> None:
        work = partial(run, WorkerAnswer(asked.question, msgspec.json.encode(answer)))
        self._calls.call(work, partial(log_failure, f"sending the stack of job {asked.jid}"))
