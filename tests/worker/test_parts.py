"""The parts of a worker that need no store: slates, keepers, endings, outages."""

import os
import struct

import pytest

from holdfast.code.backoff import code_backoff
from holdfast.code.failure import LONGEST as LONGEST_TEXT
from holdfast.code.failure import cut, describe
from holdfast.code.registry import Registered
from holdfast.commands.leases import CompletePop, Done, Pop
from holdfast.commands.outcomes import OWN_BACKOFF, Advance, Fail
from holdfast.commands.outcomes import Retry as RetryCommand
from holdfast.errors import ConnectionLost, UsageError
from holdfast.models import JobFacts
from holdfast.models.layout import LEVEL
from holdfast.wire.outage import LONGEST, Outage
from holdfast.worker.leases.keeper import HeldLease, Keeper, run_end
from holdfast.worker.leases.table import Holding, LeaseTable
from holdfast.worker.performing.outcome import Failed, Moved, Retry, failed, granted, log_attempt, raised
from holdfast.worker.queues.route import Route
from holdfast.worker.settings import WorkerSettings

FACTS = JobFacts("j1", "shop.Job", "q", token=7, worker="w", retries=3, remaining=2)


@pytest.mark.full
def test_a_parent_reads_what_its_child_holds():
    lease_table = LeaseTable(slots=3)
    assert lease_table.read_all() == []
    pid = os.fork()
    if pid == 0:
        lease_table.begin("line-1")
        lease_table.ask(41)
        lease_table.hold(1, "jid-é", 1_700_000_000_123, 60_000, 12.5)
        lease_table.hold(2, "x" * 200, 3, 2_000, 1.0)
        lease_table.hold(0, "gone", 4, 60_000, 1.0)
        lease_table.clear(0)
        os._exit(0)
    os.waitpid(pid, 0)
    assert lease_table.read_all() == [
        Holding(1, "jid-é", 1_700_000_000_123, 60.0, 12.5),
        Holding(2, "x" * 200, 3, 2.0, 1.0),
    ]
    assert lease_table.shortest_lease() == 2.0
    assert lease_table.asked() == ("line-1", 41)
    lease_table.wipe()
    assert lease_table.read_all() == []
    assert lease_table.asked() is None


@pytest.mark.full
def test_an_entry_that_is_just_being_written_is_not_read():
    lease_table = LeaseTable()
    lease_table.hold(0, "jid", 1, 60_000, 0.0)
    struct.pack_into("<I", lease_table._page, 256, 99)  # the front of the next version, not yet its end
    assert lease_table.read(0) is None


@pytest.mark.full
def test_a_slate_says_when_a_lease_is_shorter_than_its_parent_looks_after():
    lease_table = LeaseTable()
    assert lease_table.hold(0, "a", 1, 60_000, 0.0)
    lease_table.set_pace(60.0)
    assert not lease_table.hold(0, "b", 1, 60_000, 0.0)
    assert lease_table.hold(0, "c", 1, 1_000, 0.0)
    lease_table.set_pace(1.0)
    assert not lease_table.hold(0, "d", 1, 1_000, 0.0)


def held(jid="a", lease=30.0):
    return HeldLease(jid, 1, "w", lease)


@pytest.mark.full
def test_a_keeper_looks_every_third_of_the_shortest_lease_that_is_held():
    keeper = Keeper()
    keeper.begin(100.0)
    assert keeper.due() == 110.0
    assert not keeper.include(30.0)
    assert keeper.include(3.0)
    assert not keeper.include(6.0)
    assert keeper.due() == 101.0
    keeper.renew([held(lease=3.0), held("b")], 101.0)
    assert keeper.due() == 102.0
    keeper.retry(103.0, 0.5)
    assert keeper.due() == 102.0
    keeper.renew([held(lease=3.0)], 103.0)
    keeper.retry(103.0, 0.5)
    assert keeper.due() == 103.5
    keeper.renew_now()
    assert keeper.due() <= 0


def test_a_keeper_looks_less_often_again_when_the_short_lease_has_ended():
    keeper = Keeper()
    keeper.begin(0.0)
    long = keeper.period
    keeper.include(1.0)
    keeper.renew([held(lease=1.0)], 0.3)
    assert keeper.period == 1.0 / 3
    keeper.renew([held(lease=600.0)], 0.6)
    assert keeper.period == long


def test_all_leases_are_renewed_in_calls_of_at_most_512():
    keeper = Keeper()
    leases = [held(str(n)) for n in range(700)]
    calls = keeper.renew(leases, 10.0)
    assert [len(batch) for _, batch in calls] == [512, 188]
    assert [lease.jid for command, _ in calls for lease in command.leases] == [str(n) for n in range(700)]


def test_a_keeper_learns_what_was_lost_and_asks_for_it_no_more():
    keeper = Keeper()
    fine, lost, gone = held("fine"), held("lost"), held("gone")
    [(_, batch)] = keeper.renew([fine, lost, gone], 10.0)
    keeper.renewed(batch, [1_700_000_000_000, 0, -1])
    assert fine.lost == ""
    assert "lost" in lost.lost
    assert "cancelled" in gone.lost
    [(command, _)] = keeper.renew([fine, lost, gone], 20.0)
    assert [lease.jid for lease in command.leases] == ["fine"]


@pytest.mark.full
def test_a_lease_that_could_not_be_renewed_is_not_lost_before_the_store_says_so():
    keeper = Keeper()
    lease = held(lease=30.0)
    for now in (10.0, 70.0, 700.0):
        [(command, _)] = keeper.renew([lease], now)
        keeper.retry(now, 1.0)
        assert [one.jid for one in command.leases] == ["a"]
    assert lease.lost == ""


@pytest.mark.full
def test_a_gap_in_the_keepers_attention_is_logged(caplog):
    keeper = Keeper()
    keeper.begin(0.0)
    keeper.include(12.0)
    # Until now it had promised to look less often.
    keeper.renew([held(lease=12.0)], 16.0)
    assert caplog.text == ""
    keeper.renew([held(lease=12.0)], 32.0)
    assert "16.0 s" in caplog.text


def entry(retries=None):
    return Registered("shop.job", lambda: None, "q", retries, code_backoff(2.0), 0, {})


def error():
    try:
        raise ValueError("mine")
    except ValueError as caught:
        return caught


@pytest.mark.full
def test_wishes_become_commands():
    assert granted(Retry(after=1.5), FACTS, b"") == RetryCommand("w", FACTS, 1500)
    assert granted(Failed("g", "m"), FACTS, b"{}") == Fail("w", FACTS, "g", "m", b"{}")
    assert granted(Moved("r", 2), FACTS, b"") == Advance("w", "r", FACTS, 2000)
    for absurd in (Retry(after=-1), Moved(""), Failed("a\nb"), Moved("r", float("inf"))):
        with pytest.raises(UsageError):
            granted(absurd, FACTS, b"")


def test_an_exception_is_retried_while_retries_are_left_and_given():
    retried = raised(FACTS, entry(retries=3), error())
    assert isinstance(retried, RetryCommand)
    assert (retried.delay_ms, retried.backoff, retried.group) == (
        OWN_BACKOFF,
        "fixed:2000:2000:0",
        "q-ValueError",
    )
    none_left = JobFacts("j1", "shop.Job", "q", token=7, worker="w", retries=3, remaining=0)
    for facts, function in ((none_left, entry(retries=3)), (FACTS, entry()), (FACTS, None)):
        ended = raised(facts, function, error())
        assert isinstance(ended, Fail)
        assert ended.group == "q-ValueError"


@pytest.mark.full
@pytest.mark.parametrize(
    "backoff", [lambda attempt, error: -1.0, lambda attempt, error: 1 / 0, lambda attempt: 1.0]
)
def test_a_backoff_that_is_wrong_does_not_cost_the_job(backoff, caplog):
    wrong = entry(retries=3)
    wrong.backoff = backoff
    retried = raised(FACTS, wrong, error())
    assert isinstance(retried, RetryCommand)
    assert (retried.delay_ms, retried.backoff) == (OWN_BACKOFF, "")
    assert "shop.job" in caplog.text


@pytest.mark.full
def test_messages_are_cut_in_the_middle_and_groups_at_the_end():
    assert cut("short") == "short"
    long = cut("a" * 20_000 + "z")
    assert len(long) <= LONGEST_TEXT + 20
    assert long.startswith("aaa")
    assert long.endswith("z")
    command = failed(JobFacts("j", "k", "q" * 199, worker="w"), "ValueError", "")
    assert isinstance(command, Fail)
    assert len(command.group.encode()) == 200
    assert 'raise ValueError("mine")' in describe(error())


@pytest.mark.full
def test_an_outage_is_said_once_and_waits_longer_and_longer(caplog):
    outage = Outage()
    waits = [outage.pause(ConnectionLost("away")) for _ in range(12)]
    assert waits[0] <= 0.1
    assert all(wait <= LONGEST for wait in waits)
    assert max(waits) > LONGEST / 2
    outage.over()
    outage.over()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"queues": ()}, "queue"),
        ({"queues": ("q", "q")}, "twice"),
        ({"queues": ("a\nb",)}, "queue"),
        ({"pool": "threads"}, "pool"),
        ({"workers": -1}, "workers"),
        ({"concurrency": 5}, "--workers"),
        ({"concurrency": 1000, "pool": "asyncio"}, "concurrency"),
        ({"interval": 0.0}, "interval"),
        ({"interval": float("nan")}, "interval"),
        ({"term_timeout": -1.0}, "term_timeout"),
        ({"max_jobs": -1}, "max_jobs"),
        ({"name": "x" * 200}, "name"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(settings, word):
    with pytest.raises(UsageError, match=word):
        WorkerSettings(**{"queues": ("q",), **settings}).checked()


@pytest.mark.full
def test_a_turn_says_what_ended_and_takes_what_can_start():
    from holdfast.client.sync import Client
    from holdfast.worker.session import ANY_QUEUE, StoreSession

    shard = Client("redis://nowhere").shard
    shard.met = True
    turns = StoreSession(shard, "w", Route(shard, ("a", "b")))

    def words(limit, woken=None):
        plan = turns.round_trip(limit, woken)
        call = next(plan).calls[0]
        plan.close()
        return call

    assert words(3)[1] == "hf1_pop"
    assert words(3)[-4:] == ("a", 1 + 4 * LEVEL, "b", 1 + 4 * LEVEL)
    assert words(3, "b")[-2:] == ("b", 2 + 4 * LEVEL)
    assert words(3, ANY_QUEUE)[-4:] == ("a", 2 + 4 * LEVEL, "b", 2 + 4 * LEVEL)
    with pytest.raises(StopIteration):
        next(turns.round_trip(0))  # nothing to say, and nothing to take
    turns.end(None)
    assert not turns.has_outcomes
    turns.end(Done("j1", 7))
    assert turns.has_outcomes
    assert words(1)[1] == "hf1_complete_pop"
    assert {Pop.verb, CompletePop.verb} == {"pop", "complete_pop"}


def test_the_calls_that_take_jobs_have_a_sequence_of_their_own():
    from holdfast.client.sync import Client
    from holdfast.worker.session import StoreSession

    shard = Client("redis://nowhere").shard
    shard.met = True
    session = StoreSession(shard, "w", Route(shard, ("q",)))
    for number in (1, 2):
        session.end(Fail("w", FACTS, "g", lines=("a line",)))
        plan = session.round_trip(1)
        report, *_, take = next(plan).calls
        plan.close()
        assert (report[1], take[1]) == ("hf1_report", "hf1_pop")
        assert take[5:7] == (session.sequence.name, number)
        assert report[4] != session.sequence.name


@pytest.mark.full
def test_a_run_that_took_all_its_time_is_lost_without_asking():
    keeper = Keeper()
    keeper.begin(0.0)
    limited, free = HeldLease("limited", 1, "w", 30.0, ends=12.0), held("free")
    [(command, batch)] = keeper.renew([limited, free], 10.0)
    assert [lease.jid for lease in command.leases] == ["limited", "free"]
    keeper.renewed(batch, [1, 1])
    keeper.include(90.0)
    assert keeper.due() == 12.0  # before the next heartbeat
    [(command, _)] = keeper.renew([limited, free], 12.0)
    assert [lease.jid for lease in command.leases] == ["free"]
    assert "timeout" in limited.lost
    assert keeper.due() > 12.0


@pytest.mark.full
def test_a_run_ends_by_the_limit_that_came_with_the_job():
    assert run_end(FACTS, 3.0) == float("inf")
    assert run_end(JobFacts("j", "K", "q", options={"limit": 2_500}), 3.0) == 5.5


@pytest.mark.full
def test_a_slate_passes_on_when_a_run_ends():
    lease_table = LeaseTable()
    lease_table.hold(0, "j", 1, 60_000, 1.0, 91.0)
    assert lease_table.read_all() == [Holding(0, "j", 1, 60.0, 1.0, 91.0)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "backoff", "shown"),
    [
        ({}, None, "after its backoff (1 s to 600 s): "),
        ({}, 3, "after its backoff (3 s): "),
        ({"backoff": "fixed:5000:5000:0"}, 3, "after its backoff (5 s): "),
        ({"backoff": "spoilt"}, 3, "after its backoff (3 s): "),
        ({}, lambda attempt, error: 7.0, "in 7 s: "),
    ],
)
def test_the_log_line_of_an_attempt_names_the_pause_before_the_next(options, backoff, shown, caplog):
    function = entry(retries=3)
    function.backoff = code_backoff(backoff)
    facts = JobFacts("j1", "shop.Job", "q", token=7, worker="w", retries=3, remaining=3, options=options)
    log_attempt(facts, raised(facts, function, error()), error())
    assert f"failed and is tried again {shown}ValueError: mine" in caplog.text
