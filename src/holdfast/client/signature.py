"""Signatures of what is posted to other programs, and the files that hold secrets.

The header is `Holdfast-Signature: t=<seconds since the epoch>,v1=<HMAC-SHA256 as hex>`, over `<t>.` and the body as it is sent.
Beside it are the headers of Standard Webhooks 1.0 (`webhook-id`, `webhook-timestamp`, `webhook-signature`), for which many
languages have libraries: https://github.com/standard-webhooks/standard-webhooks
"""

import binascii
import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Final

from holdfast.errors import UsageError

HEADER: Final = "Holdfast-Signature"
LEAST_SECRET: Final = 16
_PREFIX: Final = b"whsec_"
_MOST_SECRET: Final = 4096  # bytes


def check_secret(secret: object) -> None:
    """Raise UsageError for a secret to sign with that is too short to be one; b"" is none."""
    if not isinstance(secret, bytes) or 0 < len(secret) < LEAST_SECRET:
        raise UsageError(f"secret: expected at least {LEAST_SECRET} bytes, or none")


def signature(secret: bytes, body: bytes, seconds: int | None = None) -> str:
    """Return the value of the header for a body that is sent at `seconds` (since the epoch; default: now)."""
    moment = int(time.time()) if seconds is None else seconds
    digest = hmac.new(secret, b"%d." % moment + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def signed_headers(secret: bytes, body: bytes, identity: str) -> dict[str, str]:
    """Return the headers of a signed body that is sent now. `identity` is the same whenever this message is sent again."""
    seconds = int(time.time())
    message = "msg_" + hashlib.sha256(identity.encode(errors="replace")).hexdigest()[:32]
    signed = hmac.new(_key(secret), f"{message}.{seconds}.".encode() + body, hashlib.sha256)
    return {
        HEADER: signature(secret, body, seconds),
        "webhook-id": message,
        "webhook-timestamp": str(seconds),
        "webhook-signature": "v1," + b64encode(signed.digest()).decode(),
    }


def _key(secret: bytes) -> bytes:
    """Return the key of Standard Webhooks: the decoded part of a secret `whsec_<base64>`, or the secret itself."""
    try:
        return (
            b64decode(secret.removeprefix(_PREFIX), validate=True) if secret.startswith(_PREFIX) else secret
        )
    except binascii.Error:
        return secret


def read_secret(path: Path) -> bytes:
    """Return the secret in a file, without the line end behind it.

    Raises UsageError if there is none, if every user of this machine may read it, or its group may write it; OSError.
    """
    with path.open("rb") as file:
        if path.stat().st_mode & 0o027:
            raise UsageError(
                f"{path}: its group may write it, or every user of this machine may read it; chmod 600 it"
            )
        secret = file.read(_MOST_SECRET + 1).rstrip(b"\r\n")
    if not secret or len(secret) > _MOST_SECRET:
        raise UsageError(f"{path}: expected a secret of 1 to {_MOST_SECRET} bytes")
    return secret
