"""The worker with greenlets, in a module of its own: a program that does not import it needs no gevent."""

from holdfast import workers
from holdfast.compat.reqless.workers import BaseWorker


class GeventWorker(BaseWorker, workers.GeventWorker):
    """Performs jobs in greenlets, `greenlets` (10) at once, in a program whose standard library is patched."""


__all__ = ["GeventWorker"]
