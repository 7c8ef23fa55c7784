"""Worker classes for programs that create or subclass workers; `holdfast worker` runs the same code."""

from holdfast.worker.classes.base import BaseWorker
from holdfast.worker.classes.forking import ForkingWorker, ForkPerJobWorker
from holdfast.worker.classes.single import AsyncioWorker, GeventWorker, MainWorker, SerialWorker, ThreadWorker

__all__ = [
    "AsyncioWorker",
    "BaseWorker",
    "ForkPerJobWorker",
    "ForkingWorker",
    "GeventWorker",
    "MainWorker",
    "SerialWorker",
    "ThreadWorker",
]
