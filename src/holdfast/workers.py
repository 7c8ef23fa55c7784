"""Worker classes for programs that create or subclass workers; `holdfast worker` runs the same code."""

from holdfast.work.classes.base import BaseWorker
from holdfast.work.classes.forking import ForkingWorker, ForkPerJobWorker
from holdfast.work.classes.single import AsyncioWorker, GeventWorker, MainWorker, SerialWorker, ThreadWorker

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
