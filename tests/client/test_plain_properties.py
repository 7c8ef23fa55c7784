"""python-api 1: plain properties; attribute access is never item access."""

import inspect
from pathlib import Path

import pytest

import holdfast

NAMED = (
    "config",
    "jobs",
    "queues",
    "queue_patterns",
    "recurring",
    "throttles",
    "topics",
    "workers",
    "events",
)


@pytest.mark.parametrize("name", NAMED)
def test_an_unknown_attribute_is_an_attribute_error(do, name):
    for thing in (do.client, getattr(do.client, name)):
        with pytest.raises(AttributeError, match="mail"):
            thing.mail  # noqa: B018


def test_an_unknown_attribute_of_a_queue_or_a_job_is_an_attribute_error(do):
    queue = do.client.queues["q"]
    do(lambda: queue.put("K"))
    for thing in (queue, do(queue.peek), queue.throttle):
        with pytest.raises(AttributeError, match="mail"):
            thing.mail  # noqa: B018


def test_the_package_ships_its_types():
    assert (Path(inspect.getfile(holdfast)).parent / "py.typed").exists()
