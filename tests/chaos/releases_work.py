"""The job of two releases on one store, and the program that puts it: `releases_work.produce(name)`.

Both are run by today's holdfast and by an earlier one, so they use only what both know.
"""

import os
import random
import signal
import threading
from typing import Any

import holdfast

QUEUES = ("work-a", "work-b", "work-c", "other")
MOST_WAITING = 300


def _write(name: str, line: str) -> None:
    path = os.path.join(os.environ["RELEASES_HERE"], name)
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)


app = holdfast.Client(os.environ["HOLDFAST_URL"], namespace="releases")


KEYED: dict[str, Any] = {"unique": True} if hasattr(holdfast, "NotUnique") else {}
"""Earlier releases know no unique keys, and run jobs that have some."""


@app.job(queue="work-a", **KEYED)
def note(number: int) -> int:
    """Write down which job ran."""
    _write(f"ran-{os.getpid()}", holdfast.current_job().jid)
    return number


def produce(name: str) -> None:
    """Put jobs until TERM; each is written down when the store has it."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    pick, number = random.Random(name), random.SystemRandom().randrange(1 << 40)
    while not ended.is_set():
        if sum(app.queues[queue].length() for queue in QUEUES) > MOST_WAITING:
            ended.wait(0.1)
            continue
        for _ in range(20):
            number += 1
            wishes: dict[str, Any] = {"queue": pick.choice(QUEUES), "priority": pick.randrange(3)}
            if pick.random() < 0.2:
                wishes["delay"] = 0.3
            handle = note.options(**wishes).put(number)
            _write(f"put-{os.getpid()}", handle.jid)
            if KEYED and (again := note.options(**wishes).put(number)).is_new:
                _write(f"put-{os.getpid()}", again.jid)
                assert again.jid != handle.jid
    app.close()
