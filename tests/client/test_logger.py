"""Section 13.7 of the Python API: one logger, silent until it is asked."""

import logging
import os
import re
import subprocess
import sys

import holdfast
from holdfast.logs import DescriptorHandler

SAY = "holdfast.logger.warning('careful'); holdfast.logger.info('by the way')"


def said(setting: str) -> list[str]:
    """What a fresh program with this setting writes to standard error."""
    program = f"import logging, sys, holdfast\n{setting}\n{SAY}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == ""
    return ended.stderr.splitlines()


def test_there_is_one_logger_and_it_is_named_like_the_package() -> None:
    assert holdfast.logger is logging.getLogger("holdfast")


def test_it_is_silent_until_it_is_asked() -> None:
    assert said("") == []


def test_setting_its_level_is_asking() -> None:
    lines = said("holdfast.logger.setLevel('INFO')")
    assert len(lines) == 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \| PID \d+ \| \[WARNING\] careful", lines[0])
    assert lines[1].endswith("| [INFO] by the way")
    assert len(said("holdfast.logger.setLevel(logging.WARNING)")) == 1
    assert said("holdfast.logger.setLevel(logging.FATAL)") == []


def test_a_program_that_configured_logging_sees_each_line_once_and_in_its_own_form() -> None:
    assert said("logging.basicConfig(format='%(message)s', level='INFO')") == ["careful", "by the way"]
    both = "logging.basicConfig(format='%(message)s', level='INFO'); holdfast.logger.setLevel('WARNING')"
    assert said(both) == ["careful"]
    mine = "holdfast.logger.addHandler(logging.StreamHandler()); holdfast.logger.setLevel('INFO')"
    assert said(mine) == ["careful", "by the way"]


def test_it_writes_to_the_standard_error_of_the_moment() -> None:
    assert said("import io; sys.stderr = io.StringIO(); holdfast.logger.setLevel('INFO')") == []


def test_a_line_that_cannot_be_written_raises_nothing(tmp_path) -> None:
    failing = "logging.raiseExceptions = False; holdfast.logger.addHandler(Failing())"
    setting = f"""
class Failing(logging.Handler):
    def emit(self, record):
        raise RuntimeError('no room')
{failing}
holdfast.logger.setLevel('INFO')"""
    assert said(setting) == []


def test_lines_outlive_standard_error_and_what_could_not_be_written_is_counted(tmp_path) -> None:
    file = tmp_path / "log"
    with file.open("w") as opened:
        handler = DescriptorHandler(opened.fileno())
    record = logging.makeLogRecord({"msg": "a line \udcff"})
    handler.emit(record)
    descriptor = handler._descriptor
    with (tmp_path / "other").open("w") as other:  # it gets the number of `opened`
        kept = os.dup(descriptor)
        os.dup2(other.fileno(), descriptor)  # as a job does that closes it, and opens something else
        handler.emit(record)
        handler.emit(record)
    os.dup2(kept, descriptor)
    os.close(kept)
    handler.emit(record)
    lines = ["a line \\udcff", "2 lines of the log could not be written", "a line \\udcff"]
    assert file.read_text().splitlines() == lines
    assert (tmp_path / "other").read_text() == ""
