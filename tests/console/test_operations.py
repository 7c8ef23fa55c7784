"""Operations: all jobs that a filter matches are changed; tried dry, stopped, gone on with, undone, audited."""

import asyncio
import json
import threading

import pytest

from holdfast import AsyncClient, Client
from holdfast.commands.jobs import PutMany
from holdfast.commands.operations import Act, OperationGet, OperationSet, Progress
from holdfast.console.handles import AsyncConsole, Console
from holdfast.console.operations.dry_run import DryRun
from holdfast.console.operations.operations import LEASE_MS, RunningOperation
from holdfast.console.operations.spec import Spec, merged
from holdfast.errors import OperationNotFound, UsageError, WrongState
from holdfast.testing.clock import START_MS, StoppedClock


@pytest.fixture
def console(client: Client) -> Console:
    return Console(client, "ada@box")


def put(client: Client, count: int, queue: str = "q") -> list[str]:
    return [client.queues[queue].put("k.K", {"n": n}) for n in range(count)]


def failed(client: Client, count: int, group: str = "q-Error") -> list[str]:
    jids = put(client, count)
    for at in range(0, count, 200):
        for job in client.queues["q"].pop(min(count - at, 200)):
            job.fail(group, "no luck")
    return jids


def run(console: Console, **spec: object) -> object:
    return console.run_operation(console.start_operation(Spec(**spec)))  # type: ignore[arg-type]


def test_jobs_are_cancelled_with_all_that_wait_for_them(console: Console, client: Client) -> None:
    parents = put(client, 3)
    queue = client.queues["later"]
    left = queue.put("k.K", {}, depends=parents)
    right = queue.put("k.K", {}, depends=[left, parents[0]])
    queue.put_many([("k.K", {})] * 600, depends=[right])
    found = console.waiters(*parents, show=5)
    assert (found.count, found.is_whole, len(found.first)) == (602, True, 5)
    assert not any(result is True for _, result in console.act("cancel", *parents))
    done = run(console, action="cancel", filter="queue:q", dependents=True)
    assert (done.state, done.changed, done.refused) == ("done", 605, 0)  # type: ignore[attr-defined]
    assert sum(one.depends + one.waiting for one in console.queues().rows) == 0
    with pytest.raises(UsageError, match="only cancel and delete can include them, not retry"):
        run(console, action="retry", filter="queue:q", dependents=True)


def test_named_jobs_are_cancelled_with_all_that_wait_for_them(console: Console, client: Client) -> None:
    [parent, other] = put(client, 2)
    child = client.queues["later"].put("k.K", {}, depends=[parent, other])
    results = console.act("cancel", parent, other, dependents=True)
    assert next(jid for jid, _ in results) == child
    assert [result for _, result in results] == [True] * 3


@pytest.mark.full
def test_an_operation_begins_at_its_time_and_is_stopped_before(console: Console, client: Client) -> None:
    put(client, 2)
    later = console.now_ms() + 600_000
    running = console.start_operation(Spec(action="cancel", filter="queue:q", starts_ms=later))
    waiting = threading.Thread(target=console.run_operation, args=[running])
    waiting.start()
    assert console.stop_operation(running.id)
    waiting.join(30)
    assert not waiting.is_alive()
    assert (console.operation(running.id).state, client.queues["q"].counts["waiting"]) == ("stopped", 2)
    soon = console.now_ms() + 300
    done = run(console, action="cancel", filter="queue:q", starts_ms=soon)
    assert (done.changed, console.now_ms() >= soon) == (2, True)  # type: ignore[attr-defined]


def test_a_dry_run_counts_and_shows_examples_and_changes_nothing(console: Console, client: Client) -> None:
    failed(client, 30)
    put(client, 5, "other")
    pages: list[DryRun] = []
    found = console.dry_run(Spec(action="retry", filter="queue:*"), on_page=pages.append)
    assert (found.matched, found.complete, dict(found.by_state), dict(found.by_queue)) == (
        30, True, {"failed": 30}, {"q": 30}
    )  # fmt: skip
    assert len(found.examples) == 10
    assert pages
    assert client.jobs.failed() == {"q-Error": 30}


def test_failed_jobs_are_retried_and_put_back_by_an_undo(console: Console, client: Client) -> None:
    failed(client, 700)
    done = run(console, action="retry", filter="state:failed group:q-Error")
    assert (done.state, done.changed, done.refused, done.share) == ("done", 700, 0, 1.0)
    assert client.queues["q"].counts["waiting"] == 700
    undone = console.run_operation(console.undo_operation(done.id))
    assert undone.changed == 700
    assert client.jobs.failed() == {"q-Error": 700}
    assert console.operation(done.id).state == "undone"
    with pytest.raises(WrongState):
        console.undo_operation(done.id)


def test_a_job_that_ran_since_is_not_put_back(console: Console, client: Client) -> None:
    failed(client, 3)
    done = run(console, action="retry", filter="state:failed")
    client.queues["q"].pop().complete()  # type: ignore[union-attr]
    undone = console.run_operation(console.undo_operation(done.id))
    assert (undone.changed, undone.refused) == (2, 1)
    assert undone.refusals[0][1].endswith("is complete")


@pytest.mark.parametrize(
    ("action", "value", "shown"),
    [
        ("priority", "7", lambda job: job.priority),
        ("tag", "a, b", lambda job: sorted(job.tags)),
        ("move", "other", lambda job: job.queue_name),
        ("retries", "9", lambda job: job.facts.retries),
        ("track", "", lambda job: job.tracked),
    ],
)
def test_what_can_be_undone_is_as_before_after_an_undo(
    console: Console, client: Client, action: str, value: str, shown: object
) -> None:
    jids = put(client, 3)
    before = [shown(client.jobs[jid]) for jid in jids]  # type: ignore[operator]
    done = run(console, action=action, filter="queue:q", value=value)
    assert done.changed == 3
    assert [shown(client.jobs[jid]) for jid in jids] != before  # type: ignore[operator]
    console.run_operation(console.undo_operation(done.id))
    assert [shown(client.jobs[jid]) for jid in jids] == before  # type: ignore[operator]


def test_data_are_changed_by_a_merge_patch(console: Console, client: Client) -> None:
    jids = put(client, 3)
    done = run(console, action="data", filter="data.n>0", value='{"n": null, "m": {"x": 1}}')
    assert done.changed == 2
    assert [json.loads(client.jobs[jid].data) for jid in jids[1:]] == [{"m": {"x": 1}}] * 2


def test_a_move_moves_each_job_once(console: Console, client: Client) -> None:
    put(client, 300, "a")
    put(client, 300, "b")
    done = run(console, action="move", filter="queue:a,b,c", value="c")
    assert done.changed == 600
    assert client.queues["c"].counts["waiting"] == 600


@pytest.mark.parametrize("priority", [-5, 5])
def test_a_change_of_what_the_jobs_are_ordered_by_meets_each_job_once(
    console: Console, client: Client, priority: int
) -> None:
    jids = put(client, 300)
    done = run(console, action="priority", value=str(priority), filter="queue:q state:waiting")
    assert (done.state, done.changed, done.same, done.looked >= 300) == ("done", 300, 0, True)  # type: ignore[attr-defined]
    assert {client.job(jid).priority for jid in jids[::50]} == {priority}
    again = console.dry_run(Spec(action="priority", value=str(priority), filter="queue:q"))
    assert again.matched == 0


@pytest.mark.parametrize("length", [0, 30, 900])
def test_a_delay_of_jobs_that_have_one_meets_each_job_once(
    console: Console, client: Client, length: int
) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    for n in range(300):
        client.queues["q"].put("k.K", {"n": n}, delay=60 + n)
    running = console.start_operation(Spec(action="delay", value=str(length), filter="queue:q"))
    found = console.run_operation(running, lambda _: clock.advance(seconds=0.1))
    assert (found.state, found.changed, found.matched) == ("done", 300, 300)
    assert console.dry_run(Spec(action="delay", value="5", filter="queue:q")).matched == 300


def test_a_move_takes_jobs_that_were_queued_since_and_leaves_those_that_wait_there(
    console: Console, client: Client
) -> None:
    clock = StoppedClock(client, START_MS)
    clock.advance(seconds=0)
    put(client, 3, "a")
    put(client, 2, "b")
    running = console.start_operation(Spec(action="move", filter="queue:a,b", value="b"))
    clock.advance(seconds=5)
    [job] = client.queues["a"].pop(1)
    job.requeue("a")
    assert console.run_operation(running).changed == 3
    assert client.queues["b"].counts["waiting"] == 5
    assert console.dry_run(Spec(action="move", filter="queue:b", value="b")).matched == 0


def test_a_move_ends_where_the_clock_steps_back(console: Console, client: Client) -> None:
    clock = StoppedClock(client, START_MS)
    clock.advance(seconds=0)
    put(client, 300, "a")
    put(client, 10, "b")
    running = console.start_operation(Spec(action="move", filter="queue:a,b", value="b"))
    clock.advance(seconds=-3600)
    done = console.run_operation(running)
    assert (done.state, done.changed) == ("done", 300)
    undone = console.run_operation(console.undo_operation(done.id))
    assert (undone.changed, undone.refused) == (300, 0)
    assert client.queues["a"].counts["waiting"] == 300


def test_a_job_that_was_changed_after_a_move_is_not_moved_back(console: Console, client: Client) -> None:
    jids = put(client, 4, "a")
    done = run(console, action="move", filter="queue:a", value="b")
    ended, held = client.queues["b"].pop(2)
    ended.complete()
    console.act("move", jids[2], value="c")
    undone = console.run_operation(console.undo_operation(done.id))
    assert (undone.changed, undone.refused) == (1, 3)
    assert [client.jobs[jid].queue_name for jid in jids[1:]] == ["b", "c", "a"]
    assert held.heartbeat()
    assert client.jobs[jids[0]].state == "complete"


def test_cancel_takes_children_before_their_parents(console: Console, client: Client) -> None:
    parent = client.queues["q"].put("k.K", {})
    for _ in range(5):
        parent = client.queues["q"].put("k.K", {}, depends=[parent])
    done = run(console, action="cancel", filter="queue:q")
    assert (done.changed, done.refused) == (6, 0)


def test_an_operation_stopped_by_somebody_else_is_gone_on_with(console: Console, client: Client) -> None:
    failed(client, 600)
    running = console.start_operation(Spec(action="retry", filter="state:failed"))
    console.run_operation(running, lambda _: console.stop_operation(running.id))
    stopped = console.operation(running.id)
    assert (stopped.state, stopped.changed) == ("stopped", 128)
    done = console.run_operation(console.resume_operation(running.id))
    assert (done.state, done.changed) == ("done", 600)
    assert client.queues["q"].counts["waiting"] == 600


def test_an_operation_of_a_runner_that_lives_is_not_taken_over(console: Console, client: Client) -> None:
    failed(client, 3)
    running = console.start_operation(Spec(action="retry", filter="state:failed"))
    other = Console(client)
    other.runner = "another"
    with pytest.raises(WrongState):
        other.resume_operation(running.id)
    console.stop_operation(running.id)
    assert other.run_operation(other.resume_operation(running.id)).changed == 3


def test_a_rate_is_kept(console: Console, client: Client) -> None:
    failed(client, 6)
    steps: list[int] = []

    def note(running: RunningOperation) -> None:
        steps.append(running.changed)

    console.run_operation(console.start_operation(Spec(action="retry", filter="state:failed", rate=20)), note)
    assert steps[-1] == 6


def test_the_largest_number_of_jobs_is_kept_also_when_it_is_continued(
    console: Console, client: Client
) -> None:
    failed(client, 300)
    spec = Spec(action="retry", filter="state:failed", most=200)
    assert console.dry_run(spec).matched == 200

    def stop(running: RunningOperation) -> None:
        console.stop_operation(running.id)

    stopped = console.run_operation(console.start_operation(spec), stop)
    assert (stopped.state, 0 < stopped.changed < 200) == ("stopped", True)
    done = console.run_operation(console.resume_operation(stopped.id))
    assert (done.state, done.changed, done.share) == ("done", 200, 1.0)
    assert client.queues["q"].counts["failed"] == 100


def test_a_slow_operation_looks_at_no_job_twice_and_at_many_without_a_match_at_once(
    console: Console, client: Client
) -> None:
    put(client, 700)
    client.queues["q"].put("k.Last", {}, jid="last")
    looks: list[int] = []

    def note(running: RunningOperation) -> None:
        looks.append(running.looked)

    running = console.start_operation(Spec(action="track", filter="klass:k.Last,k.K", rate=100_000))
    assert console.run_operation(running, note).changed == 701
    assert looks[-1] == 701
    looks.clear()
    running = console.start_operation(Spec(action="untrack", filter="klass:k.Last", rate=1))
    assert console.run_operation(running, note).changed == 1
    assert (looks[-1], len(looks) <= 4) == (701, True)


def test_data_that_are_not_json_are_not_patched_and_keep_nothing_else_from_it(
    console: Console, client: Client
) -> None:
    client.run(
        PutMany("q", ["a", "k.K", b"{", "b", "k.K", b"[" * 100_000 + b"]" * 100_000, "c", "k.K", b"{}"])
    )
    assert run(console, action="data", filter="queue:q", value='{"n": 1}').changed == 1
    for jid in ("a", "b"):
        with pytest.raises(WrongState, match=f"the data of {jid} is not JSON"):
            console.edit(jid, patch='{"n": 1}')
    with pytest.raises(UsageError, match="the patch is not JSON"):
        console.edit("c", patch='{"a":' * 9000)


def test_each_operation_is_one_line_of_the_audit_log(console: Console, client: Client) -> None:
    failed(client, 600)
    run(console, action="retry", filter="state:failed")
    [line] = console.audit().rows
    assert (line.who, line.what, line.detail) == ("ada@box", "bulk retry", "state:failed")


def test_single_actions_say_what_was_refused_and_are_audited(console: Console, client: Client) -> None:
    [jid] = failed(client, 1)
    waiting = put(client, 1, "w")[0]
    found = dict(console.act("retry", jid, waiting, "nowhere"))
    assert found[jid] is True
    assert isinstance(found[waiting], WrongState)
    assert "does not exist" in str(found["nowhere"])
    assert console.audit().rows[0].what == "retry"
    Console(client).act("priority", waiting, value="3")
    assert len(console.audit().rows) == 1


@pytest.mark.parametrize(
    ("action", "value"),
    [("priority", ""), ("priority", "x"), ("priority", "1.5"), ("priority", "99999"), ("delay", "-1"), ("data", "["),
     ("data", "[]"), ("cancel", "x"), ("tag", "a\nb\x01"), ("nonsense", "")],
)  # fmt: skip
def test_a_value_that_an_action_does_not_take_is_refused(
    console: Console, client: Client, action: str, value: str
) -> None:
    jid = put(client, 1)[0]
    with pytest.raises(UsageError):
        run(console, action=action, filter="queue:q", value=value)
    with pytest.raises(UsageError):
        console.act(action, jid, value=value)  # type: ignore[arg-type]
    assert console.operations() == []


def test_an_empty_filter_changes_nothing(console: Console) -> None:
    with pytest.raises(UsageError, match=r"jid:\*"):
        run(console, action="cancel", filter=" ")


def test_an_operation_that_is_not_known(console: Console) -> None:
    for ask in (console.operation, console.resume_operation, console.undo_operation, console.stop_operation):
        with pytest.raises(OperationNotFound):
            ask("nowhere")


def test_an_async_console_runs_operations_too(console: Console, client: Client, aclient: AsyncClient) -> None:
    failed(client, 300)

    async def retry() -> int:
        other = AsyncConsole(aclient, "bob@web")
        done = await other.run_operation(
            await other.start_operation(Spec(action="retry", filter="state:failed", rate=5000))
        )
        await aclient.close()
        return done.changed

    assert asyncio.run(retry()) == 300


def test_a_merge_patch_is_that_of_the_rfc() -> None:
    assert merged({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": None, "e": {"f": None, "g": 1}}, "d": [1]}) == {
        "a": {"c": 2, "e": {"g": 1}}, "d": [1]
    }  # fmt: skip


def test_an_operation_over_hundreds_of_named_jobs_is_continued_where_it_was(
    console: Console, client: Client
) -> None:
    names = [f"j{n}" for n in range(600)]
    for name in names:
        client.queues["q"].put("k.K", {}, jid=name)
    running = console.start_operation(Spec(action="delay", filter=f"jid:{','.join(names)}", value="60"))
    console.run_operation(running, lambda _: console.stop_operation(running.id))
    assert console.operation(running.id).changed == 128
    done = console.run_operation(console.resume_operation(running.id))
    assert (done.looked, done.matched, done.changed, done.refused) == (600, 600, 600, 0)
    assert client.queues["q"].counts["scheduled"] == 600


def test_an_operation_is_continued_behind_a_queue_that_was_emptied_meanwhile(
    console: Console, client: Client
) -> None:
    for name in ("a", "b", "c"):
        put(client, 256, name)
    running = console.start_operation(Spec(action="tag", filter="queue:a,b,c state:waiting", value="t"))
    console.run_operation(running, lambda _: console.stop_operation(running.id))
    for name in ("a", "b"):
        console.act("cancel", *[row.jid for row in console.jobs(f"queue:{name}", limit=512).jobs])
    done = console.run_operation(console.resume_operation(running.id))
    assert done.changed == 128 + 256
    assert len(console.jobs("tag:t", limit=512).jobs) == 256


def test_an_undo_that_was_stopped_within_a_part_undoes_each_job_once(
    console: Console, client: Client
) -> None:
    jids = put(client, 300)
    done = run(console, action="move", filter="queue:q", value="other")
    undo = console.undo_operation(done.id)
    first = client.run(OperationGet(done.id, 0, 1))
    assert first is not None
    partly = Progress(undo.id, undo.runner, LEASE_MS, "", 5, 5)
    moved = client.run(Act("move-back", first.changed[:5], operation=partly))
    assert moved == [True] * 5
    client.run(Act("move", (), operation=Progress(undo.id, undo.runner, LEASE_MS, "")))
    console.stop_operation(undo.id)
    after = console.run_operation(console.resume_operation(undo.id))
    assert (after.looked, after.changed, after.refused) == (300, 300, 0)
    assert {client.jobs[jid].queue_name for jid in jids} == {"q"}


def test_the_undo_of_an_undo_puts_a_job_back_into_the_queue_it_waited_in(
    console: Console, client: Client
) -> None:
    [jid] = failed(client, 1)
    done = run(console, action="retry", filter="state:failed", value="other")
    undone = console.run_operation(console.undo_operation(done.id))
    assert (client.jobs[jid].state, client.jobs[jid].queue_name) == ("failed", "q")
    console.run_operation(console.undo_operation(undone.id))
    assert (client.jobs[jid].state, client.jobs[jid].queue_name) == ("waiting", "other")


def test_the_record_of_an_operation_that_cannot_be_read_is_refused(console: Console, client: Client) -> None:
    client.run(OperationSet("start", "o", "bee", 1000, '{"action":5}'))
    console.stop_operation("o")
    with pytest.raises(WrongState, match="cannot be read"):
        console.resume_operation("o")
    assert console.operation("o").id == "o"
