"""How a forked process tells the one that forked it what became of its job."""

import pytest

from holdfast.commands.dependencies import CompleteX, FollowUp
from holdfast.commands.leases import Done, Lease
from holdfast.commands.options import ExtraOptions, JobWithOptions
from holdfast.commands.outcomes import Advance, Expire, Fail, Retry
from holdfast.errors import WorkError
from holdfast.models import JobFacts
from holdfast.worker.forking.solitary import read_outcome, write_outcome

FACTS = JobFacts("j1", "shop.Job", "q", token=7, worker="w")
FOLLOW = (
    FollowUp("r", JobWithOptions("shop.Next", b"[1]", "j2", ExtraOptions(("a",), keep_ms=5)), 3, 2, 100),
    FollowUp("r", JobWithOptions("X")),
)


def said(ending):
    """What the store will be told."""
    return list(ending.words()) if hasattr(ending, "words") else ending


@pytest.mark.parametrize(
    "ending",
    [
        None,
        Done("j1", 7, b'{"a":1}', 60_000, b"\xff not text"),
        Fail("w", FACTS, "q-ValueError", "it said …"),
        Retry("w", FACTS, 1500, "g", "m", b"{}"),
        Advance("w", "r", FACTS, 20),
        CompleteX("w", FACTS, b"{}", 5, b"1", "r", 10, ("j2",), FOLLOW),
        Expire([Lease("j1", 7, "w")]),
    ],
)
def test_every_ending_arrives_as_it_was(ending):
    told = read_outcome(write_outcome(ending), FACTS)
    assert type(told) is type(ending)
    assert said(told) == said(ending)


@pytest.mark.full
@pytest.mark.parametrize(
    "told",
    [b"", b"nonsense", write_outcome(Done("j1", 7))[:-3], b"\x92\xa4Evil\x80", b"\x92\xa4Done\x81\xa1x\x01"],
)
def test_nonsense_is_refused(told):
    with pytest.raises(WorkError, match="invalid outcome"):
        read_outcome(told, FACTS)
