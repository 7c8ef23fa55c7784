"""What the error of a lost call says: which call, whether it was sent, how long it was tried, and what is safe now."""

import pickle

import pytest
from scripted import INFO, core_info, scripted

from holdfast.client.plugin import Script, run_script
from holdfast.commands.attributes import Track
from holdfast.commands.base import map_reply
from holdfast.commands.jobs import JobGet, Put, PutMany
from holdfast.commands.leases import Complete, Lease, Pop
from holdfast.core.library import library
from holdfast.errors import (
    ConnectionLost,
    CoreMismatch,
    HoldfastError,
    StoreBusy,
    StoreFull,
    StoreTimeout,
    TransportError,
)
from holdfast.wire.exchange import exchange, exchange_all
from holdfast.wire.plans import ErrorReply, LinkError

CUT = LinkError("cut off")
NOBODY = LinkError("refused", sent=False)
OURS = library()
MET = [*INFO, core_info(OURS.version, OURS.digest)]
BUSY = ErrorReply("BUSY a script is running")


def lost(command, *answers, **settings) -> HoldfastError:
    shard, _, runner = scripted(*answers, **settings)
    with pytest.raises(HoldfastError) as raised:
        runner.run(exchange(shard, command))
    return raised.value


def test_an_error_names_the_call_how_often_and_how_long_it_was_tried():
    error = lost(Put("mail", "K", jid="j1"), CUT, deadline=1.0)
    assert isinstance(error, ConnectionLost)
    assert str(error).startswith("put: no reply from the store in ")
    assert " tries over 1.0 s (cut off); it may have happened; " in str(error)
    assert str(error).endswith("; putting it again with jid='j1' and only_new=True is safe")
    assert error.may_have_happened


def test_a_single_try_is_called_so():
    assert "put: no reply from the store in 1 try" in str(lost(Put("q", "K"), CUT, deadline=0.0))


def test_a_call_that_was_never_sent_certainly_did_not_happen():
    error = lost(Put("q", "K"), NOBODY, deadline=0.5)
    assert isinstance(error, TransportError)
    assert str(error).endswith("(refused); nothing was sent")
    assert not error.may_have_happened


def test_a_call_did_not_happen_when_only_the_look_at_the_store_was_sent():
    error = lost(Put("q", "K"), LinkError("slow", timed_out=True), met=False, deadline=0.5)
    assert isinstance(error, StoreTimeout)
    assert "put: no reply from the store" in str(error)
    assert str(error).endswith("nothing was sent")
    assert not error.may_have_happened


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (JobGet(["j"]), "it only reads, so repeating it is safe"),
        (map_reply(JobGet(["j"]), len), "it only reads, so repeating it is safe"),
        (Complete("w", Lease("j", 7)), "repeating it is safe"),
        (Track(True, "j"), "check before you repeat it"),
        (Pop("w", ("q",)), "popping again is safe: jobs of a lost reply are handed out again"),
        (PutMany("q", ("j", "K", b"1")), "check before you put them again, unless each has a jid of its own"),
    ],
    ids=lambda value: getattr(value, "verb", "again"),
)
def test_an_error_says_whether_the_call_may_be_made_again(command, again):
    assert f"it may have happened; {again}" in str(lost(command, CUT, deadline=0.5))


def test_a_store_that_is_busy_now_may_have_done_what_an_earlier_try_said():
    """StoreBusy promises that nothing was applied, which nobody knows here."""
    error = lost(Put("q", "K"), CUT, [BUSY] * 4, deadline=0.5)
    assert type(error) is ConnectionLost
    assert "it may have happened" in str(error)
    assert type(lost(Put("q", "K"), [BUSY], deadline=0.5)) is StoreBusy


def test_another_core_after_a_lost_answer_does_not_hide_that_something_was_sent():
    other = [*INFO, core_info("0.2.0", "another")]
    error = lost(Put("q", "K", jid="j1"), CUT, other, deadline=0.5, load_core=False)
    assert isinstance(error, CoreMismatch)
    assert "an earlier try of this put was sent and may have happened" in error.__notes__[0]


def test_each_call_of_a_pipeline_is_told_what_holds_for_it():
    shard, _, runner = scripted(CUT, deadline=0.5)
    put, look = runner.run(exchange_all(shard, [Put("q", "K", jid="j1"), JobGet(["j1"])]))
    assert "put: no reply" in str(put)
    assert "only_new=True" in str(put)
    assert "get: no reply" in str(look)
    assert "repeating it is safe" in str(look)


def test_the_error_survives_a_journey_to_another_process():
    error = pickle.loads(pickle.dumps(lost(Put("q", "K"), NOBODY, deadline=0.5)))
    assert (type(error), error.may_have_happened) == (ConnectionLost, False)
    assert "nothing was sent" in str(error)


SCRIPT = Script("return 1")


def run(*answers, **settings):
    shard, link, runner = scripted(*answers, **settings)
    return link, lambda: runner.run(run_script(shard, SCRIPT, ("a",)))


def test_a_script_whose_answer_was_lost_is_not_run_again():
    link, ask = run(CUT)
    with pytest.raises(
        ConnectionLost, match=r"script: no reply .* in 1 try \(cut off\); it may have happened; check before"
    ) as raised:
        ask()
    assert raised.value.may_have_happened
    assert link.sent == [[("EVALSHA", SCRIPT.sha1, 1, "hf:{default}:", "a")]]
    _, ask = run(LinkError("slow", timed_out=True))
    with pytest.raises(StoreTimeout):
        ask()


def test_a_script_that_was_not_sent_is_sent_when_the_store_is_there_again():
    link, ask = run(NOBODY, MET, [BUSY], [7])
    assert ask() == 7
    assert [step[0][0] for step in link.sent] == ["EVALSHA", "INFO", "EVALSHA", "EVALSHA"]


def test_a_script_is_loaded_where_it_is_missing_but_not_for_ever():
    missing = ErrorReply("NOSCRIPT No matching script.")
    link, ask = run([missing], [b"sha"], [7])
    assert ask() == 7
    assert link.sent[1] == [("SCRIPT", "LOAD", "return 1")]
    link, ask = run([missing])
    with pytest.raises(HoldfastError, match="NOSCRIPT"):
        ask()
    assert len(link.sent) < 10


FULL = ErrorReply("OOM command not allowed when used memory > 'maxmemory'.")


@pytest.mark.parametrize(
    "command", [Put("q", "K", jid="j1"), PutMany("q", ["j1", "K", b"1", "j2", "K", b"2"])]
)
def test_a_put_whose_answer_was_lost_is_found_in_a_store_that_is_full_by_now(command):
    rows = [[b"row"]] * len(command.generated_jids)
    shard, link, runner = scripted(CUT, MET, [FULL], [rows])
    assert runner.run(exchange(shard, command)) == ("j1" if isinstance(command, Put) else ["j1", "j2"])
    assert link.sent[-1][0][:2] == ("FCALL", "hf1_job_get")


@pytest.mark.parametrize(
    ("command", "answers"),
    [
        (Put("q", "K", jid="j1"), [[[None]]]),
        (Put("q", "K", jid="j1"), [CUT]),
        (Put("q", "K", jid="j1", mode="move"), []),
        (Track(True, "j1"), []),
    ],
)
def test_a_full_store_after_a_lost_answer_does_not_promise_that_nothing_changed(command, answers):
    error = lost(command, CUT, MET, [FULL], *answers)
    assert isinstance(error, StoreFull)
    assert error.may_have_happened
    assert f"an earlier try of this {command.verb} was sent and may have happened; " in str(error)


def test_a_full_store_at_the_first_try_promises_that_nothing_changed():
    error = lost(Put("q", "K"), [FULL])
    assert isinstance(error, StoreFull)
    assert not error.may_have_happened
