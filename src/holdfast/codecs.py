"""Encode and decode data as JSON, with limits. There is no pickle, by design.

Beyond plain JSON values, msgspec encodes and decodes dataclasses, structs, attrs classes, dates and times, UUID, Decimal,
enums, sets, tuples and bytes; `to_plain` and `from_plain` add paths, pydantic models, and subclasses of str and numbers.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, time, timedelta
from math import isfinite
from pathlib import PurePath
from typing import Any, Final, cast, get_origin

import msgspec

from holdfast.errors import CodecError, UsageError

MEBIBYTE: Final = 1 << 20
MAX_DATA: Final = MEBIBYTE
MAX_DATA_CAP: Final = 64 * MEBIBYTE
MAX_DEPTH: Final = 100


def to_plain(value: Any) -> object:
    """Return a plain value for one that msgspec cannot encode. Raises TypeError for a value that could not be decoded."""
    if isinstance(value, PurePath):
        return str(value)
    # Subclasses of str and numbers, such as markup strings or numpy's float, become plain ones.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    # A pydantic model, without importing pydantic.
    if hasattr(value, "model_validate") and hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} is not a type that JSON can carry")


def from_plain(kind: object, plain: object) -> object:
    """Return the value of type `kind` for what `to_plain` made of it. Raises TypeError, ValueError.

    A class of ours that reads itself, such as Results, has a class method `read_from(kind, plain)`.
    """
    read = getattr(get_origin(kind) or kind, "read_from", None)
    if read is not None:
        return read(kind, plain)
    if not isinstance(kind, type) or isinstance(plain, kind):
        return plain
    if hasattr(kind, "model_validate"):
        return cast("Any", kind).model_validate(plain)
    if issubclass(kind, PurePath) and isinstance(plain, str):
        return kind(plain)
    raise TypeError(f"Expected `{kind.__name__}`, got `{type(plain).__name__}`")


_encode = msgspec.json.Encoder(enc_hook=to_plain).encode
_decode = msgspec.json.Decoder().decode


def encode_data(data: object, limit: int = MAX_DATA) -> bytes:
    """Return `data` as JSON bytes. Text and bytes must be JSON already, and are returned unchanged.

    `limit` is in bytes. A set becomes a list. Raises CodecError for values that JSON cannot express (such as NaN and
    infinities) and for nesting deeper than 100, UsageError for more bytes than `limit`.
    """
    if isinstance(data, (str, bytes)):
        return _within(_checked_text(data), limit)
    # Raw is made by `Arguments.write`: JSON whose parts were checked.
    return _within(bytes(data) if type(data) is msgspec.Raw else _encoded(data), limit)


def encode_value(value: object, limit: int = MAX_DATA) -> bytes:
    """Return one value as JSON bytes; text becomes a JSON string. Raises UsageError as `encode_data` does."""
    return _within(_encoded(value), limit)


def _within(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise UsageError(
            f"data has {len(body)} bytes of JSON, more than the {limit} allowed: "
            "store it elsewhere and put a reference, or raise max_data"
        )
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(_decode(body))
    return body


def _encoded(data: object) -> bytes:
    try:
        body = _encode(data)
    except RecursionError:
        raise CodecError(f"data is nested deeper than {MAX_DEPTH}, or contains itself") from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise CodecError(f"data cannot be written as JSON: {error}") from error
    if _MOMENT.search(body):
        _check_offsets(data)
    if b"null" in body:
        # The encoder writes NaN and infinities as null, which would change data silently.
        _check_finite(msgspec.to_builtins(data, builtin_types=(bytes, bytearray), enc_hook=to_plain))
    return body


_MOMENT: Final = re.compile(rb':\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"')
"""The end of a time or a datetime with an offset, in JSON."""


def _check_offsets(data: object) -> None:
    """Raise UsageError for a time or datetime whose offset has seconds: JSON has minutes, so that it would be another moment."""
    pending: list[Any] = [data]
    while pending:
        one = pending.pop()
        if isinstance(one, (datetime, time)):
            offset = one.utcoffset()
            if offset is not None and offset % timedelta(minutes=1):
                raise UsageError(
                    f"the offset {offset} of {one!r:.100} has seconds, which JSON cannot represent: give it in UTC, as value.astimezone(UTC)"
                )
        elif isinstance(one, dict):
            pending += (*one, *one.values())
        elif isinstance(one, (list, tuple, set, frozenset)):
            pending += one
        elif not isinstance(one, (str, bytes)):
            pending += [getattr(one, name, None) for name in _fields(one.__class__)]


def _fields(kind: type) -> list[str]:
    """The names of the fields of a struct, a dataclass, an attrs class or a pydantic model."""
    for name in ("__struct_fields__", "__dataclass_fields__", "model_fields"):
        if hasattr(kind, name):
            return list(getattr(kind, name))
    return [field.name for field in getattr(kind, "__attrs_attrs__", ())]


def _checked_text(text: str | bytes) -> bytes:
    try:
        body = text.encode() if isinstance(text, str) else text
        _decode(body)
    except RecursionError:
        raise CodecError(f"data is nested deeper than {MAX_DEPTH}") from None
    except (UnicodeError, msgspec.MsgspecError) as error:
        raise CodecError(
            f"data is text that is not JSON ({error}); pass the value itself, or json.dumps(text) to send a string"
        ) from error
    return body


def _children(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return cast("Mapping[object, object]", value).values()
    if isinstance(value, (list, tuple)):
        return cast("list[object]", value)
    return ()


def _check_finite(value: object) -> None:
    level: list[object] = [value]
    while level:
        if any(isinstance(item, float) and not isfinite(item) for item in level):
            raise CodecError(
                "data contains NaN or an infinity, which JSON cannot express; use None or a string"
            )
        level = [child for item in level for child in _children(item)]


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item) if isinstance(child, (dict, list))]
        if not level:
            return
    raise CodecError(f"data is nested deeper than {MAX_DEPTH}")


def decode(body: bytes | str) -> Any:
    """Return the value of a JSON text. Raises CodecError."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError) as error:
        raise CodecError(f"data is not JSON: {error}") from error
