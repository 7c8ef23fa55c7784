"""How much a worker logs: VVERBOSE more than VERBOSE."""

import pytest
from worker_kit import until


@pytest.mark.parametrize(("variable", "is_all"), [("VERBOSE", False), ("VVERBOSE", True)])
def test_vverbose_tells_of_sleeping_and_verbose_does_not(shop, monkeypatch, variable, is_all):
    monkeypatch.setenv(variable, "1")
    worker = shop.start("process")
    assert shop.chores.add.put(1).result(30) == 2
    until(lambda: "is complete" in worker.said(), "the job is told of")
    if is_all:
        until(lambda: "the worker sleeps until it is woken" in worker.said(), "it sleeps")
    worker.process.terminate()
    assert worker.wait() == 0
    assert ("[DEBUG]" in worker.said()) == is_all
