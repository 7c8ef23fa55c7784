"""Every command says as many words, in as many groups, as the core's own description asks for."""

import re

import pytest

from holdfast.commands import (
    COMMANDS,
    admin,
    attributes,
    base,
    dependencies,
    failures,
    flows,
    jobs,
    leases,
    operations,
    options,
    outcomes,
    queues,
    recurring,
    topics,
    views,
    workers,
)

LEASE = leases.Lease("j", 1, "w")
DONE = leases.Done("j", 1)

# One of each, with one element in every repeated group.
SAMPLES = [
    jobs.Put("q", "K"),
    jobs.PutMany("q", ["j", "K", b"1"]),
    jobs.Cancel(("j",)),
    jobs.CancelBy(("j",), "w"),
    jobs.Move("q", "j", tags=["t"]),
    jobs.SetPriority(1, ("j",)),
    flows.FlowPut(
        "f",
        "label",
        [flows.FlowJob("q", options.JobWithOptions("k", b"null", "f-0"), edges=[flows.Edge("j")])],
    ),
    flows.FlowGet(("f",)),
    flows.FlowStates("f"),
    flows.FlowSteps("f"),
    flows.FlowAdd(
        "f", 1, [flows.FlowJob("q", options.JobWithOptions("k", b"null", "f-1"), edges=[flows.Edge("j")])]
    ),
    flows.FlowClose("f"),
    flows.FlowResults("f"),
    flows.EndWithFlow(
        "w",
        LEASE,
        "e",
        "label",
        [flows.FlowJob("q", options.JobWithOptions("k", b"null", "e-0"), edges=[flows.Edge("j")])],
        [0],
    ),
    flows.FlowList("", 10),
    flows.FlowForget(("f",)),
    jobs.JobGet(("j",)),
    jobs.JobsComplete(),
    views.Explain("j"),
    leases.FindWork("f", leases.WILL_WAIT, 0, 10),
    failures.Failures(),
    failures.FailureGroups(),
    failures.Failed("g"),
    failures.Unfail("q", "g"),
    jobs.Await(("j",)),
    attributes.Tag("add", "j", ["t"]),
    attributes.Tags(),
    attributes.Tagged("t"),
    attributes.Track(True, "j"),
    attributes.Tracked(),
    attributes.Log("j", "seen", b"{}"),
    attributes.Report("w", leases.Lease("j", 1), 0.5, "note", ["line"]),
    options.PutX("q", [options.JobWithOptions("K", options=options.ExtraOptions(tags=["t"]))]),
    dependencies.Depend("j", ("p",)),
    dependencies.Dependents("j"),
    dependencies.CompleteX(
        "w",
        LEASE,
        depends=("p",),
        follow=[
            dependencies.FollowUp("q", options.JobWithOptions("K", options=options.ExtraOptions(tags=["t"])))
        ],
    ),
    leases.Pop("w", ("q",)),
    leases.Complete("w", LEASE),
    leases.CompleteMany("w", [DONE]),
    leases.CompletePop("w", ("q",), [DONE]),
    leases.Heartbeat("w", LEASE),
    leases.HeartbeatMany([LEASE]),
    leases.Resume("v", [LEASE]),
    outcomes.Advance("w", "q", LEASE),
    outcomes.Retry("w", LEASE),
    outcomes.Fail("w", LEASE, "g"),
    outcomes.Expire([LEASE]),
    outcomes.Release([LEASE], "preempted", "TERM"),
    outcomes.Timeout(("j",)),
    queues.CountQueues(("q",)),
    queues.Peek("q"),
    queues.QueueNames(),
    queues.GetStats("q"),
    queues.Pause(("q",)),
    queues.ThrottleGet("t"),
    queues.ThrottleSet("t", 1, seen=0),
    queues.ThrottleDelete("t"),
    queues.ThrottleRelease("t", ("j",)),
    queues.ThrottleNames(),
    queues.QueueSet("q", "max-waiting", 5, ""),
    queues.QueueGet("q"),
    views.ListSet("waiting", "q"),
    admin.Info(),
    admin.SetClock(1),
    admin.ConfigGet(("k",)),
    admin.ConfigSet("k", "v", ""),
    admin.ConfigUnset("k", ""),
    admin.Sweep(),
    admin.Describe(),
    base.Call("job.get", ("j",)),
    queues.QueueForget(("q",)),
    admin.Patterns(),
    admin.IdentifiersSet({"i": "[]"}),
    admin.PrioritiesSet(["{}"]),
    admin.SettingsGet(),
    admin.SettingSet("stats-days", 1, 400),
    admin.Audit("w", "did"),
    admin.AuditList(),
    admin.Watch(1),
    recurring.Recur("q", "K", 1),
    recurring.RecurGet(("r",)),
    recurring.RecurUpdate("r", priority=1),
    recurring.RecurTag("add", "r", ("t",)),
    recurring.RecurPause("r"),
    recurring.RecurRun("r"),
    recurring.RecurCancel(("r",)),
    recurring.RecurUnplanned(1_700_000_000_000),
    recurring.RecurExtend("r", 0, "2026a", [(1_700_000_000_000, 1_700_000_000_000)]),
    views.Minutes("q"),
    views.Tick(("q",)),
    topics.TopicPut("t", "in", ("i", 1, b"b")),
    topics.TopicReserve("t", 1),
    topics.TopicPull("t"),
    topics.TopicRelease("t", [("i", 1)]),
    topics.TopicReschedule("t", ("i",), "in", 1),
    topics.TopicDelete("t", ("i",)),
    topics.TopicRequeue("t"),
    topics.TopicGet("t", ("i",)),
    topics.CountTopics(("t",)),
    workers.WorkerSeen("w", {"host": "h"}),
    workers.Workers(),
    workers.WorkerJobs("w"),
    workers.WorkerQuiet("w"),
    workers.WorkerAsk("w", "j", "ask"),
    workers.WorkerAnswer("ask", b"here"),
    workers.WorkerForget(("w",)),
    operations.Scan("waiting", "q"),
    operations.Act("cancel", [("j", "")]),
    operations.OperationSet("start", "o", "me", 1000, "{}"),
    operations.Operations(),
    operations.OperationGet("o"),
    operations.Audited("me", "tick", "q", "", views.Tick(("q",))),
]


def test_there_is_a_sample_of_every_verb():
    assert {command.verb for command in SAMPLES} == set(COMMANDS)


@pytest.mark.parametrize("command", SAMPLES, ids=lambda command: type(command).__name__)
def test_a_command_says_what_the_core_asks_for(command, client):
    asked = {facts.verb: facts for facts in client.run(admin.Describe())}[command.verb]
    names = re.findall(r"\w+", asked.arguments)
    if command.request_id_at >= 0:
        assert names[command.request_id_at : command.request_id_at + 2] == ["line", "number"]
        del names[command.request_id_at : command.request_id_at + 2]
    else:
        assert "line" not in names
    assert len(command.words()) == len(names)


@pytest.mark.parametrize("command", SAMPLES, ids=lambda command: type(command).__name__)
def test_only_reading_commands_call_functions_that_do_not_write(command, client):
    asked = {facts.verb: facts for facts in client.run(admin.Describe())}[command.verb]
    assert command.reads == ("no-writes" in asked.flags)
    if command.adds:
        assert asked.flags == ()
