"""The abstract classes of the released package, for annotations, `isinstance`, and subclasses.

holdfast's classes are registered as their virtual subclasses. For a type checker the interfaces are holdfast's classes; at
run time they are abstract, and a subclass must define their members.
"""

from abc import ABC, ABCMeta, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast, get_args, get_origin

from holdfast.client.config import Config
from holdfast.client.handles import Job, Queue, Queues
from holdfast.client.job_lookup import Jobs
from holdfast.client.patterns import QueuePatterns
from holdfast.client.recurring import RecurringJob
from holdfast.client.sync import Client
from holdfast.client.tables import QueueJobs
from holdfast.client.throttles import Throttle, Throttles
from holdfast.client.workers import WorkersOf
from holdfast.queue_resolvers import (
    DynamicMappingQueueIdentifiersTransformer,
    DynamicPriorityQueueIdentifiersTransformer,
    TransformingQueueResolver,
)


class AbstractJobData(ABC):
    """The data of a job as a class, with conversion to and from JSON text."""

    @abstractmethod
    def to_json(self) -> str:
        """Return the data as JSON text."""

    @classmethod
    @abstractmethod
    def from_json(cls, data: str) -> Self:
        """Return the data of a JSON text that `to_json` wrote."""


JD = TypeVar("JD", bound=AbstractJobData)


class AbstractJobProcessor(ABC, Generic[JD]):
    """A job class with a class for its data: `class SendInvoice(AbstractJobProcessor[Invoice])`."""

    @staticmethod
    @abstractmethod
    def process(job: Any) -> None:
        """Perform a job."""

    @classmethod
    def data_class(cls) -> type[JD]:
        """Return the class of the data: the type argument of this class or of a base.

        Raises RuntimeError if there is none; a class may override this method instead.
        """
        for kind in cls.__mro__:
            for base in getattr(kind, "__orig_bases__", ()):
                origin = get_origin(base)
                if isinstance(origin, type) and issubclass(origin, AbstractJobProcessor):
                    [given, *_] = get_args(base)
                    if not isinstance(given, TypeVar):
                        return cast("type[JD]", given)
        raise RuntimeError(f"{cls.__name__} does not declare the class of its data: AbstractJobProcessor[…]")

    @classmethod
    def deserialize_data_json(cls, data: str) -> JD:
        """Return the data of a job from its JSON text."""
        return cls.data_class().from_json(data)


class AbstractQueueIdentifiersTransformer(ABC):
    """One step in the conversion of queue identifiers to names of queues."""

    @abstractmethod
    def transform(self, queue_identifiers: list[str]) -> list[str]:
        """Return the converted list of names and patterns."""


class AbstractQueueResolver(ABC):
    """An object that returns the queues of a worker."""

    @abstractmethod
    def resolve(self) -> list[str]:
        """Return the names of the queues, in order."""


def _interface(name: str, members: str, *real: type, base: type = ABC) -> object:
    """Return an abstract class with these members, with `real` as virtual subclasses."""
    body: dict[str, object] = {member: abstractmethod(_undefined) for member in members.split()}
    body |= {"__module__": __name__, "__doc__": f"The interface of {real[-1].__name__}."}
    made: Any = ABCMeta(name, (base,), body)
    for kind in real:
        made.register(kind)
    return made


def _undefined(*_: object) -> object:
    raise NotImplementedError


if TYPE_CHECKING:
    AbstractBaseJob = Job | RecurringJob
    AbstractClient = Client
    AbstractConfig = Config
    AbstractJob = Job
    AbstractJobs = Jobs
    AbstractQueue = Queue
    AbstractQueueJobs = QueueJobs
    AbstractQueuePatterns = QueuePatterns
    AbstractQueues = Queues
    AbstractRecurringJob = RecurringJob
    AbstractThrottle = Throttle
    AbstractThrottles = Throttles
    AbstractWorkers = WorkersOf
else:
    AbstractClient = _interface(
        "AbstractClient", "__call__ config database jobs queues throttles worker_name workers", Client
    )
    AbstractConfig = _interface(
        "AbstractConfig",
        "__len__ __getitem__ __setitem__ __delitem__ __contains__ __iter__ all clear get items keys pop update values",
        Config,
    )
    AbstractBaseJob = _interface(
        "AbstractBaseJob",
        "cancel data jid klass klass_name queue_name tag tags throttles untag",
        RecurringJob,
        Job,
    )
    AbstractJob = _interface(
        "AbstractJob",
        "complete dependencies fail heartbeat klass process retry sandbox state timeout track tracked ttl untrack "
        "worker_name",
        Job,
        base=AbstractBaseJob,
    )
    AbstractRecurringJob = _interface("AbstractRecurringJob", "next", RecurringJob, base=AbstractBaseJob)
    AbstractJobs = _interface("AbstractJobs", "__getitem__ complete failed get tagged tracked", Jobs)
    AbstractQueue = _interface(
        "AbstractQueue",
        "__len__ counts heartbeat jobs name pause peek pop put recur requeue stats throttle unpause",
        Queue,
    )
    AbstractQueueJobs = _interface(
        "AbstractQueueJobs", "depends recurring running scheduled stalled", QueueJobs
    )
    AbstractQueues = _interface("AbstractQueues", "__getitem__ counts", Queues)
    AbstractQueuePatterns = _interface(
        "AbstractQueuePatterns",
        "get_queue_identifier_patterns get_queue_priority_patterns set_queue_identifier_patterns "
        "set_queue_priority_patterns",
        QueuePatterns,
    )
    AbstractThrottle = _interface(
        "AbstractThrottle", "delete locks maximum name pending set_maximum ttl", Throttle
    )
    AbstractThrottles = _interface("AbstractThrottles", "__getitem__", Throttles)
    AbstractWorkers = _interface("AbstractWorkers", "__getitem__ counts", WorkersOf)
    for _kind in (DynamicMappingQueueIdentifiersTransformer, DynamicPriorityQueueIdentifiersTransformer):
        AbstractQueueIdentifiersTransformer.register(_kind)
    AbstractQueueResolver.register(TransformingQueueResolver)

__all__ = [
    "AbstractBaseJob",
    "AbstractClient",
    "AbstractConfig",
    "AbstractJob",
    "AbstractJobData",
    "AbstractJobProcessor",
    "AbstractJobs",
    "AbstractQueue",
    "AbstractQueueIdentifiersTransformer",
    "AbstractQueueJobs",
    "AbstractQueuePatterns",
    "AbstractQueueResolver",
    "AbstractQueues",
    "AbstractRecurringJob",
    "AbstractThrottle",
    "AbstractThrottles",
    "AbstractWorkers",
]
