"""Data in and out of JSON, with the limits every client keeps. No pickle, by design."""

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Final, cast

import msgspec

from holdfast.errors import CodecError, UsageError

MEBIBYTE: Final = 1 << 20
MAX_DATA: Final = MEBIBYTE
MAX_DATA_CAP: Final = 64 * MEBIBYTE
MAX_DEPTH: Final = 100

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def encode_data(data: object, limit: int = MAX_DATA) -> bytes:
    """Write `data` as JSON bytes; text and bytes are taken as JSON already and sent untouched.

    `limit` is in bytes. Raises UsageError for what JSON cannot say (NaN and infinities among it), for
    nesting deeper than 100 and for more bytes than `limit`.
    """
    body = _checked_text(data) if isinstance(data, (str, bytes)) else _encoded(data)
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
        raise UsageError(f"data is nested deeper than {MAX_DEPTH}, or contains itself") from None
    except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
        raise UsageError(f"data cannot be written as JSON: {error}") from error
    if b"null" in body:
        # The encoder writes NaN and infinities as null, which would change data silently.
        _check_finite(msgspec.to_builtins(data, builtin_types=(bytes, bytearray)))
    return body


def _checked_text(text: str | bytes) -> bytes:
    try:
        body = text.encode() if isinstance(text, str) else text
        _decode(body)
    except RecursionError:
        raise UsageError(f"data is nested deeper than {MAX_DEPTH}") from None
    except (UnicodeError, msgspec.MsgspecError) as error:
        raise UsageError(
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
            raise UsageError("data holds NaN or an infinity, which JSON cannot say; use None or a string")
        level = [child for item in level for child in _children(item)]


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for item in level for child in _children(item) if isinstance(child, (dict, list))]
        if not level:
            return
    raise UsageError(f"data is nested deeper than {MAX_DEPTH}")


def decode(body: bytes | str) -> Any:
    """Read JSON. Raises CodecError."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise CodecError(f"data is not JSON: {error}") from error
