"""Who uses the pages, the API and the gateway, and what each role may do."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec

from holdfast.console.access import may_call
from holdfast.settings import OWN_THROTTLE

Role = Literal["viewer", "producer", "worker", "operator", "admin"]
RANKS: Final[tuple[Role, ...]] = ("viewer", "operator", "admin")
"""The roles of people, from the least to the most: a role may do what those before it may."""
BY_NAME: Final[Mapping[str, Role]] = {
    "viewer": "viewer", "producer": "producer", "worker": "worker", "operator": "operator", "admin": "admin",
}  # fmt: skip
"""The roles as text from outside names them. A producer and a worker are programs: they open no pages."""


class User(msgspec.Struct, frozen=True):
    """Somebody, or a program, that uses the web: the name for the audit log, the role, and what it is limited to.

    `queues`, `topics` and `throttles` are names, or patterns such as `mail-*`; `namespaces` are names. Without any queues, topics and
    throttles it may use all, with some it may use those alone, and the throttles of its queues. Without namespaces it may use those of the
    application.
    """

    name: str
    role: Role = "viewer"
    queues: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    throttles: tuple[str, ...] = ()

    def may(self, role: Role) -> bool:
        """Return whether this user's role includes another one; for pages, which show whole namespaces."""
        return not self.is_limited and self.role in RANKS and RANKS.index(self.role) >= RANKS.index(role)

    def may_call(self, verb: str) -> bool:
        """Return whether this user's role includes a verb of the core."""
        return may_call(self.role, verb)

    @property
    def is_limited(self) -> bool:
        """Whether it may not use all that there is."""
        return bool(self.namespaces) or not self.has_all_queues

    @property
    def has_all_queues(self) -> bool:
        """Whether it is limited neither to queues nor to topics nor to throttles."""
        return not (self.queues or self.topics or self.throttles)

    def may_use_queue(self, name: str) -> bool:
        """Return whether it may use a queue."""
        return self.has_all_queues or any(fnmatchcase(name, pattern) for pattern in self.queues)

    def may_use_topic(self, name: str) -> bool:
        """Return whether it may use a topic."""
        return self.has_all_queues or any(fnmatchcase(name, pattern) for pattern in self.topics)

    def may_use_throttle(self, name: str) -> bool:
        """Return whether it may use a throttle: that of one of its queues, or one that its limits name."""
        if name.startswith(OWN_THROTTLE):
            return self.may_use_queue(name.removeprefix(OWN_THROTTLE))
        return self.has_all_queues or any(fnmatchcase(name, pattern) for pattern in self.throttles)

    def worker_name(self, given: str) -> str:
        """Return the name in the store of a worker of this user: with limits it begins with the name of the user, so that it cannot be that of another user."""
        own = f"{self.name}:"
        return given if self.has_all_queues or given.startswith(own) else own + given

    def sees_data(self, is_read: bool) -> bool:
        """Return whether it gets data without masks: producers, workers, and administrators who take jobs."""
        return self.role in ("producer", "worker") or (self.role == "admin" and not is_read)
