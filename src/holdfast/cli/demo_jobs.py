"""The jobs of `holdfast demo`: a class whose methods are two steps of a pipeline, and a function that reports."""

import json
import os
from hashlib import sha256
from pathlib import Path
from time import time
from typing import Any

import holdfast

app = holdfast.Client()
DIARY = "diary.jsonl"
"""In the directory of a run: a line when a step begins, and one when its work is done."""


def note(job: holdfast.Job, what: str, **more: object) -> None:
    """Add a line to the diary of the run, in one write, so that a killed process leaves whole lines."""
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


class SourceFile:
    """One source file: `read`, then `measure`."""

    @staticmethod
    def read(job: holdfast.Job) -> None:
        """Hash the file, and go on to the next step."""
        note(job, "begin")
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


@app.job(queue="report")
def report(run: str) -> dict[str, Any]:
    """Add up what was measured. A file whose step ran twice counts once."""
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
