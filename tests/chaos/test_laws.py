"""The checker itself: it accepts good histories, and bites at a bad one for each law."""

import pytest
from laws import History, Line, Said, Told, broken

PUT = Line("put", 100)


def popped(when: int, token: int, worker: str = "ann") -> Line:
    return Line("popped", when, token, worker)


def done(when: int, token: int, worker: str = "ann") -> Line:
    return Line("done", when, token, worker)


def lost(when: int, token: int, worker: str = "ann") -> Line:
    return Line("timed-out", when, token, worker)


def one_job(*lines: Line, state: str = "complete", said: str = "ok", delay_ms: int = 0) -> History:
    return History([Said("j", said, delay_ms)], {"j": Told(state, list(lines))}, [])


GOOD = {
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
    "unknown and not there": History([Said("j", "unknown")]),
}

BAD = {
    "L1": History([Said("j")]),
    "L2": one_job(PUT, PUT, popped(110, 1), done(120, 1), said="unknown"),
    "L3": History([], {"j": Told("complete", [PUT, popped(110, 1), done(120, 1)])}),
    "L4": one_job(PUT, popped(110, 1), popped(120, 2, "bob"), done(130, 2, "bob")),
    "L5": one_job(PUT, popped(110, 7), lost(200, 7), popped(210, 7, "bob"), done(230, 7, "bob")),
    "L6": one_job(PUT, popped(110, 1), lost(200, 1), popped(210, 2, "bob"), done(220, 1)),
    "L7": one_job(PUT, popped(110, 1), done(120, 1), done(130, 1)),
    "L11": one_job(PUT, popped(500, 1), done(620, 1), delay_ms=500),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_breaks_no_law(name: str) -> None:
    assert broken(GOOD[name]) == []


@pytest.mark.parametrize("law", BAD)
def test_a_bad_history_breaks_its_law(law: str) -> None:
    assert law in [sentence.split()[0] for sentence in broken(BAD[law])]


def test_a_job_that_never_ended_breaks_the_law_of_one_end() -> None:
    [sentence] = broken(one_job(PUT, popped(110, 1), lost(200, 1), state="running"))
    assert sentence.startswith("L7")


def test_an_execution_under_a_token_nobody_was_given_breaks_the_law_of_stale_hands() -> None:
    past = one_job(PUT, popped(110, 1), done(120, 1))
    past.begun.append(("j", 9))
    assert [sentence.split()[0] for sentence in broken(past)] == ["L6"]
