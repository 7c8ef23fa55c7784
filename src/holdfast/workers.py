"""Workers that a program makes, subclasses and runs itself; `holdfast worker` runs the same."""

from holdfast.work.classes.base import BaseWorker
from holdfast.work.classes.forking import ForkingWorker, ForkPerJobWorker
from holdfast.work.classes.many import AsyncioWorker, GeventWorker, ThreadWorker
from holdfast.work.classes.serial import MainWorker, SerialWorker

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
