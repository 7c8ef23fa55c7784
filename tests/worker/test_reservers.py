"""workers.md 7: which queue next; the sequences of the page, popped by hand and by real workers of every pool."""

from collections import Counter
from pathlib import Path

import pytest
from worker_kit import until

from holdfast import UsageError
from holdfast.commands.leases import Popped
from holdfast.wire.shards import Shard
from holdfast.worker.queues.reserving import Delegating, Ordered, RoundRobin, ShuffledRoundRobin
from holdfast.worker.queues.route import Route
from holdfast.workers import SerialWorker

SIZES = {"A": 5, "B": 2, "C": 3}
ORDERED = ["C", "C", "C", "B", "B", "A", "A", "A", "A", "A"]
IN_TURNS = ["C", "B", "A", "C", "B", "A", "C", "A", "A", "A"]

SAYS = """
import chores

class Say:
    @staticmethod
    def perform(job):
        chores.note(f"say {job.queue_name}")

class Hold:
    @staticmethod
    async def perform(job):
        chores.note(f"hold {job.queue_name}")
        await chores.await_for("gate")
"""


def fill(client):
    for name, size in SIZES.items():
        for _ in range(size):
            client.queues[name].put("says.Say", {})


def taken(reserver):
    names = []
    while (job := reserver.reserve()) is not None:
        names.append(job.queue_name)
    return names


@pytest.mark.full
@pytest.mark.parametrize(("kind", "sequence"), [(Ordered, ORDERED), (RoundRobin, IN_TURNS)])
def test_a_reserver_takes_the_jobs_of_the_page_in_the_order_of_the_page(client, kind, sequence):
    fill(client)
    reserver = kind([client.queues[name] for name in "CBA"])
    assert taken(reserver) == sequence
    assert reserver.reserve() is None
    assert [queue.name for queue in reserver.queues] == ["C", "B", "A"]


@pytest.mark.full
def test_a_reserver_of_ones_own_may_put_another_reserve_or_another_order_in_place(shop, monkeypatch):
    class Choosy(Ordered):
        def reserve(self):
            chosen.append(super().reserve())
            return chosen[-1]

    class Backwards(Ordered):
        def reserve(self):
            raise AssertionError("its order is newer")

    class Upside(Backwards):
        def order(self, known):
            return tuple(known)[::-1]

    chosen = []
    monkeypatch.chdir(shop.here)
    queues = [shop.client.queues[name] for name in ("r", "q")]
    for reserver in (Choosy(queues), Delegating([Choosy(queues)]), Upside(queues)):
        handle = shop.chores.add.put(1, 2)
        SerialWorker(reserver, drain=True).run()
        assert handle.result(30) == 3
    assert [job and job.queue_name for job in chosen] == ["q", None, "q", None]


def test_descriptions_name_the_queues_and_the_rule():
    names = ["a", "b", "c"]
    assert Ordered(names).description == "a, b, c (ordered)"
    assert RoundRobin(names).description == "a, b, c (round robin)"
    assert ShuffledRoundRobin(names).description.endswith(" (shuffled round robin)")
    assert Delegating([Ordered(names)]).description == "Delegating Reserver"


@pytest.mark.full
def test_round_robin_goes_on_after_the_queue_that_was_tried_last(client):
    reserver = RoundRobin([client.queues[name] for name in "ABC"])
    client.queues["B"].put("K", {})
    assert taken(reserver) == ["B"]  # and then a full circle, which ends at B again
    for name in "ABC":
        client.queues[name].put("K", {})
    assert taken(reserver) == ["C", "A", "B"]


@pytest.mark.full
def test_a_queue_behind_an_empty_one_does_not_get_two_turns():
    reserver, left = RoundRobin(["a", "b", "c"]), Counter(a=90, c=90)
    taken = []
    for _ in range(60):
        name = next(name for name in reserver.order(("a", "b", "c")) if left[name])
        left[name] -= 1
        reserver.took(name)
        taken.append(name)
    assert Counter(taken) == {"a": 30, "c": 30}


@pytest.mark.full
def test_a_circle_goes_on_where_it_was_when_queues_come_and_go():
    reserver = RoundRobin(["a"])
    reserver.took("b")
    assert list(reserver.order(("a", "b", "c"))) == ["c", "a", "b"]
    assert list(reserver.order(("a", "c", "d"))) == ["d", "a", "c"]
    assert list(reserver.order(())) == []


@pytest.mark.full
def test_a_shuffled_circle_is_a_copy_that_each_process_shuffles_anew():
    names = [f"q{number}" for number in range(40)]
    given = list(names)
    reserver = ShuffledRoundRobin(given)
    first, told = list(reserver.order(tuple(names))), reserver.description
    assert given == names
    assert sorted(first) == sorted(names)
    assert first != names
    assert list(reserver.order(tuple(names))) == first
    assert told == f"{', '.join(first)} (shuffled round robin)"
    reserver.prep_for_work()
    assert list(reserver.order(tuple(names))) != first
    assert reserver.description != told


@pytest.mark.full
def test_delegating_asks_one_after_the_other_and_its_queues_are_the_union(client):
    fill(client)
    a, b, c = (client.queues[name] for name in "ABC")
    reserver = Delegating([Ordered([b]), RoundRobin([c, a]), Ordered([b, a])])
    assert [queue.name for queue in reserver.queues] == ["B", "C", "A"]
    assert taken(reserver) == ["B", "B", "C", "A", "C", "A", "C", "A", "A", "A"]
    assert list(reserver.order(("B", "C", "A"))) == ["B", "C", "A"]
    reserver.took("C")
    assert list(reserver.order(("B", "C", "A"))) == ["B", "A", "C"]


@pytest.mark.full
def test_queues_that_are_no_list_are_gone_through_each_time(client):
    class Growing:
        names = ["A"]

        def __iter__(self):
            return iter([client.queues[name] for name in self.names])

    fill(client)
    reserver = Ordered(Growing())
    assert reserver.reserve().queue_name == "A"
    Growing.names = ["C", "A"]
    assert reserver.reserve().queue_name == "C"
    assert reserver.description == "C, A (ordered)"


@pytest.mark.full
def test_what_is_no_reserver_and_no_queue_is_refused():
    with pytest.raises(UsageError, match="queues must be a list"):
        Ordered("a")
    with pytest.raises(UsageError, match="no reserver: it has no order or reserve"):
        Delegating([object()])
    with pytest.raises(UsageError, match=r"not their names"):
        Ordered(["a"]).reserve()


@pytest.fixture
def shop(shop):
    Path(shop.here, "says.py").write_text(SAYS)
    fill(shop.client)
    return shop


def said(shop):
    return [line.partition(" ")[2] for line in shop.notes("say")]


@pytest.mark.full
@pytest.mark.parametrize(("kind", "sequence"), [("ordered", ORDERED), ("round-robin", IN_TURNS)])
def test_a_worker_with_one_seat_takes_jobs_in_the_order_of_the_page(shop, kind, sequence):
    queues = [word for name in "CBA" for word in ("-q", name)]
    worker = shop.start("serial", *queues, "--reserver", kind, "--drain")
    assert worker.wait(30) == 0
    assert said(shop) == sequence


@pytest.mark.full
def test_a_worker_of_every_pool_serves_its_queues_in_turns(shop, pool):
    queues = [word for name in "CBA" for word in ("-q", name)]
    worker = shop.start(pool, *queues, "--reserver", "shuffled-round-robin", "--drain")
    assert worker.wait(30) == 0
    assert Counter(said(shop)) == SIZES


@pytest.mark.full
def test_many_seats_are_shared_among_queues_that_take_turns():
    shard = Shard.__new__(Shard)
    names = ("a", "b", "c")
    route = Route(shard, names, reserver=RoundRobin(names), slots=100)
    left, got = Counter(dict.fromkeys(names, 1000)), Counter()
    free = 100
    while free:
        asked = route.share(free)
        queue = route.order()[0]
        left[queue] -= asked
        got[queue] += asked
        jobs = route.after(Popped([_Facts(queue)] * asked), asked, free)
        free -= asked
        assert (jobs.due == 0.0) == bool(free)
    assert max(got.values()) - min(got.values()) <= 2


class _Facts:
    def __init__(self, queue):
        self.queue = queue


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio", "thread"])
def test_an_idle_worker_with_turns_is_woken_by_each_of_its_queues(shop, pool):
    queues = [word for name in "CBA" for word in ("-q", name)]
    shop.start(pool, *queues, "--reserver", "round-robin", "--interval", "60")
    until(lambda: len(said(shop)) == 10, "all is done")
    for number, name in enumerate("ABC", 11):
        shop.client.queues[name].put("says.Say", {})
        until(lambda number=number: len(said(shop)) == number, f"{name} rang")


@pytest.mark.full
@pytest.mark.parametrize("pool", ["asyncio", "thread"])
def test_seats_of_one_process_are_shared_by_queues_that_take_turns(shop, pool):
    names = ["D", "E", "F"]
    for name in names:
        shop.client.queues[name].put_many([("says.Hold", {})] * 9)
    queues = [word for name in names for word in ("-q", name)]
    shop.start(pool, *queues, "--reserver", "round-robin", "--concurrency", "9")
    until(lambda: len(shop.notes("hold")) == 9, "all seats are taken")
    assert Counter(shop.notes("hold")) == {f"hold {name}": 3 for name in names}
    shop.open()
    until(lambda: len(shop.notes("hold")) == 27, "all are done")
