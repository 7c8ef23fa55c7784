"""What can be said: one frozen command class per verb of the core."""

from collections.abc import Mapping

from holdfast.commands import (
    admin,
    attributes,
    call,
    dependencies,
    explain,
    failures,
    jobs,
    leases,
    listing,
    outcomes,
    queues,
    recurring,
    tallies,
    throttles,
    topics,
    upkeep,
    wishes,
    workers,
)
from holdfast.commands.base import Command, Reply, Spoken, Word

COMMANDS: Mapping[str, type[Spoken]] = {
    **jobs.VERBS,
    **leases.VERBS,
    **outcomes.VERBS,
    **queues.VERBS,
    **admin.VERBS,
    **attributes.VERBS,
    **call.VERBS,
    **listing.VERBS,
    **failures.VERBS,
    **explain.VERBS,
    **wishes.VERBS,
    **upkeep.VERBS,
    **dependencies.VERBS,
    **recurring.VERBS,
    **tallies.VERBS,
    **workers.VERBS,
    **throttles.VERBS,
    **topics.VERBS,
}

__all__ = ["COMMANDS", "Command", "Reply", "Spoken", "Word"]
