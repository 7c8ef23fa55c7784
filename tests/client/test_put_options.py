"""What may be wished for a job at its put: for both clients, alone, in batches, and together."""

import asyncio

import pytest

from holdfast import AsyncClient, Client, UsageError
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions, PutX
from holdfast.wire.gather import packed

WISHES = {
    "tags": ["red", "blue", "red"], "throttles": ("db",), "depends": ["parent"],
    "backoff": {"first": 2, "jitter": 0}, "expires": 60, "timeout": 5.5, "result_keep": 0,
}  # fmt: skip
OPTIONS = {"backoff": "exponential:2000:600000:0", "limit": 5_500, "keep": 0}

BAD = [
    ({"tags": "red"}, "tags must be a list"), ({"tags": 7}, "tags must be a list"), ({"tags": {"a": 1}}, "tags must be"),
    ({"tags": [""]}, "tags must have"), ({"tags": [7]}, "tags must be text"), ({"tags": ["a\nb"]}, "control"),
    ({"tags": [f"t{n}" for n in range(10_000)]}, "tags: at most 64"), ({"tags": ["x" * 201]}, "tags must have"),
    ({"throttles": [f"t{n}" for n in range(17)]}, "throttles: at most 16"), ({"throttles": b"db"}, "throttles must be"),
    ({"depends": [f"j{n}" for n in range(451)]}, "depends: at most 450"), ({"depends": "j"}, "depends must be a list"),
    ({"jid": "me", "depends": ["you", "me"]}, "cannot wait for itself"), ({"depends": [""]}, "depends must have"),
    ({"backoff": "linear"}, "kind is"), ({"backoff": {"frist": 1}}, "did you mean 'first'"), ({"backoff": -1}, "backoff"),
    ({"backoff": lambda attempt, error: 1.0}, "function cannot be stored"), ({"backoff": float("nan")}, "backoff"),
    ({"backoff": {"first": 5, "longest": 1}}, "longest"), ({"backoff": {"jitter": 2}}, "jitter"), ({"backoff": [1]}, "backoff"),
    ({"backoff": {"first": "1"}}, "first"), ({"backoff": 10**9}, "backoff"), ({"backoff": True}, "backoff"),
    ({"expires": 0}, "expires"), ({"expires": -1}, "expires"), ({"expires": "soon"}, "expires"), ({"expires": 1e12}, "expires"),
    ({"expires": 5, "delay": 5}, "could never start"), ({"timeout": 0}, "timeout"), ({"timeout": "5"}, "timeout"),
    ({"timeout": float("inf")}, "timeout"), ({"result_keep": -1}, "result_keep"), ({"result_keep": "1"}, "result_keep"),
    ({"tag": ["red"]}, "did you mean 'tags'"), ({"data": [[]]}, "nested"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "why"), BAD, ids=[str(index) for index in range(len(BAD))])
def test_a_bad_wish_is_a_usage_error_before_anything_is_sent(do, options, why):
    data = options.get("data", {})
    for _ in range(200 if "data" in options else 0):
        data = [data]
    rest = {name: value for name, value in options.items() if name != "data"}
    for ask in (
        lambda: do.client.queues["q"].put("K", data, **rest),
        lambda: do.client.queues["q"].put_many([{"klass": "K", "data": data, **rest}]),
    ):
        with pytest.raises(UsageError, match=why):
            do(ask)
    assert not do.client.shard.met


def test_a_put_with_wishes_brings_them_all(do):
    queue = do.client.queues["q"]
    do(lambda: queue.put("K", jid="parent"))
    jid = do(lambda: queue.put("K", {"n": 1}, priority=3, retries=2, **WISHES))
    [job] = do(lambda: do.client.jobs.get(jid))
    assert (job.state, job.tags, job.dependencies) == ("depends", ["red", "blue"], ["parent"])
    assert (job.priority, job.original_retries, job["n"]) == (3, 2, 1)
    assert {name: job.facts.options[name] for name in OPTIONS} == OPTIONS
    assert job.facts.options["expires"] == job.facts.created_ms + 60_000


def test_no_wish_at_all_is_a_plain_put(do):
    queue = do.client.queues["q"]
    jid = do(lambda: queue.put("K", tags=None, depends=None, backoff=None, expires=None, result_keep=None))
    [job] = do(lambda: do.client.jobs.get(jid))
    assert (job.facts.flags, job.facts.options) == (0, {})


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (3, "fixed:3000:3000:0"),
        (0, "fixed:0:0:0"),
        ("exponential", "exponential:1000:600000:25"),
        ("fixed", "fixed:1000:600000:25"),
        ({}, "exponential:1000:600000:25"),
        ({"kind": "fixed", "first": 0.5, "jitter": 0.1}, "fixed:500:600000:10"),
        ({"first": 1000}, "exponential:1000000:1000000:25"),
    ],
)
def test_a_backoff_is_seconds_a_kind_or_a_mapping(do, wish, words):
    jid = do(lambda: do.client.queues["q"].put("K", backoff=wish))
    [job] = do(lambda: do.client.jobs.get(jid))
    assert job.facts.options == {"backoff": words}


def test_many_may_share_wishes_or_have_their_own(do):
    queue = do.client.queues["q"]
    items = [("K", 1), {"klass": "K", "data": 2, "tags": ["blue"]}, ("K", 3), {"klass": "K", "timeout": 9}]
    jids = do(lambda: queue.put_many(items, tags=["red"], priority=2))
    jobs = do(lambda: do.client.jobs.get(*jids))
    assert [job.tags for job in jobs] == [["red"], ["blue"], ["red"], ["red"]]
    assert [job.facts.data for job in jobs] == [b"1", b"2", b"3", b"{}"]
    assert {job.priority for job in jobs} == {2}
    assert jobs[3].facts.options == {"limit": 9_000}


def test_a_thousand_with_wishes_are_put_in_several_calls(do):
    queue = do.client.queues["q"]
    jids = do(lambda: queue.put_many([("K", n) for n in range(1_000)], tags=["red", "blue"]))
    assert len(set(jids)) == 1_000
    jobs = do(lambda: do.client.jobs.get(*jids))
    assert [job.facts.data for job in jobs] == [b"%d" % n for n in range(1_000)]
    assert all(job.tags == ["red", "blue"] for job in jobs)


def test_the_heaviest_job_that_the_client_lets_through_is_put(do):
    queue = do.client.queues["q"]
    wishes = {
        "tags": [f"t{n}" for n in range(64)], "depends": [f"j{n}" for n in range(450)], "backoff": 1, "expires": 9,
        "timeout": 9, "result_keep": 9,
    }  # fmt: skip
    jid = do(lambda: queue.put("K", **wishes))
    [job] = do(lambda: do.client.jobs.get(jid))
    assert len(job.tags) == 64


def test_a_batch_holds_puts_with_wishes_too(client: Client):
    queue = client.queues["q"]
    with client.batch():
        first = queue.put("K", tags=["red"])
        second = queue.put("K")
        third = queue.put("K", tags=["blue"], timeout=3)
        assert not client.shard.met
    jobs = client.jobs.get(first, second, third)
    assert [job.tags for job in jobs] == [["red"], [], ["blue"]]


def test_puts_of_one_moment_leave_together_and_each_gets_its_own_answer(aclient: AsyncClient):
    async def story():
        queue = aclient.queues["q"]
        puts = [queue.put("K", n, jid=f"j{n}", only_new=True, tags=[f"t{n}"]) for n in range(300)]
        puts.append(queue.put("K", -1, jid="j7", only_new=True, tags=["x"]))
        found = await asyncio.gather(*puts, return_exceptions=True)
        jobs = await aclient.jobs.get(*(f"j{n}" for n in range(300)))
        await aclient.close()
        return found, jobs

    found, jobs = asyncio.run(story())
    assert found[:300] == [f"j{n}" for n in range(300)]
    assert type(found[300]).__name__ == "JobExists"
    assert [job.tags for job in jobs] == [[f"t{n}"] for n in range(300)]


def wished(jid: str, *depends: str, queue: str = "q", **wish) -> PutWithOptions:
    return PutWithOptions(queue, JobWithOptions("K", b"{}", jid, ExtraOptions(depends=depends, **wish)))


def test_a_call_carries_what_the_core_takes_and_the_rest_goes_with_the_next():
    puts = [wished(f"j{n}", tags=["red"]) for n in range(300)]
    calls, places = packed(puts)
    assert [type(call) for call in calls] == [PutX, PutX]
    assert [len(place) for place in places] == [256, 44]
    assert [index for place in places for index in place] == list(range(300))


def test_a_child_never_leaves_before_its_parent():
    puts = [wished("child", "x"), wished("parent", queue="r", tags=["t"]), wished("second", "parent")]
    calls, places = packed(puts)
    assert places == [[0], [1], [2]]
    puts = [wished("parent", tags=["t"]), wished("child", "parent")]
    assert packed(puts)[1] == [[0, 1]]
    assert [call.queue for call in calls] == ["q", "r", "q"]


@pytest.mark.parametrize("own", [True, False])
def test_a_handle_s_retry_waits_by_the_job_s_own_backoff(do, own):
    queue = do.client.queues["q"]
    jid = do(lambda: queue.put("K", **({"backoff": 100} if own else {"tags": ["red"]})))
    job = do(queue.pop)
    assert job.jid == jid
    assert job.tags == ([] if own else ["red"])
    assert do(job.retry) == 4
    [job] = do(lambda: do.client.jobs.get(jid))
    assert job.state == ("scheduled" if own else "waiting")


def test_a_popped_job_knows_its_throttles_as_a_read_one_does(do):
    queue = do.client.queues["q"]
    do(lambda: queue.put("K", jid="named", throttles=["t", "u"]))
    do(lambda: queue.put("K", jid="plain"))
    named, plain = do(lambda: queue.pop(2))
    assert (named.throttles, plain.throttles) == (["t", "u", "ql:q:q"], ["ql:q:q"])
    assert [job.throttles for job in do(lambda: do.client.jobs.get("named", "plain"))] == [
        named.throttles,
        plain.throttles,
    ]


def test_everything_says_what_it_is(do):
    client = do.client
    for thing in ("queues", "jobs", "recurring", "throttles", "config", "workers", "audit", "queue_patterns"):
        said = repr(getattr(client, thing))
        assert said.endswith(f" of {client!r}>")
        assert thing[:5].lower() in said.lower()
