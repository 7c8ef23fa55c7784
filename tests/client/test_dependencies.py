"""Jobs that wait for others, through both clients."""

from typing import Any

import pytest

from holdfast import group
from holdfast.commands.options import MAX_WEIGHT, ExtraOptions, JobWithOptions, PutX
from holdfast.errors import DependencyRefused, LeaseLost, UsageError, WrongState


def put(do: Any, *jobs: tuple[str, list[str]], queue: str = "q") -> None:
    """Jobs with those they wait for, in as many calls as that takes."""
    step: list[JobWithOptions] = []
    for jid, parents in jobs:
        job = JobWithOptions("K", b"{}", jid, ExtraOptions(depends=parents))
        if sum(one.weight for one in (*step, job)) > MAX_WEIGHT:
            do(lambda some=tuple(step): do.client.run(PutX(queue, some)))
            step = []
        step.append(job)
    do(lambda: do.client.run(PutX(queue, step)))


def chain(count: int) -> list[tuple[str, list[str]]]:
    return [(f"c{n}", [f"c{n - 1}"] if n else []) for n in range(count)]


def states(do: Any, *jids: str) -> list[str]:
    return [job.state for job in do(lambda: do.client.jobs.get(*jids))]


def test_a_job_is_told_whom_to_wait_for_and_says_who_waits(do):
    put(do, ("a", []), ("b", []), ("c", ["a"]))
    [a, c] = do(lambda: do.client.jobs.get("a", "c"))
    assert (c.dependencies, a.dependents) == (["a"], ["c"])
    assert do(lambda: c.depend("b", "nobody")) == 1
    assert do(lambda: do.client.jobs.get("c"))[0].dependencies in (["a", "b"], ["b", "a"])
    assert do(lambda: c.undepend("a")) == 1
    assert do(a.read_dependents) == []
    assert do(lambda: c.undepend(all=True)) == 1
    assert states(do, "c") == ["waiting"]
    with pytest.raises(WrongState):
        do(lambda: c.depend("a"))


def test_all_dependents_of_a_large_family_are_read(do):
    put(do, ("p", []), *((f"c{n:04}", ["p"]) for n in range(1300)))
    [parent] = do(lambda: do.client.jobs.get("p"))
    assert sorted(do(parent.read_dependents)) == [f"c{n:04}" for n in range(1300)]


def test_a_job_is_completed_with_follow_ups(do):
    put(do, ("j", []), queue="mail")
    job = do(do.client.queues["mail"].pop)
    follow = [
        {"queue": "out", "klass": "Send", "data": {"n": 1}, "jid": "f1", "tags": ["red"], "priority": 3},
        {"queue": do.client.queues["out"], "klass": "Send", "jid": "f2", "depends": ["f1"], "delay": 5},
    ]
    assert do(lambda: job.complete(follow=follow)) == "complete"
    first, second = do(lambda: do.client.jobs.get("f1", "f2"))
    assert (first.state, first.queue_name, first.priority, first.tags) == ("waiting", "out", 3, ["red"])
    assert (second.state, second.dependencies) == ("depends", ["f1"])
    with pytest.raises(LeaseLost):
        do(lambda: first.complete(follow=follow[1:]))


def test_a_job_goes_on_and_waits_for_its_parts(do):
    put(do, ("j", []))
    job = do(do.client.queues["q"].pop)
    parts = [{"queue": "parts", "klass": "Part", "jid": f"part{n}"} for n in range(3)]
    assert do(lambda: job.complete("gather", depends=["part0", "part1", "part2"], follow=parts)) is True
    assert job.state_changed
    assert states(do, "j") == ["depends"]
    for _ in range(3):
        part = do(do.client.queues["parts"].pop)
        do(part.complete)
    assert states(do, "j") == ["waiting"]


@pytest.mark.parametrize(
    "options",
    [
        {"depends": ["a"]},
        {"delay": 5},
        {"follow": [{"klass": "K"}]},
        {"follow": [{"queue": "q"}]},
        {"follow": [{"queue": "q", "klass": "K", "colour": "red"}]},
        {"follow": [{"queue": "q", "klass": "K", "only_new": True}]},
        {"follow": [{"queue": "q", "klass": "K", "tags": [""]}]},
        {"follow": [{"queue": "q", "klass": "K"}] * 513},
    ],
    ids=str,
)
def test_what_cannot_be_completed_so_is_found_before_anything_is_sent(do, options):
    put(do, ("j", []))
    job = do(do.client.queues["q"].pop)
    with pytest.raises(UsageError):
        do(lambda: job.complete(**options))
    assert states(do, "j") == ["running"]


def test_undepend_wants_jids_or_all_and_not_both(do):
    put(do, ("a", []), ("b", ["a"]))
    [job] = do(lambda: do.client.jobs.get("b"))
    for words, options in (((), {}), (("a",), {"all": True})):
        with pytest.raises(UsageError):
            do(lambda words=words, options=options: job.undepend(*words, **options))


# Cancelling.


def test_a_job_with_dependents_is_cancelled_with_them_or_not_at_all(do):
    put(do, *chain(4), ("side", ["c2"]), ("free", []))
    with pytest.raises(DependencyRefused):
        do(lambda: do.client.jobs.cancel("c1"))
    [job] = do(lambda: do.client.jobs.get("c1"))
    with pytest.raises(DependencyRefused):
        do(job.cancel)
    assert do(lambda: do.client.jobs.cancel("c1", "nobody", dependents=True)) == [True, False]
    assert [job.jid for job in do(lambda: do.client.jobs.get("c0", "c1", "c2", "c3", "side", "free"))] == [
        "c0",
        "free",
    ]


def test_a_chain_longer_than_a_call_is_cancelled_leaves_first(do):
    put(do, *chain(1300))
    jids = [f"c{n}" for n in range(1300)]
    assert do(lambda: do.client.jobs.cancel(*jids)) == [True] * 1300
    assert do(lambda: do.client.jobs.get(*jids)) == []


def test_a_large_set_that_leaves_somebody_waiting_is_refused_before_anything_is_cancelled(do):
    put(do, *chain(700), ("last", ["c5"]))
    with pytest.raises(DependencyRefused, match="c5 is a dependency of last"):
        do(lambda: do.client.jobs.cancel(*(f"c{n}" for n in range(700))))
    assert len(do(lambda: do.client.jobs.get(*(f"c{n}" for n in range(700))))) == 700


def test_a_small_set_of_many_ties_goes_in_several_calls(do):
    parents = [f"p{n}" for n in range(60)]
    children = [f"c{n}" for n in range(60)]
    put(do, *((jid, []) for jid in parents))
    put(do, *((jid, parents) for jid in children))
    assert do(lambda: do.client.jobs.cancel(*parents, *children)) == [True] * 120


def test_a_wide_family_goes_with_its_parent(do):
    put(do, ("p", []), *((f"c{n}", ["p"]) for n in range(1500)))
    assert do(lambda: do.client.jobs.cancel("p", dependents=True)) == [True]
    assert do(lambda: do.client.jobs.get("p", *(f"c{n}" for n in range(1500)))) == []


def test_what_was_put_in_a_batch_is_cancelled_with_the_rest(client):
    queue = client.queues["q"]
    with client.batch():
        jid = queue.put("K")
        assert client.jobs.cancel(jid) == [True]
    assert client.jobs.get(jid) == []


def test_a_job_of_a_flow_does_not_start_without_the_results_that_it_waits_for(client):
    @client.job(name="depend.double", queue="q")
    def double(number: int) -> int:
        return number

    client.put(double.call(1).then(double), jid="passes")
    client.put(double.call(2).after(double.call(1)), jid="orders")
    client.put(group(double.call(number) for number in range(513)), jid="large")
    for jid in ("passes-1", "large-0"):
        with pytest.raises(DependencyRefused, match=jid):
            client.jobs[jid].undepend(all=True)
        assert client.jobs[jid].state == "depends"
    assert client.jobs["orders-1"].facts.policies == ("fail",)
    client.jobs["orders-1"].undepend("orders-0")
    assert client.jobs["orders-1"].state == "waiting"
