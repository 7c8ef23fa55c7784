"""Endings: workers killed, frozen and told to end at any moment, in every pool (spec/workers.md 11 to 13).

No job is lost, none has two accepted ends, no process is left without its parent and no sandbox with something in it.
"""

import random
from itertools import islice
from pathlib import Path

import pytest
from crew import Crew
from endings import Endings, endings_of
from proxy import Proxy

from holdfast.testing.store import ScratchStore
from holdfast.worker.settings import POOLS
from waiting import LONGER

ROUNDS = 150 * LONGER


def end_again_and_again(
    store: ScratchStore, relay: Proxy, namespace: str, here: Path, pool: str, rounds: int
) -> Endings:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    dice = random.Random(seed)
    env = {"ERRANDS_HERE": str(here), "ERRANDS_LITTER": "1"}
    with Crew(here, store.url, namespace, env) as crew:
        endings = Endings(store.url, relay, crew, here, namespace, pool, seed)
        kinds = endings_of(pool)
        # Each kind in turn before any comes again.
        orders = (kind for _ in range(rounds) for kind in dice.sample(kinds, len(kinds)))
        for kind in islice(orders, rounds):
            endings.round(kind)
        assert endings.settle() == []
    print(dict(endings.harm), endings.redelivered, "redelivered")
    return endings


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio"])
def test_no_job_is_lost_or_ends_twice_in_a_few_endings(
    pool: str, store: ScratchStore, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    end_again_and_again(store, proxy, namespace, tmp_path, pool, 4)


@pytest.mark.full
@pytest.mark.parametrize("pool", POOLS)
def test_no_job_is_lost_or_ends_twice_in_hundreds_of_endings(
    pool: str, store: ScratchStore, proxy: Proxy, namespace: str, tmp_path: Path
) -> None:
    endings = end_again_and_again(store, proxy, namespace, tmp_path, pool, ROUNDS // len(POOLS))
    assert endings.redelivered >= ROUNDS // len(POOLS) // 10, "it has not hurt"
