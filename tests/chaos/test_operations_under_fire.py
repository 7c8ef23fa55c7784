"""Operations on many jobs whose programs and store are killed while workers work: every job is changed once, and counted once."""

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

import pytest
from trouble import WRITTEN_AT_ONCE, meanwhile

from holdfast import Client
from holdfast.commands.jobs import JobGet
from holdfast.console.handles import Console
from holdfast.console.operations.operations import LEASE_MS, Operation, RunningOperation
from holdfast.console.operations.spec import Spec
from holdfast.errors import HoldfastError, WrongState
from holdfast.models import JobFacts
from holdfast.testing.clock import START_MS, StoppedClock
from holdfast.testing.store import ScratchStore
from native_door import Door
from waiting import until

PROGRAM = Path(__file__).with_name("bulk_work.py")
LONG = 120.0


class Fire:
    """A store with failed jobs, and programs that are killed. Its clock stands still, but for what the test adds."""

    def __init__(self, store: ScratchStore, client: Client, namespace: str) -> None:
        self.store, self.client, self.namespace = store, client, namespace
        self.clock, self.door = StoppedClock(client, START_MS), Door(client)
        self.console = Console(client, "ann")
        self.programs: list[subprocess.Popen[bytes]] = []
        self.random = random.Random(20251128)

    def start(self, what: str, arg: str = "") -> subprocess.Popen[bytes]:
        words = [sys.executable, str(PROGRAM), what, self.store.url, self.namespace, arg]
        self.programs.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        return self.programs[-1]

    def fail(self, count: int) -> list[str]:
        self.clock.advance(seconds=0)
        jids = list(self.client.queues["q"].put_many([("k.K", {"n": n}) for n in range(count)]))
        for _ in range(0, count, 100):
            held = [word for job in self.door.pop("w", "q", n=100) for word in (job.jid, job.token, "")]
            self.door("fail", "w", "G", "no luck", *held)
        self.clock.advance(seconds=1)
        return jids

    def operation(self, what: str) -> Operation | None:
        """The newest operation of an action."""
        found = [one for one in self.console.operations() if one.spec.action == what]
        return found[0] if found else None

    def changed(self, what: str) -> int:
        found = self.operation(what)
        return found.changed if found else 0

    def kill_at(self, what: str, least: int, *programs: subprocess.Popen[bytes]) -> None:
        """Kill programs at a moment behind so many changes."""
        until(
            lambda: self.changed(what) >= least or all(one.poll() is not None for one in programs),
            f"{least} jobs are changed",
            LONG,
        )
        for one in programs:
            one.kill()
            one.wait()

    def take_over(self, id: str) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
        """Two operators resume an operation at once, when its lease is over."""
        self.clock.advance(seconds=LEASE_MS / 1000 + 1)
        return self.start("resume", id), self.start("resume", id)

    def finish(self, what: str) -> Operation:
        """Resume until it is done."""
        found = self.operation(what)
        assert found is not None
        for _ in range(5):
            codes = sorted(one.wait(LONG) for one in self.take_over(found.id))
            done = self.console.operation(found.id)
            if done.state == "done":
                assert codes in ([0, 3], [3, 3]), "only one of two operators runs it"
                return done
        raise AssertionError(done)

    def facts(self, jids: list[str]) -> list[JobFacts]:
        found: list[JobFacts | None] = []
        for at in range(0, len(jids), 100):
            found += self.client.run(JobGet(jids[at : at + 100]))
        assert all(found)
        return [one for one in found if one is not None]

    def end(self) -> None:
        for one in self.programs:
            with suppress(OSError):
                one.kill()
            one.wait()


@pytest.fixture
def fire(namespace: str) -> Iterator[Fire]:
    with (
        ScratchStore("valkey", "process", settings=WRITTEN_AT_ONCE) as store,
        Client(store.url, namespace=namespace) as client,
    ):
        made = Fire(store, client, namespace)
        yield made
        made.end()


def adds_up(done: Operation, count: int) -> None:
    assert (done.looked, done.matched, done.changed + done.same + done.refused) == (count, count, count)


def story(fire: Fire, count: int, kills: int, trouble: Callable[[int], None]) -> None:
    jids = fire.fail(count)
    worker = fire.start("work")
    fire.kill_at("retry", fire.random.randrange(1, count // kills), fire.start("run", "retry|group:G||0"))
    found = fire.operation("retry")
    assert found is not None
    for turn in range(kills - 1):
        both = fire.take_over(found.id)
        trouble(turn)
        fire.kill_at("retry", fire.changed("retry") + fire.random.randrange(1, count // kills), *both)
    done = fire.finish("retry")
    adds_up(done, count)
    assert (done.changed, done.refused) == (count, 0)
    for job in fire.facts(jids):
        assert [line.what for line in job.history].count("put") == 2, "every job is put to work once more"
    worker.kill()
    worker.wait()
    undone(fire, done, jids)
    lines = Counter(line.what for line in fire.console.audit(limit=100).rows)
    assert lines == {"bulk retry": 1, "undo retry": 1}


def undone(fire: Fire, done: Operation, jids: list[str]) -> None:
    """The undo is killed too. What ran since is reported, and everything else is failed again."""
    ran = {job.jid for job in fire.facts(jids) if job.state != "waiting"}
    fire.kill_at("fail", fire.random.randrange(1, len(jids) // 2), fire.start("undo", done.id))
    undo = fire.operation("fail")
    assert undo is not None
    after = undo if undo.state == "done" else fire.finish("fail")
    adds_up(after, len(jids))
    assert (after.changed, after.refused) == (len(jids) - len(ran), len(ran))
    assert {jid for jid, _ in after.refusals} <= ran
    assert fire.client.jobs.failed().get("G", 0) == after.changed
    assert fire.console.operation(done.id).state == "undone"
    with pytest.raises(WrongState):
        fire.console.undo_operation(done.id)


@pytest.mark.full
def test_an_operation_survives_the_deaths_of_its_programs(fire: Fire) -> None:
    story(fire, 900, 2, lambda _: None)


@pytest.mark.full
def test_an_operation_over_ten_thousand_jobs_survives_the_deaths_of_programs_and_store(fire: Fire) -> None:
    def kill_the_store(turn: int) -> None:
        if turn % 2 == 0:
            fire.store.kill()
            fire.store.restart()

    story(fire, 10_000, 6, kill_the_store)


def test_a_rate_is_kept_by_two_runs_of_which_the_first_is_stopped_by_another_program(fire: Fire) -> None:
    fire.fail(240)
    begun, rate, seen = monotonic(), 80, list[tuple[float, int]]()
    other = Console(fire.client)

    def note(running: RunningOperation) -> None:
        seen.append((monotonic() - begun, other.operation(running.id).changed))
        if len(seen) == 1:
            other.stop_operation(running.id)

    first = fire.console.start_operation(Spec(action="retry", filter="group:G", rate=rate))
    stopped = fire.console.run_operation(first, note)
    assert (stopped.state, stopped.changed) == ("stopped", rate)
    done = other.run_operation(other.resume_operation(first.id), note)
    adds_up(done, 240)
    # Each of the two runs may begin with the changes of one second.
    assert all(changed <= rate * (seconds + 2) for seconds, changed in seen)
    assert seen[-1][0] >= 1


@pytest.mark.full
def test_two_operators_of_one_program_do_not_run_an_operation_together(fire: Fire) -> None:
    fire.fail(300)
    first = fire.console.start_operation(Spec(action="retry", filter="group:G"))
    fire.console.stop_operation(first.id)
    mine = fire.console.resume_operation(first.id)
    with pytest.raises(WrongState, match="is run by"):
        fire.console.resume_operation(first.id)
    done = fire.console.run_operation(mine)
    assert (done.changed, done.refused) == (300, 0)


@pytest.mark.full
def test_an_operation_that_is_undone_twice_at_once_reports_what_was_undone_by_the_other(fire: Fire) -> None:
    fire.fail(300)
    done = fire.console.run_operation(fire.console.start_operation(Spec(action="retry", filter="group:G")))
    first, second = fire.console.undo_operation(done.id), fire.console.undo_operation(done.id)
    found = [fire.console.run_operation(one) for one in (first, second)]
    assert [(one.changed, one.refused) for one in found] == [(300, 0), (0, 300)]
    assert fire.client.jobs.failed() == {"G": 300}
    with pytest.raises(HoldfastError):
        fire.console.undo_operation(done.id)


@pytest.mark.full
def test_jobs_that_two_operators_change_at_once_are_changed_by_one_of_them(fire: Fire) -> None:
    jids = fire.fail(200)
    results: list[list[tuple[str, object]]] = []

    def retry() -> None:
        with Client(fire.store.url, namespace=fire.namespace) as client:
            bob = Console(client, "bob")
            results.extend(list(bob.act("retry", *jids[at : at + 50])) for at in range(0, 200, 50))

    with meanwhile(retry), meanwhile(retry):
        pass
    found = Counter(jid for part in results for jid, result in part if result is True)
    assert found == dict.fromkeys(jids, 1)
    refused = [result for part in results for _, result in part if result is not True]
    assert len(refused) == 200
    assert all(isinstance(one, WrongState) for one in refused)
    assert len(fire.console.audit(limit=100).rows) == 8
