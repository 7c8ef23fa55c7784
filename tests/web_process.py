"""`holdfast web -F` as a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.web.serving import Folder


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(
    url: str, namespace: str, folder: Path, *words: str, port: int = 0, descriptors: int = 0
) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """Serve a namespace while the block runs, which gets the address, without a "/" at its end, and the process.

    `descriptors`: the limit of descriptors that it has, 0 for that of this process.
    """
    port = port or free_port()
    place = ["--url", url, "--namespace", namespace, "--app-dir", str(folder), "--port", str(port)]
    log = folder.with_suffix(".log")
    with log.open("wb") as file:
        command = [sys.executable, "-m", "holdfast.cli.main", "web", "-F", "-L", *place, *words]
        if descriptors:
            command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
        process = subprocess.Popen(command, stderr=file, stdout=file)
    try:
        until = time.monotonic() + 60
        while Folder(folder).running() is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.terminate()
        try:
            process.wait(30)
        finally:
            process.kill()
