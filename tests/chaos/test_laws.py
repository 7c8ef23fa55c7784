"""The checker itself: it accepts good histories, and bites at a bad one for each law."""

import pytest
from laws import Harm, History, Line, StoreMessage, Told, broken

PUT = Line("put", 100)


def popped(when: int, token: int, worker: str = "ann") -> Line:
    return Line("popped", when, token, worker)


def done(when: int, token: int, worker: str = "ann") -> Line:
    return Line("done", when, token, worker)


def lost(when: int, token: int, worker: str = "ann") -> Line:
    return Line("timed-out", when, token, worker)


def one_job(*lines: Line, state: str = "complete", said: str = "ok", delay_ms: int = 0) -> History:
    return History([StoreMessage("j", said, delay_ms)], {"j": Told(state, list(lines))}, [])


def whole(*whens: int) -> Told:
    """A job that was put, granted and done at these moments."""
    put, granted, end = whens
    return Told("complete", [Line("put", put), popped(granted, granted), done(end, granted)])


def under_a_throttle(second: int) -> History:
    """Two jobs under a throttle of one slot; the first runs from 110 to 120."""
    puts = [StoreMessage("a", throttle="db"), StoreMessage("b", throttle="db")]
    return History(puts, {"a": whole(100, 110, 120), "b": whole(100, second, 300)}, limits={"db": 1})


def family(granted: int, *states: str) -> History:
    """A child and its parent, which is done at 120 or fails."""
    parent = whole(100, 110, 120)
    if states:
        parent = Told("failed", [PUT, popped(110, 1), Line("failed", 120, 1, "ann")])
    child = Told("depends", [PUT]) if states == ("depends",) else whole(100, granted, 300)
    return History([StoreMessage("p"), StoreMessage("c", parents=("p",))], {"p": parent, "c": child})


def turns(*moments: int) -> History:
    """Jobs that recur every 50 ms."""
    jobs = {f"r-{n}": whole(at, at + 500, at + 510) for n, at in enumerate(moments, 1)}
    return History([], jobs, templates={"r": 50})


def a_lost_lease(*harms: Harm) -> History:
    """A job that loses the lease it had from 110 to 200, while this was done to workers."""
    past = one_job(
        PUT, popped(110, 1, "ann-0"), lost(200, 1, "ann-0"), popped(210, 2, "bob"), done(230, 2, "bob")
    )
    past.harms = list(harms)
    return past


GOOD = {
    "lost by a worker that is frozen": a_lost_lease(Harm("ann", 150, 250)),
    "lost by a child that was killed": a_lost_lease(Harm("ann-0", 150, 160)),
    "lost while the store is away": a_lost_lease(Harm("", 80, 120)),
    "lost by one that was ended before": a_lost_lease(Harm("ann", 90)),
    "one slot after the other": under_a_throttle(120),
    "a child after its parent": family(120),
    "a child of one that failed": family(0, "depends"),
    "what recurs": turns(100, 150, 200),
    "plain": one_job(PUT, popped(110, 1), done(120, 1)),
    "delayed": one_job(PUT, popped(600, 1), done(620, 1), delay_ms=500),
    "lost and granted again": one_job(
        PUT, popped(110, 1), lost(200, 1), popped(210, 2, "bob"), done(230, 2, "bob")
    ),
    "noticed and completed after all": one_job(PUT, popped(110, 1), lost(200, 1), done(230, 1)),
    "retried, then failed": one_job(
        PUT,
        popped(110, 1),
        Line("retried", 120, 1, "ann"),
        popped(130, 2),
        Line("failed", 140, 2, "ann"),
        state="failed",
    ),
    "failed by its lost leases": one_job(
        PUT, popped(110, 1), lost(200, 1), Line("failed", 300), state="failed"
    ),
    "unknown and there": one_job(PUT, popped(110, 1), done(120, 1), said="unknown"),
    "unknown and not there": History([StoreMessage("j", "unknown")]),
}

BAD = {
    "L1": History([StoreMessage("j")]),
    "L2": one_job(PUT, PUT, popped(110, 1), done(120, 1), said="unknown"),
    "L3": History([], {"j": Told("complete", [PUT, popped(110, 1), done(120, 1)])}),
    "L4": one_job(PUT, popped(110, 1), popped(120, 2, "bob"), done(130, 2, "bob")),
    "L5": one_job(PUT, popped(110, 7), lost(200, 7), popped(210, 7, "bob"), done(230, 7, "bob")),
    "L6": one_job(PUT, popped(110, 1), lost(200, 1), popped(210, 2, "bob"), done(220, 1)),
    "L7": one_job(PUT, popped(110, 1), done(120, 1), done(130, 1)),
    "L8": under_a_throttle(115),
    "L9": family(119),
    "L13": turns(100, 150, 150),
    "L18": a_lost_lease(Harm("ann", 50, 100), Harm("ann", 201), Harm("bob", 100), Harm("an", 100)),
    "L11": one_job(PUT, popped(500, 1), done(620, 1), delay_ms=500),
}


@pytest.mark.full
@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_breaks_no_law(name: str) -> None:
    assert broken(GOOD[name]) == []


@pytest.mark.full
@pytest.mark.parametrize("law", BAD)
def test_a_bad_history_breaks_its_law(law: str) -> None:
    assert law in [sentence.split()[0] for sentence in broken(BAD[law])]


def test_a_job_that_never_ended_breaks_the_law_of_one_end() -> None:
    [sentence] = broken(one_job(PUT, popped(110, 1), lost(200, 1), state="running"))
    assert sentence.startswith("L7")


@pytest.mark.full
def test_an_execution_under_a_token_nobody_was_given_breaks_the_law_of_stale_hands() -> None:
    past = one_job(PUT, popped(110, 1), done(120, 1))
    past.begun.append(("j", 9))
    assert [sentence.split()[0] for sentence in broken(past)] == ["L6"]


@pytest.mark.full
def test_a_child_of_one_that_failed_must_not_be_granted() -> None:
    assert [sentence.split()[0] for sentence in broken(family(130, "granted"))] == ["L9"]


@pytest.mark.full
def test_an_occurrence_that_is_left_out_breaks_the_law_of_recurrences() -> None:
    assert "L13" in [sentence.split()[0] for sentence in broken(turns(100, 200))]


@pytest.mark.full
def test_a_slot_is_held_over_a_lost_lease() -> None:
    past = under_a_throttle(210)
    lines = [PUT, popped(110, 1), lost(200, 1), popped(220, 2, "bob"), done(230, 2, "bob")]
    past.jobs["a"] = Told("complete", lines)
    assert "L8" in [sentence.split()[0] for sentence in broken(past)]
