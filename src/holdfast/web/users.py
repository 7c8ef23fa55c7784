"""Who uses the pages and the API, and what each role may do."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Role = Literal["viewer", "operator", "admin"]
ROLES: Final[tuple[Role, ...]] = ("viewer", "operator", "admin")
"""From the least to the most: a role may do what those before it may."""
BY_NAME: Final[Mapping[str, Role]] = {role: role for role in ROLES}
"""The roles as text from outside names them."""


class User(msgspec.Struct, frozen=True):
    """Somebody, or a program, that uses the web: the name for the audit log, and the role."""

    name: str
    role: Role = "viewer"

    def may(self, role: Role) -> bool:
        """Return whether this user's role includes another one."""
        return ROLES.index(self.role) >= ROLES.index(role)
