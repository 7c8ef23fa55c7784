"""The rights in the store that each kind of program needs: the one home of the rules on the page about security.

Functions of the core run commands with the rights of their caller, so each user needs these commands too.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from holdfast.commands import COMMANDS
from holdfast.errors import UsageError
from holdfast.settings import check_name, check_namespace
from holdfast.wire.meeting import READS, WRITES

_CONNECT: Final = ("info", "ping", "subscribe", "unsubscribe")
_FLOWS: Final = ("flow_put", "flow_add", "flow_close", "flow_get", "flow_states", "flow_results")
_PUTS: Final = ("put", "put_x", *_FLOWS, "recur", "recur_get", "topic_put", "await")
_WORDS: Final = re.compile(r"[\w.@%+=:,-]+", re.ASCII)
_PATTERN: Final = re.compile(r"""[*?\[\]\\"'`$]""")
_FRESH: Final = ("on", "resetkeys", "resetchannels", "clearselectors", "-@all")


class Role(msgspec.Struct, frozen=True):
    """A kind of program: the functions of the core that it calls (None: all), and whether it may run writing commands.

    `upkeep`: functions that it calls in the store by itself; over HTTP they are not for this role.
    """

    purpose: str
    functions: Sequence[str] | None = None
    writes: bool = True
    others: Sequence[str] = ()
    upkeep: Sequence[str] = ()

    def commands(self) -> list[str]:
        """Return the commands that it may run, without FCALL."""
        return [*_CONNECT, *sorted(READS), *(sorted(WRITES) if self.writes else ()), *self.others]


ROLES: Final[Mapping[str, Role]] = {
    "producer": Role(
        "Puts jobs and messages, waits for results, cancels.",
        ("info", *_PUTS, "job_get", "cancel_by", "dependents", "topic_delete", "topic_get"),
    ),
    "worker": Role(
        "Takes jobs and messages and ends them; its jobs put other jobs.",
        (
            "info", "pop", "find_work", "complete", "complete_pop", "complete_x", "end_with_flow", "advance", "retry", "fail", "expire",
            "release", "heartbeat", "resume", "report", "log", "queues", "patterns", "job_get", "worker_seen",
            "worker_forget", "worker_answer", "sweep", "topic_reserve", "topic_pull", "topic_release", "topic_requeue",
            "topic_counts", *_PUTS,
        ),
        others=("blpop",),
        upkeep=("recur_unplanned", "recur_extend", "recur_update", "list"),
    ),
    "viewer": Role("Reads: figures, jobs, workers, settings. Changes nothing.", writes=False),
    "operator": Role("Calls every function: retries, cancels, pauses, changes settings."),
}  # fmt: skip
"""The users that the page about security describes."""


OF_ADMINS: Final = frozenset(
    (
        "config_set", "config_unset", "setting", "identifiers_set", "priorities_set", "throttle_set", "throttle_delete",
        "queue_set", "queue_forget", "worker_forget", "sweep",
    )
)  # fmt: skip
"""The verbs that change how a whole namespace works: of those whom the web application knows, administrators call them."""


def may_call(role: str, verb: str) -> bool:
    """Return whether a user of the web application with this role may call a verb of the core. An admin may call all."""
    if role == "admin":
        return True
    found = ROLES[role]
    if found.functions is not None:
        return verb in found.functions
    if not found.writes:
        return verb == "info" or COMMANDS[verb].reads
    return verb not in OF_ADMINS


def rules_of(role: str, namespace: str, password: str | None = None) -> list[str]:
    """Return the rules of a user for ACL SETUSER; a password is in them as its SHA-256.

    They replace the rights that the user had. Without a password they leave its passwords unchanged. Raises UsageError.
    """
    if _PATTERN.search(check_namespace(namespace)):
        raise UsageError(
            f"namespace {namespace!r} contains characters that access rules treat as patterns or quotes"
        )
    root, found = "hf:{" + namespace + "}:*", ROLES[role]
    secret = [] if password is None else ["resetpass", "#" + sha256(_checked(password)).hexdigest()]
    calls = (
        ["+fcall"]
        if found.functions is None
        else [f"+fcall|hf1_{name}" for name in (*found.functions, *found.upkeep)]
    )
    commands = [f"+{name}" for name in found.commands()]
    return [*_FRESH, *secret, f"~{root}", f"&{root}", *commands, *calls]


def command_of(user: str, rules: Sequence[str]) -> str:
    """Return the command for an administrator of the store, on one line. Raises UsageError for a name that it cannot hold."""
    if not _WORDS.fullmatch(check_name("user", user)):
        raise UsageError(f"user {user!r} must be letters, digits and the characters . @ % + = : , - _")
    return " ".join(["ACL", "SETUSER", user, *rules])


def _checked(password: str) -> bytes:
    if not password:
        raise UsageError("the password is empty")
    return password.encode("utf-8", "surrogateescape")
