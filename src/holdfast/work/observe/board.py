"""Memory that a worker's processes share, for questions about where a job is.

Whoever is asked for a job writes the question down and sends `SIGNAL` to the process that has it. There the interpreter's fault
handler first writes the stacks of all threads into a file, whatever they are stuck in; then, as soon as Python code can run, that of
the job itself is written down. The signal is one that processes ignore which know nothing of it.
"""

import faulthandler
import fcntl
import mmap
import os
import signal
import struct
import tempfile
import threading
from types import FrameType
from typing import Final, NamedTuple

from holdfast.work.observe.stacks import stack_of_job

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
_FAR: Final = 256  # jobs that close what they did not open, and open something else, seldom come so far


class Reply(NamedTuple):
    """Where the job is that was asked for, "" if it is not in this process."""

    pid: int
    stack: str


class Board:
    """The memory, and the file for what the fault handler writes: made before the first fork."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, _ROWS_AT + _ROWS * _ROW.size)
        self._number = 0
        with tempfile.TemporaryFile() as file:
            try:
                self._dump = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, _FAR)
            except OSError:
                self._dump = os.dup(file.fileno())

    def close(self) -> None:
        """Give memory and file back, in the process that asks."""
        os.close(self._dump)
        self._page.close()

    # In the processes that are asked.

    def listen(self) -> None:
        """Answer from now on, in this process and in those forked from it. Call it in the main thread."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(SIGNAL, self._on_signal)
            faulthandler.register(SIGNAL, self._dump, all_threads=True, chain=True)

    def deafen(self) -> None:
        """Answer no more in this process."""
        if threading.current_thread() is threading.main_thread():
            faulthandler.unregister(SIGNAL)
            signal.signal(SIGNAL, signal.SIG_DFL)

    def note(self, jid: str) -> None:
        """This process, forked for it, performs that job. Rows are few: of many such processes some are not found."""
        pid, name = os.getpid(), jid.encode()
        _ROW.pack_into(self._page, _ROWS_AT + pid % _ROWS * _ROW.size, pid, len(name), name)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        try:
            self.answer()
        except Exception:
            # Whatever it is, the job that was interrupted for this has nothing to do with it.
            pass

    def answer(self) -> None:
        """Write down where the job is that is asked for; nothing, if this process does not perform it."""
        [number] = _NUMBER.unpack_from(self._page, 0)
        size, jid = _JID.unpack_from(self._page, _JID_AT)
        stack = stack_of_job(jid[:size].decode()) or ""
        text = stack.encode(errors="backslashreplace")[-MOST_TEXT:]
        self._page[_TEXT_AT : _TEXT_AT + len(text)] = text
        _REPLY.pack_into(self._page, _REPLY_AT, os.getpid(), len(text))
        _NUMBER.pack_into(self._page, _DONE_AT, number)

    # In the process that asks.

    def ask(self, jid: str, pid: int) -> None:
        """Ask for a job the process `pid`, or the one that was forked for the job."""
        self._number += 1
        name = jid.encode()
        os.ftruncate(self._dump, 0)
        os.lseek(self._dump, 0, os.SEEK_SET)
        _JID.pack_into(self._page, _JID_AT, len(name), name)
        _NUMBER.pack_into(self._page, 0, self._number)
        # Of a job that is tried again, the processes of its earlier tries have left rows too.
        if not sum(_signalled(forked) for forked in self._forked_for(name)):
            _signalled(pid)

    def reply(self) -> Reply | None:
        """What was answered, None if nothing was so far."""
        if _NUMBER.unpack_from(self._page, _DONE_AT)[0] != self._number:
            return None
        pid, size = _REPLY.unpack_from(self._page, _REPLY_AT)
        text = self._page[_TEXT_AT : _TEXT_AT + min(size, MOST_TEXT)]
        return Reply(pid, text.decode(errors="replace"))

    def dump(self) -> str:
        """What the fault handler wrote."""
        return os.pread(self._dump, MOST_DUMP, 0).decode(errors="replace")

    def _forked_for(self, name: bytes) -> list[int]:
        rows = (_ROW.unpack_from(self._page, _ROWS_AT + row * _ROW.size) for row in range(_ROWS))
        return [pid for pid, size, jid in rows if pid and jid[:size] == name]


def _signalled(pid: int) -> bool:
    try:
        os.kill(pid, SIGNAL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


class _Shared:
    """The board of this process and of those forked from it; one worker command has one."""

    board: Board | None = None


def open_board() -> Board:
    """The board of this process: make it before the first fork."""
    board = _Shared.board = _Shared.board or Board()
    return board


def listen() -> None:
    """Answer questions in this process, if it has a board."""
    if _Shared.board is not None:
        _Shared.board.listen()


def deafen() -> None:
    """Answer no more in this process."""
    if _Shared.board is not None:
        _Shared.board.deafen()


def note_forked(jid: str) -> None:
    """This process was forked for a job."""
    if _Shared.board is not None:
        _Shared.board.note(jid)
