"""What code a worker finds."""

from holdfast.code.allowed import AllowList
from holdfast.code.resolver import Resolver
from holdfast.work.own import own_of
from holdfast.work.queues.patterns import is_plain
from holdfast.work.settings import WorkerSettings
from holdfast.work.startup import search_first


def make_importable(settings: WorkerSettings) -> None:
    """Put the given paths, then the working directory, in front of the module search path."""
    search_first((*settings.paths, settings.root))


def make_resolver(settings: WorkerSettings) -> Resolver:
    """The resolver of a worker: what its allow-list says, queues by plain name."""
    allow = AllowList(settings.imports, settings.allow, settings.paths, settings.root)
    named = own_of(settings).plain
    plain = filter(is_plain, settings.queues if named is None else named)
    return Resolver(allow, plain, settings.auto_complete)
