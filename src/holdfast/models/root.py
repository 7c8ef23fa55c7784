"""What the core says of itself."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.models.texts import text


class CoreInfo(msgspec.Struct, frozen=True, gc=False):
    """What the core says of itself and of this root; `heartbeat` and `grace` are seconds."""

    version: str
    digest: str
    schema: int
    epoch: str
    now_ms: int
    is_test: bool
    denied: tuple[str, ...]
    heartbeat: float = 60.0
    grace: float = 10.0

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "CoreInfo":
        """Read the reply of `info`."""
        denied = text(row[6])
        return cls(
            text(row[0]),
            text(row[1]),
            int(row[2]),
            text(row[3]),
            int(row[4]),
            bool(int(row[5])),
            tuple(denied.split(",")) if denied else (),
            float(row[7]),
            float(row[8]),
        )
