"""Children that fork a process for each job, the `fork` pool: whatever a job does to its process ends with it."""

import gc
from functools import partial
from typing import Final

from holdfast.work.forking.in_parent import SurroundedForking
from holdfast.work.parent.child import Place
from holdfast.work.performing.around import Around
from holdfast.work.pools.process import SlateHolder, work
from holdfast.work.signals import Stop

PATIENCE: Final = 2.0
"""Seconds that the parent leaves a child to end a job whose time is over, before it ends the child for that."""


def body(place: Place, around: Around) -> bool:
    """Work in a forked child until told to stop. Answers whether it is used up."""
    stop = Stop()
    # What stands now stays as it is: the processes of jobs share its pages, which their collectors leave alone.
    gc.freeze()
    forking = SurroundedForking(place.store, place.settings, around, partial(place.slate.note_process, 0))
    return work(place, around, stop, SlateHolder(place, stop, PATIENCE), forking)
