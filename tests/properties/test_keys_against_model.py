"""Unique keys and a plain-Python model get the same puts, ends and new lives in random orders, and must never differ.

What state a job is in comes from the core; whose a key is, from the model alone.
"""

from itertools import count
from random import Random

import pytest

from holdfast.commands.admin import Sweep
from holdfast.commands.jobs import Cancel, Move
from holdfast.commands.operations import Act
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions
from holdfast.errors import NotUnique
from holdfast.testing.clock import StoppedClock
from native_door import Door

HOLDS = {"e": "end", "f": "end", "s": "start", "t": "5000"}
"""Keys, and how long each is held by any job that has it."""
STEPS = 200


class Keys:
    """Whose each key is, by the guide."""

    def __init__(self, door: Door, clock: StoppedClock) -> None:
        self.door, self.clock = door, clock
        self.holder: dict[str, str] = {}
        self.until: dict[str, int] = {}
        self.key: dict[str, str] = {}
        self.lost: set[str] = set()

    def is_open(self, jid: str) -> bool:
        return self.door.state(jid) not in ("absent", "complete", "failed")

    def has_started(self, jid: str) -> bool:
        job = self.door.job(jid)
        return job is not None and job.attempts > 0

    def standing(self, key: str, but: str = "") -> str:
        """The job that holds a key, "" for none."""
        jid = self.holder.get(key, "")
        if not jid or jid == but or self.door.state(jid) == "absent":
            return ""
        if key == "t":
            return jid if self.until[key] > self.clock.now_ms else ""
        return jid if self.is_open(jid) and not (key == "s" and self.has_started(jid)) else ""

    def take(self, key: str, jid: str) -> None:
        before = self.holder.get(key, "")
        if before and key != "t" and not (key == "s" and self.has_started(before)):
            self.lost.add(before)
        self.holder[key], self.key[jid] = jid, key
        self.until[key] = self.clock.now_ms + 5000

    def may_live_again(self, jid: str) -> bool:
        key = self.key[jid]
        if jid not in self.lost or (key == "s" and self.has_started(jid)):
            return True
        if self.standing(key, jid):
            return False
        self.take(key, jid)
        return True


class Machine:
    """Does one step after the other to the core and to the model."""

    def __init__(self, seed: int, clock: StoppedClock, door: Door) -> None:
        self.dice, self.clock, self.core, self.door = Random(seed), clock, clock.core, door
        self.keys, self.numbers = Keys(door, clock), count(1)

    def put(self) -> None:
        key, jid = self.dice.choice([*HOLDS]), f"j{next(self.numbers)}"
        how = self.dice.choice(("keep", "raise", "cancel", "replace"))
        holder = self.keys.standing(key)
        if how == "replace" and holder and self.keys.has_started(holder):
            return  # a story of its own
        extra = ExtraOptions(unique_key=key, unique_for=HOLDS[key], on_conflict=how)
        command = PutWithOptions("q", JobWithOptions("k", b"{}", jid, extra))
        if holder and how == "raise":
            with pytest.raises(NotUnique, match=rf"\b{holder}$"):
                self.core(command)
            return
        found = self.core(command)
        if holder and how in ("keep", "replace"):
            assert found == holder
            if how == "replace":
                self.keys.until[key] = self.clock.now_ms + 5000
            return
        assert found == jid, (how, holder)
        self.keys.take(key, jid)

    def run_some(self) -> None:
        for job in self.door.pop("w", "q", n=self.dice.randint(1, 3)):
            what = self.dice.random()
            if what < 0.4:
                self.door("complete", "w", job.jid, job.token, "", 0, "")
            elif what < 0.8:
                self.door("fail", "w", "g", "m", job.jid, job.token, "")

    def live_again(self) -> None:
        """An operator retries a failed job, or moves one that has ended."""
        ended = [jid for jid in self.keys.key if self.door.state(jid) in ("failed", "complete")]
        if not ended:
            return
        jid = self.dice.choice(ended)
        may = self.keys.may_live_again(jid)
        if self.door.state(jid) == "failed" and self.dice.random() < 0.6:
            [found] = self.core(Act("retry", [(jid, "")]))
            assert isinstance(found, NotUnique) is not may, (jid, found)
            return
        if may:
            self.core(Move("q", jid))
        else:
            with pytest.raises(NotUnique):
                self.core(Move("q", jid))

    def other(self) -> None:
        what = self.dice.random()
        jids = [jid for jid in self.keys.key if self.keys.is_open(jid)]
        if what < 0.4 and jids:
            self.core(Cancel([self.dice.choice(jids)]))
        elif what < 0.7:
            self.core(Sweep())
        else:
            self.clock.advance(seconds=self.dice.choice((1, 4)))

    def check(self) -> None:
        for key in "ef":
            found = [jid for jid, own in self.keys.key.items() if own == key and self.keys.is_open(jid)]
            assert len(found) <= 1, (key, found)


@pytest.mark.parametrize("seed", range(4))
def test_keys_are_whose_the_model_has_them(seed: int, clock: StoppedClock) -> None:
    clock.advance(seconds=0)
    machine = Machine(seed, clock, Door(clock._client))
    for _ in range(STEPS):
        step = machine.dice.choice(
            (machine.put, machine.put, machine.run_some, machine.live_again, machine.other)
        )
        step()
        machine.check()
