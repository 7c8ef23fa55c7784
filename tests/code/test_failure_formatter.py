"""python-api.md 13.1: how a failure is told, and that this can be replaced."""

import logging
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast import UsageError
from holdfast.code.failure import (
    LONGEST,
    ByKlass,
    ByQueue,
    describe,
    error_line,
    failure_formatter,
    failure_of,
    use_failure_formatter,
)

JOB = SimpleNamespace(klass_name="shop.Parcel", queue_name="mail")


@pytest.fixture(autouse=True)
def default_again():
    yield
    use_failure_formatter(None)


def raised(text: str) -> ValueError:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


def test_by_default_the_group_is_queue_and_error_and_the_message_the_traceback():
    error = raised("no stamp")
    group, message = failure_formatter().format(JOB, error, [])
    assert group == "mail-ValueError"
    assert message == "".join(traceback.format_exception(error))
    assert failure_of(error, "mail", lambda: JOB) == (group, message)


def test_the_older_way_groups_by_klass_and_error_and_says_the_text_first():
    group, message = ByKlass().format(JOB, raised("no stamp"), [])
    assert group == "shop.Parcel:ValueError"
    assert message.startswith("no stamp\n\n")
    assert f'test_failure_formatter.py", line {raised("").__traceback__.tb_lineno}' in message
    assert "Traceback" not in message


def test_a_long_text_is_cut_to_ten_thousand_characters_and_says_so():
    _, message = ByKlass().format(JOB, raised("x" * 10_001), [])
    assert message.startswith("x" * 10_000 + "\n... (truncated due to length)\n\n")
    _, message = ByKlass().format(JOB, raised("x" * 10_000), [])
    assert message.startswith("x" * 10_000 + "\n\n")


def test_the_working_directory_and_the_environment_are_shortened(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    _, message = ByKlass().format(JOB, raised(""), [])
    assert '"./tests/code/test_failure_formatter.py"' in message
    monkeypatch.setattr(sys, "prefix", str(Path(__file__).parent))
    _, message = ByKlass().format(JOB, raised(""), [])
    assert '"<PREFIX>/test_failure_formatter.py"' in message


@pytest.mark.parametrize("formatter", [ByQueue(), ByKlass()])
def test_frames_that_are_to_be_removed_are(formatter):
    error = raised("no stamp")
    frames = traceback.format_tb(error.__traceback__)
    assert "in raised" in formatter.format(JOB, error, [])[1]
    assert "in raised" not in formatter.format(JOB, error, frames)[1]


def test_an_error_with_a_name_that_no_group_could_have_still_fails_its_job(client):
    client.queues["mail"].put("shop.Parcel", jid="one")
    job = client.queues["mail"].pop()
    odd = type("not\na\x9fname" * 30, (Exception,), {})
    group, message = failure_formatter().format(job, odd("no stamp"), [])
    job.fail(group, message)
    assert client.jobs["one"].failure["group"] == group
    assert group.startswith("mail-not?a?name")
    assert len(group) == 200


def test_group_and_message_can_be_handed_to_fail(client):
    client.queues["mail"].put("shop.Parcel", jid="one")
    job = client.queues["mail"].pop()
    job.fail(*failure_formatter().format(job, raised("no stamp"), []))
    failure = client.jobs["one"].failure
    assert failure["group"] == "mail-ValueError"
    assert "no stamp" in failure["message"]


def test_another_formatter_replaces_the_default_one_and_gets_the_job():
    class Short:
        def format(self, job, error, lines_to_remove):
            return f"oh-{job.klass_name}", f"{error}"

    before = use_failure_formatter(short := Short())
    assert isinstance(before, ByQueue)
    assert failure_formatter() is short
    assert failure_of(raised("no stamp"), "mail", lambda: JOB) == ("oh-shop.Parcel", "no stamp")
    use_failure_formatter(None)
    assert failure_of(raised("no stamp"), "mail", lambda: JOB)[0] == "mail-ValueError"


@pytest.mark.parametrize("answer", [None, "group", (7, "text"), ("", "text"), ("group", 7)])
def test_a_formatter_that_cannot_be_used_is_logged_and_the_failure_recorded_all_the_same(answer, caplog):
    use_failure_formatter(SimpleNamespace(format=lambda job, error, lines: answer))
    with caplog.at_level(logging.ERROR, "holdfast"):
        group, message = failure_of(raised("no stamp"), "mail", lambda: JOB)
    assert group == "mail-ValueError"
    assert "no stamp" in message
    assert "cannot be used" in caplog.text


def test_what_a_formatter_says_fits_the_store():
    use_failure_formatter(SimpleNamespace(format=lambda job, error, lines: ("é" * 200, "x" * 100_000)))
    group, message = failure_of(raised(""), "mail", lambda: JOB)
    assert len(group.encode()) == 200
    assert LONGEST <= len(message) < LONGEST + 100


def test_something_that_formats_nothing_is_refused():
    with pytest.raises(UsageError, match="formatter"):
        use_failure_formatter(object())


def _raise(error: Exception) -> None:
    raise error


def _noted(error: Exception, *notes: str) -> Exception:
    for note in notes:
        error.add_note(note)
    return error


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("no such user"), "ValueError: no such user"),
        (_noted(KeyError("x"), "while reading batch 3", "second line"), "KeyError: 'x'"),
        (
            ValueError("1 validation error\nname\n  Field required\n    see https://…"),
            "ValueError: 1 validation error",
        ),
        (
            ExceptionGroup("many", [ValueError("a"), TypeError("b")]),
            "ExceptionGroup: many (2 sub-exceptions)",
        ),
    ],
)
def test_the_line_that_names_an_error_is_the_one_behind_its_frames(error, line):
    try:
        _raise(error)
    except Exception as raised:
        message = describe(raised)
    assert error_line(message) == line
    assert error_line("by hand\nfor a reason") == "for a reason"
    assert error_line(" \n") == ""
