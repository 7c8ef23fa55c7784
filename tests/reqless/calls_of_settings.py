"""Random calls about configuration, queue patterns, and throttles."""

from chooser import Chooser
from names import QUEUES, THROTTLES
from view import Call, View

SETTINGS = (
    ("heartbeat", "60"), ("heartbeat", "10"), ("q-heartbeat", "5"), ("grace-period", "10"), ("grace-period", "0"),
    ("grace-period", "-1"), ("max-pop-retry", "3"), ("other-max-pop-retry", "2"), ("max-job-history", "3"),
    ("max-job-history", "0"), ("jobs-history", "100"), ("jobs-history-count", "2"), ("jobs-history-count", "0"),
    ("jobs-history", "-1"), ("heartbeat", "0"), ("app.colour", "blue"), ("application", 'a "name"'),
)  # fmt: skip
ODD = (("max-job-history", "1"), ("max-job-history", "2"), ("heartbeat", "soon"), ("grace-period", ""))
IDENTIFIERS = (("default", '["a*"]'), ("mail", '["m","n"]'), ("none", "[]"), ("all", "["))
PRIORITIES = (
    '{"fairly": true, "pattern": ["a", "b"]}', '{"fairly": false, "pattern": ["default"]}', '{"pattern": ["x"]}', "[",
)  # fmt: skip


def _key(view: View, choose: Chooser) -> str:
    if view.settings and choose.chance(50):
        return choose.pick(sorted(view.settings))
    return choose.pick(SETTINGS)[0]


def get(view: View, choose: Chooser) -> Call:
    return Call("config.get", (_key(view, choose) if choose.chance(95) else "nothing",))


def get_all(view: View, choose: Chooser) -> Call:
    return Call("config.getAll", ())


def set_(view: View, choose: Chooser) -> Call:
    return Call("config.set", choose.pick(SETTINGS) if not choose.chance(1.5) else choose.pick(ODD))


def unset(view: View, choose: Chooser) -> Call:
    return Call("config.unset", (_key(view, choose),))


def patterns(view: View, choose: Chooser) -> Call:
    which = choose.pick(("queueIdentifierPatterns", "queuePriorityPatterns"))
    if choose.chance(50):
        return Call(f"{which}.getAll", ())
    if which == "queuePriorityPatterns":
        return Call(f"{which}.setAll", tuple(choose.some(PRIORITIES, 3)))
    words = [word for pair in choose.some(IDENTIFIERS, 3) for word in pair]
    return Call(f"{which}.setAll", tuple(words[:-1] if choose.chance(5) else words))


def _awaited(view: View, name: str) -> bool:
    return bool(view.slots.get(name, ([], []))[1])


def _limit(view: View, choose: Chooser) -> str:
    """A throttle; mostly one that nobody waits for, for a change of that is another matter (W38)."""
    by_use = {used: [name for name in THROTTLES if _awaited(view, name) == used] for used in (True, False)}
    return choose.pick(by_use[choose.chance(50)] or THROTTLES)


def limit(view: View, choose: Chooser) -> Call:
    name, most = (
        _limit(view, choose),
        choose.pick((1, 1, 2, 0, 3)) if not choose.chance(1) else choose.pick((-1, "x")),
    )
    if name.startswith("ql:q:") and choose.chance(80):
        return Call("queue.throttle.set", (name.removeprefix("ql:q:"), most))
    return Call("throttle.set", (name, most, *choose.pick(((), (), (0,), (-1,), (1000,)))))


def limit_one(view: View, choose: Chooser) -> Call:
    return Call("throttle.set", (THROTTLES[0], choose.pick((1, 1, 1, 2))))


def limit_queue(view: View, choose: Chooser) -> Call:
    return Call("queue.throttle.set", (QUEUES[0], choose.pick((2, 1, 1, 3))))


def unlimit(view: View, choose: Chooser) -> Call:
    return Call("throttle.delete", (_limit(view, choose),))


def release(view: View, choose: Chooser) -> Call:
    name = choose.pick([name for name in THROTTLES if any(view.slots.get(name, ()))] or THROTTLES)
    held, awaited = view.slots.get(name, ([], []))
    named = [*held, *awaited] or list(view.jobs) or ["nobody"]
    return Call("throttle.release", (name, *choose.some(named, 2)))


def look(view: View, choose: Chooser) -> Call:
    what = choose.pick(("get", "get", "get", "locks", "pending"))
    if what == "get" and choose.chance(50):
        return Call("queue.throttle.get", (choose.pick(QUEUES),))
    awaited = [name for name in THROTTLES if _awaited(view, name)]
    return Call(f"throttle.{what}", (choose.pick(awaited if awaited and choose.chance(60) else THROTTLES),))


CALLS = {get: 2, get_all: 1, set_: 4, unset: 3, patterns: 2}
THROTTLING = {limit: 4, unlimit: 3, release: 2, look: 9}
"""Made where a sequence looks at throttles."""
