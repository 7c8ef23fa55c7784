"""Random words for every command: a refusal is a sentence of ours and leaves no trace, and nothing is lost."""

import re
from random import Random

import pytest
from older_words import TODAY
from recorded_replies import stories
from two_doors import Door, Refused

from holdfast.core.texts import bundle

COMMANDS = {
    "doors.reqless": sorted({step.words[0] for _, steps in stories() for step in steps}),
    "doors.qless": sorted({name for name, *_ in TODAY.values()} | {"depends", "recur", "throttle.ttl"}),
}
PLAIN = ("q", "other", "a", "b", "c", "w", "t", "g", "tid", "ql:q:q", "default", "heartbeat")
NUMBERS = ("0", "1", "-1", "2.5", "-0.5", "1e3", "0x10", "007", " 3 ", "1e300", "9007199254740993", "-1e18")
ODD = (
    "",
    " ",
    "inf",
    "-inf",
    "nan",
    "1e999",
    "x" * 3000,
    "é\x01\n",
    '"',
    "{",
    "all",
    "next",
    "delay",
    "interval",
)
TEXTS = ("{}", "[]", "null", "true", "false", "7", '"x"', '["a"]', '["a","a",7]', '[["a"]]', '{"a":1}', '{"1":"a"}',
         "[1e999]", '[null]', '{"fairly":false,"pattern":["*"]}', '{"pattern":7}', "[" * 200 + "]" * 200)  # fmt: skip
KEYS = (
    "priority",
    "tags",
    "retries",
    "depends",
    "throttles",
    "backlog",
    "interval",
    "data",
    "klass",
    "queue",
    "add",
    "get",
    "track",
    "on",
    "off",
)
WORDS = PLAIN * 4 + NUMBERS * 2 + ODD + TEXTS * 2 + KEYS * 2
OF_THE_STORE = re.compile(
    r"WRONGTYPE|attempt to|bad argument #[12] to '(?!decode|.')|stack|redis\.call|nil value|Unknown Redis|is not an integer|not a valid float|^ERR |syntax error|invalid expire"
)
"""What no caller should read: an error that our code did not mean to make."""


def begin(door: Door, now: float) -> None:
    door.flush()
    for jid in "abc":
        door.raw("queue.put", now, "w", "q", jid, "k", "{}", 0, "throttles", '["tid"]', "tags", '["g"]')
    door.raw("queue.put", now, "w", "q", "d", "k", "{}", 0, "depends", '["a"]')
    door.raw("queue.recurAtInterval", now, "q", "t", "k", "{}", 10, 0)
    door.raw("queue.pop", now + 1, "q", "w", 1)


def hit(door: Door, random: Random, now: float, commands: list[str]) -> None:
    command = random.choice(commands)
    words = [random.choice(WORDS) for _ in range(random.randint(0, 9))]
    moment = repr(now) if random.random() < 0.97 else random.choice(ODD)
    before = door.contents()
    reply = door.raw(command, moment, *words)
    if isinstance(reply, Refused):
        said = f"{command} {moment} {words}\n  {reply.text}"
        assert not OF_THE_STORE.search(reply.text), said
        assert door.contents() == before, f"refused, and left a trace: {said}"


def works_still(door: Door, now: float) -> None:
    """A queue of its own goes through its life, whatever the others hold."""
    for queue in ("fresh", "q", "other"):
        door.raw("queue.unpause", now, queue)
        reply = door.raw("queue.pop", now, queue, "late", 1000)
        assert not isinstance(reply, Refused), reply.text
    assert door.raw("queue.put", now, "w", "fresh", "fresh-1", "k", "{}", 0) == "fresh-1"
    assert door.call("queue.pop", now, "fresh", "late", 1)[0]["jid"] == "fresh-1"
    assert door.raw("job.complete", now, "fresh-1", "late", "fresh", "{}") == "complete"


def play(door: Door, spoken: str, seed: int, calls: int) -> None:
    """Both doors look at the same jobs: these are put and popped through ours, and hit through the spoken one."""
    random = Random(seed)
    now = 1_700_000_000.0
    begin(door, now)
    ours, theirs = door.sha, door.connection.ask("SCRIPT", "LOAD", bundle(spoken))
    for _ in range(calls):
        now += random.choice((0.25, 1, 30, 100))
        door.sha = theirs
        hit(door, random, now, COMMANDS[spoken])
    door.sha = ours
    works_still(door, now + 1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spoken", COMMANDS)
def test_random_words_are_refused_without_a_trace(door: Door, spoken: str, seed: int) -> None:
    play(door, spoken, seed, 200)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 120))
@pytest.mark.parametrize("spoken", COMMANDS)
def test_random_words_are_refused_without_a_trace_for_longer(door: Door, spoken: str, seed: int) -> None:
    play(door, spoken, seed, 2000)
