"""Every verb of the native door, cut off before it was forwarded, before its answer, and in the middle of it.

The last answer is that of an undisturbed call, and the keys of the namespace are those after exactly one call.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import pytest
from cases import CASES, Case
from proxy import Action, Aim, Proxy
from twins import a_namespace, in_stopped_time, in_stopped_time_async, outcome, plain, say, state

from holdfast.commands import COMMANDS
from holdfast.commands.queues import QueueNames
from holdfast.errors import HoldfastError
from holdfast.testing.store import ScratchStore

CUTS: tuple[Action, ...] = ("cut-request", "cut-reply", "cut-middle")
Colour = Literal["sync", "async"]


class Trial:
    """One case cut off in one way, and its undisturbed twin."""

    def __init__(self, store: ScratchStore, proxy: Proxy, made: Case, cut: Action) -> None:
        self.name = f"{made.__name__}, {cut}"
        self._proxy, self._cut = proxy, cut
        self.disturbed = in_stopped_time(store.url, a_namespace())
        self._twin = in_stopped_time(store.url, a_namespace())
        self.command = made(self.disturbed)
        twin_command = made(self._twin)
        assert state(self.disturbed) == state(self._twin), "the twins had the same past"
        self._expected = outcome(lambda: self._twin.run(twin_command))

    def aim(self) -> Aim:
        return self._proxy.aim(self._cut, "hf1_" + self.command.verb, root=self.disturbed.root)

    def check(self, answer: Any) -> None:
        assert answer == self._expected, self.name
        for client in (self.disturbed, self._twin):
            go_on(client)
        assert state(self.disturbed) == state(self._twin), self.name
        self.disturbed.close()
        self._twin.close()


def go_on(client: Any) -> None:
    """Calls without an effect of their own, which do what others left for later: a repeat is such a call."""
    for _ in range(2):
        say(client, "FCALL", "hf1_priority", 1, client.root, 0, "nobody")


def blocking(trial: Trial, url: str) -> None:
    with in_stopped_time(url, trial.disturbed.settings.namespace) as client:
        client.run(QueueNames())
        aim = trial.aim()
        answer = outcome(lambda: client.run(trial.command))
        assert aim.hit.is_set(), trial.name
    trial.check(answer)


async def awaited(trial: Trial, url: str) -> None:
    client = in_stopped_time_async(url, trial.disturbed.settings.namespace)
    await client.run(QueueNames())
    aim = trial.aim()
    try:
        answer = plain(await client.run(trial.command))
    except HoldfastError as error:
        answer = plain(error)
    assert aim.hit.is_set(), trial.name
    await client.close()
    trial.check(answer)


def all_blocking(trials: list[Trial], url: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        for _ in pool.map(lambda trial: blocking(trial, url), trials):
            pass


def all_awaited(trials: list[Trial], url: str) -> None:
    async def together() -> None:
        await asyncio.gather(*(awaited(trial, url) for trial in trials))

    asyncio.run(together())


COLOURS: dict[Colour, Callable[[list[Trial], str], None]] = {"sync": all_blocking, "async": all_awaited}


@pytest.fixture(scope="module")
def proxies() -> Iterator[dict[str, Proxy]]:
    made: dict[str, Proxy] = {}
    yield made
    for proxy in made.values():
        proxy.__exit__()


def test_every_verb_has_a_case() -> None:
    assert set(CASES) == set(COMMANDS)


@pytest.mark.full
@pytest.mark.parametrize("colour", COLOURS)
@pytest.mark.parametrize("verb", sorted(COMMANDS))
def test_a_call_that_was_cut_off_happens_once_and_answers_as_if_nothing_had_been(
    verb: str, colour: Colour, engine_store: ScratchStore, proxies: dict[str, Proxy]
) -> None:
    if engine_store.url not in proxies:
        proxies[engine_store.url] = Proxy(engine_store.url).__enter__()
    proxy = proxies[engine_store.url]
    trials = [Trial(engine_store, proxy, made, cut) for made in CASES[verb] for cut in CUTS]
    COLOURS[colour](trials, proxy.url)
