"""Where the two differ on purpose: the weaknesses of the reference that our core does not have, by number.

Each says which calls meet it, and how such a call is compared; the sequence ends there, for from then on the two are
in different states. A call that merely makes the difference that a later call shows is compared as any other, and
`marks` remembers it. What cannot be met by commands, or only by clocks and sizes that no sequence has, is told in
`OUT_OF_REACH`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import weaknesses_of_jobs as jobs
import weaknesses_of_lists as lists
import weaknesses_of_putting as putting
import weaknesses_of_settings as settings
from alike import Seen
from view import Call, View


@dataclass(frozen=True)
class Weakness:
    number: int
    meets: Callable[[View, Call], bool]
    agrees: Callable[[View, Call, Seen, Seen], bool]


FIRST = (27, 1, 11, 26, 42, 18)
"""What ours refuses meets no other, and what goes elsewhere for later is compared as what comes later."""
ROWS = [*jobs.RULES, *putting.RULES, *lists.RULES, *settings.RULES]
TABLE = [Weakness(*row) for row in sorted(ROWS, key=lambda row: (row[0] not in FIRST, row[0]))]

OUT_OF_REACH = {
    6: "samples of a week: no sequence lasts so long",
    9: "locks of vanished jobs: no command makes them",
    10: "thousands of jobs in one pop",
    29: "more than a thousand jobs to purge",
}


def met(view: View, call: Call) -> list[Weakness]:
    """Those that a call meets; where there are several, it is enough that one of their rules explains it."""
    return [weakness for weakness in TABLE if weakness.meets(view, call)]
