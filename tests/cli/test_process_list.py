"""What `ps` shows of commands."""

import sys
from pathlib import Path

import pytest

import programs
from waiting import until


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["notify", "--webhook", "http://hook.example:8/T0/s3cret?k=s3cret", "--event", "failed"],
            "http://hook.example:8/…",
        ),
        (["notify", "--chat=https://u:s3cret@chat.example/s3cret"], "--chat=https://chat.example/…"),
        (
            ["topics", "push", "--topic", "t", "--webhook", "http://hook.example/s3cret"],
            "http://hook.example/…",
        ),
    ],
)
def test_the_list_of_processes_does_not_show_what_is_secret_in_urls(
    url: str, namespace: str, words: list[str], shown: str
) -> None:
    command = [sys.executable, "-m", "holdfast.cli.main", *words, "--url", url, "--namespace", namespace]
    process = programs.popen(command)
    try:
        line = Path(f"/proc/{process.pid}/cmdline")
        until(lambda: shown in line.read_text(), "the title is set", 60)
        assert "s3cret" not in line.read_text()
        assert namespace in line.read_text()
    finally:
        process.terminate()
        process.communicate(timeout=60)
