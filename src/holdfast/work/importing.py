"""What code a worker finds, and what it imports before it forks."""

import importlib
import logging
import sys

from holdfast.code.allowed import AllowList
from holdfast.code.resolver import Resolver
from holdfast.work.own import own_of
from holdfast.work.queues.patterns import is_plain
from holdfast.work.settings import WorkerSettings

log = logging.getLogger("holdfast")


def make_importable(settings: WorkerSettings) -> None:
    """Put the given paths, then the working directory, in front of the module search path."""
    for path in (settings.root, *reversed(settings.paths)):
        if path in sys.path:
            sys.path.remove(path)
        sys.path.insert(0, path)


def import_modules(settings: WorkerSettings) -> None:
    """Import what was asked for, so that forked processes share it. A failure is logged, not fatal."""
    for name in settings.imports:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit):
            log.exception("cannot import %s", name)


def make_resolver(settings: WorkerSettings) -> Resolver:
    """The resolver of a worker: what its allow-list says, queues by plain name."""
    allow = AllowList(settings.imports, settings.allow, (*settings.paths, settings.root))
    named = own_of(settings).plain
    plain = filter(is_plain, settings.queues if named is None else named)
    return Resolver(allow, plain, settings.auto_complete)
