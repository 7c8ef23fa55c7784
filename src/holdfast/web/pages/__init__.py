"""The pages: one module for each kind of thing, with its loaders (VIEWS) and what is done to it (ACTIONS)."""

from typing import Final

from holdfast.web.pages import (
    about,
    config,
    failures,
    filter_help,
    flows,
    job,
    job_actions,
    job_edits,
    job_lists,
    jobs,
    operations,
    overview,
    queues,
    recurring,
    throttles,
    topics,
    workers,
)
from holdfast.web.views import table

_MODULES: Final = (
    overview,
    queues,
    jobs,
    job,
    job_lists,
    job_actions,
    job_edits,
    filter_help,
    failures,
    recurring,
    flows,
    topics,
    workers,
    throttles,
    operations,
    config,
    about,
)
TABLE: Final = table(
    (view for module in _MODULES for view in module.VIEWS),
    (action for module in _MODULES for action in module.ACTIONS),
)
"""All views and actions of the application."""
