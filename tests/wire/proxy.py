"""A small proxy that lets a request through and swallows its reply, as a network that fails at the worst moment."""

import os
import selectors
import socket
import tempfile
import threading
from pathlib import Path
from types import TracebackType


class CuttingProxy:
    """Listens on a Unix socket (`url`) in front of a store's; `cut(b"hf1_put")` makes it lose one answer."""

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._directory = tempfile.TemporaryDirectory(prefix="hf-")
        self._path = os.path.join(self._directory.name, "s")
        self._needle: bytes | None = None
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(self._path)
        self._listening.listen(64)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self.cuts = 0

    @property
    def url(self) -> str:
        return f"unix://{self._path}"

    def cut(self, needle: bytes) -> None:
        """Swallow the reply to the next request that holds `needle`, and hang up."""
        self._needle = needle

    def __enter__(self) -> "CuttingProxy":
        self._threads[0].start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(5)
        self._directory.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._carry, args=(near,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _carry(self, near: socket.socket) -> None:
        with near, socket.socket(socket.AF_UNIX) as far, selectors.DefaultSelector() as selector:
            far.connect(self._target)
            selector.register(near, selectors.EVENT_READ)
            selector.register(far, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    source = key.fileobj
                    assert isinstance(source, socket.socket)
                    data = source.recv(1 << 20)
                    if not data:
                        return
                    if source is near and self._needle is not None and self._needle in data:
                        self._needle = None
                        self.cuts += 1
                        far.sendall(data)
                        # Hang up only when the store has answered, so that the call has happened.
                        far.recv(1 << 20)
                        return
                    (far if source is near else near).sendall(data)
