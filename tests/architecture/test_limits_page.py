"""The page of all limits says what the code does."""

import re

import pytest
from source_tree import LUA, ROOT

from holdfast import bounds, codecs, settings
from holdfast.client.jobs import attributes, dependencies
from holdfast.code import failure
from holdfast.commands import options, outcomes
from holdfast.console import filters
from holdfast.models import layout
from holdfast.worker import settings as worker_checks
from holdfast.worker.queues import route

PAGE = (ROOT / "docs" / "reference" / "limits.md").read_text()
ROWS = {
    "names of queues": bounds.most(bounds.Name),
    "`priority`": bounds.limits(bounds.Priority)[1],
    "`retries`": bounds.limits(bounds.Retries)[1],
    "`max_losses`": bounds.limits(bounds.Losses)[1],
    "`tags`": bounds.most(bounds.TagNames),
    "`throttles`": bounds.most(bounds.ThrottleNames),
    "`depends`": bounds.most(bounds.ParentJids),
    "follow-ups": settings.MAX_BATCH,
    "puts kept back": options.MAX_WEIGHT // 2,
    "jobs that a job waits for": dependencies.MAX_FOLLOWED,
    "data of one job": codecs.MAX_DATA_CAP >> 20,
    "depth of JSON": codecs.MAX_DEPTH,
    "data of one log line": attributes.MAX_LINE_DATA,
    "message of a failure": failure.LONGEST,
    "jobs of one call": settings.MAX_BATCH,
    "jobs with tags": options.MAX_WEIGHT,
    "jobs of one page": bounds.limits(bounds.Count)[1],
    "a search filter": filters.MAX_LENGTH,
    "lease (": settings.DEFAULT_HEARTBEAT,
    "slots of one process": worker_checks.MOST_SLOTS,
    "queues given by name": route.MOST_QUEUES_IN_A_POP,
}


@pytest.mark.parametrize(("row", "limit"), ROWS.items())
def test_the_page_of_limits_has_the_number_of_the_code(row: str, limit: int) -> None:
    [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {row}")]
    assert re.search(rf"(?<![\d,]){limit:,}(?![\d,])", line)


def test_the_sentences_about_the_default_backoff_have_its_numbers() -> None:
    kind, first, longest, jitter = bounds.DEFAULT_BACKOFF
    spread = " with jitter" if jitter else ""
    functions = (ROOT / "docs" / "guide" / "functions.md").read_text()
    assert (
        f"| {kind} from {first / 1000:g} s, at most {longest / 1000:g} s,{spread} |\n"
        in PAGE.partition("\n| backoff between attempts | ")[2]
    )
    pauses = ", ".join(f"{first * 2**n / 1000:g}" for n in range(3))
    assert f"\n| `backoff` | {pauses} … s{spread} |" in functions
    assert f"{first / 1000:g} s, then twice as long each time, up to {longest / 60_000:g} minutes" in str(
        outcomes.Retry.__doc__
    )


def test_the_core_has_the_bounds_of_the_code() -> None:
    """`make docs` writes the file."""
    assert (LUA / "base" / "bounds.lua").read_text() == bounds.in_lua()


def test_the_core_packs_jobs_in_the_layout_that_searches_read() -> None:
    """`make docs` writes this file, too."""
    assert (LUA / "base" / "layout.lua").read_text() == layout.in_lua()
