"""A link without a store: it answers from a script and writes down what it was sent."""

from collections.abc import Callable
from typing import Any

from holdfast.settings import Settings
from holdfast.wire.plans import Call, LinkError, Replies, Runner, Step
from holdfast.wire.shards import Shard

Answer = Replies | LinkError | Callable[[list[Call]], Replies]


class Clock:
    """Monotonic seconds that pass only when somebody waits."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class ScriptedLink:
    """Answers one step after the other; the last answer is repeated for ever."""

    def __init__(self, clock: Clock, *answers: Answer) -> None:
        self.clock = clock
        self.answers = list(answers)
        self.sent: list[list[Call]] = []
        self.pauses: list[float] = []

    def send(self, step: Step) -> Replies:
        self.clock.now += step.pause
        self.pauses.append(step.pause)
        self.sent.append(step.calls)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, LinkError):
            # A lost connection takes a little time, or a loop of them would never reach its deadline.
            self.clock.now += 0.01
            raise answer
        return answer(step.calls) if callable(answer) else answer


def scripted(*answers: Answer, met: bool = True, **settings: Any) -> tuple[Shard, ScriptedLink, Runner]:
    """A shard (met already, unless told otherwise), its scripted link and a runner."""
    clock = Clock()
    shard = Shard(Settings("redis://nowhere", **settings), clock)
    shard.met = met
    link = ScriptedLink(clock, *answers)
    return shard, link, Runner(link)


INFO = [
    b"# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.0\r\n",
    b"maxmemory_policy:noeviction\r\n",
    b"aof_enabled:1\r\n",
]


def core_info(version: str, digest: str, denied: bytes = b"") -> Replies:
    """What `hf1_info` answers."""
    return [version.encode(), digest.encode(), 1, b"0f", 17, 0, denied, 60, 10]
