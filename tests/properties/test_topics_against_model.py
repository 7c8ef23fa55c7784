"""Topics and a plain-Python model get the same calls in random orders, each sent twice, and must never differ."""

from random import Random
from typing import Any

import pytest
from model_topics import IDS, TOPICS, Topics, a_call

from holdfast.testing.clock import StoppedClock
from native_door import Door


def shown(door: Door) -> dict[str, dict[str, tuple[str, int, bytes]]]:
    """All that the core tells of all topics."""
    found: dict[str, dict[str, tuple[str, int, bytes]]] = {}
    for topic in TOPICS:
        rows = door.look("topic_get", topic, *IDS)
        found[topic] = {
            id: (row[0].decode(), row[1], row[2])
            for id, row in zip(IDS, rows, strict=True)
            if row is not None
        }
    return found


def meant(model: Topics) -> dict[str, dict[str, tuple[str, int, bytes]]]:
    return {
        topic: {id: (one.place, one.when, one.body) for id, one in kept.items()}
        for topic, kept in model.kept.items()
    }


def check_laws(door: Door, model: Topics) -> None:
    """What holds of the keys after every call: nothing twice, nothing without a body, nothing left behind."""
    for topic, kept in model.kept.items():
        places = {"tb:": len(kept), "tq:": 0, "tr:": 0}
        for one in kept.values():
            places["tq:" if one.place == "queued" else "tr:"] += 1
        found = {
            letters: door.ask("HLEN" if letters == "tb:" else "ZCARD", door.key(letters + topic))
            for letters in places
        }
        assert found == places
        if not kept:
            assert door.ask("EXISTS", door.key("tn:" + topic)) == 0
    known = [row[0].decode() for row in door.look("topic_counts", *TOPICS) if row[1] + row[3]]
    assert sorted(name.decode() for name in door.ask("ZRANGE", door.key("tt"), 0, -1)) == known


@pytest.mark.parametrize("seed", range(6))
def test_topics_do_what_the_model_does(seed: int, clock: StoppedClock) -> None:
    clock.advance(seconds=0)
    door = Door(clock._client)
    chance = Random(seed)
    model = Topics(clock.now_ms)
    said: list[Any] = []
    for number in range(1, 251):
        if chance.random() < 0.4:
            clock.advance(seconds=chance.choice([0.001, 0.2, 0.9]))
            model.now = clock.now_ms
        verb, words = a_call(chance, model)
        expected = getattr(model, verb)(*words)
        replies = [door(verb, "line", number, *words) for _ in range(2)]
        said.append((verb, words))
        assert replies == [expected, expected], said[-5:]
        assert shown(door) == meant(model), said[-5:]
        check_laws(door, model)
