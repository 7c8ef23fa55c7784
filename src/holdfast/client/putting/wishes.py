"""What may be wished for a job beside priority, delay and retries: checked before anything is sent."""

from collections.abc import Mapping
from typing import Any, Final

from holdfast.code.backoff import backoff_words
from holdfast.commands.wishes import MAX_DEPENDS, MAX_TAGS, MAX_THROTTLES, Wish
from holdfast.errors import UsageError
from holdfast.settings import check_milliseconds, check_names

WISHES: Final = ("tags", "throttles", "depends", "backoff", "expires", "timeout", "result_keep")
SHORTEST: Final = 0.001


def make_wish(options: Mapping[str, Any], jid: str, delay_ms: int) -> Wish | None:
    """The wish among the options of a put, None if nothing is wished. Raises UsageError."""
    given = {name: options[name] for name in WISHES if options.get(name) is not None}
    if not given:
        return None
    depends = check_names("depends", given.get("depends", ()), MAX_DEPENDS)
    if jid in depends:
        raise UsageError(f"depends: {jid} cannot wait for itself")
    expires = _moment("expires", given)
    if 0 < expires <= delay_ms:
        raise UsageError("expires must be later than delay: the job could never start")
    keep = given.get("result_keep")
    return Wish(
        tags=check_names("tags", given["tags"], MAX_TAGS) if "tags" in given else None,
        throttles=check_names("throttles", given.get("throttles", ()), MAX_THROTTLES),
        depends=depends,
        backoff=backoff_words(given["backoff"]) if "backoff" in given else "",
        expires_ms=expires,
        limit_ms=_moment("timeout", given),
        keep_ms=None if keep is None else check_milliseconds("result_keep", keep),
    )


def _moment(name: str, given: Mapping[str, Any]) -> int:
    return check_milliseconds(name, given[name], SHORTEST) if name in given else 0
