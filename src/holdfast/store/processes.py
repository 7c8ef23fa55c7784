"""Identify processes by pid and start time, because pids are reused."""

import os
import subprocess
import sys
from pathlib import Path

ON_LINUX: bool = sys.platform == "linux"


def started(pid: int) -> str:
    """Return when this process started, as a text unique to it; '' if there is no such process."""
    if pid <= 0:
        return ""
    if ON_LINUX:
        return _started_linux(pid)
    result = subprocess.run(
        ["ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, moment = result.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else moment.strip()


def is_alive(pid: int, moment: str) -> bool:
    """Return whether the process with this pid and start still runs."""
    return bool(moment) and started(pid) == moment


def send(pid: int, moment: str, number: int) -> bool:
    """Send a signal to that process. Returns False if it has ended."""
    if not is_alive(pid, moment):
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _started_linux(pid: int) -> str:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except (OSError, ValueError):
        return ""
    state, ticks = after_name[0], after_name[19]
    return "" if state in "ZX" else f"{boot}:{ticks}"
