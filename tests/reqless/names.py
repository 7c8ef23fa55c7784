"""Who and what random sequences talk about, and what each command is said about."""

QUEUES, WORKERS, GROUPS, TAGS = ("q", "other"), ("w1", "w2"), ("g", "h"), ("red", "7", "blue")
THROTTLES = ("db", "api", "ql:q:q", "ql:q:other")
JIDS = (*(f"j{n}" for n in range(6)), "42")
TEMPLATES = ("r1", "r2")
EVERY_GROUP = (*GROUPS, "failed-retries-q", "failed-retries-other")

SUBJECTS = {
    "job": {
        "queue.put": 2, "job.requeue": 2, "job.get": 0, "job.getMulti": 0, "job.complete": 0, "job.completeAndRequeue": 0,
        "job.fail": 0, "job.retry": 0, "job.heartbeat": 0, "job.timeout": 0, "job.cancel": 0, "job.setPriority": 0,
        "job.log": 0, "job.addTag": 0, "job.removeTag": 0, "job.addDependency": 0, "job.removeDependency": 0,
        "job.track": 0, "job.untrack": 0,
    },
    "queue": {
        "queue.pop": 0, "queue.peek": 0, "queue.counts": 0, "queue.length": 0, "queue.stats": 0, "queue.pause": 0,
        "queue.unpause": 0, "queue.forget": 0, "queue.throttle.get": 0, "queue.throttle.set": 0, "queue.jobsByState": 1,
    },
    "group": {"queue.unfail": 1, "jobs.failedByGroup": 0},
    "template": {
        "queue.recurAtInterval": 1, "recurringJob.get": 0, "recurringJob.update": 0, "recurringJob.addTag": 0,
        "recurringJob.removeTag": 0, "recurringJob.cancel": 0,
    },
    "worker": {"worker.jobs": 0, "worker.forget": 0},
    "tag": {"jobs.tagged": 0},
    "setting": {"config.get": 0, "config.set": 0, "config.unset": 0},
    "throttle": {
        "throttle.set": 0, "throttle.get": 0, "throttle.delete": 0, "throttle.locks": 0, "throttle.pending": 0,
        "throttle.release": 0,
    },
    "all": {
        "jobs.completed": 0, "jobs.tracked": 0, "tags.top": 0, "failureGroups.counts": 0, "queues.counts": 0,
        "queues.names": 0, "workers.counts": 0, "config.getAll": 0, "queueIdentifierPatterns.getAll": 0,
        "queueIdentifierPatterns.setAll": 0, "queuePriorityPatterns.getAll": 0, "queuePriorityPatterns.setAll": 0,
    },
}  # fmt: skip
"""By kind of subject: the commands, and which of their words names it."""
KIND = {command: kind for kind, commands in SUBJECTS.items() for command in commands}
COMMANDS = tuple(KIND)

STATES = {
    "job": ("absent", "waiting", "scheduled", "depends", "throttled", "running", "late", "grace", "stalled", "failed",
            "complete"),
    "queue": ("unknown", "idle", "ready", "due", "busy", "lost", "paused"),
    "group": ("empty", "filled"),
    "template": ("absent", "present"),
    "worker": ("unknown", "idle", "holding"),
    "tag": ("free", "used"),
    "setting": ("unset", "set"),
    "throttle": ("free", "held", "awaited"),
    "all": ("any",),
}  # fmt: skip
