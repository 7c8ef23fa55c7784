"""Messages that become jobs: what is put for each, and into which queue."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast.client.putting.options import NOTHING, make_put
from holdfast.client.topics.messages import ItemVerbs
from holdfast.code.function import AnyFunctionJob
from holdfast.code.naming import klass_name
from holdfast.errors import UsageError
from holdfast.settings import Settings, check_callable, check_name

SETTLED = ("jid", "only_new")


class Bridge(msgspec.Struct, frozen=True):
    """Where messages go that become jobs."""

    queue: str
    klass: Any
    options: Mapping[str, Any]


def bridge_of(
    client: Any, handler: object, to_queue: object, klass: object, options: Mapping[str, Any]
) -> Bridge | None:
    """Where messages go, None for a handler. Raises UsageError for what is neither or both, or cannot be put."""
    if handler is not None:
        if to_queue is not None or klass is not None or options:
            raise UsageError(
                "a subscription has a handler, or to_queue and klass with options of a put, not both"
            )
        check_callable("handler", handler)
        return None
    if _is_function(klass):
        own_queue, own = cast("Any", klass).put_options()
        to_queue, options = own_queue if to_queue is None else to_queue, {**own, **options}
    if to_queue is None or klass is None:
        raise UsageError("a subscription needs a handler, or to_queue and klass")
    for name in SETTLED:
        if name in options:
            raise UsageError(f"{name} is settled: each job has the id of its message, and is put only once")
    bridge = Bridge(check_name("to_queue", to_queue), klass, dict(options))
    # What cannot be put is refused now. The options of a class depend on the data, so they are not asked.
    make_put(client.settings, bridge.queue, _name(klass), NOTHING, bridge.options, is_trial=True)
    return bridge


def job_of(settings: Settings, bridge: Bridge, item: ItemVerbs) -> Any:
    """The command that puts the job of a message. Raises UsageError for a body that cannot be its data."""
    options = {**bridge.options, "jid": item.id, "only_new": True}
    if _is_function(bridge.klass):
        data = _call_of(bridge.klass, item.body)
        return make_put(settings, bridge.queue, _name(bridge.klass), data, options)
    value = _read(item.body)
    # Text would be taken for JSON that is written already.
    data = msgspec.json.encode(value) if isinstance(value, str) else value
    return make_put(settings, bridge.queue, bridge.klass, data, options)


def _name(klass: Any) -> str:
    if isinstance(klass, str):
        return klass
    return klass.stored_name if _is_function(klass) else klass_name(klass)


def _is_function(klass: object) -> bool:
    return isinstance(klass, AnyFunctionJob)


def _call_of(function: Any, body: str) -> Any:
    """The arguments of a function job: by name in an object, in order in a list, else the text is the only one."""
    value = _read(body)
    if isinstance(value, dict):
        return function.write((), value)
    return function.write(tuple(cast("Any", value)) if isinstance(value, list) else (value,), {})


def _read(body: str) -> Any:
    """A JSON object or list as such, any other text as text."""
    if body.lstrip()[:1] in ("{", "["):
        try:
            return msgspec.json.decode(body)
        except msgspec.MsgspecError:
            pass  # text that only begins like JSON
    return body
