"""The text of exceptions: as Python writes it, and for those that mean harm something all the same."""

import asyncio
import subprocess
import sys
import traceback
from pathlib import Path

import pytest

from holdfast.code.failure import LONGEST, brief, describe, failure_of, name_of, text_of, traceback_of
from holdfast.code.outcomes import Terminated


def caught(act):
    try:
        act()
    except BaseException as error:
        return error
    raise AssertionError("it raises nothing")


def fail(text="no stamp\nat all"):
    raise ValueError(text)


def fail_again():
    try:
        fail()
    except ValueError as error:
        raise KeyError("k") from error


def fail_meanwhile():
    try:
        fail_again()
    except KeyError:
        int("x")


def fail_silently():
    try:
        fail()
    except ValueError:
        raise LookupError from None


def fail_together():
    raise ExceptionGroup(
        "many", [caught(fail), ExceptionGroup("inner", [caught(fail_again), OSError(2, "no", "f")])]
    )


def fail_in_tasks():
    async def wait():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(0))
            tasks.create_task(asyncio.to_thread(fail))

    asyncio.run(wait())


def with_notes():
    error = ValueError("noted")
    error.add_note("one\ntwo")
    error.add_note("three")
    raise error


def recurse(left=10_000):
    return recurse(left - 1)


class Outer:
    class Inner(Exception):
        pass


def fail_within():
    raise Outer.Inner("within")


PLAIN = [
    fail, fail_again, fail_meanwhile, fail_silently, fail_together, fail_in_tasks, with_notes, recurse, fail_within,
    lambda: [].apend(1), lambda: nam, lambda: exec("from os import patth"), lambda: exec("import no.such"),  # noqa: F821
    lambda: compile("x = = 1", "f.py", "exec"), lambda: exec("if 1:\nx"), lambda: sys.exit(3), lambda: fail(""),
]  # fmt: skip


@pytest.mark.parametrize("act", PLAIN)
def test_an_exception_is_described_as_python_does_it(act):
    error = caught(act)
    assert "".join(traceback_of(error)) == "".join(traceback.format_exception(error))


class Odd(BaseException):
    """Gets past `except Exception`."""


def odd(*_):
    raise Odd


def exits(*_):
    raise SystemExit(3)


class Metaclass(type):
    __name__ = property(odd)
    __hash__ = exits
    __eq__ = exits


def made(name, **attributes):
    return type(name, (ValueError,), attributes)("text")


def chained(length, attribute):
    error = ValueError("innermost")
    for number in range(length):
        outer = ValueError(str(number))
        setattr(outer, attribute, error)
        error = outer
    return error


def circle(attribute):
    first, second = ValueError("first"), ValueError("second")
    setattr(first, attribute, second)
    setattr(second, attribute, first)
    return first


def crowd(width, depth):
    error = ValueError("one")
    for _ in range(depth):
        error = ExceptionGroup("many", [error] * width)
    return error


def noted(notes):
    error = ValueError("text")
    error.__notes__ = notes
    return error


HARMFUL = {
    "text raises": (lambda: made("E", __str__=exits, __repr__=exits), "its text is not available"),
    "text is no text": (lambda: made("E", __str__=lambda self: 5), "its text is not available"),
    "notes raise": (lambda: made("E", __notes__=property(odd)), "its notes are not available"),
    "notes are odd": (lambda: noted([made("N", __str__=odd)] * 99_999), "its text is not available"),
    "notes are none": (lambda: noted(5), "ValueError: text"),
    "class raises": (lambda: made("E", __class__=property(odd)), "E: text"),
    "cause raises": (lambda: made("E", __cause__=property(odd), __context__=property(exits)), "E: text"),
    "cause is endless": (lambda: made("E", __cause__=property(lambda self: type(self)("more"))), "E: text"),
    "traceback raises": (lambda: made("E", __traceback__=property(odd)), "E: text"),
    "name raises": (lambda: Metaclass("E", (ValueError,), {})("text"), "E: text"),
    "module is odd": (lambda: made("E", __module__=Metaclass), "?.E: text"),
    "circle of causes": (lambda: circle("__cause__"), "ValueError: second"),
    "circle of contexts": (lambda: circle("__context__"), "ValueError: second"),
    "chain": (lambda: chained(20_000, "__context__"), "ValueError: 19999"),
    "chain of causes": (lambda: chained(20_000, "__cause__"), "only 30 of its exceptions are shown"),
    "crowd": (lambda: crowd(15, 10), "many (15 sub-exceptions)"),
    "deep crowd": (lambda: crowd(1, 400), "max_group_depth is 10"),
    "wide crowd": (
        lambda: ExceptionGroup("many", [ValueError(str(n)) for n in range(9_999)]),
        "only 30 of its exceptions are shown",
    ),
    "long": (lambda: ValueError("x" * (100 << 20)), "… cut …"),
    "long notes": (lambda: noted(["x\n" * (10 << 20)] * 99), "… cut …"),
    "many words": (lambda: ValueError("x " * (10 << 20)), "… cut …"),
    "half characters": (lambda: ValueError("\ud800" * 99), "\\ud800"),
    "odd syntax": (lambda: SyntaxError("s", ("f", 1, 2, "x" * (50 << 20), 1, 3)), "SyntaxError: s"),
    "odd attribute": (lambda: AttributeError("a", name="b", obj=type("O", (), {"__dir__": exits})()), "AttributeError: a"),
}  # fmt: skip


# Without bounds some of these take hours.
@pytest.mark.parametrize("name", HARMFUL)
def test_an_exception_that_means_harm_is_described_all_the_same(name):
    make, text = HARMFUL[name]
    error = make()
    group, message = failure_of(error, "q", lambda: None)
    line = brief(error)
    assert text in message
    assert len(message) < 7 * LONGEST
    assert group == f"q-{name_of(error)}"
    assert line.startswith(name_of(error))
    assert "\n" not in line
    assert len(line) < 1_000


def test_the_file_that_a_frame_names_is_not_read_if_it_never_ends():
    error = caught(lambda: exec(compile("1/0", "/dev/zero", "exec")))
    assert '  File "/dev/zero", line 1, in <module>\nZeroDivisionError' in describe(error)


def test_a_very_deep_traceback_shows_both_its_ends():
    program = (
        "import sys, traceback\n"
        "from holdfast.code.failure import traceback_of\n"
        "sys.setrecursionlimit(30_000)\n"
        "def even(n): return odd(n - 1) if n else 1 / 0\n"
        "def odd(n): return even(n - 1)\n"
        "def first(): even(20_000)\n"
        "try: first()\n"
        "except ZeroDivisionError as error: entries = traceback_of(error)\n"
        "assert len(entries) < 1_100, len(entries)\n"
        "assert 'in first' in entries[2] and entries[-1] == 'ZeroDivisionError: division by zero\\n', entries[:3]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, cwd=Path(__file__).parent)


def test_the_order_to_end_is_not_taken_for_a_trouble_of_the_exception():
    def end(self):
        raise Terminated

    for describing in (text_of, traceback_of, brief, describe):
        with pytest.raises(Terminated):
            describing(made("E", __str__=end))
