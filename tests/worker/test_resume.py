"""workers.md 10: going on with what a worker of the same name held, and when that is refused."""

import re
import threading
from pathlib import Path

import pytest
from worker_kit import until

from holdfast import UsageError
from holdfast.commands.leases import Lease, Pop
from holdfast.commands.workers import WorkerSeen
from holdfast.worker.supervisor.presence import Resuming, divide, refuse_a_second, resumable

STUBBORN = """
import os
import chores

class Stubborn:
    @staticmethod
    def perform(job):
        chores.note(f"stubborn {job.worker_name}")
        tries = (chores.HERE / "notes").read_text().count("stubborn")
        if tries == 1:
            chores.wait_for("never")
        elif tries == 2:
            os._exit(9)
"""


def begun(shop, name):
    return len(shop.notes(f"begin {name}"))


@pytest.mark.full
def test_a_worker_goes_on_with_the_jobs_that_one_of_its_name_held(shop, pool):
    first = shop.start(pool, "--name", "crew", workers=2)
    jids = {name: shop.chores.block.put(name).jid for name in ("a", "b")}
    if pool == "serial":
        jids.popitem()
    until(lambda: all(begun(shop, name) for name in jids), "they began")
    first.kill_whole()
    second = shop.start(pool, "--name", "crew", "--resume", workers=1)
    until(lambda: begun(shop, "a") == 2, "it went on with a job at once")
    shop.open()
    until(lambda: all(shop.state(jid) == "complete" for jid in jids.values()), "all are complete")
    for name, jid in jids.items():
        job = shop.job(jid)
        assert (begun(shop, name), job.attempts, job.losses) == (2, 1, 0)
        assert f"resuming job {jid}" in second.said()


@pytest.mark.full
def test_the_child_that_replaces_one_that_died_of_a_resumed_job_does_not_resume(shop):
    Path(shop.here, "stubborn.py").write_text(STUBBORN)
    first = shop.start("process", "--name", "crew")
    jid = shop.q.put("stubborn.Stubborn", {})
    until(lambda: len(shop.notes("stubborn")) == 1, "it began")
    first.kill_whole()
    second = shop.start("process", "--name", "crew", "--resume")
    until(lambda: shop.state(jid) == "complete", "it is complete")
    assert second.said().count("resuming job ") == 1
    assert shop.job(jid).attempts == 2


@pytest.mark.full
def test_resuming_beside_a_living_worker_of_that_name_or_without_a_name_is_refused(shop):
    first = shop.start("process", "--name", "crew")
    until(lambda: "crew-0" in shop.client.workers, "it is known")
    for flags, said in (
        (("--name", "crew"), r"another worker named crew-0 is alive \(process \d+"),
        ((), "resume requires a name"),
    ):
        second = shop.start("process", *flags, "--resume")
        assert second.wait(30) == 2
        assert re.search(said, second.said())
    assert first.process.poll() is None


def test_jobs_are_divided_into_groups_whose_sizes_differ_by_at_most_one():
    for size in range(12):
        for count in range(1, 6):
            groups = divide(range(size), count)
            assert len(groups) == count
            assert max(map(len, groups)) - min(map(len, groups)) <= 1
            assert sorted(number for group in groups for number in group) == list(range(size))


@pytest.mark.full
def test_resumable_are_the_jobs_of_all_slots_of_that_name_in_the_queues_that_are_served(client):
    for queue in ("a", "b"):
        client.queues[queue].put_many([("K", {})] * 4)
    jids = {}
    for name in ("crew-0", "crew-11", "crew", "crew-x", "crews-0", "other-0"):
        for queue in ("a", "b")[: 1 if name != "crew-0" else 2]:
            jids[name, queue] = [job.jid for job in client.run(Pop(name, [queue], 1))]
    found = resumable(client, "crew", {"a"}.__contains__)
    assert sorted(lease.worker for lease in found) == sorted(
        name for name in ("crew-0", "crew-11", "crew") if jids[name, "a"]
    )
    assert len(resumable(client, "crew", {"a", "b"}.__contains__)) == len(found) + 1


@pytest.mark.full
def test_what_was_lost_meanwhile_is_left_out_with_a_line(client, caplog):
    queue = client.queues["q"]
    kept, lost = queue.put("K", {}), queue.put("K", {})
    leases = [Lease(job.jid, job.facts.token, client.worker_name) for job in queue.pop(2)]
    client.jobs[lost].timeout()
    source = Resuming(client, "crew-0", leases[::-1])
    assert source.take().jid == kept
    with pytest.raises(StopIteration):
        source.take()
    assert f"job {lost} cannot be resumed" in caplog.text
    assert client.jobs[kept].worker_name == "crew-0"


@pytest.mark.full
def test_a_worker_of_another_machine_is_alive_if_it_gives_a_sign(client):
    facts = {"pid": "17", "host": "elsewhere", "started": "0"}
    client.run(WorkerSeen("crew-0", facts))
    refuse_a_second(client, "crew", patience=0.05)
    giving = threading.Event()

    def give_signs():
        while not giving.wait(0.01):
            client.run(WorkerSeen("crew-0", facts))

    thread = threading.Thread(target=give_signs)
    thread.start()
    try:
        with pytest.raises(UsageError, match=r"crew-0 is alive \(process 17 on elsewhere\)"):
            refuse_a_second(client, "crew", patience=10)
    finally:
        giving.set()
        thread.join()
