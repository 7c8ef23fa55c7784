"""How commands say things."""

import os
import pty
import subprocess
import sys

import pytest

TABLE = "from holdfast.cli.output import print_table; print_table(['queue', 'waiting'], [['mail', 12], ['[red]x[/]', 3]])"
BAR = "from holdfast.cli.output import progress\nwith progress('putting', 2) as step:\n    step(1)\n    step(1)\n"


def on_a_terminal(program: str) -> str:
    """What a program writes when its output is a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # how a terminal says that the other side has closed it
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    assert process.returncode == 0
    return said.decode()


def in_a_pipe(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_table_in_a_pipe_is_tabs_and_lines() -> None:
    assert in_a_pipe(TABLE) == "queue\twaiting\nmail\t12\n[red]x[/]\t3\n"


@pytest.mark.full
def test_a_table_on_a_terminal_is_drawn_and_names_are_no_markup() -> None:
    said = on_a_terminal(TABLE)
    assert "│ mail" in said
    assert "12 │" in said
    assert "[red]x[/]" in said


@pytest.mark.full
def test_progress_is_shown_on_a_terminal_only() -> None:
    assert "putting" in on_a_terminal(BAR)
    answer = subprocess.run([sys.executable, "-c", BAR], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("", "")


@pytest.mark.full
def test_a_reader_who_leaves_early_gets_no_traceback() -> None:
    program = "from holdfast.cli.main import run; import sys; sys.exit(run(['--help']))"
    reading, writing = os.pipe()
    os.close(reading)
    answer = subprocess.run(
        [sys.executable, "-c", program], stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert "Traceback" not in answer.stderr
