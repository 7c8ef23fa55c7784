"""Where a foreign hand has put a value of another type in the place of a key of ours, no job is lost.

The verb that meets it fails, perhaps when it has begun to write. Once the key is mended, every job that was there
is there and lies in the set that its state names, also after a repeat. The same holds whichever inner command fails.
"""

from typing import Any

import pytest
from cases import CASES
from test_inner_failures import places, prepared, raw, spied, spoil, trace  # noqa: F401
from twins import say

from holdfast import Client
from holdfast.commands.jobs import JobGet
from holdfast.models import JobFacts
from holdfast.testing.store import ScratchStore
from holdfast.wire.plans import ErrorReply

DELETES = ("act", "cancel", "cancel_by", "complete", "complete_pop", "sweep")
MOST_STEPS = 60
"""Inner commands of a call that fail in turn; what comes later is more of the same."""


def known(client: Client) -> dict[str, JobFacts]:
    """All jobs of the namespace."""
    prefix = client.root + "j:"
    jids = [name.decode().removeprefix(prefix) for name in say(client, "KEYS", prefix + "*")]
    return {facts.jid: facts for facts in client.run(JobGet(jids)) if facts} if jids else {}


def members(client: Client, key: str) -> list[str]:
    found = say(client, "ZRANGE", client.root + key, 0, -1)
    return [] if isinstance(found, ErrorReply) else [member.decode(errors="replace") for member in found]


def stray(client: Client, job: JobFacts) -> str | None:
    """What is wrong with the place of a job, or None."""
    state, queue = job.state, job.queue
    places = {
        "running": [f"l:{queue}"], "stalled": [f"w:{queue}", f"l:{queue}"], "scheduled": [f"t:{queue}"],
        "depends": [f"D:{queue}"], "throttled": [f"w:{queue}", f"P:{queue}"],
        "waiting": [f"w:{queue}", f"t:{queue}"], "failed": [f"f:{job.failure.group}" if job.failure else "?"],
    }.get(state)  # fmt: skip
    if places is None:
        return None
    if any(
        member == job.jid or member.endswith(job.jid) for key in places for member in members(client, key)
    ):
        return None
    return f"{job.jid} is {state} and not in {' or '.join(places)}"


def mend(client: Client, key: str, was: bytes | None) -> None:
    say(client, "DEL", client.root + key)
    if was is not None:
        say(client, "RESTORE", client.root + key, 0, was)


def damage(client: Client, command: Any, key: str) -> list[str]:
    """What a call does to jobs that meets a spoilt key, and what is wrong after its repeat."""
    before = known(client)
    was = say(client, "DUMP", client.root + key)
    spoil(client, key)
    failed = isinstance(raw(client, command), ErrorReply)
    mend(client, key, was)
    if not failed:
        return []
    now = known(client)
    wrong = [f"{jid} is gone" for jid in before if jid not in now and command.verb not in DELETES]
    wrong += [said for job in now.values() if (said := stray(client, job))]
    raw(client, command)
    return wrong + [
        f"after a repeat {said}" for job in known(client).values() if (said := stray(client, job))
    ]


@pytest.mark.parametrize("verb", sorted(CASES))
def test_no_job_is_lost_where_a_key_holds_a_value_of_a_wrong_type(verb: str, spied: ScratchStore) -> None:  # noqa: F811
    wrong: list[Any] = []
    for made in CASES[verb]:
        for key in places(trace(spied, made)):
            if key[:2] in ("j:", "i:"):
                continue
            with prepared(spied, made) as (client, command):
                wrong += [(made.__name__, key, said) for said in damage(client, command, key)]
    assert wrong == []


def interrupted(client: Client, command: Any, at: int) -> list[str]:
    """What is wrong with jobs after a call whose inner command number `at` fails."""
    before = known(client)
    say(client, "FCALL", "spy_fail_at", 0, at)
    raw(client, command)
    say(client, "FCALL", "spy_fail_at", 0, 0)
    now = known(client)
    gone = [f"{jid} is gone" for jid in before if jid not in now and command.verb not in DELETES]
    return gone + [said for job in now.values() if (said := stray(client, job))]


@pytest.mark.full
@pytest.mark.parametrize("verb", sorted(CASES))
def test_no_job_is_lost_where_an_inner_command_fails(verb: str, spied: ScratchStore) -> None:  # noqa: F811
    wrong: list[Any] = []
    for made in CASES[verb]:
        steps = trace(spied, made)
        for at in range(1, min(len(steps), MOST_STEPS) + 1):
            with prepared(spied, made) as (client, command):
                wrong += [(made.__name__, steps[at - 1], said) for said in interrupted(client, command, at)]
    assert wrong == []
