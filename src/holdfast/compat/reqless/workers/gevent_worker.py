"""The worker with greenlets, in its own module, because only this one needs gevent."""

from holdfast import workers
from holdfast.compat.reqless.workers import BaseWorker


class GeventWorker(BaseWorker, workers.GeventWorker):
    """Performs jobs in greenlets, `greenlets` (10) at once, in a program with gevent's monkey patches."""


__all__ = ["GeventWorker"]
