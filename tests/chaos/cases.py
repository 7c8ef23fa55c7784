"""Calls of every verb: what was before (`prepare`, on an undisturbed client), and the call itself.

A case is a function that is given such a client, prepares its namespace, and returns the command. Clocks stand
still and jids are fixed, so two namespaces prepared by one case are equal.
"""

from collections.abc import Callable
from hashlib import sha1
from typing import Any

from holdfast import Client
from holdfast.commands.admin import (
    Audit,
    AuditList,
    ConfigGet,
    ConfigSet,
    ConfigUnset,
    Describe,
    IdentifiersSet,
    Info,
    Patterns,
    PrioritiesSet,
    SetClock,
    SettingSet,
    SettingsGet,
    Sweep,
    Watch,
)
from holdfast.commands.attributes import Log, Report, Tag, Tagged, Tags, Track, Tracked
from holdfast.commands.base import Call
from holdfast.commands.dependencies import CompleteX, Depend, Dependents, FollowUp
from holdfast.commands.failures import Failed, FailureGroups, Failures, Unfail
from holdfast.commands.flows import (
    Edge,
    EndWithFlow,
    FlowAdd,
    FlowClose,
    FlowForget,
    FlowGet,
    FlowJob,
    FlowList,
    FlowPut,
    FlowResults,
    FlowStates,
    FlowSteps,
    LargeGroup,
)
from holdfast.commands.jobs import (
    Await,
    Cancel,
    CancelBy,
    JobGet,
    JobsComplete,
    Move,
    Put,
    PutMany,
    SetPriority,
)
from holdfast.commands.leases import (
    FOUND,
    WILL_WAIT,
    WOKEN,
    Complete,
    CompleteMany,
    CompletePop,
    Done,
    FindWork,
    Heartbeat,
    HeartbeatMany,
    Lease,
    Pop,
    Resume,
)
from holdfast.commands.operations import (
    Act,
    Audited,
    OperationGet,
    Operations,
    OperationSet,
    Progress,
    Scan,
)
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutX
from holdfast.commands.outcomes import (
    OWN_BACKOFF,
    Advance,
    Expire,
    Fail,
    HowReleased,
    Release,
    Retry,
    Timeout,
)
from holdfast.commands.queues import (
    CountQueues,
    GetStats,
    Pause,
    Peek,
    QueueForget,
    QueueGet,
    QueueNames,
    QueueSet,
    ThrottleDelete,
    ThrottleGet,
    ThrottleNames,
    ThrottleRelease,
    ThrottleSet,
)
from holdfast.commands.recurring import (
    CalendarFacts,
    Recur,
    RecurCancel,
    RecurExtend,
    RecurGet,
    RecurPause,
    RecurRun,
    RecurTag,
    RecurUnplanned,
    RecurUpdate,
)
from holdfast.commands.topics import (
    CountTopics,
    TopicDelete,
    TopicGet,
    TopicPull,
    TopicPut,
    TopicRelease,
    TopicRequeue,
    TopicReschedule,
    TopicReserve,
)
from holdfast.commands.views import Explain, ListSet, Minutes, Tick
from holdfast.commands.workers import (
    WorkerAnswer,
    WorkerAsk,
    WorkerForget,
    WorkerJobs,
    WorkerQuiet,
    Workers,
    WorkerSeen,
)
from holdfast.models import JobFacts
from holdfast.testing.clock import START_MS

Case = Callable[[Client], Any]
CASES: dict[str, list[Case]] = {}

LATER = START_MS + 3_600_000


def case(verb: str) -> Callable[[Case], Case]:
    def register(made: Case) -> Case:
        CASES.setdefault(verb, []).append(made)
        return made

    return register


def put(client: Client, *jids: str, queue: str = "q", **options: Any) -> None:
    for jid in jids:
        client.run(Put(queue, "K", b'{"of":"%s"}' % jid.encode(), jid, **options))


def popped(client: Client, *jids: str, **options: Any) -> list[JobFacts]:
    """Jobs put and taken by the worker `bee`."""
    put(client, *jids, **options)
    return client.run(Pop("bee", ("q",), len(jids)))


@case("put")
def a_minted_jid(client: Client) -> Any:
    return Put("q", "K", b'{"n":1}', "a1")


@case("put")
def a_minted_jid_with_options(client: Client) -> Any:
    return Put("q", "K", b"[" + b"1," * 600 + b"1]", "a1", -7, 3, 5000)


@case("put_x")
def jobs_with_wishes(client: Client) -> Any:
    put(client, "parent")
    wish = ExtraOptions(tags=["red", "blue"], depends=["parent"], expires_ms=60_000)
    return PutX(
        "q",
        [
            JobWithOptions("K", b"{}", "a1", wish),
            JobWithOptions("K", b"{}", "a2", ExtraOptions(tags=["red"], limit_ms=5_000)),
        ],
    )


@case("put_x")
def a_known_jid_with_other_wishes(client: Client) -> Any:
    client.run(PutX("q", [JobWithOptions("K", b"{}", "mine", ExtraOptions(tags=["red"], keep_ms=1_000))]))
    return PutX(
        "q",
        [JobWithOptions("K", b"[]", "mine", ExtraOptions(tags=["blue"], backoff="fixed:1000:1000:0"))],
        mode="move",
    )


@case("put")
def a_batch(client: Client) -> Any:
    return PutMany("q", [word for n in range(40) for word in (f"a{n}", "K", b"%d" % n)], priority=2)


@case("put")
def a_batch_with_a_known_jid(client: Client) -> Any:
    put(client, "a3")
    return PutMany("q", [word for n in range(10) for word in (f"a{n}", "K", b"%d" % n)])


@case("put")
def a_jid_of_ones_own_that_is_new(client: Client) -> Any:
    return Put("q", "K", b"1", "mine", mode="move")


@case("put")
def a_jid_of_ones_own_that_waits_elsewhere(client: Client) -> Any:
    put(client, "mine", queue="other")
    return Put("q", "L", b"2", "mine", mode="move")


@case("put")
def a_jid_of_ones_own_that_runs(client: Client) -> Any:
    popped(client, "mine")
    return Put("q", "K", b"3", "mine", mode="move")


@case("put")
def a_jid_of_ones_own_that_failed(client: Client) -> Any:
    client.run(Fail("bee", popped(client, "mine")[0], "broken", "why"))
    return Put("q", "K", b"3", "mine", delay_ms=500, mode="move")


@case("put")
def a_batch_of_ones_own_jids(client: Client) -> Any:
    put(client, "a0", queue="other")
    popped(client, "a1")
    return PutMany("q", [word for n in range(4) for word in (f"a{n}", "K", b"9")], mode="move")


@case("put")
def a_job_that_must_be_new(client: Client) -> Any:
    return Put("q", "K", b"1", "mine", mode="only")


@case("put")
def a_job_that_must_be_new_and_is_not(client: Client) -> Any:
    put(client, "mine")
    return Put("q", "K", b"1", "mine", mode="only")


@case("put")
def a_job_for_a_sleeper(client: Client) -> Any:
    client.run(Pop("bee", ("q",), 1, mode=WILL_WAIT))
    return Put("q", "K", b"1", "a1")


@case("put")
def a_job_for_a_full_queue(client: Client) -> Any:
    client.run(ThrottleSet("ql:q:q", 1))
    popped(client, "a1")
    return Put("q", "K", b"1", "a2")


@case("pop")
def one_of_several(client: Client) -> Any:
    put(client, "a1", "a2", "a3")
    return Pop("bee", ("q",))


@case("pop")
def more_than_there_are(client: Client) -> Any:
    put(client, "a1", "a2")
    put(client, "b1", queue="r", priority=5)
    return Pop("bee", ("q", "r"), 9, mode=WILL_WAIT)


@case("pop")
def nothing_to_take(client: Client) -> Any:
    put(client, "a1", delay_ms=900)
    return Pop("bee", ("q",), 2, mode=WILL_WAIT)


@case("pop")
def found_in_the_index(client: Client) -> Any:
    put(client, "a1", "a2")
    put(client, "b1", queue="r")
    return Pop("bee", ("q", "r"), 2, mode=FOUND)


@case("find_work")
def queues_with_work_and_timers(client: Client) -> Any:
    put(client, "a1")
    put(client, "b1", queue="r", delay_ms=1000)
    popped(client, "a1")
    client.run(SetClock(START_MS + 40_000))
    return FindWork("a-fleet", WILL_WAIT, 0, 10)


@case("pop")
def woken_with_more_to_do(client: Client) -> Any:
    client.run(Pop("ant", ("q",), 1, mode=WILL_WAIT))
    put(client, "a1", "a2")
    return Pop("bee", ("q",), 1, mode=WOKEN)


@case("pop")
def due_and_lost_jobs(client: Client) -> Any:
    popped(client, "a1", "a2")
    put(client, "a3", "a4", delay_ms=1000)
    client.run(Expire([Lease("a1", START_MS, "bee")]))
    client.run(SetClock(START_MS + 2000))
    return Pop("ant", ("q",), 3)


@case("pop")
def late_limited_and_retried_jobs(client: Client) -> Any:
    wishes = [
        ExtraOptions(expires_ms=1000),
        ExtraOptions(tags=["red"], limit_ms=5000, expires_ms=9000),
        ExtraOptions(limit_ms=90_000, trace="00-ab-cd-01"),
    ]
    client.run(PutX("q", [JobWithOptions("K", b"{}", f"a{n}", wish) for n, wish in enumerate(wishes)]))
    client.run(PutX("q", [JobWithOptions("K", b"{}", "late", wishes[0])], delay_ms=1000))
    client.run(Retry("bee", popped(client, "b", priority=9)[0], 1000, "odd", "again please"))
    client.run(SetClock(START_MS + 2000))
    return Pop("bee", ("q",), 4)


@case("pop")
def an_own_jid_that_was_put_twice(client: Client) -> Any:
    put(client, "mine", mode="move")
    popped(client, "mine", mode="move")
    put(client, "mine", mode="move")
    return Pop("bee", ("q",))


@case("complete")
def a_plain_job(client: Client) -> Any:
    return Complete("bee", popped(client, "a1")[0])


@case("complete")
def a_job_with_new_data_and_a_result(client: Client) -> Any:
    return Complete("bee", popped(client, "a1")[0], b'{"x":2}', 60_000, b"42")


@case("complete")
def a_job_that_is_forgotten_at_once(client: Client) -> Any:
    client.run(ConfigSet("jobs-history-count", "0"))
    return Complete("bee", popped(client, "a1")[0])


@case("complete")
def a_job_that_was_retried_before(client: Client) -> Any:
    client.run(Retry("bee", popped(client, "a1")[0], 0, "odd", "again please"))
    return Complete("bee", client.run(Pop("bee", ("q",)))[0])


@case("complete")
def many_jobs_one_of_them_lost(client: Client) -> Any:
    jobs = popped(client, "a1", "a2", "a3")
    client.run(Timeout(("a2",)))
    return CompleteMany("bee", [Done(job.jid, job.token) for job in jobs])


@case("complete")
def a_job_that_somebody_else_holds(client: Client) -> Any:
    client.run(Timeout((popped(client, "a1")[0].jid,)))
    [held] = client.run(Pop("ant", ("q",)))
    return Complete("bee", held)


@case("complete_pop")
def one_ended_one_taken(client: Client) -> Any:
    [job] = popped(client, "a1")
    put(client, "a2", "a3")
    return CompletePop("bee", ("q",), [Done(job.jid, job.token, b"", 60_000, b"1")])


@case("complete_pop")
def several_ended_several_taken(client: Client) -> Any:
    jobs = popped(client, "a1", "a2", "a3")
    put(client, *(f"b{n}" for n in range(5)))
    client.run(Timeout(("a2",)))
    return CompletePop("bee", ("q", "r"), [Done(job.jid, job.token) for job in jobs], 4, None, [1, 2])


@case("complete_pop")
def one_ended_none_there(client: Client) -> Any:
    [job] = popped(client, "a1")
    return CompletePop("bee", ("q",), [Done(job.jid, job.token)], mode=WILL_WAIT)


@case("complete_pop")
def one_ended_none_wanted(client: Client) -> Any:
    [job] = popped(client, "a1")
    put(client, "a2")
    return CompletePop("bee", ("q",), [Done(job.jid, job.token)], 0)


@case("complete_pop")
def a_forgotten_one_and_the_next(client: Client) -> Any:
    client.run(ConfigSet("jobs-history-count", "0"))
    [job] = popped(client, "a1")
    put(client, "a2")
    return CompletePop("bee", ("q",), [Done(job.jid, job.token)])


@case("advance")
def into_another_queue(client: Client) -> Any:
    return Advance("bee", "r", popped(client, "a1")[0], 0, b"[2]")


@case("advance")
def into_the_same_queue_later(client: Client) -> Any:
    return Advance("bee", "q", popped(client, "a1")[0], 700)


@case("heartbeat")
def one_lease_with_data(client: Client) -> Any:
    return Heartbeat("bee", popped(client, "a1")[0], 30, b'{"half":true}')


@case("heartbeat")
def a_lease_with_a_limit_and_one_that_is_over(client: Client) -> Any:
    jobs = [JobWithOptions("K", b"{}", f"a{n}", ExtraOptions(limit_ms=5000 * n)) for n in (1, 2, 99)]
    client.run(PutX("q", jobs))
    held = client.run(Pop("bee", ("q",), 3))
    client.run(SetClock(START_MS + 6000))
    return HeartbeatMany([Lease(job.jid, job.token, "bee") for job in held])


@case("heartbeat")
def many_leases_some_lost(client: Client) -> Any:
    jobs = popped(client, "a1", "a2", "a3")
    client.run(Cancel(("a2",)))
    client.run(Timeout(("a3",)))
    return HeartbeatMany([Lease(job.jid, job.token, "bee") for job in jobs])


@case("resume")
def leases_of_a_former_self_one_of_them_lost(client: Client) -> Any:
    jobs = popped(client, "a1", "a2", "a3")
    client.run(Timeout(("a3",)))
    return Resume("bear", [Lease(job.jid, job.token, "bee") for job in jobs], 30)


@case("retry")
def at_once(client: Client) -> Any:
    return Retry("bee", popped(client, "a1")[0])


@case("retry")
def by_its_own_backoff(client: Client) -> Any:
    client.run(PutX("q", [JobWithOptions("K", b"{}", "a1", ExtraOptions(backoff="exponential:700:9000:30"))]))
    return Retry("bee", client.run(Pop("bee", ("q",)))[0], OWN_BACKOFF)


@case("retry")
def later_with_a_reason(client: Client) -> Any:
    return Retry("bee", popped(client, "a1")[0], 1500, "odd", "a reason", b"[9]")


@case("retry")
def once_too_often(client: Client) -> Any:
    return Retry("bee", popped(client, "a1", retries=0)[0], 0, "odd", "a reason")


@case("fail")
def for_a_reason(client: Client) -> Any:
    return Fail("bee", popped(client, "a1")[0], "broken", "the reason", b"[1]")


@case("expire")
def leases_of_the_dead(client: Client) -> Any:
    jobs = popped(client, "a1", "a2")
    return Expire([Lease(job.jid, job.token, "bee") for job in jobs])


def released(jobs: list[JobFacts], how: HowReleased, cause: str, group: str = "") -> Any:
    return Release([Lease(job.jid, job.token, "bee") for job in jobs], how, cause, group)


@case("release")
def preempted_jobs_of_a_throttle(client: Client) -> Any:
    client.run(ThrottleSet("db", 2))
    wish = ExtraOptions(throttles=["db"])
    client.run(PutX("q", [JobWithOptions("K", b"{}", jid, wish) for jid in ("a1", "a2", "a3")]))
    return released(client.run(Pop("bee", ("q",), 2)), "preempted", "TERM")


@case("release")
def crashed_jobs_one_of_which_has_no_retry(client: Client) -> Any:
    jobs = [*popped(client, "a1"), *popped(client, "a2", retries=0)]
    return released(jobs, "crashed", "SIGSEGV")


@case("release")
def jobs_that_took_too_long(client: Client) -> Any:
    jobs = [*popped(client, "a1"), *popped(client, "a2", retries=0)]
    return released(jobs, "timed-out", "2 s")


@case("release")
def jobs_that_nobody_knows(client: Client) -> Any:
    return released(popped(client, "a1", "a2"), "unknown", "no module", "G")


@case("release")
def jobs_that_nobody_knew_for_too_long(client: Client) -> Any:
    client.run(SettingSet("unknown-for", 0))
    return released(popped(client, "a1"), "unknown", "no module", "G")


@case("cancel")
def in_all_states(client: Client) -> Any:
    job = popped(client, "a1", "a2")[0]
    client.run(Complete("bee", job))
    put(client, "a3")
    put(client, "a4", delay_ms=100)
    return Cancel(("a1", "a2", "a3", "a4", "unknown"))


@case("move")
def a_waiting_job(client: Client) -> Any:
    put(client, "a1")
    return Move("r", "a1", 0, b"[3]", 9)


@case("move")
def a_job_with_much_to_change(client: Client) -> Any:
    wish = ExtraOptions(tags=["red"], throttles=["t"])
    client.run(PutX("q", [JobWithOptions("K", jid="a1", options=wish), JobWithOptions("K", jid="a2")]))
    return Move("r", "a1", 0, b"[3]", 9, "L", 1, ["blue"], ["u"], ["a2"])


@case("put")
def a_job_that_must_exist(client: Client) -> Any:
    put(client, "a1")
    return Put("r", "L", b"[3]", "a1", mode="old")


@case("move")
def a_running_job(client: Client) -> Any:
    popped(client, "a1")
    return Move("r", "a1", 250)


@case("move")
def an_unknown_job(client: Client) -> Any:
    return Move("r", "nobody")


def waiting(client: Client, jid: str, *parents: str, **options: Any) -> None:
    client.run(PutX("q", [JobWithOptions("K", b"{}", jid, ExtraOptions(depends=parents))], **options))


@case("depend")
def on_more_jobs(client: Client) -> Any:
    put(client, "a1", "a2", "a3")
    waiting(client, "b1", "a1")
    return Depend("b1", ("a2", "a3", "unknown"))


@case("depend")
def on_nobody_any_more(client: Client) -> Any:
    put(client, "a1", "a2")
    waiting(client, "b1", "a1", "a2", delay_ms=5_000)
    return Depend("b1", mode="all")


@case("dependents")
def of_a_parent(client: Client) -> Any:
    put(client, "a1")
    waiting(client, "b1", "a1")
    waiting(client, "b2", "a1")
    return Dependents("a1", "", 1)


@case("complete")
def a_job_that_others_wait_for(client: Client) -> Any:
    [job] = popped(client, "a1")
    for jid in ("b1", "b2"):
        waiting(client, jid, "a1")
    waiting(client, "b3", "a1", delay_ms=5_000)
    return Complete("bee", job)


@case("complete")
def a_job_that_very_many_wait_for(client: Client) -> Any:
    [job] = popped(client, "a1")
    for first in (0, 110):
        jobs = [
            JobWithOptions("K", b"{}", f"b{n}", ExtraOptions(depends=["a1"]))
            for n in range(first, first + 110)
        ]
        client.run(PutX("r", jobs))
    return Complete("bee", job)


def follow(jid: str, *parents: str) -> FollowUp:
    return FollowUp("r", JobWithOptions("K", b"{}", jid, ExtraOptions(depends=parents)))


@case("complete_x")
def with_follow_ups(client: Client) -> Any:
    [job] = popped(client, "a1")
    waiting(client, "b1", "a1")
    return CompleteX(
        "bee", job, b"[2]", 60_000, b"42", follow=[follow("c1", "a1"), follow("c2", "c3"), follow("c3")]
    )


@case("complete_x")
def into_a_queue_where_it_waits(client: Client) -> Any:
    [job] = popped(client, "a1")
    put(client, "a2")
    waiting(client, "b1", "a1")
    return CompleteX("bee", job, next_queue="r", delay_ms=700, depends=["a2", "c1"], follow=[follow("c1")])


@case("complete_x")
def a_job_that_was_lost(client: Client) -> Any:
    [job] = popped(client, "a1")
    client.run(Timeout(("a1",)))
    return CompleteX("bee", job, follow=[follow("c1")])


@case("cancel_by")
def a_job_under_way_and_one_that_waits(client: Client) -> Any:
    popped(client, "a1")
    put(client, "a2")
    return CancelBy(("a1", "a2", "unknown"), who="ann")


@case("cancel")
def a_whole_family(client: Client) -> Any:
    put(client, "a1", "a2")
    waiting(client, "b1", "a1", "a2")
    waiting(client, "b2", "b1")
    return Cancel(("a1", "b1", "b2"))


@case("move")
def a_job_that_waits_for_others(client: Client) -> Any:
    put(client, "a1")
    waiting(client, "b1", "a1", delay_ms=5_000)
    return Move("r", "b1", 100)


@case("priority")
def of_waiting_and_running_jobs(client: Client) -> Any:
    popped(client, "a1")
    put(client, "a2", "a3")
    return SetPriority(-3, ("a1", "a3", "unknown"))


@case("timeout")
def of_running_jobs(client: Client) -> Any:
    popped(client, "a1", "a2")
    return Timeout(("a1", "a2"))


@case("timeout")
def of_a_job_that_does_not_run(client: Client) -> Any:
    popped(client, "a1")
    put(client, "a2")
    return Timeout(("a1", "a2"))


@case("await")
def of_jobs_in_all_states(client: Client) -> Any:
    jobs = popped(client, "a1", "a2", "a3")
    client.run(Complete("bee", jobs[0], b"", 60_000, b"7"))
    client.run(Fail("bee", jobs[1], "broken", "why"))
    return Await(("a1", "a2", "a3", "unknown"))


@case("counts")
def of_all_queues(client: Client) -> Any:
    popped(client, "a1", "a2")
    put(client, "a3", queue="r", delay_ms=99)
    return CountQueues()


@case("peek")
def at_a_page(client: Client) -> Any:
    put(client, "a1", "a2", "a3")
    return Peek("q", 1, 5)


@case("job_get")
def known_and_unknown(client: Client) -> Any:
    client.run(Retry("bee", popped(client, "a1")[0], 0, "odd", "why"))
    return JobGet(("a1", "unknown"))


@case("jobs_complete")
def the_newest(client: Client) -> Any:
    for job in popped(client, "a1", "a2"):
        client.run(Complete("bee", job))
    return JobsComplete()


@case("failures")
def all_groups(client: Client) -> Any:
    client.run(Fail("bee", popped(client, "a1")[0], "broken", "why"))
    return Failures()


@case("explain")
def a_job_that_waits_for_a_failed_one(client: Client) -> Any:
    client.run(Fail("bee", popped(client, "a1")[0], "broken", "why"))
    client.run(PutX("q", [JobWithOptions("K", b"{}", "a2", ExtraOptions(depends=["a1"]))]))
    return Explain("a2")


@case("explain")
def a_job_that_runs(client: Client) -> Any:
    popped(client, "a1")
    return Explain("a1")


@case("explain")
def a_job_that_waits_for_a_slot(client: Client) -> Any:
    client.run(ThrottleSet("ql:q:q", 1))
    popped(client, "a1")
    put(client, "a2")
    return Explain("a2")


@case("failure_groups")
def the_summaries(client: Client) -> Any:
    for job in popped(client, "a1", "a2"):
        client.run(Fail("bee", job, "broken", "why"))
    return FailureGroups()


@case("unfail")
def some_of_a_group(client: Client) -> Any:
    for job in popped(client, "a1", "a2", "a3"):
        client.run(Fail("bee", job, "broken", "why"))
    return Unfail("r", "broken", 2)


@case("unfail")
def the_whole_of_a_group(client: Client) -> Any:
    client.run(Pop("ant", ("q",), 1, mode=WILL_WAIT))
    client.run(Fail("bee", popped(client, "a1")[0], "broken", "why"))
    return Unfail("q", "broken")


@case("failed")
def one_group(client: Client) -> Any:
    client.run(Fail("bee", popped(client, "a1")[0], "broken", "why"))
    return Failed("broken")


@case("list")
def behind_a_job_that_is_gone(client: Client) -> Any:
    put(client, *(f"a{n}" for n in range(9)), delay_ms=100)
    client.run(Cancel(("a4",)))
    return ListSet("scheduled", "q", (str(START_MS + 100), "a4"), 3)


@case("list")
def of_waiting_and_due_jobs(client: Client) -> Any:
    put(client, "a1", delay_ms=100)
    put(client, "a2")
    client.run(SetClock(START_MS + 2000))
    return ListSet("waiting", "q")


@case("list")
def of_completed_jobs(client: Client) -> Any:
    for job in popped(client, "a1", "a2"):
        client.run(Complete("bee", job))
    return ListSet("completed", after=("0", "a2"))


@case("queues")
def in_order_of_use(client: Client) -> Any:
    put(client, "a1", queue="z")
    put(client, "a2", queue="b")
    return QueueNames()


@case("stats")
def of_today(client: Client) -> Any:
    client.run(Complete("bee", popped(client, "a1")[0]))
    return GetStats("q")


@case("pause")
def of_two_queues(client: Client) -> Any:
    put(client, "a1")
    return Pause(("q", "r"), True, "me", "because")


@case("pause")
def that_ends(client: Client) -> Any:
    client.run(Pause(("q",)))
    return Pause(("q", "r"), False)


@case("pause")
def for_a_while(client: Client) -> Any:
    put(client, "a1")
    return Pause(("q", "r"), True, "me", "because", 60_000)


@case("pop")
def from_a_queue_whose_pause_is_over(client: Client) -> Any:
    put(client, "a1", "a2")
    client.run(Pause(("q",), length_ms=1000))
    client.run(SetClock(START_MS + 1000))
    return Pop("bee", ("q",))


@case("queue_forget")
def that_is_empty(client: Client) -> Any:
    client.run(Complete("bee", popped(client, "a1")[0]))
    client.run(Pause(("q",)))
    return QueueForget(("q", "unknown"))


@case("queue_forget")
def that_has_a_job(client: Client) -> Any:
    put(client, "a1")
    return QueueForget(("r", "q"))


@case("patterns")
def of_a_fresh_root(client: Client) -> Any:
    return Patterns()


@case("identifiers_set")
def in_place_of_others(client: Client) -> Any:
    client.run(IdentifiersSet({"old": '["o"]'}))
    return IdentifiersSet({"mail": '["m*"]', "none": "[]"})


@case("priorities_set")
def two_rules(client: Client) -> Any:
    client.run(PrioritiesSet(['{"pattern":["old"]}']))
    return PrioritiesSet(['{"pattern":["a"],"fairly":true}', '{"pattern":["b"]}'])


@case("settings")
def one_of_them_set(client: Client) -> Any:
    client.run(SettingSet("stats-days", 30))
    return SettingsGet()


@case("setting")
def given_a_value(client: Client) -> Any:
    return SettingSet("keep-data", 0)


@case("setting")
def given_its_default_back(client: Client) -> Any:
    client.run(SettingSet("keep-data", 0))
    return SettingSet("keep-data", None)


@case("audit")
def the_second_line(client: Client) -> Any:
    client.run(Audit("ann", "pause", "q", "first"))
    return Audit("ann", "unpause", "q")


@case("audit_list")
def two_lines(client: Client) -> Any:
    client.run(Audit("ann", "pause", "q"))
    client.run(Audit("ann", "unpause", "q"))
    return AuditList()


@case("watch")
def for_a_few_seconds(client: Client) -> Any:
    return Watch(5000)


@case("worker_seen")
def for_the_first_time(client: Client) -> Any:
    return WorkerSeen("bee", {"host": "hive", "busy": "1"})


@case("worker_seen")
def told_to_be_quiet(client: Client) -> Any:
    client.run(WorkerSeen("bee", {"host": "hive"}))
    client.run(WorkerQuiet("bee"))
    return WorkerSeen("bee", {"busy": "0"})


@case("workers")
def two_of_them(client: Client) -> Any:
    client.run(WorkerSeen("bee", {"host": "hive"}))
    client.run(WorkerSeen("ant"))
    return Workers()


@case("worker_jobs")
def of_one_of_two(client: Client) -> Any:
    popped(client, "a1", "a2")
    put(client, "b1", queue="r")
    client.run(Pop("ant", ("r",)))
    return WorkerJobs("bee")


@case("worker_quiet")
def that_is_known(client: Client) -> Any:
    client.run(WorkerSeen("bee"))
    return WorkerQuiet("bee")


@case("worker_quiet")
def that_may_go_on(client: Client) -> Any:
    client.run(WorkerSeen("bee"))
    client.run(WorkerQuiet("bee"))
    return WorkerQuiet("bee", False)


@case("worker_ask")
def where_its_job_is(client: Client) -> Any:
    return WorkerAsk("bee", "a1", "question")


@case("worker_answer")
def where_it_is(client: Client) -> Any:
    return WorkerAnswer("question", b"in its job")


@case("worker_forget")
def one_known_and_one_unknown(client: Client) -> Any:
    client.run(WorkerSeen("bee", {"host": "hive"}))
    return WorkerForget(("bee", "nobody"))


@case("config_get")
def all_settings(client: Client) -> Any:
    return ConfigGet()


@case("config_set")
def a_setting_of_the_root(client: Client) -> Any:
    return ConfigSet("grace-period", "7")


@case("config_unset")
def a_setting_that_was_set(client: Client) -> Any:
    client.run(ConfigSet("heartbeat", "30"))
    return ConfigUnset("heartbeat")


@case("throttle_set")
def a_limit_with_parked_jobs(client: Client) -> Any:
    client.run(ThrottleSet("ql:q:q", 1))
    popped(client, "a1")
    put(client, "a2", "a3", "a4")
    return ThrottleSet("ql:q:q", 3)


@case("throttle_get")
def a_limit(client: Client) -> Any:
    client.run(ThrottleSet("ql:q:q", 1))
    return ThrottleGet("ql:q:q")


def named(client: Client, *jids: str, maximum: int = 1, queue: str = "q") -> None:
    """Jobs under the throttle `db`."""
    client.run(ThrottleSet("db", maximum))
    client.run(PutX(queue, [JobWithOptions("K", b"{}", jid, ExtraOptions(throttles=["db"])) for jid in jids]))


@case("throttle_set")
def a_named_limit_with_pending_jobs(client: Client) -> Any:
    named(client, "a1", "a2", "a3")
    client.run(Pop("bee", ("q",), 3))
    return ThrottleSet("db", 2, 60_000)


@case("throttle_get")
def a_named_limit(client: Client) -> Any:
    client.run(ThrottleSet("db", 3, 5_000))
    return ThrottleGet("db")


@case("throttle_delete")
def a_limit_that_binds(client: Client) -> Any:
    named(client, "a1", "a2", "a3")
    client.run(Pop("bee", ("q",), 3))
    return ThrottleDelete("db")


@case("throttle_delete")
def a_limit_of_a_queue(client: Client) -> Any:
    client.run(ThrottleSet("ql:q:q", 1))
    popped(client, "a1")
    put(client, "a2", "a3")
    return ThrottleDelete("ql:q:q")


@case("throttle_release")
def of_a_holder_and_of_one_that_waits(client: Client) -> Any:
    named(client, "a1", "a2", "a3", "a4")
    client.run(Pop("bee", ("q",), 4))
    return ThrottleRelease("db", ("a1", "a3", "nobody"))


@case("throttle_release")
def of_a_job_of_the_queue(client: Client) -> Any:
    client.run(ThrottleSet("ql:q:q", 1))
    popped(client, "a1")
    put(client, "a2")
    return ThrottleRelease("ql:q:q", ("a1",))


@case("queue_set")
def a_bound_on_what_waits(client: Client) -> Any:
    return QueueSet("q", "max-waiting", 2)


@case("queue_set")
def a_bound_that_goes(client: Client) -> Any:
    client.run(QueueSet("q", "max-waiting", 2))
    return QueueSet("q", "max-waiting", None)


@case("queue_get")
def the_bounds_of_a_queue(client: Client) -> Any:
    client.run(QueueSet("q", "max-losses", 2))
    return QueueGet("q")


@case("throttles")
def all_that_have_a_limit(client: Client) -> Any:
    client.run(ThrottleSet("db", 3))
    return ThrottleNames()


@case("pop")
def jobs_under_a_throttle(client: Client) -> Any:
    named(client, "a1", "a2")
    put(client, "a3")
    return Pop("bee", ("q",), 2)


@case("complete")
def a_job_whose_slot_another_waits_for(client: Client) -> Any:
    named(client, "a1", "a2")
    [job] = client.run(Pop("bee", ("q",), 2))
    return Complete("bee", job)


@case("sweep")
def of_what_is_too_old(client: Client) -> Any:
    for job in popped(client, "a1", "a2"):
        client.run(Complete("bee", job))
    client.run(ConfigSet("jobs-history", "60"))
    client.run(SetClock(LATER))
    return Sweep()


def recurring(client: Client, jid: str = "r", **options: Any) -> None:
    """A template with everything, due a minute ago."""
    wish = ExtraOptions(tags=["red", "blue"], throttles=["t1"], expires_ms=900_000)
    client.run(Recur("q", "K", 30_000, b'{"n":1}', jid, -60_000, 2, 3, 0, wish, **options))


@case("recur")
def a_new_template(client: Client) -> Any:
    return Recur(
        "q",
        "K",
        60_000,
        b"[1]",
        "r",
        5_000,
        1,
        2,
        3,
        ExtraOptions(tags=["red"], throttles=["t1"], limit_ms=5_000),
    )


@case("recur")
def a_template_that_moves(client: Client) -> Any:
    recurring(client)
    return Recur("p", "L", 10_000, jid="r")


@case("recur")
def a_template_said_again_that_keeps_its_time(client: Client) -> Any:
    recurring(client)
    return Recur("q", "L", 45_000, jid="r", keeps_time=True)


@case("recur_get")
def a_known_and_an_unknown_template(client: Client) -> Any:
    recurring(client)
    return RecurGet(("r", "unknown"))


MINUTE_MS = 60_000


def planned(client: Client) -> int:
    """A template of which two moments are planned; return the last."""
    first, last = START_MS + MINUTE_MS, START_MS + 2 * MINUTE_MS
    facts = CalendarFacts("* * * * *", "UTC", "2026a")
    client.run(Recur("q", "K", MINUTE_MS, jid="r", calendar=facts, plan=[(first, first), (last, last)]))
    return last


@case("recur_unplanned")
def a_template_of_which_little_is_planned(client: Client) -> Any:
    return RecurUnplanned(planned(client) + 1)


@case("flow_put")
def a_flow(client: Client) -> Any:
    first = FlowJob("q", JobWithOptions("K", b"null", "f-0"))
    return FlowPut(
        "f", "label", [first, FlowJob("q", JobWithOptions("K", b"null", "f-1"), edges=[Edge("f-0")])]
    )


@case("flow_get")
def what_is_known_of_flows(client: Client) -> Any:
    client.run(a_flow(client))
    return FlowGet(["f", "nobody"])


@case("flow_states")
def the_states_of_a_flow(client: Client) -> Any:
    client.run(a_flow(client))
    return FlowStates("f")


@case("flow_steps")
def the_steps_of_a_flow(client: Client) -> Any:
    client.run(a_flow(client))
    return FlowSteps("f")


def a_large_flow() -> FlowPut:
    standing = FlowJob("q", JobWithOptions("holdfast.group", b"{}", "f-0"), group=LargeGroup())
    follows = FlowJob("q", JobWithOptions("K", b"null", "f-1"), edges=[Edge("f-0")])
    return FlowPut("f", "label", [standing, follows])


def a_member(number: int) -> FlowJob:
    return FlowJob("q", JobWithOptions("K", b"null", f"f-{number}"))


@case("end_with_flow")
def a_job_that_ends_with_a_flow(client: Client) -> Any:
    [job] = popped(client, "mine")
    return EndWithFlow("bee", job, "own", "label", [FlowJob("q", JobWithOptions("K", b"null", "own-0"))], [0])


@case("flow_add")
def more_jobs_of_a_flow(client: Client) -> Any:
    client.run(a_large_flow())
    return FlowAdd("f", 2, [a_member(2), a_member(3)])


@case("flow_close")
def a_flow_that_gets_no_more(client: Client) -> Any:
    client.run(a_large_flow())
    return FlowClose("f")


@case("flow_results")
def the_results_of_a_flow(client: Client) -> Any:
    client.run(a_large_flow())
    client.run(FlowAdd("f", 2, [a_member(2)]))
    return FlowResults("f")


@case("flow_list")
def the_flows(client: Client) -> Any:
    client.run(a_flow(client))
    return FlowList()


@case("flow_forget")
def a_flow_that_is_listed_no_more(client: Client) -> Any:
    client.run(a_flow(client))
    return FlowForget(["f", "nobody"])


@case("recur_extend")
def a_plan_that_goes_on(client: Client) -> Any:
    last = planned(client)
    return RecurExtend("r", last, "2026b", [(last + MINUTE_MS, last + MINUTE_MS)])


@case("recur_update")
def everything_of_a_template(client: Client) -> Any:
    recurring(client)
    return RecurUpdate("r", 9, 4, 10_000, b"[1]", "L", 2, "p", ["t2"])


@case("recur_update")
def the_interval_of_a_template(client: Client) -> Any:
    recurring(client)
    return RecurUpdate("r", interval_ms=5_000)


@case("recur_tag")
def more_tags_of_a_template(client: Client) -> Any:
    recurring(client)
    return RecurTag("add", "r", ("blue", "green"))


@case("recur_pause")
def a_template_that_is_due(client: Client) -> Any:
    recurring(client)
    return RecurPause("r")


@case("recur_pause")
def a_template_that_was_paused(client: Client) -> Any:
    recurring(client)
    client.run(RecurPause("r"))
    client.run(SetClock(LATER))
    return RecurPause("r", on=False)


@case("recur_run")
def a_template_whose_next_name_is_taken(client: Client) -> Any:
    recurring(client)
    put(client, "r-1")
    return RecurRun("r")


@case("recur_run")
def a_paused_template(client: Client) -> Any:
    recurring(client)
    client.run(RecurPause("r"))
    return RecurRun("r")


@case("recur_update")
def the_queue_of_a_paused_template(client: Client) -> Any:
    recurring(client)
    client.run(RecurPause("r"))
    return RecurUpdate("r", queue="p")


@case("recur_cancel")
def a_template_and_an_unknown_one(client: Client) -> Any:
    recurring(client)
    return RecurCancel(("r", "unknown"))


@case("pop")
def of_what_recurs(client: Client) -> Any:
    recurring(client)
    recurring(client, "s")
    put(client, "r-2")
    return Pop("bee", ("q",), 5)


@case("minutes")
def of_a_busy_queue(client: Client) -> Any:
    client.run(Complete("bee", popped(client, "a1", "a2")[0]))
    client.run(SetClock(LATER))
    put(client, "a3")
    return Minutes("q")


@case("tick")
def of_a_busy_and_an_unknown_queue(client: Client) -> Any:
    client.run(Complete("bee", popped(client, "a1", "a2")[0]))
    client.run(SetClock(LATER))
    return Tick(("q", "unknown"))


@case("info")
def of_a_root_that_is_there(client: Client) -> Any:
    return Info("make")


@case("clock")
def set_further(client: Client) -> Any:
    return SetClock(LATER)


@case("describe")
def all_functions(client: Client) -> Any:
    return Describe()


@case("tag")
def two_more_of_which_one_is_known(client: Client) -> Any:
    put(client, "a1")
    client.run(Tag("add", "a1", ["red"]))
    return Tag("add", "a1", ["blue", "red"])


@case("tag")
def of_a_job_that_is_complete(client: Client) -> Any:
    client.run(Complete("bee", popped(client, "a1")[0]))
    return Tag("add", "a1", ["red"])


@case("tag")
def the_last_one_goes(client: Client) -> Any:
    put(client, "a1")
    client.run(Tag("add", "a1", ["red"]))
    return Tag("remove", "a1", ["red", "unknown"])


@case("tags")
def the_most_used(client: Client) -> Any:
    put(client, "a1", "a2")
    for jid in ("a1", "a2"):
        client.run(Tag("add", jid, ["red"]))
    return Tags()


@case("tagged")
def with_one_tag(client: Client) -> Any:
    put(client, "a1")
    client.run(Tag("add", "a1", ["red"]))
    return Tagged("red")


@case("track")
def a_job_that_waits(client: Client) -> Any:
    put(client, "a1")
    return Track(True, "a1")


@case("track")
def the_only_one_no_more(client: Client) -> Any:
    put(client, "a1")
    client.run(Track(True, "a1"))
    return Track(False, "a1")


@case("tracked")
def one_that_is_gone(client: Client) -> Any:
    put(client, "a1", "a2")
    for jid in ("a1", "a2"):
        client.run(Track(True, jid))
    client.run(Cancel(("a2",)))
    return Tracked()


@case("log")
def with_data(client: Client) -> Any:
    put(client, "a1")
    return Log("a1", "seen", b'{"by":"ann"}')


@case("log")
def for_a_job_that_is_complete(client: Client) -> Any:
    client.run(Complete("bee", popped(client, "a1")[0]))
    return Log("a1", "seen")


@case("report")
def half_way_with_lines(client: Client) -> Any:
    return Report("bee", popped(client, "a1")[0], 0.5, "half way", ["one", "two"])


@case("report")
def on_a_lease_that_is_lost(client: Client) -> Any:
    [job] = popped(client, "a1")
    client.run(Timeout(("a1",)))
    return Report("bee", job, 1.0)


@case("put")
def a_jid_that_was_tracked_before(client: Client) -> Any:
    put(client, "mine")
    client.run(Track(True, "mine"))
    client.run(Cancel(("mine",)))
    return Put("q", "K", b"1", "mine", mode="move")


@case("call")
def a_put_in_the_words_of_the_older_protocol(client: Client) -> Any:
    put(client, "a1")
    return Call("queue.put", ("bee", "q", "a2", "K", '{"n":1}', 0, "priority", 3, "throttles", '["t1"]'))


@case("call")
def a_pop_in_the_words_of_the_older_protocol(client: Client) -> Any:
    put(client, "a1", "a2")
    return Call("queue.pop", ("q", "bee", 2))


@case("call")
def a_look_in_the_words_of_the_older_protocol(client: Client) -> Any:
    popped(client, "a1")
    return Call("job.get", ("a1",))


@case("call")
def a_failure_in_the_words_of_the_older_protocol(client: Client) -> Any:
    popped(client, "a1")
    return Call("job.fail", ("a1", "bee", "broken", "why", '{"n":2}'))


@case("call")
def a_job_that_goes_on_in_the_words_of_the_older_protocol(client: Client) -> Any:
    popped(client, "a1")
    return Call("job.completeAndRequeue", ("a1", "bee", "q", "[2]", "next", "delay", 5))


@case("call")
def a_template_in_the_words_of_the_older_protocol(client: Client) -> Any:
    return Call(
        "queue.recurAtInterval", ("q", "r", "K", "{}", 60, 0, "tags", '["red"]', "throttles", '["t1"]')
    )


@case("call")
def tags_in_the_words_of_the_older_protocol(client: Client) -> Any:
    put(client, "a1")
    return Call("job.addTag", ("a1", "red", "blue"))


@case("call")
def failed_jobs_back_to_work_in_the_words_of_the_older_protocol(client: Client) -> Any:
    client.run(Fail("bee", popped(client, "a1")[0], "broken", "why"))
    return Call("queue.unfail", ("again", "broken", 5))


def queued(client: Client, *ids: str) -> None:
    """Messages of the topic `t`, ready now."""
    client.run(TopicPut("t", "in", [word for id in ids for word in (id, 0, f"body of {id}")]))


@case("topic_put")
def messages_for_somebody_who_waits(client: Client) -> Any:
    queued(client, "m1")
    client.run(TopicReserve("t", 60_000))
    client.run(TopicReserve("t", 60_000, mode=WILL_WAIT))
    return TopicPut("t", "in", ("m1", 0, "x", "m2", 0, "y", "m3", 5000, "z"))


@case("topic_put")
def the_first_message_of_a_topic(client: Client) -> Any:
    return TopicPut("t", "at", ("m1", 0, "x"))


@case("topic_reserve")
def the_next_messages(client: Client) -> Any:
    queued(client, "m1", "m2", "m3")
    return TopicReserve("t", 60_000, limit=2, mode=WOKEN)


@case("topic_reserve")
def in_a_topic_without_messages(client: Client) -> Any:
    return TopicReserve("t", 60_000, mode=WILL_WAIT)


@case("topic_pull")
def the_next_messages_for_good(client: Client) -> Any:
    queued(client, "m1", "m2", "m3")
    return TopicPull("t", limit=2)


@case("topic_pull")
def the_last_message(client: Client) -> Any:
    queued(client, "m1")
    return TopicPull("t")


@case("topic_release")
def messages_that_are_done(client: Client) -> Any:
    queued(client, "m1", "m2", "m3")
    client.run(TopicReserve("t", 60_000, limit=2))
    return TopicRelease("t", [("m1", None), ("m2", START_MS + 60_000), ("m3", None)])


@case("topic_release")
def messages_that_are_given_back(client: Client) -> Any:
    queued(client, "m1", "m2")
    client.run(TopicReserve("t", 60_000, limit=2))
    client.run(TopicReserve("t", 60_000, mode=WILL_WAIT))
    return TopicRelease("t", [("m1", None), ("m2", 1)], "in", 0)


@case("topic_reschedule")
def messages_for_now(client: Client) -> Any:
    queued(client, "m1", "m2")
    client.run(TopicReserve("t", 60_000))
    client.run(TopicPut("t", "in", ("m3", 60_000, "x")))
    client.run(TopicReserve("t", 60_000, limit=5, mode=WILL_WAIT))
    client.run(TopicRelease("t", [("m2", None)], "in", 5000))
    return TopicReschedule("t", ("m1", "m2", "m3"), "in", 0)


@case("topic_delete")
def a_queued_and_a_reserved_message(client: Client) -> Any:
    queued(client, "m1", "m2", "m3")
    client.run(TopicReserve("t", 60_000))
    return TopicDelete("t", ("m1", "m2"))


@case("topic_requeue")
def messages_whose_reservation_is_over(client: Client) -> Any:
    queued(client, "m1", "m2")
    client.run(TopicReserve("t", 1000, limit=2))
    client.run(TopicReserve("t", 1000, mode=WILL_WAIT))
    return TopicRequeue("t", START_MS + 5000)


@case("topic_get")
def messages_as_they_are(client: Client) -> Any:
    queued(client, "m1", "m2")
    client.run(TopicReserve("t", 60_000))
    return TopicGet("t", ("m1", "m2", "nobody"))


@case("topic_counts")
def the_sizes_of_topics(client: Client) -> Any:
    queued(client, "m1", "m2")
    return CountTopics(("t", "u"))


def failed(client: Client, *jids: str) -> None:
    """Jobs put, taken and failed."""
    for job in popped(client, *jids):
        client.run(Fail("bee", job, "broken", "why"))


def on(*jids: str) -> list[tuple[str, str | bytes]]:
    """Jobs that get the common value of an action."""
    return [(jid, "") for jid in jids]


@case("scan")
def waiting_due_and_gone_jobs(client: Client) -> Any:
    put(client, "a1", delay_ms=100)
    put(client, "a2", "a3", "a4")
    client.run(Cancel(("a3",)))
    client.run(SetClock(START_MS + 2000))
    return Scan("waiting", "q", None, 3)


@case("scan")
def failed_jobs_with_all_that_is_noted(client: Client) -> Any:
    failed(client, "a1", "a2")
    client.run(Tag("add", "a1", ["red"]))
    return Scan("group", "broken", wants="dte")


@case("scan")
def jobs_of_many_states_with_one_tag(client: Client) -> Any:
    popped(client, "a1")
    failed(client, "a2")
    put(client, "a3")
    for jid in ("a1", "a2", "a3"):
        client.run(Tag("add", jid, ["red"]))
    return Scan("tagged", "red")


@case("act")
def failed_jobs_back_to_work_in_another_queue(client: Client) -> Any:
    client.run(Pop("ant", ("r",), 1, mode=WILL_WAIT))
    failed(client, "a1", "a2")
    put(client, "a3")
    return Act("retry", on("a1", "a2", "a3", "unknown"), "r", "ann")


@case("act")
def retried_jobs_back_to_the_failed_ones(client: Client) -> Any:
    failed(client, "a1", "a2")
    client.run(Act("retry", on("a1", "a2"), "r"))
    return Act("fail", [("a1", "q"), ("a2", "")])


@case("act")
def all_kinds_of_jobs_deleted_in_an_operation(client: Client) -> Any:
    failed(client, "a1")
    popped(client, "a2")
    put(client, "a3", "a4")
    waiting(client, "b1", "a4")
    client.run(OperationSet("start", "o", "bee", 5000, "{}"))
    progress = Progress("o", "bee", 5000, "a4", 9, 5)
    return Act("cancel", on("a1", "a2", "a3", "a4", "unknown"), "", "ann", progress)


@case("act")
def jobs_with_a_throttle_moved(client: Client) -> Any:
    named(client, "a1", "a2", "a3")
    client.run(Pop("bee", ("q",), 3))
    return Act("move", on("a1", "a2"), "r")


@case("act")
def the_leases_of_two_jobs_ended(client: Client) -> Any:
    popped(client, "a1", "a2")
    return Act("expire", on("a1", "a2"))


@case("act")
def a_delayed_job_started(client: Client) -> Any:
    client.run(Pop("bee", ("q",), 1, mode=WILL_WAIT))
    put(client, "a1", delay_ms=5000)
    return Act("run", on("a1"))


@case("act")
def a_waiting_job_delayed(client: Client) -> Any:
    put(client, "a1", "a2")
    return Act("delay", [("a1", ""), ("a2", "100")], "5000")


@case("act")
def priorities_of_a_waiting_and_a_running_job(client: Client) -> Any:
    popped(client, "a1")
    put(client, "a2")
    return Act("priority", [("a1", "2"), ("a2", "-2")])


@case("act")
def retries_of_a_job(client: Client) -> Any:
    put(client, "a1")
    return Act("retries", on("a1"), "9")


@case("act")
def data_of_two_jobs_one_of_which_changed(client: Client) -> Any:
    put(client, "a1", "a2")
    was = sha1(b'{"of":"a1"}').hexdigest().encode()
    return Act("data", [("a1", was + b'"' + b"n" * 600 + b'"'), ("a2", was + b"[2]")])


@case("act")
def tags_of_two_jobs(client: Client) -> Any:
    put(client, "a1", "a2")
    client.run(Tag("add", "a1", ["red"]))
    return Act("tag", [("a1", ""), ("a2", "blue")], "red\ngreen")


@case("act")
def a_tag_that_goes(client: Client) -> Any:
    put(client, "a1")
    client.run(Tag("add", "a1", ["red", "blue"]))
    return Act("untag", on("a1"), "red")


@case("act")
def a_mark_of_a_job(client: Client) -> Any:
    put(client, "a1")
    return Act("track", on("a1"))


@case("act")
def the_mark_of_a_job_that_goes(client: Client) -> Any:
    put(client, "a1")
    client.run(Track(True, "a1"))
    return Act("untrack", on("a1"))


@case("operation_set")
def a_new_operation(client: Client) -> Any:
    return OperationSet("start", "o", "bee", 5000, '{"filter":"state:failed"}')


@case("operation_set")
def one_that_nobody_runs_any_more(client: Client) -> Any:
    client.run(OperationSet("start", "o", "bee", 5000, "{}"))
    client.run(SetClock(START_MS + 5000))
    return OperationSet("take", "o", "ant", 5000)


@case("operation_set")
def one_that_is_done(client: Client) -> Any:
    client.run(OperationSet("start", "o", "bee", 5000, "{}"))
    return OperationSet("finish", "o", "bee", detail="done")


@case("operations")
def two_operations(client: Client) -> Any:
    for id in ("o", "p"):
        client.run(OperationSet("start", id, "bee", 5000, "{}"))
    return Operations()


@case("operation_get")
def an_operation_that_changed_a_job(client: Client) -> Any:
    put(client, "a1")
    client.run(OperationSet("start", "o", "bee", 5000, "{}"))
    client.run(Act("priority", on("a1", "unknown"), "7", operation=Progress("o", "bee", 5000, "a1", 1, 1)))
    return OperationGet("o", 0, 9)


@case("audited")
def a_pause(client: Client) -> Any:
    client.run(Audit("ann", "pause", "p"))
    return Audited("ann", "pause", "q", "why", Pause(("q",), True, "ann", "why"))


@case("audited")
def failed_jobs_put_to_work_again(client: Client) -> Any:
    failed(client, "a1", "a2")
    return Audited("ann", "retry", "2 jobs", "", Act("retry", on("a1", "a2")))
