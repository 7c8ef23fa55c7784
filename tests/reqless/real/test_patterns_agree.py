"""Our resolvers choose and order queues as the released package does, but where its own answer is a mistake."""

import json
import random
import subprocess
import sys
from typing import Any

import pytest
from packages import HERE, environment
from reference import PACKAGE

from holdfast.client.queue_names import prioritize_queues, resolve_queue_names
from holdfast.queue_resolvers import QueuePriorityPattern

NAMES = ["a", "b", "ab", "abc", "ba", "c", "x-a", "x-b"]
STARS = ["*", "a*", "*b", "x-*", "*a*", "a*c"]
KEYS = ["@k", "@l", "@none", "@"]
CASES = 3000


def some(choose: random.Random, given: list[str], most: int) -> list[str]:
    return [choose.choice(["", "", "!"]) + choose.choice(given) for _ in range(choose.randrange(most))]


@pytest.fixture(scope="module")
def cases() -> dict[str, Any]:
    """Known queues in any order. All plain names are known: this package forgets that others can be taken away."""
    choose = random.Random(17)
    resolve = [
        (
            {key: some(choose, NAMES + STARS, 4) for key in ("k", "l", "default")},
            choose.sample(NAMES, len(NAMES)),
            some(choose, NAMES + STARS + KEYS, 6),
        )
        for _ in range(CASES)
    ]
    order = [
        (
            choose.sample(NAMES, choose.randrange(len(NAMES) + 1)),
            [
                choose.choice([["default"], some(choose, NAMES + STARS, 4)])
                for _ in range(choose.randrange(5))
            ],
        )
        for _ in range(CASES)
    ]
    return {"resolve": resolve, "order": order}


@pytest.fixture(scope="module")
def theirs(cases: dict[str, Any]) -> dict[str, Any]:
    found = environment(PACKAGE)
    if found is None:
        pytest.skip(f"LOUD SKIP: {PACKAGE} cannot be fetched, so its resolvers were not asked")
    done = subprocess.run(
        [sys.executable, str(HERE / "pattern_asker.py")],
        input=json.dumps(cases),
        env=found,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_the_same_queues_are_meant(cases, theirs):
    """Where a queue is taken away that is not there, the package fails, and ours goes on."""
    answered = 0
    for case, found in zip(cases["resolve"], theirs["resolved"], strict=True):
        if found is not None:
            assert resolve_queue_names(*case) == found, case
            answered += 1
    assert answered > CASES / 3


@pytest.mark.full
def test_they_come_in_the_same_order(cases, theirs):
    for (queues, rules), found in zip(cases["order"], theirs["ordered"], strict=True):
        given = [QueuePriorityPattern(patterns) for patterns in rules]
        assert prioritize_queues(queues, given) == found, (queues, rules)
