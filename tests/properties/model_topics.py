"""What topics mean, in plain Python: the same verbs on dictionaries, and moves chosen by chance."""

from dataclasses import dataclass
from random import Random
from typing import Any

Words = tuple[Any, ...]
IDS = [f"m{number}" for number in range(6)]
TOPICS = ["t", "u"]


@dataclass
class Kept:
    """A message: where it is, until when, and its body."""

    place: str
    when: int
    body: bytes


class Topics:
    """The messages of all topics, by name and id."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.kept: dict[str, dict[str, Kept]] = {name: {} for name in TOPICS}

    def ordered(self, topic: str, place: str, upto: float) -> list[str]:
        """Ids at a place whose time has come by then, as the store orders them."""
        some = self.kept[topic].items()
        return [
            id
            for _, id in sorted((one.when, id) for id, one in some if one.place == place and one.when <= upto)
        ]

    def due(self, topic: str, place: str) -> int:
        """The ms until the first of a place is due, -1 for never."""
        times = [one.when for one in self.kept[topic].values() if one.place == place]
        return max(0, min(times) - self.now) if times else -1

    def moment(self, how: str, when: int) -> int:
        return self.now + when if how == "in" else when

    def topic_put(self, topic: str, how: str, *messages: Any) -> list[int]:
        added = []
        for at in range(0, len(messages), 3):
            id, when, body = messages[at : at + 3]
            new = id not in self.kept[topic]
            if new:
                self.kept[topic][id] = Kept("queued", self.moment(how, when), body)
            added.append(int(new))
        return added

    def topic_reserve(self, topic: str, mode: int, limit: int, upto: Any, ttr: int) -> list[Any]:
        upto = self.now if upto == "" else upto
        reply: list[Any] = []
        for id in self.ordered(topic, "queued", upto)[:limit]:
            one = self.kept[topic][id]
            one.place, one.when = "reserved", upto + ttr
            reply += [id.encode(), one.when, one.body]
        return [self.due(topic, "queued"), *reply]

    def topic_pull(self, topic: str, limit: int, upto: Any) -> list[Any]:
        reply: list[Any] = []
        for id in self.ordered(topic, "queued", self.now if upto == "" else upto)[:limit]:
            reply += [id.encode(), self.kept[topic].pop(id).body]
        return reply

    def topic_release(self, topic: str, how: str, when: Any, *held: Any) -> list[int]:
        released = []
        for at in range(0, len(held), 2):
            id, deadline = held[at : at + 2]
            one = self.kept[topic].get(id)
            is_held = one is not None and one.place == "reserved" and deadline in ("", one.when)
            if one is not None and is_held and how == "done":
                del self.kept[topic][id]
            elif one is not None and is_held:
                one.place, one.when = "queued", self.moment(how, when)
            released.append(int(is_held))
        return released

    def topic_reschedule(self, topic: str, how: str, when: int, *ids: str) -> list[int]:
        moved = [id for id in ids if id in self.kept[topic] and self.kept[topic][id].place == "queued"]
        for id in moved:
            self.kept[topic][id].when = self.moment(how, when)
        return [int(id in moved) for id in ids]

    def topic_delete(self, topic: str, *ids: str) -> list[int]:
        return [int(self.kept[topic].pop(id, None) is not None) for id in ids]

    def topic_requeue(self, topic: str, upto: Any, limit: int) -> list[int]:
        upto = self.now if upto == "" else upto
        over = self.ordered(topic, "reserved", upto)[:limit]
        for id in over:
            self.kept[topic][id].place, self.kept[topic][id].when = "queued", upto
        return [len(over), self.due(topic, "reserved")]


def a_call(chance: Random, model: Topics) -> tuple[str, Words]:
    """Some verb and its words."""
    topic, ids = chance.choice(TOPICS), chance.sample(IDS, chance.randint(1, 3))
    now = model.now
    upto = chance.choice(["", "", now, now - 500, now + 700])
    how, when = chance.choice(
        [("in", 0), ("in", chance.randrange(900)), ("at", now + chance.randrange(-900, 900))]
    )
    deadlines = ["", *(one.when for one in model.kept[topic].values()), now]
    calls: list[tuple[str, Words]] = [
        (
            "topic_put",
            (topic, how, *[word for id in ids for word in (id, when, b"%d" % chance.randrange(99))]),
        ),
        ("topic_reserve", (topic, chance.randrange(3), chance.randint(0, 3), upto, chance.randrange(1, 900))),
        ("topic_pull", (topic, chance.randint(1, 2), upto)),
        (
            "topic_release",
            (topic, "done", "", *[word for id in ids for word in (id, chance.choice(deadlines))]),
        ),
        (
            "topic_release",
            (topic, how, when, *[word for id in ids for word in (id, chance.choice(deadlines))]),
        ),
        ("topic_reschedule", (topic, how, when, *ids)),
        ("topic_delete", (topic, ids[0])),
        ("topic_requeue", (topic, upto, chance.randint(1, 3))),
    ]
    return chance.choices(calls, [5, 5, 1, 3, 2, 1, 1, 3])[0]
