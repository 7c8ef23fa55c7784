"""What does a message of a topic cost the store? CPU of put, reserve and done, one by one and in calls of 100, in a topic
that holds ten thousand messages more, and of an idle look; no figure is asked for."""

import statistics
from collections.abc import Sequence

from benchmarks.report import Row, Say, number
from benchmarks.roots import Root, fresh_root
from benchmarks.wirecpu import Word, chunks
from holdfast.testing.store import Engine, find_engine

BODY = '{"user":7}'
MORE = 10_000
HOUR = 3_600_000


def _spent(root: Root, calls: Sequence[bytes], count: int) -> float:
    before = root.wire.cpu()
    root.wire.in_waves(calls, 100)
    return (root.wire.cpu() - before) / count


def _messages(ids: Sequence[str], when: int) -> list[Word]:
    return [word for id in ids for word in (id, when, BODY)]


def _round(root: Root, count: int, batch: int, number_of: int) -> dict[str, float]:
    """µs a message of each step of its life."""
    ids = [f"m{number_of}-{n}" for n in range(count)]
    some = list(chunks(ids, batch))
    deadline = root.now + 60_000
    numbers = iter(range(number_of * 10 * count, (number_of + 1) * 10 * count))

    def calls(verb: str, words_of: Sequence[Sequence[Word]]) -> list[bytes]:
        return [root.words(verb, "line", next(numbers), "t", *words) for words in words_of]

    puts = calls("topic_put", [("in", *_messages(part, 0)) for part in some])
    reserves = calls("topic_reserve", [(0, batch, "", 60_000)] * len(some))
    done = calls(
        "topic_release", [("done", "", *[w for id in part for w in (id, deadline)]) for part in some]
    )
    looks = calls("topic_reserve", [(1, 1, "", 60_000)] * 100)
    return {
        "put": _spent(root, puts, count),
        "reserve": _spent(root, reserves, count),
        "done": _spent(root, done, count),
        "a look in vain": _spent(root, looks, 100),
    }


def _measured(engine: Engine, batch: int, rounds: int, count: int) -> list[Row]:
    with fresh_root(engine) as root:
        for part in chunks([f"later{n}" for n in range(MORE)], 500):
            root("topic_put", "", 0, "t", "in", *_messages(part, HOUR))
        found = [_round(root, count, batch, turn) for turn in range(1, rounds + 1)]
    how = "one by one" if batch == 1 else f"{batch} a call"
    return [
        Row(f"{engine}: {step}, {how}", f"{number(statistics.median(row[step] for row in found))} µs")
        for step in found[0]
        if batch == 1 or step != "a look in vain"
    ]


def run(quick: bool, say: Say) -> list[Row]:
    rows: list[Row] = []
    engines: tuple[Engine, ...] = ("valkey", "redis")
    for engine in engines:
        if find_engine(engine) is None:
            continue
        for batch in (1, 100):
            say(f"{engine}, {batch} a call")
            rows += _measured(engine, batch, 3 if quick else 9, 500 if quick else 2000)
    return rows
