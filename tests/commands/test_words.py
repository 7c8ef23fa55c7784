"""Words out and replies in, without a store."""

import struct

import msgspec
import pytest

from holdfast.commands import COMMANDS
from holdfast.commands.admin import (
    Audit,
    AuditList,
    ConfigGet,
    Describe,
    IdentifiersSet,
    Info,
    Patterns,
    PrioritiesSet,
    SettingSet,
    SettingsGet,
    Watch,
)
from holdfast.commands.base import Call, map_reply
from holdfast.commands.failures import Failed, FailureGroup, FailureGroups, Failures, Unfail
from holdfast.commands.jobs import Await, Cancel, Move, Put, PutMany
from holdfast.commands.leases import (
    Complete,
    CompleteMany,
    CompletePop,
    Done,
    Heartbeat,
    HeartbeatMany,
    Lease,
    Pop,
)
from holdfast.commands.outcomes import Advance, Expire, Fail, Release, Retry
from holdfast.commands.queues import CountQueues, GetStats, Pause, QueueForget
from holdfast.commands.workers import (
    HeldJob,
    WorkerForget,
    WorkerJobs,
    WorkerQuiet,
    Workers,
    WorkerSeen,
)
from holdfast.errors import JobExists, JobFailed, LeaseLost, QueueFull, Refused, refusal
from holdfast.models import HistoryEntry

HELD = Lease("j1", 42)


def test_every_command_knows_its_verb_and_can_be_found_by_it():
    assert all(kind.verb == verb for verb, kind in COMMANDS.items())
    assert len(COMMANDS) == 109


def test_a_put_says_mode_queue_options_and_one_job():
    put = Put("mail", "Welcome", b"[1]", "j1", priority=3, retries=2, delay_ms=1500)
    assert put.words() == ("new", "mail", 3, 2, 1500, "j1", "Welcome", b"[1]")


def test_only_a_put_that_may_move_a_job_is_numbered():
    assert [Put("q", "K", mode=mode).numbered for mode in ("new", "move", "only")] == [False, True, False]


def test_a_put_that_was_applied_before_answers_its_jid():
    put = Put("mail", "Welcome", jid="j1")
    assert put.read([1]) == "j1"
    assert put.read([0, 0, b"again"]) == "j1"


def test_a_refused_put_raises_what_the_core_said():
    with pytest.raises(JobExists, match="j1 has other content"):
        Put("mail", "Welcome").read([0, 0, b"HF_JOB_EXISTS j1 has other content"])


def test_a_refusal_that_only_names_its_job_becomes_a_sentence():
    assert str(refusal(b"HF_JOB_NOT_FOUND j1")) == "job j1 does not exist"
    assert str(refusal(b"HF_JOB_EXISTS j1")) == "there is a job j1 already"
    assert str(refusal(b"HF_LEASE_LOST j1 is waiting")) == "j1 is waiting"


def test_a_batch_of_puts_answers_each_job_for_itself():
    batch = PutMany("mail", ["a", "K", b"1", "b", "K", b"2", "c", "K", b"3"])
    assert batch.words()[5:] == ("a", "K", b"1", "b", "K", b"2", "c", "K", b"3")
    first, second, third = batch.read([1, 1, b"HF_QUEUE_FULL mail", 2, b"again"])
    assert (first, third) == ("a", "c")
    assert isinstance(second, QueueFull)


def test_a_pop_says_worker_limit_lease_and_a_mode_for_each_queue():
    assert Pop("w", ("a", "b"), 5, ttl=1.5, mode=1).words() == ("w", 5, 1500, "a", 5, "b", 5)
    assert Pop("w", ("a", "b"), mode=(2, 1)).words() == ("w", 1, 0, "a", 6, "b", 5)
    assert Pop("w", ("a",), mode=1, level=0).words() == ("w", 1, 0, "a", 1)


def test_an_empty_pop_is_an_empty_list_that_knows_when_something_is_due():
    popped = Pop("w", ("a",)).read([1500])
    assert popped == []
    assert popped.due == 1.5
    assert Pop("w", ("a",)).read([-1]).due is None


def test_completing_and_popping_says_how_many_queues_there_are():
    done = Done("j1", 42, b"", 1000, b"7")
    words = CompletePop("w", ("a", "b"), [done], limit=3, mode=1).words()
    assert words == ("w", 3, 0, 2, "a", 5, "b", 5, "j1", 42, b"", 1000, b"7")


def test_completing_and_popping_names_the_lost_and_forgives_the_repeated():
    reply = [2, b"j1", b"HF_LEASE_LOST j1 is waiting", b"j2", b"again", -1]
    settlement = CompletePop("w", ("a",), []).read(reply)
    assert list(settlement.lost) == ["j1"]
    assert isinstance(settlement.lost["j1"], LeaseLost)
    assert settlement.jobs == []


@pytest.mark.parametrize(
    "command",
    [Complete("w", HELD), Advance("w", "next", HELD), Fail("w", HELD, "group")],
    ids=["complete", "advance", "fail"],
)
def test_settling_a_lost_lease_raises_and_a_repeat_does_not(command):
    with pytest.raises(LeaseLost):
        command.read([0, b"j1", b"HF_LEASE_LOST j1 is waiting, token 43"])
    command.read([0, b"j1", b"again"])
    command.read([1])


def test_completing_many_names_only_the_lost():
    lost = CompleteMany("w", [Done("j1", 1), Done("j2", 2)]).read([1, b"j2", b"HF_LEASE_LOST j2"])
    assert list(lost) == ["j2"]


def test_a_heartbeat_answers_the_new_end_or_raises():
    beat = Heartbeat("w", HELD, ttl=2.5)
    assert beat.words() == (2500, "w", "j1", 42, b"")
    assert beat.read([1234]) == 1234
    for gone in (0, -1):
        with pytest.raises(LeaseLost):
            beat.read([gone])


def test_many_heartbeats_carry_a_worker_each():
    beats = HeartbeatMany([Lease("j1", 1, "w1"), Lease("j2", 2, "w2", b"{}")])
    assert list(beats.words()) == [0, "w1", "j1", 1, b"", "w2", "j2", 2, b"{}"]
    assert beats.read([99, 0]) == [99, 0]


def test_a_retry_answers_what_is_left_or_raises():
    assert Retry("w", HELD, 500).words() == ("w", 500, "", "", "j1", 42, b"")
    assert Retry("w", HELD).read([-1]) == -1
    with pytest.raises(LeaseLost):
        Retry("w", HELD).read([b"HF_LEASE_LOST j1"])


def test_giving_back_names_worker_jid_and_token():
    assert list(Expire([Lease("j1", 7, "w")]).words()) == ["w", "j1", 7]
    release = Release([Lease("j1", 7, "w")], "crashed", "SIGSEGV")
    assert list(release.words()) == ["crashed", "SIGSEGV", "", "w", "j1", 7]


def test_moving_keeps_what_is_not_said():
    assert Move("other", "j1").words() == ("other", 0, "j1", b"", "", "", "", 0)
    assert Move("other", "j1", priority=0, klass="K", retries=0).words()[-4:] == (0, "K", 0, 0)
    assert Move("other", "j1", tags=[], throttles=[], depends=["p"]).words()[-7:] == (
        3, "untagged", "", "unthrottled", "", "depends", "p",
    )  # fmt: skip


def test_cancelling_answers_yes_or_no_for_each():
    assert Cancel(("a", "b")).read([1, 0]) == [True, False]


def test_the_ends_of_jobs_are_read_by_status():
    failed = msgspec.msgpack.encode(["mail-ValueError", "no such user"])
    reply = [b"done", b"42", b"open", None, b"failed", failed, b"gone", None]
    done, still_open, broken, gone = Await(("a", "b", "c", "d")).read(reply)
    assert (done.status, done.result) == ("done", b"42")
    assert (still_open.status, gone.status) == ("open", "gone")
    assert isinstance(broken.error, JobFailed)
    assert broken.error.group == "mail-ValueError"


def test_counts_are_read_by_position():
    more = [1500, 2500, 3, 60_000, b"ann", b"deploy", 4500, 0, 9]
    [row] = CountQueues().read([[b"mail", 1, 2, 3, 4, 5, 6, 7, 1, 8, *more]])
    assert row.as_dict() == {
        "name": "mail",
        "waiting": 1,
        "running": 2,
        "stalled": 3,
        "throttled": 4,
        "scheduled": 5,
        "depends": 6,
        "recurring": 7,
        "paused": True,
        "failed": 8,
        "oldest": 1.5,
        "next": 2.5,
        "limit": 3,
        "heartbeat": 60,
        "paused_by": "ann",
        "paused_why": "deploy",
        "paused_since": 4.5,
        "paused_until": 0,
        "max_waiting": 9,
    }
    assert row.length == 1 + 2 + 3 + 5


def test_statistics_are_read_as_two_samples():
    sample = [2, b"1.5", b"0.5", [0] * 148, [3, 1, 9, 1]]
    stats = GetStats("mail").read([1, 2, 3, *sample, *sample, 4])
    assert (stats.retries, stats.lost, stats.failed, stats.failures, stats.retried) == (1, 1, 2, 3, 4)
    assert stats.wait.mean == 1.5
    assert stats.run.fine == ((3, 1), (9, 1))
    assert len(stats.as_dict()["run"]["histogram"]) == 148


def test_pausing_says_who_and_why():
    assert Pause(("a", "b"), True, "ann", "deploy").words() == (1, "ann", "deploy", 0, "a", "b")
    assert Pause(("a",), True, "", "", 1500).words() == (1, "", "", 1500, "a")


def test_what_looks_after_an_installation_says_its_words():
    assert QueueForget(("a", "b")).words() == ("a", "b")
    assert IdentifiersSet({"mail": '["m"]', "x": "[]"}).words() == ("mail", '["m"]', "x", "[]")
    assert PrioritiesSet(["{}"]).words() == ("{}",)
    assert SettingSet("stats-days", None).words() == ("stats-days", "")
    assert Audit("ann", "pause").words() == ("ann", "pause", "", "")
    assert (AuditList("1-0", 5).words(), Watch(9).words()) == (("1-0", 5), (9,))


def test_what_an_installation_keeps_is_read_as_mappings_and_lines():
    found = Patterns().read([[b"default", b'["*"]'], [b"{}"]])
    assert (found.identifiers, found.priorities) == ({"default": '["*"]'}, ("{}",))
    assert SettingsGet().read([b"keep-data", 1]) == {"keep-data": 1}
    [line] = AuditList().read([[b"17-0", 17, b"ann", b"pause", b"q", b""]])
    assert (line.id, line.when_ms, line.who, line.what, line.target) == ("17-0", 17, "ann", "pause", "q")


def test_workers_are_read_with_what_they_say_and_hold():
    assert WorkerSeen("w", {"host": "h", "pid": "7"}).words() == ("w", "host", "h", "pid", "7")
    assert (WorkerSeen("w").read([0]), WorkerSeen("w").read([1])) == (False, True)
    [facts] = Workers(("17", "w"), 5).read([[b"v", b"16", 1, [b"host", b"h"]]])
    assert (facts.name, facts.seen_ms, facts.quiet, facts.facts) == ("v", 16, True, {"host": "h"})
    assert Workers(("17", "w"), 5).words() == ("17", "w", 5)
    page = WorkerJobs("w").read([b"more", [b"j", b"q", 99, 1, b"w", 39]])
    assert (page.cursor, page.jobs) == ("more", (HeldJob("j", "q", 99, True, "w", 39),))
    assert (WorkerQuiet("w", False).words(), WorkerForget(("w",)).words()) == (("w", 0), ("w",))


def test_failure_groups_are_a_mapping_and_a_group_is_a_page():
    assert Failures().read([b"0", b"g", 2, b"h", 1]) == (None, {"g": 2, "h": 1})
    assert Failures("17", 5).words() == ("17", 5)
    assert Failures().read([b"99"]) == ("99", {})
    assert Failed("g").read([2, b"j2", b"j1"]) == (2, ["j2", "j1"])


def test_a_summary_of_a_group_has_a_trend_of_48_hours():
    cells = list(range(48))
    [cursor, groups] = FailureGroups().read([b"7", [b"g", 3, 10, 20, b"j3", 0, *cells]])
    assert cursor == "7"
    assert groups == [FailureGroup("g", 3, 10, 20, "j3", 0, tuple(cells))]


def test_unfailing_says_queue_group_and_how_many():
    assert Unfail("mail", "G", 9).words() == ("mail", "G", 9)
    assert Unfail("mail", "G").read(4) == 4


def test_settings_are_texts_or_none():
    assert ConfigGet(("a", "b")).read([b"a", b"60", b"b", None]) == {"a": "60", "b": None}


def test_the_core_says_what_it_is():
    info = Info("make").read([b"0.1.0.dev", b"abc", 1, b"0f", 17, 1, b"", 60, 10])
    assert (info.version, info.schema, info.is_test, info.denied) == ("0.1.0.dev", 1, True, ())
    assert Info().read([b"1", b"d", 1, b"e", 0, 0, b"SET,DEL", 60, 10]).denied == ("SET", "DEL")


def test_functions_are_described_with_flags():
    [put] = Describe().read([[b"put", b"", b"line number"]])
    assert (put.verb, put.flags, put.arguments) == ("put", (), "line number")


def test_a_wrapped_command_keeps_its_words_and_flags_and_turns_its_answer():
    wrapped = map_reply(Put("mail", "K", jid="j1", mode="move"), str.upper)
    assert (wrapped.verb, wrapped.request_id_at, wrapped.adds, wrapped.numbered) == ("put", 0, True, True)
    assert wrapped.words()[5] == "j1"
    assert wrapped.read([1]) == "J1"


def test_the_facts_of_a_pop_row_have_the_layout_of_the_protocol():
    assert struct.calcsize("<dddhHhhBddH") == 51


@pytest.mark.parametrize(
    ("what", "key"),
    [
        ("put", "queue"),
        ("popped", "queue"),
        ("retried", "group"),
        ("failed", "group"),
        ("failed-retries", "group"),
    ],
)
def test_a_line_of_history_names_its_queue_or_its_group(what: str, key: str) -> None:
    assert HistoryEntry(what, 1000, name="there").as_dict() == {"what": what, "when": 1.0, key: "there"}


def test_a_command_of_the_older_protocol_answers_texts_numbers_lists_and_nothing():
    call = Call("job.cancel", ("j1", 7, b"j2"))
    assert call.words() == ("job.cancel", "j1", 7, b"j2")
    assert [call.read(reply) for reply in (b"j1", 3, None, [b"j1", b"7"])] == ["j1", 3, None, ["j1", "7"]]


def test_a_command_of_the_older_protocol_is_numbered_unless_it_only_looks():
    assert [Call(name).numbered for name in ("queue.pop", "queue.peek", "job.get")] == [True, False, False]


def test_an_answer_that_was_too_long_to_keep_is_missed_aloud():
    with pytest.raises(Refused, match=r"queue\.pop was done before"):
        Call("queue.pop").read([b"again"])
