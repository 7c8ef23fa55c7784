"""The stand-in answers as the released package does, label by label, but where a decision says otherwise."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from transcripts import transcript

from holdfast.compat import reqless
from holdfast.testing import ScratchStore

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "reqless"))
sys.path.append(str(HERE.parent / "reqless" / "real"))

DIFFERENT: dict[str, str] = {
    "complete later, without a queue": "it raises instead of dropping what it was asked for (trap 5)",
    "no retries": "0 is honoured instead of being taken for 5 (9.2)",
    "complete twice": "a call said twice, as after a lost answer, is one",
    "a gone job is moved": "a cancelled job is not made again by moving it (trap 13)",
    "data that is no text": "any JSON value is taken (4.3)",
    "tags of a template": "a list, as of any other job, instead of JSON text (12)",
    "default heartbeat": "a lease is 30 s, and the grace period 5 s, unless set",
    "a popped job": "likewise",
    "a setting": "likewise",
    "their values": "likewise",
    "statistics": "runs that are repeated and lost leases have names of their own, `retried` and `lost`, besides",
    "a setting that is text": "the text, instead of an error of decoding (8)",
}
"""What differs, and why."""


@pytest.fixture(scope="module")
def released(store: ScratchStore) -> dict[str, Any]:
    """What a process with the released package wrote down."""
    from packages import environment
    from reference import PACKAGE

    found = environment(PACKAGE)
    if found is None:
        pytest.skip(f"LOUD SKIP: {PACKAGE} cannot be fetched, so the stand-in was compared with nothing")
    words = [sys.executable, str(HERE / "transcripts.py"), f"{store.url}?db=6"]
    done = subprocess.run(words, env=found, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def is_as_before(before: Any, now: Any) -> bool:
    """The same answer, or an error that is caught as the one before was."""
    if before[0] == now[0] == "raised":
        return set(before[1]) <= set(now[1])
    return bool(before == now)


def test_the_stand_in_answers_as_the_released_package(
    released: dict[str, Any], url: str, namespace: str
) -> None:
    first, second = (reqless.Client(url, hostname=name, namespace=namespace) for name in ("box", "other"))
    with first, second:
        ours = transcript(reqless, first, second)
    assert list(ours) == list(released)
    differing = {
        label: (released[label], ours[label])
        for label in ours
        if not is_as_before(released[label], ours[label])
    }
    assert {label: found for label, found in differing.items() if label not in DIFFERENT} == {}
    assert set(DIFFERENT) - set(differing) == set()
