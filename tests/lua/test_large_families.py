"""Families of ten thousand and more: everybody is released, and no call is long. The longest calls are printed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from holdfast.testing.clock import StoppedClock
from native_door import Door

STEP = 200  # jobs with one parent that a call may put


def fan(door: Door, count: int, parent: str) -> None:
    for start in range(0, count, STEP):
        words: list[str | int] = ["", 0, "new", "q", 0, 5, 0]
        for n in range(start, min(count, start + STEP)):
            words += [f"c{n}", "k", "{}", 1, "depends", parent]
        door("put_x", *words)


def chain(door: Door, count: int) -> None:
    door.put("q", "c0")
    for start in range(1, count, STEP):
        words: list[str | int] = ["", 0, "new", "q", 0, 5, 0]
        for n in range(start, min(count, start + STEP)):
            words += [f"c{n}", "k", "{}", 1, "depends", f"c{n - 1}"]
        door("put_x", *words)


class Longest:
    """The most CPU of the store's main thread that one call took, in ms."""

    def __init__(self, door: Door) -> None:
        self.door, self.spent = door, 0.0

    def _cpu(self) -> float:
        lines = self.door.ask("INFO", "cpu").decode().splitlines()
        fields = dict(line.split(":", 1) for line in lines if ":" in line)
        return 1000 * (float(fields["used_cpu_user_main_thread"]) + float(fields["used_cpu_sys_main_thread"]))

    def __call__(self, ask: Callable[[], Any]) -> Any:
        before = self._cpu()
        answer = ask()
        self.spent = max(self.spent, self._cpu() - before)
        return answer


def waiting(door: Door) -> int:
    return int(door.look("counts", "q")[0][1])


def test_20000_dependents_of_one_job_are_all_released(door: Door, capsys: pytest.CaptureFixture[str]):
    longest = Longest(door)
    door.put("q", "p")
    fan(door, 20_000, "p")
    [job] = door.pop("w", "q")
    longest(lambda: door("complete", "w", "p", job.token, "", 0, ""))
    calls = 1
    while waiting(door) < 20_000:
        longest(lambda: door("priority", 0, "nobody"))
        calls += 1
    door("priority", 0, "nobody")
    assert calls == 200
    assert {name for name in door.names() if name and name[0] in "duxD"} == set()
    with capsys.disabled():
        print(f"\n20 000 dependents: {calls} calls, the longest {longest.spent:.2f} ms of CPU")


@pytest.mark.full
def test_a_chain_of_10000_is_worked_off_link_by_link(door: Door):
    chain(door, 10_000)
    [job] = door.pop("w", "q")
    for n in range(10_000):
        assert job.jid == f"c{n}"
        reply = door("complete_pop", "w", "", 0, 1, 0, 1, "q", 0, job.jid, job.token, "", 0, "")
        assert len(reply) == (6 if n < 9_999 else 2)
        if n < 9_999:
            job = type(job).from_row(reply[2:6], "w")
    assert {name for name in door.names() if name and name[0] in "duxD"} == set()


@pytest.mark.full
@pytest.mark.few(8)
@pytest.mark.parametrize("dependents", [False, True], ids=["all named", "the first named"])
def test_a_chain_of_10000_is_cancelled(dependents: bool, door: Door, clock: StoppedClock):
    chain(door, 10_000)
    jids = ["c0"] if dependents else [f"c{n}" for n in range(10_000)]
    assert clock._client.jobs.cancel(*jids, dependents=dependents) == [True] * len(jids)
    assert {name for name in door.names() if name and name[0] in "jduxDw"} == set()


@pytest.mark.few(8)
@pytest.mark.parametrize("width", [1, 450])
def test_the_longest_calls_with_dependencies_are_bounded(
    width: int, door: Door, capsys: pytest.CaptureFixture[str]
):
    """A put of as many parents as a call may name, the completion of many parents, a cancel of as many ties."""
    longest = Longest(door)
    for start in range(0, 450, 150):
        door.put("q", *[f"p{n}" for n in range(start, start + 150)])
    words: list[str | int] = ["", 0, "new", "q", 0, 5, 0]
    for n in range(1024 // (3 + 2 * width)):
        words += [
            f"c{n}",
            "k",
            "{}",
            width,
            *[w for m in range(width) for w in ("depends", f"p{(n + m) % 450}")],
        ]
    longest(lambda: door("put_x", *words))
    put, longest.spent = longest.spent, 0.0
    jobs = door.pop("w", "q", n=450)
    for part in (jobs[:225], jobs[225:]):
        done = [w for job in part for w in (job.jid, job.token, "", 0, "")]
        longest(partial(door, "complete", "w", *done))
    with capsys.disabled():
        print(
            f"\n{width} parents a job: put {put:.2f} ms, completion of 225 parents {longest.spent:.2f} ms of CPU"
        )
