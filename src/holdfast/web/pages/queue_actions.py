"""What is done to queues: pause and resume them, put jobs, set their limits, purge and forget them."""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, cast

import msgspec

from holdfast.code.put_options import OPTIONS, Kind
from holdfast.commands.queues import BOUNDS, QueueOption
from holdfast.console.operations.spec import Spec
from holdfast.console.put import NamedCode, value_of
from holdfast.console.read.queue_figures import filter_of
from holdfast.errors import UsageError
from holdfast.settings import OWN_THROTTLE, check_whole
from holdfast.text import name_or_count
from holdfast.web.context import Context
from holdfast.web.pages.job_actions import Change, change
from holdfast.web.views import ActionRoute, Body, Done, Question, Repeal


class NamedQueues(Body, frozen=True, kw_only=True):
    """Some queues."""

    name: list[str]


async def _known(ctx: Context, body: NamedQueues) -> list[str]:
    """Return the names of the queues, each of which is known. Raises UsageError, UnknownName."""
    if not body.name:
        raise UsageError("name: expected at least one queue")
    return [await ctx.console.known_queue(name) for name in dict.fromkeys(body.name)]


class PauseQueues(NamedQueues, frozen=True, kw_only=True):
    """Queues to pause, for so many seconds (0: until they are resumed). `expire` also ends the leases of their running jobs."""

    seconds: float = 0.0
    expire: bool = False


async def pause(ctx: Context, body: PauseQueues) -> Done:
    """Pause queues. Unknown ones are refused before anything is changed."""
    names = await _known(ctx, body)
    count = await ctx.console.pause(*names, why=body.reason, seconds=body.seconds)
    done = _done(
        f"{name_or_count('Queue', names)} paused.", names, count, Repeal("queues", "resume", {"name": names})
    )
    if not body.expire:
        return done
    for name in names:
        spec = Spec(action="expire", filter=filter_of(name, "running"), who=ctx.user.name)
        await ctx.site.operations.start(ctx.console, spec)
    return _done(
        f"{name_or_count('Queue', names)} paused; the leases of running jobs end.", names, count, done.undo
    )


async def resume(ctx: Context, body: NamedQueues) -> Done:
    """Resume queues. Unknown ones are refused before anything is changed."""
    names = await _known(ctx, body)
    count = await ctx.console.resume(*names)
    if not count:
        return _done(f"{name_or_count('Queue', names)}: not paused.", names, count, None)
    return _done(
        f"{name_or_count('Queue', names)} resumed.", names, count, Repeal("queues", "pause", {"name": names})
    )


class ForgetQueues(NamedQueues, frozen=True, kw_only=True):
    """Empty queues to remove from the list, with their settings and statistics."""


async def forget(ctx: Context, body: ForgetQueues) -> Done | Question:
    """Forget empty queues."""
    names = await _known(ctx, body)
    if not body.confirm:
        return Question(
            title=f"Forget {name_or_count('queue', names)}?",
            text="Its settings and statistics are deleted. A queue with jobs, also failed ones, is refused.",
            button="Forget",
        )
    for name in names:
        await ctx.console.forget_queue(name)
    done = _done(f"{name_or_count('Queue', names)} forgotten.", names, len(names), None)
    return Done(text=done.text, changed=done.changed, keys=done.keys, place="/queues")


class PurgeQueue(Body, frozen=True, kw_only=True):
    """A queue, and the states of its jobs to cancel, with commas between."""

    name: str
    states: str = "waiting"
    dry_run: bool = False


STATES: Final = ("waiting", "scheduled", "throttled", "depends", "stalled", "running", "failed")
"""The states whose jobs can be purged."""


async def purge(ctx: Context, body: PurgeQueue) -> Done | Question:
    """Cancel all jobs of a queue in some states, after a dry run."""
    name = await ctx.console.known_queue(body.name)
    states = [one.strip() for one in body.states.split(",") if one.strip()]
    for one in states or [body.states]:
        if one not in STATES:
            raise UsageError(f"states: expected some of {', '.join(STATES)}, got {one!r:.80}")
    query = filter_of(name, ",".join(dict.fromkeys(states)))
    return await change(
        "cancel", ctx, Change(q=query, confirm=body.confirm, reason=body.reason, dry_run=body.dry_run)
    )


class SetQueue(Body, frozen=True, kw_only=True):
    """A limit of a queue, "" to remove it. `heartbeat` is the length of its leases in seconds, `throttle` how many run at once.

    `seen` is the value that was shown to whoever sets it ("": none): if it was changed meanwhile, nothing is done.
    """

    name: str
    option: Literal["max-waiting", "max-losses", "heartbeat", "throttle"]
    value: str | float = ""
    seen: str | None = None


async def set_limit(ctx: Context, body: SetQueue) -> Done:
    """Set or remove a limit of a queue."""
    name = await ctx.console.known_queue(body.name)
    text = f"{body.value:g}" if isinstance(body.value, (int, float)) else body.value.strip()
    if body.option == "heartbeat":
        await ctx.console.configure(f"{name}-heartbeat", text or None, seen=body.seen)
    elif body.option == "throttle":
        await _throttle(ctx, name, text, body.seen)
    else:
        seen: int | Literal[""] | None = None
        if body.seen is not None:
            seen = _number("seen", body.option, body.seen) or ""
        await ctx.console.set_queue(name, body.option, _number(body.option, body.option, text), seen=seen)
    keys = ("queues", f"queue:{name}", "throttles", "config")
    return Done(text=f"{body.option} of {name} is {text or 'not set'}.", keys=keys)


def _number(what: str, option: QueueOption, text: str) -> int | None:
    if not text:
        return None
    return check_whole(what, int(text) if text.isdecimal() else text, *BOUNDS[option])


async def _throttle(ctx: Context, name: str, text: str, shown: str | None) -> None:
    seen = None if shown is None else _maximum("seen", shown or "0")
    await ctx.console.set_throttle(OWN_THROTTLE + name, _maximum("throttle", text or "0"), seen=seen)
    if not text:  # of its maximum nobody saw more than that it is none now
        await ctx.console.delete_throttle(OWN_THROTTLE + name)


def _maximum(what: str, text: str) -> int:
    return check_whole(what, int(text) if text.isdecimal() else text, 0, 1 << 31)


class PutFields(Body, frozen=True, kw_only=True):
    """A job: its queue, its code (the name of a function, or of a class), and its data as JSON.

    Of a function the data are an array of its arguments or an object of named ones. With `klass` in place of `code` they are any
    JSON value, as the gateway takes them. `tags` have commas between. Options that are "" have the defaults of a put.
    """

    queue: str
    code: str = ""
    klass: str = ""
    kind: Literal["function", "class"] = "function"
    data: Any = ""
    tags: str = ""
    tag: list[str] = []
    throttle: list[str] = []
    depends: list[str] = []


_TYPES: Final[Mapping[Kind, Any]] = {
    "whole": int | str, "seconds": float | str, "switch": bool, "text": str, "backoff": float | str,
}  # fmt: skip
_FIELDS: Final[list[Any]] = [
    (name, _TYPES[option.kind], option.kind != "switch" and "")
    for name, option in OPTIONS.items()
    if not option.is_list
]
PutJob: Final = cast(
    "type[PutFields]",
    msgspec.defstruct(
        "PutJob",
        _FIELDS,
        bases=(PutFields,),
        namespace={"__doc__": PutFields.__doc__},
        frozen=True,
        kw_only=True,
    ),
)


async def put(ctx: Context, body: PutFields) -> Done:
    """Put a job by the name of its code, which is not imported here."""
    if bool(body.code.strip()) == bool(body.klass):
        raise UsageError("expected either code, a function or class, or klass")
    is_class = bool(body.klass) or body.kind == "class"
    code = NamedCode(body.klass or body.code.strip(), is_class, ctx.site.client.settings.max_data)
    data = code.data(_json_of(body))
    jid = await ctx.console.put_job(body.queue, code, data, _options(body))
    return Done(
        text=f"Put job {jid[:9]} into {body.queue}.",
        keys=("queues", f"queue:{body.queue}", "jobs"),
        undo=Repeal("jobs", "cancel", {"jid": [jid]}),
        place=ctx.path("jobs", jid),
        result={"jid": jid},
    )


def _json_of(body: PutFields) -> str | bytes | None:
    """Return the data as JSON text: with `klass` any value, else what a form has, or a value that is no text."""
    data: object = body.data
    if isinstance(data, str) and not (body.klass and data):
        return data if data.strip() else None
    return msgspec.json.encode(data)


def _options(body: PutFields) -> dict[str, Any]:
    names = [*body.tag, *(name.strip() for name in body.tags.split(",") if name.strip())]
    single = {name: _given(getattr(body, name)) for name, _, _ in _FIELDS}
    lists = {"tags": names, "throttles": body.throttle, "depends": body.depends}
    given = {**single, "only_new": single["only_new"] or None, "jid": getattr(body, "jid", "") or None}
    return {**given, **{name: value or None for name, value in lists.items()}}


def _given(value: float | str) -> object:
    """Return a number that was written in a form; other text is refused where the option is checked."""
    return value if not isinstance(value, str) else value_of(value.strip()) if value.strip() else None


def _done(text: str, names: list[str], count: int, undo: Repeal | None) -> Done:
    return Done(text=text, changed=count, keys=("queues", *(f"queue:{name}" for name in names)), undo=undo)


def _action(
    verb: str,
    body: type[Body],
    run: Callable[..., Any],
    summary: str,
    role: Any = "operator",
    place: str = "",
) -> ActionRoute:
    return ActionRoute(noun="queues", verb=verb, body=body, run=run, summary=summary, role=role, place=place)


ACTIONS: Final = (
    _action("pause", PauseQueues, pause, "Pause queues."),
    _action("resume", NamedQueues, resume, "Resume queues."),
    _action("put", PutJob, put, "Put a job."),
    _action("purge", PurgeQueue, purge, "Cancel all jobs of a queue in some states."),
    _action("set", SetQueue, set_limit, "Set or remove a limit of a queue.", "admin", "option"),
    _action("forget", ForgetQueues, forget, "Remove empty queues from the list.", "admin"),
)
