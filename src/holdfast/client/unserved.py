"""Whether any worker was seen in the store of a client: a program may put jobs into another store than its workers use."""

from typing import Any

from holdfast.code.steps import Steps
from holdfast.commands.base import hurried
from holdfast.commands.workers import Workers
from holdfast.errors import HoldfastError
from holdfast.wire.shards import unserved


def without_workers(client: Any) -> Steps[str]:
    """Return a sentence for an error if no worker was seen in the store of a client, else "". It raises nothing of the store."""
    if client._is_served:
        return ""
    try:
        found = yield client.run(hurried(Workers(count=1)))
    except HoldfastError:
        return ""
    client._is_served = bool(found)
    return "" if found else f"; {unserved(client._place())}"
