"""Reads the recorded replies, and says whether a reply is what one of them says. See recorded/README.md."""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from two_doors import Refused

FOLDER = Path(__file__).parent / "recorded"


@dataclass
class Step:
    """One call: its words, what it answers (None: anything but a refusal), and what it publishes."""

    line: str
    words: list[str]
    reply: str | None
    only_ours: bool = False
    messages: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    reference_adds: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @property
    def is_refused(self) -> bool:
        return self.reply is not None and self.reply.startswith("error")


def stories() -> Iterator[tuple[str, list[Step]]]:
    """Each story by a name of its own: the command, and what it is about."""
    for path in sorted(FOLDER.glob("*.txt")):
        for number, story in enumerate(path.read_text().split("\n\n"), 1):
            lines = story.splitlines()
            title = next((line[2:] for line in lines if line.startswith("# ")), f"story {number}")
            yield f"{path.stem}: {title}", list(_steps(lines))


def _steps(lines: list[str]) -> Iterator[Step]:
    step: Step | None = None
    for line in lines:
        if line.startswith("  "):
            assert step, line
            kind, channel, payload = line.split(maxsplit=2)
            (step.messages if kind == "*" else step.reference_adds).append((channel, payload))
        elif not line.startswith("#"):
            if step:
                yield step
            step = _step(line)
    if step:
        yield step


def _step(line: str) -> Step:
    first, _, rest = line.partition(" ")
    if first == ".":
        return Step(line, shlex.split(rest), None)
    call, arrow, reply = (rest if first == "ours" else line).partition(" -> ")
    assert arrow, f"neither a setting nor a reply: {line}"
    return Step(line, shlex.split(call), reply, first == "ours")


def _values(text: str) -> list[Any]:
    decoder, found, at = json.JSONDecoder(), list[Any](), 0
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        found.append(value)
        at += 1
    return found


def _of_series(series: dict[str, Any]) -> dict[str, Any]:
    assert len(series["histogram"]) == 148
    return {**series, "histogram": {str(n): count for n, count in enumerate(series["histogram"]) if count}}


def _is_part(reply: Any, part: dict[str, Any]) -> bool:
    return all(key in reply and reply[key] == value for key, value in part.items())


def _are_stats(reply: Any, counters: Any, wait: Any, run: Any) -> bool:
    numbers = {key: reply[key] for key in ("retries", "failed", "failures")}
    return bool(numbers == counters and _of_series(reply["wait"]) == wait and _of_series(reply["run"]) == run)


def _is_json(check: Callable[..., bool]) -> Callable[[Any, str], bool]:
    return lambda reply, said: isinstance(reply, str) and check(json.loads(reply), *_values(said))


CHECKS: dict[str, Callable[[Any, str], bool]] = {
    "text": lambda reply, said: isinstance(reply, str) and reply == said,
    "bytes": lambda reply, said: isinstance(reply, str) and reply == said,
    "has": lambda reply, said: isinstance(reply, str) and said in reply,
    "integer": lambda reply, said: isinstance(reply, int) and reply == int(said),
    "null": lambda reply, said: reply is None,
    "array": lambda reply, said: isinstance(reply, list) and reply == json.loads(said),
    "error": lambda reply, said: isinstance(reply, Refused) and said in reply.text,
    "json": _is_json(lambda reply, said: reply == said),
    "part": _is_json(_is_part),
    "jids": _is_json(lambda reply, said: [job["jid"] for job in reply] == said),
    "names": _is_json(lambda reply, said: [queue["name"] for queue in reply] == said),
    "tracked": _is_json(
        lambda reply, jids, gone: [job["jid"] for job in reply["jobs"]] == jids and reply["expired"] == gone
    ),
    "stats": _is_json(_are_stats),
}


def is_as_said(reply: Any, said: str | None) -> bool:
    """Whether a raw reply is what the record says."""
    if said is None:
        return not isinstance(reply, Refused)
    kind, _, rest = said.partition(" ")
    return CHECKS[kind](reply, rest)
