"""Random sequences, sent to the reference and to our door: replies, messages and readable state must agree."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import calls_of_jobs
import calls_of_queues
import calls_of_settings
from alike import Seen, alike, differences
from chooser import Chooser
from last_look import last_look
from marks import expect, note
from names import COMMANDS, JIDS, KIND, STATES, TEMPLATES, THROTTLES
from pair import Answer, Pair
from speech import Speech
from two_doors import Refused
from view import Call, View, looks
from weaknesses import met

Make = Callable[[View, Chooser], Call]
STEPS = (*(0.25, 0.5, 1.0, 1.0, 3.0) * 4, 7.5, 7.5, 11.0, 11.0, 59.0, 61.0, 61.0, 4000.0)
LONGEST = 45
SPAWNS = 2
"""The weakness after which a mere look leaves the two in different states."""
BEGINNING: tuple[Make, ...] = (*(calls_of_jobs.put,) * 4, calls_of_queues.pop)
LIMITED: tuple[Make, ...] = (calls_of_settings.limit_one, calls_of_settings.limit_queue, *BEGINNING)


class Different(AssertionError):
    """The two doors disagree; says about what, and by which calls it came to that."""


@dataclass
class Tally:
    """What a run has tried."""

    pairs: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    weaknesses: Counter[int] = field(default_factory=Counter[int])
    refused: Counter[str] = field(default_factory=Counter[str])
    lengths: list[int] = field(default_factory=list[int])

    def median(self) -> float:
        return median(self.lengths or [0])

    def told(self) -> str:
        lines = [f"{len(self.lengths)} sequences, median length {self.median():g}"]
        lines.append(
            "weaknesses: " + ", ".join(f"W{n} {count}" for n, count in sorted(self.weaknesses.items()))
        )
        for command in COMMANDS:
            states = (*STATES[KIND[command]], "unsaid")
            found = ", ".join(f"{state} {self.pairs[command, state]}" for state in states)
            lines.append(f"{command}: {found}; refused {self.refused[command]}")
        return "\n".join(lines)


class Doors:
    """A reference and our door, by one speech, and what our door can do already."""

    def __init__(self, pair: Pair, speech: Speech) -> None:
        self.pair, self.speech = pair, speech
        self.tally = Tally()
        self.commands = {command for command in COMMANDS if self._served(command)}

    def _served(self, command: str) -> bool:
        words = self.speech.words(command, 1.0, ("nothing",))  # some cannot be said without any
        if words is None:
            return False
        return not any(self.speech.unknown(answer.reply) for answer in self.pair.ask(words, []))


class Sequence:
    """One sequence, from empty databases to the first weakness or the last look."""

    def __init__(self, doors: Doors, choose: Chooser) -> None:
        self.doors, self.choose, self.view = doors, choose, View()
        self.over = False
        doors.pair.flush()
        self.trace: list[str] = []
        self.view.throttling = choose.chance(45)
        self.recurring = choose.chance(40)
        self.view.ties = not self.view.throttling and not self.recurring and choose.chance(15)
        self.makers = self._makers()

    def _makers(self) -> list[Make]:
        """Each as often as it is to be likely."""
        weights: dict[Any, int] = {**calls_of_jobs.CALLS, **calls_of_queues.CALLS, **calls_of_settings.CALLS}
        weights |= calls_of_settings.THROTTLING if self.view.throttling else {}
        weights |= calls_of_queues.RECURRING if self.recurring else {}
        return [make for make, weight in weights.items() for _ in range(weight)]

    def run(self) -> None:
        length = 0
        first = LIMITED if self.view.throttling else BEGINNING
        while not self.over and length < LONGEST:
            self.step(first[length] if length < len(first) else self.choose.pick(self.makers))
            length += 1
        if not self.over:
            self.view.now += 1
            self.last_look()
        self.doors.tally.lengths.append(length)

    def last_look(self) -> None:
        """Everything that can be read, in one go; what meets a weakness is compared under its rule."""
        calls = [call for call in last_look(self.view, self.recurring) if call.command in self.doors.commands]
        said = [self.doors.speech.words(call.command, self.view.now, call.words) for call in calls]
        known = [(call, words) for call, words in zip(calls, said, strict=True) if words]
        theirs, ours = self.doors.pair.ask(known[0][1], [words for _, words in known[1:]])
        replies = zip([theirs.reply, *theirs.looks], [ours.reply, *ours.looks], strict=True)
        for (call, _), pair in zip(known, replies, strict=True):
            one, other = (self._read(call, reply) for reply in pair)
            weaknesses = met(self.view, call)
            rules = [weakness.agrees for weakness in weaknesses] or [alike]
            if not any(rule(self.view, call, one, other) for rule in rules):
                self.differ(f"{call.command} {call.words}", differences(self.view, call, one, other))
            if SPAWNS in [weakness.number for weakness in weaknesses]:
                return

    def _read(self, call: Call, reply: Any) -> Seen:
        """A look, after which all is as it was."""
        view = self.view
        return Seen(
            reply, self.doors.speech.meaning(call.command, reply), [], view.jobs, view.slots, view.templates
        )

    def step(self, make: Make) -> None:
        self.choose.begin()
        self.view.now += self.choose.pick(STEPS)
        call = make(self.view, self.choose)
        if self.choose.chance(1.5) and call.words:
            call.words = call.words[: self.choose.whole(0, len(call.words) - 1)]
        if call.command in self.doors.commands and self.doors.speech.words(call.command, 1.0, call.words):
            self.both(call)
        self.choose.end()

    def both(self, call: Call) -> None:
        view, tally = self.view, self.doors.tally
        tally.pairs[call.command, view.state_of(call)] += 1
        weaknesses = met(view, call)
        theirs, ours = self.ask(call)
        self.trace.append(f"{call.command} {view.now} {call.words} -> {str(ours.raw)[:200]}")
        if weaknesses:
            numbers = [weakness.number for weakness in weaknesses]
            tally.weaknesses.update(numbers)
            self.over = True
            if not any(weakness.agrees(view, call, theirs, ours) for weakness in weaknesses):
                self.differ(f"weaknesses {numbers}", differences(view, call, theirs, ours))
            return
        expect(view, call, ours.reply)
        found = differences(view, call, theirs, ours)
        if found:
            self.differ("difference", found)
        tally.refused[call.command] += isinstance(ours.reply, Refused)
        note(view, call, ours.reply, theirs.jobs, ours.jobs)
        view.slots, view.templates = ours.slots, ours.templates
        for name, template in ours.templates.items():
            view.spawned[name] = max(template["count"], view.spawned.get(name, 0))

    def differ(self, what: str, lines: list[str]) -> None:
        raise Different(
            "\n".join([what, *(lines or ["alike, and not as the rule says"]), "after", *self.trace])
        )

    def ask(self, call: Call) -> tuple[Seen, Seen]:
        speech, view = self.doors.speech, self.view
        words = speech.words(call.command, view.now, call.words)
        wanted = [
            (command, speech.words(command, view.now, said))
            for command, said in looks(view, call, self.recurring)
            if command in self.doors.commands
        ]
        assert words is not None
        answers = self.doors.pair.ask(words, [said for _, said in wanted if said])
        theirs, ours = (self._seen(call, answer, [command for command, _ in wanted]) for answer in answers)
        return theirs, ours

    def _seen(self, call: Call, answer: Answer, commands: list[str]) -> Seen:
        meaning = self.doors.speech.meaning
        assert not answer.later, f"a look published {answer.later}"
        found = [meaning(command, reply) for command, reply in zip(commands, answer.looks, strict=True)]
        jobs = found[0] if isinstance(found[0], list) else []  # W11: one job that nobody can read any more
        seen = Seen(
            answer.reply,
            meaning(call.command, answer.reply),
            self.doors.speech.heard(call.command, answer.messages),
            {job["jid"]: job for job in jobs},
            {},
            {},
        )
        rest = found[1:]
        if self.recurring:
            seen.templates = {name: one for name, one in zip(TEMPLATES, rest, strict=False) if one}
            rest = rest[len(TEMPLATES) :]
        for name, place in zip(THROTTLES, range(0, len(rest), 2), strict=False):
            seen.slots[name] = (rest[place], rest[place + 1])
        return seen


__all__ = ["JIDS", "Different", "Doors", "Sequence", "Tally"]
