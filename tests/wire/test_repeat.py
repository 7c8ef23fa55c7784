"""What is sent again, with which words, for how long, and what is raised in the end."""

import pytest
from scripted import INFO, core_info, scripted

from holdfast.commands.jobs import Put
from holdfast.commands.leases import Complete, Heartbeat, Lease, Pop
from holdfast.commands.queues import CountQueues
from holdfast.core.library import library
from holdfast.errors import (
    ConnectionLost,
    CoreMismatch,
    HoldfastError,
    JobExists,
    LeaseLost,
    StoreBusy,
    StoreFull,
    StoreTimeout,
    StoreUnavailable,
    StoreUnsupported,
    TransportError,
)
from holdfast.wire.exchange import exchange, exchange_all, final_error
from holdfast.wire.plans import ErrorReply, LinkError

CUT = LinkError("cut off")
OURS = library()
MET = [*INFO, core_info(OURS.version, OURS.digest)]


def fcalls(link):
    return [call for step in link.sent for call in step if call[0] == "FCALL" and call[1] != "hf1_info"]


def test_a_call_is_its_function_its_root_and_its_words():
    shard, link, runner = scripted([[1]])
    assert runner.run(exchange(shard, Put("mail", "K", b"1", "j1"))) == "j1"
    assert link.sent == [
        [("FCALL", "hf1_put", "1", "hf:{default}:", "", 0, "new", "mail", 0, 5, 0, "j1", "K", b"1")]
    ]


def test_a_numbered_call_carries_a_line_and_a_number_that_grows():
    shard, link, runner = scripted([[-1]])
    for _ in range(3):
        runner.run(exchange(shard, Pop("w", ("q",))))
    lines = {call[5] for call in fcalls(link)}
    assert len(lines) == 1
    assert [call[6] for call in fcalls(link)] == [1, 2, 3]


def test_calls_under_way_at_once_have_lines_of_their_own():
    shard, link, runner = scripted([[-1], [-1]])
    runner.run(exchange_all(shard, [Pop("w", ("q",)), Pop("w", ("q",))]))
    first, second = fcalls(link)
    assert first[5] != second[5]


def test_a_lost_answer_is_asked_for_again_with_the_same_words():
    shard, link, runner = scripted(CUT, MET, CUT, MET, [[-1]])
    assert runner.run(exchange(shard, Pop("w", ("q",)))) == []
    calls = fcalls(link)
    assert len(calls) == 3
    assert len(set(calls)) == 1


def test_the_store_is_met_again_before_a_lost_call_is_repeated():
    shard, link, runner = scripted(CUT, MET, [[1]])
    runner.run(exchange(shard, Put("mail", "K")))
    assert [step[0][0] for step in link.sent] == ["FCALL", "INFO", "FCALL"]


def test_pauses_grow_and_end_at_the_deadline_with_an_error_that_says_it_may_have_happened():
    shard, link, runner = scripted(CUT, deadline=10.0)
    with pytest.raises(ConnectionLost, match="it may have happened"):
        runner.run(exchange(shard, Put("mail", "K")))
    assert 10.0 <= link.clock.now - 100.0 <= 10.5
    assert max(link.pauses) <= 2.0
    assert min(link.pauses[1:-1]) >= 0.025
    assert len(link.sent) < 40


def test_a_store_that_never_answers_is_a_timeout():
    shard, _, runner = scripted(LinkError("no answer", timed_out=True))
    with pytest.raises(StoreTimeout, match="it may have happened"):
        runner.run(exchange(shard, Put("mail", "K")))


def test_a_store_that_was_never_reached_says_that_nothing_was_sent():
    shard, _, runner = scripted(LinkError("connection refused", sent=False))
    with pytest.raises(ConnectionLost, match="nothing was sent"):
        runner.run(exchange(shard, Put("mail", "K")))


@pytest.mark.parametrize(
    "word", ["BUSY", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "NOREPLICAS", "READONLY"]
)
def test_not_now_is_repeated_until_it_is(word):
    shard, link, runner = scripted([ErrorReply(f"{word} wait")], [ErrorReply(f"{word} wait")], [[1]])
    runner.run(exchange(shard, Put("mail", "K", jid="j1")))
    assert len(fcalls(link)) == 3
    assert all(pause > 0 for pause in link.pauses[1:])


@pytest.mark.parametrize(
    ("word", "kind"), [("BUSY", StoreBusy), ("READONLY", StoreUnavailable), ("LOADING", StoreBusy)]
)
def test_not_now_until_the_deadline_says_that_nothing_was_applied(word, kind):
    shard, _, runner = scripted([ErrorReply(f"{word} wait")])
    with pytest.raises(kind, match="nothing was applied"):
        runner.run(exchange(shard, CountQueues()))


def test_a_full_store_refuses_more_work_at_once():
    shard, link, runner = scripted([ErrorReply("OOM command not allowed")])
    with pytest.raises(StoreFull, match="maxmemory"):
        runner.run(exchange(shard, Put("mail", "K")))
    assert len(link.sent) == 1


def test_what_does_not_add_work_waits_for_memory_until_the_deadline():
    shard, link, runner = scripted([ErrorReply("OOM command not allowed")])
    with pytest.raises(StoreFull):
        runner.run(exchange(shard, Complete("w", Lease("j1", 1))))
    assert len(link.sent) > 5


def test_a_refusal_is_final_and_raised():
    shard, link, runner = scripted([[0, 0, b"HF_JOB_EXISTS j1"]])
    with pytest.raises(JobExists):
        runner.run(exchange(shard, Put("mail", "K")))
    assert len(link.sent) == 1


def test_an_error_of_the_script_is_not_repeated():
    shard, link, runner = scripted([ErrorReply("ERR something broke")])
    with pytest.raises(HoldfastError, match="something broke"):
        runner.run(exchange(shard, Put("mail", "K")))
    assert len(link.sent) == 1


@pytest.mark.parametrize(
    "where", ["in a cluster node", "in a cluster node script: 1f2e, on @user_function:7."]
)
def test_a_call_during_which_its_slot_moved_may_have_happened_in_part(where):
    torn = ErrorReply(f"ERR Script attempted to access a non local key {where}")
    shard, link, runner = scripted([torn])
    with pytest.raises(TransportError, match="part of it may have happened") as caught:
        runner.run(exchange(shard, Put("mail", "K")))
    assert len(link.sent) == 1
    assert caught.value.may_have_happened


def test_a_user_without_rights_learns_it():
    shard, _, runner = scripted(
        [ErrorReply("NOPERM this user has no permissions to run the 'fcall' command")]
    )
    with pytest.raises(StoreUnsupported, match="lacks rights"):
        runner.run(exchange(shard, Put("mail", "K")))


def test_a_job_that_its_own_lost_completion_ended_counts_as_completed():
    missing = [[0, b"j1", b"HF_JOB_NOT_FOUND j1"]]
    shard, _, runner = scripted(CUT, MET, missing)
    assert runner.run(exchange(shard, Complete("w", Lease("j1", 1)))) == "complete"
    shard, _, runner = scripted(missing)
    with pytest.raises(HoldfastError):
        runner.run(exchange(shard, Complete("w", Lease("j1", 1))))


def test_a_repeat_does_not_forgive_a_lost_lease_nor_a_heartbeat():
    shard, _, runner = scripted(CUT, MET, [[0, b"j1", b"HF_LEASE_LOST j1"]])
    with pytest.raises(LeaseLost):
        runner.run(exchange(shard, Complete("w", Lease("j1", 1))))
    shard, _, runner = scripted(CUT, MET, [[-1]])
    with pytest.raises(LeaseLost):
        runner.run(exchange(shard, Heartbeat("w", Lease("j1", 1))))


def test_in_a_pipeline_only_what_has_no_answer_is_repeated():
    shard, link, runner = scripted([[1], ErrorReply("BUSY"), [0, 0, b"HF_JOB_EXISTS c"]], [[1]])
    puts = [Put("mail", "K", jid=jid) for jid in "abc"]
    first, second, third = runner.run(exchange_all(shard, puts))
    assert (first, second) == ("a", "b")
    assert isinstance(third, JobExists)
    assert [len(step) for step in link.sent] == [3, 1]


def test_a_pipeline_answers_every_call_when_the_deadline_passes():
    shard, _, runner = scripted([[1], ErrorReply("BUSY")], [ErrorReply("BUSY")])
    first, second = runner.run(exchange_all(shard, [Put("mail", "K", jid="a"), Put("mail", "K", jid="b")]))
    assert first == "a"
    assert isinstance(second, StoreBusy)


def test_a_missing_function_makes_the_client_load_its_core_and_repeat():
    lost = [ErrorReply("ERR Function not found")]
    loaded = [*INFO, ErrorReply("ERR Function not found")]
    shard, link, runner = scripted(
        lost, loaded, [b"holdfast1"], [core_info(OURS.version, OURS.digest)], [[1]]
    )
    assert runner.run(exchange(shard, Put("mail", "K", jid="j1"))) == "j1"
    assert [step[0][:2] for step in link.sent][2] == ("FUNCTION", "LOAD")


def test_a_missing_root_is_made_and_the_call_repeated():
    no_root = ErrorReply("HF_NO_ROOT hf:{default}:")
    shard, link, runner = scripted([no_root], [*INFO, no_root], [core_info(OURS.version, OURS.digest)], [[1]])
    assert runner.run(exchange(shard, Put("mail", "K", jid="j1"))) == "j1"
    assert link.sent[2] == [("FCALL", "hf1_info", "1", "hf:{default}:", "make", 0)]


def test_a_core_that_never_learns_a_function_is_a_mismatch_and_not_a_loop():
    newer = [*INFO, core_info("99.0.0", "another")]
    shard, link, runner = scripted(
        lambda calls: newer if calls[0][0] == "INFO" else [ErrorReply("ERR Function not found")] * len(calls)
    )
    with pytest.raises(CoreMismatch):
        runner.run(exchange(shard, CountQueues()))
    assert len(link.sent) < 12


def test_functions_that_are_flushed_again_and_again_are_loaded_until_the_deadline():
    flushes = 12

    def answer(calls):
        nonlocal flushes
        if calls[0][0] == "INFO":
            return MET
        flushes -= 1
        return [[1]] if flushes < 0 else [ErrorReply("ERR Function not found")]

    shard, _, runner = scripted(answer)
    assert runner.run(exchange(shard, Put("mail", "K", jid="j1"))) == "j1"
    flushes = 10_000
    with pytest.raises(StoreBusy, match="nothing was applied"):
        runner.run(exchange(shard, Put("mail", "K", jid="j2")))


def test_a_store_whose_functions_vanish_while_it_is_met_is_met_until_the_deadline():
    missing = ErrorReply("ERR Function not found")
    shard, _, runner = scripted(
        [*INFO, missing], *([[b"holdfast1"], [missing]] * 6), [b"holdfast1"], MET[3:], [[1]], met=False
    )
    assert runner.run(exchange(shard, Put("mail", "K", jid="j1"))) == "j1"


def test_a_store_lost_after_its_core_was_loaded_still_has_a_deadline():
    no_root = ErrorReply("HF_NO_ROOT hf:{default}:")
    shard, link, runner = scripted([no_root], MET, CUT, deadline=5.0)
    with pytest.raises(ConnectionLost):
        runner.run(exchange(shard, CountQueues()))
    assert 5.0 <= link.clock.now - 100.0 <= 5.5


def test_a_long_outage_is_logged_once(caplog):
    shard, _, runner = scripted(CUT, deadline=5.0)
    with caplog.at_level("WARNING", "holdfast"), pytest.raises(ConnectionLost):
        runner.run(exchange(shard, CountQueues()))
    assert caplog.text.count("the store is unavailable, trying again: cut off") == 1


def test_a_call_torn_by_a_moving_slot_may_have_happened():
    text = "ERR Script attempted to access a non local key in a cluster node script: hf1_put, on @user_function:12."
    error = final_error(ErrorReply(text), "put")
    assert isinstance(error, TransportError)
    assert error.may_have_happened
    assert "check before you repeat it" in str(error)
