"""Workers killed, frozen and stopped under load, over a store that is killed and comes back."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from crew import Crew
from fire import Fire

from holdfast.testing.store import ScratchStore

POOLS = ("process", "asyncio")


@pytest.fixture
def kept_store() -> Iterator[ScratchStore]:
    """A store of this test's own, whose log is flushed before it answers."""
    with ScratchStore("valkey", "fsync") as running:
        yield running


def burn(store: ScratchStore, namespace: str, here: Path, pool: str, plan: list[str]) -> bool:
    """Check the laws over a fire. Answers whether it hurt: a run that did not has proved nothing."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    here.mkdir(exist_ok=True)
    with Crew(here, store.url, namespace, {"ERRANDS_HERE": str(here)}) as crew:
        fire = Fire(store, crew, here, namespace, pool, seed)
        fire.begin(2)
        for harm in plan:
            fire.hurt(harm)
        outcome = fire.settle()
    print(outcome, dict(fire.harm))
    assert outcome.broken == []
    kills = sum(fire.harm[what] for what in ("kill_child", "kill_parent", "kill_both"))
    return (
        outcome.redelivered >= max(kills / 2, 1)
        and outcome.refused >= fire.harm["freeze"]
        and outcome.outcomes["unknown"] >= fire.harm["kill_store"]
        and outcome.states["failed"] > 0
    )


@pytest.mark.full
@pytest.mark.parametrize("pool", POOLS)
def test_no_job_is_lost_or_ends_twice_in_a_short_fire(
    pool: str, kept_store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    plan = ["kill_child", "freeze", "kill_store", "kill_both"]
    fires = (burn(kept_store, f"{namespace}-{n}", tmp_path / str(n), pool, plan) for n in range(3))
    assert any(fires), "none of three fires has hurt"


@pytest.mark.full
@pytest.mark.parametrize("pool", [*POOLS, "thread", "gevent"])
def test_no_job_is_lost_or_ends_twice_in_a_long_fire(
    pool: str, kept_store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    plan = [
        *["kill_child"] * 7,
        *["kill_parent"] * 5,
        *["kill_both"] * 7,
        *["freeze"] * 10,
        *["stop_politely"] * 4,
        *["kill_store"] * 8,
    ]
    random.shuffle(plan)
    assert burn(kept_store, namespace, tmp_path, pool, plan), "it has not hurt"
