"""The jobs of `holdfast demo`: a class whose methods are the two steps of a pipeline, a report, and a job that does nothing."""

import json
import os
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any

import holdfast

app = holdfast.Client()
DIARY = "diary.jsonl"
"""The file in the directory of a run that gets a line when a step begins, and one when its work is done."""
GATE = "gate"
"""The file in the directory of a run that the job in the middle waits for, until it is removed."""
LONGEST_WAIT = 60.0
LONGEST_HOLD = 3600.0


def note(job: holdfast.Job, what: str, **more: object) -> None:
    """Add a line to the diary of the run in one write, so that a killed process leaves whole lines."""
    line = {
        "what": what,
        "at": time(),
        "jid": job.jid,
        "queue": job.queue_name,
        "worker": job.worker_name,
        **more,
    }
    diary = os.open(Path(job["run"], DIARY), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(diary, json.dumps(line).encode() + b"\n")
    finally:
        os.close(diary)


def wait_for(gate: Path) -> None:
    """Wait until a file is removed, at most a minute."""
    end = monotonic() + LONGEST_WAIT
    while gate.exists() and monotonic() < end:
        sleep(0.01)


class SourceFile:
    """One source file: `read`, then `measure`."""

    @staticmethod
    def read(job: holdfast.Job) -> None:
        """Hash the file, and move to the next step. The job in the middle waits until its worker is killed."""
        note(job, "begin")
        if job["in_the_middle"]:
            wait_for(Path(job["run"], GATE))
        content = Path(job["path"]).read_bytes()
        job["sha256"], job["bytes"] = sha256(content).hexdigest(), len(content)
        note(job, "end")
        job.complete("measure")

    @staticmethod
    def measure(job: holdfast.Job) -> None:
        """Count the lines of the file and find the longest."""
        note(job, "begin")
        lines = Path(job["path"]).read_text(encoding="utf-8", errors="replace").splitlines()
        job["lines"], job["longest"] = len(lines), max(map(len, lines), default=0)
        keep = ("path", "sha256", "bytes", "lines", "longest")
        note(job, "end", measured={name: job[name] for name in keep})
        job.complete()


@app.job(queue="samples")
def picky(number: int) -> int:
    """Fail for every third number, so that there is a failure group to look at."""
    if number % 3 == 0:
        raise ValueError(f"{number} is divisible by three")
    return number


@app.job(queue="samples")
def hold(run: str) -> None:
    """Wait until the run has ended, so that there is a running job, and a throttle that is full."""
    end = monotonic() + LONGEST_HOLD
    while Path(run).exists() and monotonic() < end:
        sleep(0.2)


@app.job(queue="report")
def nothing() -> None:
    """Do nothing, to measure how fast jobs are run."""


@app.job(queue="report")
def report(run: str) -> dict[str, Any]:
    """Add up what was measured; a file whose step ran twice counts once."""
    files: dict[str, dict[str, Any]] = {}
    with Path(run, DIARY).open(encoding="utf-8") as diary:
        for line in diary:
            measured = json.loads(line).get("measured")
            if measured:
                files[measured["path"]] = measured
    rows = list(files.values())
    return {
        "files": len(rows),
        "lines": sum(row["lines"] for row in rows),
        "bytes": sum(row["bytes"] for row in rows),
        "same": len(rows) - len({row["sha256"] for row in rows}),
        "longest": sorted(rows, key=lambda row: (-row["longest"], row["path"]))[:8],
    }
