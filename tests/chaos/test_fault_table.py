"""Rows F1 to F10 of the fault table (reliability.md 6), in their order, over real workers.

F7 and F8 are proved for every verb in `test_cut_replies`; here they hit workers in the middle of their work.
"""

import signal
from typing import Any

import pytest
from crew import send
from ward import WITH_CHILDREN, Ward, freeze, thaw

from waiting import pause, until

LEASE = 1

process_only = pytest.mark.parametrize("ward", ["process"], indirect=True)
asyncio_only = pytest.mark.parametrize("ward", ["asyncio"], indirect=True)
slowly_in_process = pytest.mark.parametrize(
    "ward", [pytest.param("process", marks=pytest.mark.full), "asyncio"], indirect=True
)


def short_leases(ward: Ward, grace: float = 0.5) -> None:
    ward.client.config["heartbeat"], ward.client.config["grace-period"] = LEASE, grace


def long_leases(ward: Ward) -> None:
    """For what is handed out from now on: a machine that is slow for a second loses no second lease."""
    ward.client.config["heartbeat"] = 60


def counted(ward: Ward, jid: str) -> tuple[str, int, int]:
    """How a job stands: its state, its attempts and its losses."""
    job = ward.job(jid)
    return job.state, job.attempts, job.losses


@pytest.mark.parametrize("ward", WITH_CHILDREN, indirect=True)
def test_f1_a_job_whose_process_was_killed_is_granted_again_long_before_its_lease_ends(ward: Ward) -> None:
    ward.client.config["heartbeat"] = 600
    worker = ward.start()
    held = ward.hold("gate")
    for pid in worker.children():
        send(pid, signal.SIGKILL)
    until(lambda: ward.begun("gate") == 2, "it was begun again")
    ward.open("gate")
    until(lambda: ward.is_done(held), "it ends")
    assert counted(ward, held) == ("complete", 2, 1)


@pytest.mark.full
@process_only
def test_f1_a_job_whose_whole_worker_was_killed_is_granted_again_after_lease_and_grace(ward: Ward) -> None:
    short_leases(ward)
    worker = ward.start()
    held = ward.hold("gate")
    ward.start(queue="other", more=["-q", "q"])
    for pid in freeze(worker):
        send(pid, signal.SIGKILL)
    long_leases(ward)
    until(lambda: ward.begun("gate") == 2, "it was begun again")
    ward.open("gate")
    until(lambda: ward.is_done(held), "it ends")
    assert counted(ward, held) == ("complete", 2, 1)


@pytest.mark.full
@slowly_in_process
def test_f2_a_worker_frozen_for_lease_and_grace_is_refused_everywhere(ward: Ward) -> None:
    short_leases(ward, grace=0)
    worker = ward.start()
    held = ward.hold("gate")
    frozen = freeze(worker)
    long_leases(ward)
    [other] = until(lambda: ward.client.queues["q"].pop(1), "the job is granted again")
    ward.open("gate")
    thaw(frozen)
    until(lambda: "is not recorded" in worker.said(), "it says that its result is not recorded")
    assert (other.jid, counted(ward, held)) == (held, ("running", 2, 1))
    other.complete()


@pytest.mark.full
@process_only
def test_f3_a_worker_frozen_for_less_is_not_noticed_or_its_loss_is_and_its_result_is_taken(
    ward: Ward,
) -> None:
    short_leases(ward, grace=5)
    worker = ward.start()
    held = ward.hold("gate")
    frozen = freeze(worker)
    pause(LEASE / 4)
    thaw(frozen)
    ward.renewed(held, LEASE)
    assert [line["what"] for line in ward.job(held).history] == ["put", "popped"]
    frozen = freeze(worker)
    ward.until_expired(held)
    assert ward.client.queues["q"].pop(1) == []
    ward.open("gate")
    # The child alone: its keeper would count the lease as lost, and have the job stopped.
    thaw([pid for pid in frozen if pid != worker.pid])
    until(lambda: ward.is_done(held), "its result is taken")
    thaw([worker.pid])
    assert counted(ward, held)[:2] == ("complete", 1)
    assert "timed-out" in [line["what"] for line in ward.job(held).history]


@pytest.mark.full
@process_only
def test_f4_children_of_a_killed_supervisor_stop_and_their_leases_end(ward: Ward) -> None:
    short_leases(ward)
    worker = ward.start()
    held = ward.hold("gate")
    worker.signal(signal.SIGKILL)
    worker.wait()
    long_leases(ward)
    ward.start(queue="other", more=["-q", "q"])
    until(lambda: ward.begun("gate") == 2, "the lease has ended, and the job is granted again")
    ward.open("gate")
    until(lambda: not worker.children(), "its child has noticed")
    until(lambda: ward.is_done(held), "it ends once")
    assert counted(ward, held)[1:] == (2, 1)


@pytest.mark.full
def test_f5_a_process_that_a_job_forked_shares_nothing_with_the_worker(ward: Ward) -> None:
    worker = ward.start()
    split = ward.hold("gate", "split")
    # Parent and child work at the same time; answers that are mixed up would end either.
    jids = [ward.put() for _ in range(20)]
    until(lambda: all(ward.is_done(jid) for jid in (split, *jids)), "the worker works on")
    ward.open("gate")
    until(lambda: ward.noted("split"), "the forked one used the store as well")
    assert worker.lives


@pytest.mark.full
@asyncio_only
def test_f6_a_job_that_hogs_its_process_keeps_its_lease_by_the_parent(ward: Ward) -> None:
    short_leases(ward, grace=0)
    worker = ward.start()
    held = ward.hold("gate", "hog")
    ward.renewed(held, 3 * LEASE)
    ward.open("gate")
    until(lambda: ward.is_done(held), "it ends")
    assert "not recorded" not in worker.said()
    assert counted(ward, held) == ("complete", 1, 0)


@pytest.mark.full
@pytest.mark.parametrize("fault", ["cut-reply", "cut-request"])
def test_f7_and_f8_calls_of_a_worker_that_are_cut_off_have_happened_once(ward: Ward, fault: Any) -> None:
    worker = ward.start()
    jids: list[str] = []
    for verb in ("hf1_pop", "hf1_complete_pop", "hf1_pop", "hf1_complete_pop"):
        ward.relay.aim(fault, verb)
        jids.extend(ward.put() for _ in range(10))
        until(lambda: all(map(ward.is_done, jids)), f"the jobs are done though {verb} was cut off")
    assert {ward.job(jid).attempts for jid in jids} == {1}
    assert worker.lives


def black_hole(ward: Ward, seconds: float) -> None:
    worker = ward.start()
    held = ward.hold("gate")
    before = len(ward.relay.accepted)
    ward.relay.black_hole()
    ward.open("gate")
    jid = ward.put()
    pause(seconds)
    family = len(worker.family())
    connects = len(ward.relay.accepted) - before
    ward.relay.heal()
    ward.until_done(held, jid)
    assert connects <= family * (seconds + 6)
    assert ward.begun("gate") == 1


@pytest.mark.full
def test_f9_a_black_hole_is_recovered_from(ward: Ward) -> None:
    black_hole(ward, 1.5)


@pytest.mark.full
def test_f9_a_black_hole_of_half_a_minute_is_recovered_from(ward: Ward) -> None:
    black_hole(ward, 30.0)


@pytest.mark.full
@slowly_in_process
def test_f10_over_a_slow_line_work_is_slower_correct_and_heartbeats_come_in_time(ward: Ward) -> None:
    ward.client.config["heartbeat"] = 3
    ward.start()
    ward.relay.slow(0.2)
    jids = [ward.put() for _ in range(5)]
    held = ward.hold("gate")
    ward.renewed(held, 0.5)
    drip = ward.relay.aim("drip", "hf1_heartbeat", seconds=0.4)
    assert drip.hit.wait(30)
    ward.renewed(held, 0.5)
    ward.open("gate")
    until(lambda: all(map(ward.is_done, (held, *jids))), "all is done")
    assert counted(ward, held) == ("complete", 1, 0)
