"""Unique keys of function jobs: which calls of a function count as the same."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, cast

import msgspec

from holdfast.codecs import to_plain
from holdfast.errors import UsageError
from holdfast.settings import check_list
from holdfast.text import one_line

Unique = bool | Sequence[str] | Callable[..., str]
"""True: all arguments; some of them by name; or a function of the arguments that returns the key."""

# The order of a set differs between processes; a key must not.
_encode: Final = msgspec.json.Encoder(enc_hook=to_plain, order="deterministic").encode


def checked_unique(function: Callable[..., object], unique: object) -> Unique:
    """Return the option `unique` of a function job. Raises UsageError for a name that the function has no argument of."""
    if inspect.iscoroutinefunction(unique):
        raise UsageError("unique: expected a function that is not async")
    if isinstance(unique, bool) or callable(unique):
        return cast("Unique", unique)
    if isinstance(unique, str) or not isinstance(unique, Iterable):
        raise UsageError(f"unique: expected True, names of arguments, or a function, got {unique!r:.80}")
    names = [str(name) for name in check_list("unique", cast("Iterable[object]", unique))]
    parameters = inspect.signature(function).parameters
    for name in names:
        if name not in parameters:
            raise UsageError(f"unique: {function.__name__} has no argument {name!r}")
    if not names:
        raise UsageError("unique: expected the name of an argument at least; True is all of them")
    return names


def unique_key(
    function: Callable[..., object], unique: Unique, args: Sequence[object], kwargs: Mapping[str, object]
) -> str:
    """Return the key of one call, with the defaults of arguments that it does not give. Raises UsageError."""
    if callable(unique):
        try:
            made = cast("object", unique(*args, **kwargs))
        except Exception as error:
            raise UsageError(
                f"unique: the function raised {type(error).__name__}: {one_line(str(error)):.200}"
            ) from error
        if not isinstance(made, str) or not made:
            raise UsageError(f"unique: the function must return a text that is not empty, not {made!r:.80}")
        return sha256(made.encode(errors="surrogatepass")).hexdigest()
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    names = list(bound.arguments) if isinstance(unique, bool) else unique
    return sha256(_encode([bound.arguments[name] for name in names])).hexdigest()
