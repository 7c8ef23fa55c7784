"""The recorded replies of today's commands, asked for in the words of qless: one core answers both."""

import json
from typing import Any

import pytest
from older_words import LISTS, NAMED, OlderSpeech
from recorded_replies import Step, is_as_said, stories
from two_doors import Door, Refused

from holdfast.core.texts import bundle
from holdfast.testing import ScratchStore

OTHERWISE = {
    "config.getAll": "other defaults",
    "queue.throttle.get": "what is left of its time is asked for by throttle.ttl",
    "throttle.get": "what is left of its time is asked for by throttle.ttl",
}
"""Commands that qless answers otherwise by design."""
SAID = {
    '"limit" not': '"count" not', '"limit" missing': '"count" missing', 'error Arg "queue" missing': "error no queue name provided",
    '"failed-retries","group"': '"failed","group"', '"state":"stalled","worker":""': '"state":"stalled","worker":"w"',
    "text 60": "integer 60", "error must be greater than zero": "integer 0",
}  # fmt: skip
"""What qless says in place of what is recorded."""
SPEECH = OlderSpeech()
STORIES = {
    name: steps
    for name, steps in stories()
    if not any(step.words[0] in OTHERWISE or step.words[0] in SPEECH.unspoken for step in steps)
}


def today(value: Any) -> Any:
    """The history of a job names the queue of a put by `queue`, not by `q`."""
    if isinstance(value, list):
        return [today(one) for one in value]
    if isinstance(value, dict):
        return {("queue" if key == "q" else key): today(one) for key, one in value.items()}
    return value


def meaning(command: str, reply: Any, said: str | None) -> Any:
    if isinstance(reply, list) and said and not said.startswith("array"):
        return json.dumps(reply)
    if isinstance(reply, str) and said and said.split()[0] not in ("text", "has"):
        value = SPEECH.meaning(command, reply)
        return json.dumps(today(value), separators=(",", ":"), ensure_ascii=False)
    return SPEECH.meaning(command, reply) if isinstance(reply, Refused) else reply


def older_reply(command: str, said: str | None) -> str | None:
    """What is recorded, as qless says it: equal bytes are equal in meaning, and no refusal names a job."""
    if said is None:
        return None
    said = NAMED.sub("(): Job ", said).replace("bytes ", "json ", 1)
    for ours, theirs in SAID.items():
        said = said.replace(ours, theirs)
    return "json []" if command in LISTS and said == "json {}" else said


def play(door: Door, steps: list[Step]) -> None:
    for step in steps:
        command, now, *words = step.words
        older = SPEECH.words(command, float(now), tuple(words))
        if older is None:
            continue
        door.messages()
        reply = meaning(command, door.raw(*older), step.reply)
        said = older_reply(command, step.reply)
        assert is_as_said(reply, said), f"{step.line}\n  as {older}\n  answered {reply!r}"
        if said and command != "job.retry":
            assert door.messages() == step.messages, step.line


@pytest.mark.parametrize("name", STORIES)
def test_the_older_door_answers_as_recorded(engine_store: ScratchStore, name: str) -> None:
    door = Door(engine_store.socket_path, bundle("doors.qless"), 7)
    door.flush()
    play(door, STORIES[name])
    door.close()
