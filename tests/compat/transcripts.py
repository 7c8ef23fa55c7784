"""What a program sees, written down: told by a process with the released package, and by the stand-in here.

transcripts.py URL        prints {label: what was seen}, of the released package on its path
"""

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

Say = Callable[[str, Callable[[], Any]], None]

SUBMODULES = (
    "abstract", "config", "events", "exceptions", "future", "importer", "job", "listener", "models", "proctitle",
    "profile", "queue", "queue_patterns", "queue_resolvers", "throttle", "util", "workers",
)  # fmt: skip
OF_A_JOB = (
    "jid klass_name data priority queue_name tags throttles sandbox state worker_name expires_at original_retries "
    "retries_left failure dependencies dependents tracked"
)
OF_A_TEMPLATE = "jid klass_name data priority queue_name tags throttles sandbox interval count retries"


def transcript(package: Any, client: Any, other: Any) -> dict[str, Any]:
    """What is seen, by what was done."""
    seen: dict[str, Any] = {}

    def say(label: str, ask: Callable[[], Any]) -> None:
        assert label not in seen, label
        try:
            seen[label] = ["answered", json.loads(json.dumps(ask(), default=repr, sort_keys=True))]
        except Exception as error:
            seen[label] = ["raised", kinds_of(error, package.exceptions.ReqlessError)]

    for tell in (names, leases, queues, jobs, templates, settings, resolving, data):
        tell(package, client, other, say)
    return seen


def kinds_of(error: Exception, root: type) -> list[str]:
    """What a program may catch it as."""
    kinds = [kind for kind in type(error).__mro__ if kind.__module__ == "builtins" or kind is root]
    return sorted("ReqlessError" if kind is root else kind.__name__ for kind in kinds)


def names(package: Any, client: Any, other: Any, say: Say) -> None:
    for module in SUBMODULES:
        found = importlib.import_module(f"{package.__name__}.{module}")
        say(f"module {module}", lambda found=found: found is not None)
    top = "Client Config Events Job Jobs Queue Queues RecurringJob ReqlessError Throttle Throttles Workers logger retry"
    for name in top.split():
        say(f"name {name}", lambda name=name: hasattr(package, name))
    errors = package.exceptions
    say("the tree of errors", lambda: issubclass(errors.LostLockError, errors.ReqlessError))
    for name in [
        "workers.ForkingWorker",
        "workers.SerialWorker",
        "workers.MainWorker",
        "workers.BaseWorker",
        "profile.Profiler",
    ]:
        module, _, attribute = name.partition(".")
        say(f"name {name}", lambda m=module, a=attribute: hasattr(getattr(package, m), a))
    abstract = sorted(name for name in dir(package.abstract) if name.startswith("Abstract"))
    say("abstract classes", lambda: abstract)
    say("an abstract class cannot be made", package.abstract.AbstractJobProcessor)
    say("an interface cannot be made", package.abstract.AbstractThrottle)


def leases(package: Any, client: Any, other: Any, say: Say) -> None:
    queue = client.queues["leases"]

    def held() -> Any:
        queue.put("K", "{}", jid="held")
        return queue.pop()

    verbs: dict[str, Callable[[Any], Any]] = {
        "complete": lambda job: bool(job.complete()),
        "complete into a queue": lambda job: bool(job.complete("next")),
        "fail": lambda job: bool(job.fail("group", "message")),
        "retry": lambda job: job.retry(),
        "heartbeat": lambda job: job.heartbeat() > 0,
    }
    for name, call in verbs.items():
        job = held()
        say(name, lambda call=call, job=job: call(job))
        job = held()
        client.jobs["held"].move("leases")
        say(f"{name} of a moved job", lambda call=call, job=job: call(job))
        other.queues["leases"].pop()
        say(f"{name} of another's job", lambda call=call, job=job: call(job))
        client.jobs["held"].cancel()
        say(f"{name} of a job that is gone", lambda call=call, job=job: call(job))
    job = held()
    say("complete later, without a queue", lambda: job.complete(depends=["x"]))
    held().timeout()
    say("the state after a timeout", lambda: client.jobs["held"].state)
    client.jobs["held"].cancel()
    say("a lost lease is a lost lock", lambda: lost(package, held()))


def lost(package: Any, job: Any) -> bool:
    job.cancel()
    try:
        job.heartbeat()
    except package.exceptions.LostLockError as error:
        return str(error) == "held"
    return False


def queues(package: Any, client: Any, other: Any, say: Say) -> None:
    queue = client.queues["queues"]
    say("nothing to pop", queue.pop)
    say("nothing to pop, of two", lambda: queue.pop(2))
    say("pop none", lambda: queue.pop(0))
    say("nothing to peek", queue.peek)
    say("nothing to peek, of two", lambda: queue.peek(count=2))
    say("counts of a new queue", lambda: {k: v for k, v in queue.counts.items() if k in USUAL_COUNTS})
    say("length", lambda: len(queue))
    say("default heartbeat", lambda: queue.heartbeat)
    say("statistics", lambda: sorted(queue.stats()))
    say("buckets", lambda: len(queue.stats()["wait"]["histogram"]))
    say("its throttle", lambda: [queue.throttle.name, queue.throttle.maximum(), queue.throttle.ttl()])
    say("who holds it", lambda: [queue.throttle.locks(), queue.throttle.pending()])
    say("an unknown throttle", lambda: [client.throttles["t"].maximum(), client.throttles["t"].ttl()])
    client.throttles["t"].set_maximum(5, 60)
    say("a throttle", lambda: [client.throttles["t"].maximum(), client.throttles["t"].ttl()])
    client.throttles["t"].set_maximum(expiration=600)
    say("a throttle prolonged", lambda: [client.throttles["t"].maximum(), client.throttles["t"].ttl() > 60])
    client.throttles["t"].delete()
    say("no throttle any more", lambda: client.throttles["t"].maximum())
    say("views", lambda: [getattr(queue.jobs, view)() for view in VIEWS])
    say("the name of a class", lambda: queue.class_string(dict))
    say("the name of a name", lambda: queue.class_string("a.b"))
    say("data that is no JSON", lambda: queue.put("K", "{bad"))
    say("no interval", lambda: queue.recur("K", "{}", interval=0))
    say("requeue nothing", lambda: queue.requeue("K", "{}", jid="nobody"))
    say("its worker", lambda: queue.worker_name)
    things = {
        "client": client,
        "queues": client.queues,
        "queue": queue,
        "config": client.config,
        "workers": client.workers,
    }
    for name, thing in things.items():
        say(f"no such attribute of {name}", lambda thing=thing: thing.nonesuch)
    say("a command", lambda: client("queue.counts", "queues") != "")
    say("a command there is not", lambda: client("nonesuch"))


USUAL_COUNTS = [
    "name",
    "waiting",
    "running",
    "stalled",
    "throttled",
    "scheduled",
    "depends",
    "recurring",
    "paused",
]
VIEWS = ("running", "stalled", "scheduled", "depends", "recurring")


def jobs(package: Any, client: Any, other: Any, say: Say) -> None:
    queue = client.queues["jobs"]
    queue.put("json.JSONDecoder", '{"a": 1}', jid="job", priority=1, tags=["t"], throttles=["th"], retries=3)
    job = client.jobs["job"]
    for name in OF_A_JOB.split():
        say(f"job.{name}", lambda name=name: getattr(job, name))
    say("job.history", lambda: [[entry["what"], entry["queue"]] for entry in job.history])
    say("job.klass", lambda: job.klass.__name__)
    say("job.queue", lambda: job.queue.name)
    say("repr of a job", lambda: repr(job))
    say("tags", lambda: job.tag("u", "t"))
    say("fewer tags", lambda: job.untag("t"))
    say("track and untrack", lambda: [job.track(), job.track(), job.untrack(), job.untrack()])
    say("tracking nobody", lambda: client.track("nobody"))
    say("depend on nobody", lambda: job.depend("x"))
    say("cancelled twice", lambda: [client.jobs["job"].cancel(), job.cancel()])
    say("nobody", lambda: client.jobs["nobody"])
    say("nobody among many", lambda: client.jobs.get("nobody", "no one"))
    say("no failures", client.jobs.failed)
    say("no such failures", lambda: client.jobs.failed("nonesuch"))
    say("no such tag", lambda: client.jobs.tagged("nonesuch"))
    say("nothing tracked", client.jobs.tracked)
    say("no tags", client.tags)
    say("nothing to unfail", lambda: client.unfail("nonesuch", "jobs"))
    made = {
        "jid": "x", "klass": "K", "data": "{}", "priority": 0, "queue": "q", "state": "running", "failure": {},
        "dependents": {}, "dependencies": {}, "tracked": False, "worker": "", "remaining": 5, "expires": 0,
        "retries": 5, "history": [],
    }  # fmt: skip
    by_hand = package.Job(client, **made)
    say("a job made by hand", lambda: [repr(by_hand), by_hand.dependents, by_hand.tags, by_hand.queue.name])
    say(
        "kinds",
        lambda: [isinstance(by_hand, package.job.BaseJob), isinstance(by_hand, package.abstract.AbstractJob)],
    )
    queue.put("K", "{}", jid="mine")
    popped = queue.pop()
    say("a popped job", lambda: [popped.state, popped.worker_name, popped.ttl > 50])
    say("no worker", lambda: client.workers["nobody"])
    say("a retried job waits", lambda: [popped.retry(), client.jobs["mine"].state])
    client.jobs["mine"].cancel()
    queue.put("K", "{}", jid="once", retries=0)
    say("no retries", lambda: client.jobs["once"].retries_left)
    once = queue.pop()
    say("complete twice", lambda: [bool(once.complete()), bool(once.complete())])
    once.cancel()
    say("a gone job is moved", lambda: bool(popped.move("jobs")))
    say("data that is no text", lambda: bool(queue.put("K", {"a": 1})))


def templates(package: Any, client: Any, other: Any, say: Say) -> None:
    queue = client.queues["templates"]
    queue.recur("json.JSONDecoder", "{}", interval=60, jid="daily", tags=["a"], throttles=["t"], offset=600)
    template = client.jobs["daily"]
    for name in OF_A_TEMPLATE.split():
        say(f"template.{name}", lambda name=name: getattr(template, name))
    say("kind of a template", lambda: isinstance(template, package.RecurringJob))
    say("abstract kind of a template", lambda: isinstance(template, package.abstract.AbstractRecurringJob))
    say("next", lambda: type(template.next).__name__)
    say("its class", lambda: template.klass.__name__)
    say("the count cannot be changed", lambda: setattr(template, "count", 4))
    template.klass, template.interval = dict, 30
    say("changed", lambda: [client.jobs["daily"].klass_name, client.jobs["daily"].interval])
    say("tags of a template", lambda: template.tag("b"))
    say("moved", lambda: [bool(template.move("elsewhere")), client.jobs["daily"].queue_name])
    say("cancelled", template.cancel)
    say("no next any more", lambda: template.next)


def settings(package: Any, client: Any, other: Any, say: Say) -> None:
    config = client.config
    say("how many settings", lambda: len(config))
    say("their names", lambda: sorted(config))
    say("their values", lambda: {key: value for key, value in config.items() if key != "application"})
    say("a setting", lambda: [config["heartbeat"], config.get("heartbeat"), "heartbeat" in config])
    say("an unknown setting", lambda: [config["nonesuch"], "nonesuch" in config])
    say("a default", lambda: [config.get("nonesuch", 3), config.pop("nonesuch", 4)])
    say("a setting that is text", lambda: bool(config["application"]))
    config["mine"] = 7
    config.update({"more": 1}, most=2)
    say("settings of one's own", lambda: [config["mine"], config["more"], config["most"], len(config)])
    del config["mine"]
    say("and away", lambda: config["mine"])
    config.clear()
    say("all at their defaults", lambda: len(config))
    say("an event there is not", lambda: client.events.on("nonesuch", print))
    say("an event", lambda: [client.events.on("failed", print), client.events.off("failed") is print])
    say("events of a connection", lambda: package.Events(client.database).events)
    say(
        "kinds of its parts",
        lambda: [isinstance(client.events, package.Events), isinstance(config, package.Config)],
    )
    say("where events are told", lambda: package.Events.namespace)
    patterns = client.queue_patterns
    say("patterns", patterns.get_queue_identifier_patterns)
    say("priorities", lambda: [rule.patterns for rule in patterns.get_queue_priority_patterns()])
    patterns.set_queue_identifier_patterns({"a": ["b"], "empty": []})
    say("other patterns", patterns.get_queue_identifier_patterns)
    patterns.set_queue_identifier_patterns({})


def resolving(package: Any, client: Any, other: Any, say: Say) -> None:
    rule, resolvers = package.models.QueuePriorityPattern, package.queue_resolvers
    say(
        "rules are equal by both",
        lambda: [rule(["a"], True) == rule(["a"], True), rule(["a"], True) == rule(["a"], False)],
    )
    say("names resolve to themselves", resolvers.TransformingQueueResolver(["b", "a"]).resolve)
    mapping = resolvers.DynamicMappingQueueIdentifiersTransformer.resolve_queue_names
    say("patterns resolve", lambda: mapping({"x": ["a*"]}, ["ab", "b", "ac"], ["@x", "!ac", "b"]))
    ordered = resolvers.DynamicPriorityQueueIdentifiersTransformer.prioritize_queues
    rules = [rule(["b"], False), rule(["default"], False), rule(["a*"], False)]
    say("priorities order", lambda: ordered(["ab", "c", "b", "d"], rules))

    class Upper(package.abstract.AbstractQueueIdentifiersTransformer):
        def transform(self, queue_identifiers: list[str]) -> list[str]:
            return [name.upper() for name in queue_identifiers]

    resolver = resolvers.TransformingQueueResolver(["a"], [Upper()])
    say("a transformer of one's own", resolver.resolve)
    say("kind of a resolver", lambda: isinstance(resolver, package.abstract.AbstractQueueResolver))


def data(package: Any, client: Any, other: Any, say: Say) -> None:
    abstract = package.abstract

    class Invoice(dict, abstract.AbstractJobData):  # type: ignore[type-arg,name-defined,misc]
        def to_json(self) -> str:
            return json.dumps(self)

        @classmethod
        def from_json(cls, text: str) -> Any:
            return cls(json.loads(text))

    class Sends(abstract.AbstractJobProcessor[Invoice]):  # type: ignore[type-arg,name-defined]
        @staticmethod
        def process(job: Any) -> None:
            Sends.deserialize_data_json(job.data)

    class Nothing(abstract.AbstractJobProcessor):  # type: ignore[type-arg,name-defined,misc]
        @staticmethod
        def process(job: Any) -> None: ...

    say("the class of the data", lambda: Sends.data_class() is Invoice)
    say("the data", lambda: Sends.deserialize_data_json('{"a": 1}'))
    say("its kind", lambda: isinstance(Sends.deserialize_data_json("{}"), Invoice))
    say("no class of data", Nothing.data_class)
    future = package.future.Future()
    say("a future without a value", lambda: [future.done(), future.result(0.01)])
    future.set_result(3)
    say("a future with one", lambda: [future.done(), future.result()])
    say("an import", lambda: package.util.import_class("json.JSONDecoder").__name__)
    say("an import of nothing", lambda: package.util.import_class("json.Nonesuch"))
    say("an import from nowhere", lambda: package.util.import_class("nonesuch.Nothing"))
    say("an importer", lambda: package.importer.Importer.import_class("json.JSONDecoder").__name__)

    @package.retry(ValueError)
    def stumbles(job: Any) -> None:
        """Stumbles."""
        raise ValueError if job.raises == "value" else KeyError

    class Fake:
        retried = 0
        raises = "value"

        def retry(self) -> None:
            self.retried += 1

    fake = Fake()
    say("a stumble", lambda: [stumbles(fake), fake.retried, stumbles.__name__, stumbles.__doc__])
    fake.raises = "key"
    say("another error", lambda: stumbles(fake))


if __name__ == "__main__":
    import reqless

    first, second = (reqless.Client(sys.argv[1], hostname=name) for name in ("box", "other"))
    first.database.flushdb()
    print(json.dumps(transcript(reqless, first, second)))
