"""Passwords and tokens of a users file, and how often they may be tried.

A line of the file is `name:role:secret[:date[:limits]]`, `#` begins a comment. The secret is that of `hash_password` for a
person, that of `hash_token` for a program. It ends on the ISO date, never if that is empty. Limits are the queues, topics,
throttles and namespaces that it may use, such as `queues=mail,image-*;namespaces=shop`.
"""

import asyncio
import base64
import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from holdfast.errors import UsageError
from holdfast.settings import check_namespace
from holdfast.text import one_line
from holdfast.web.places import AllTaken, Places
from holdfast.web.users import BY_NAME, User

log = logging.getLogger("holdfast")

_COST: Final = 1 << 14
_BLOCK: Final = 8
TRIES, TRY_SECONDS = 5, 60.0
"""How many wrong passwords of a name are allowed from one address, in how many seconds."""
_RIGHT_SECONDS: Final = 300.0
_MOST_FAILURES: Final = 10_000
_MOST_CHECKS: Final = 64
"""Passwords that are computed, or wait for that; of one address at most three quarters."""
_THREADS: Final = 2
_LOOK: Final = 1.0  # seconds between two looks at the users file
_REST: Final = re.compile(r"([\dT:+.Z-]*?)(?::\s*([a-z].*))?:?")
"""A date, which may have a time with colons, and limits."""
_LIMITS: Final = ("queues", "topics", "namespaces", "throttles")


def hash_password(password: str) -> str:
    """Return what a users file holds of a password, by scrypt with a salt of its own."""
    salt = secrets.token_bytes(16)
    return f"scrypt${_text(salt)}${_text(_scrypt(password, salt))}"


def hash_token(token: str) -> str:
    """Return what a users file holds of a token. A token is long and random, so a plain digest is enough."""
    return f"sha256${hashlib.sha256(token.encode()).hexdigest()}"


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=_COST, r=_BLOCK, p=1, dklen=32)


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Credential(msgspec.Struct, frozen=True):
    """A line of a users file. `ends` is in epoch seconds, 0 for never."""

    user: User
    secret: str
    ends: float = 0.0

    @property
    def is_valid(self) -> bool:
        """Whether it has not ended yet."""
        return not self.ends or self.ends > time.time()

    def is_password(self, password: str) -> bool:
        """Return whether this is the password; takes about the same time whether it is or not."""
        kind, _, rest = self.secret.partition("$")
        salt, _, digest = rest.partition("$")
        return kind == "scrypt" and hmac.compare_digest(_scrypt(password, _bytes(salt)), _bytes(digest))


def read_users(path: Path) -> dict[str, Credential]:
    """Return the credentials of a users file by name. Raises UsageError for a line that is none, OSError."""
    if path.stat().st_mode & 0o027:
        raise UsageError(
            f"{path}: its group may write it, or every user of this machine may read it; chmod 600 it"
        )
    return parsed_users(path.read_text(encoding="utf-8"), str(path))


def parsed_users(text: str, where: str) -> dict[str, Credential]:
    """Return the credentials of the text of a users file. Raises UsageError with the number of a line that is none."""
    found: dict[str, Credential] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found_here = _credential(line, f"{where}: line {number}")
        found[found_here.user.name] = found_here
    if not found:
        raise UsageError(f"{where}: has no users")
    return found


def _credential(line: str, where: str) -> Credential:
    name, role, secret, rest = ([word.strip() for word in line.split(":", 3)] + [""] * 3)[:4]
    known = BY_NAME.get(role)
    if known is None or not name or not secret.startswith(("scrypt$", "sha256$")):
        raise UsageError(f"{where}: expected name:role:secret, with a role of {', '.join(BY_NAME)}")
    found = _REST.fullmatch(rest)
    date, limits = found.groups("") if found else (rest, "")
    return Credential(
        User(name, known, **_limits(limits, where)), secret, _moment(date, where) if date else 0.0
    )


def _limits(text: str, where: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (one.strip() for one in text.split(";"))):
        kind, _, names = part.partition("=")
        values = tuple([name.strip() for name in names.split(",") if name.strip()])
        if kind.strip() not in _LIMITS or not values:
            raise UsageError(
                f"{where}: expected limits such as queues=mail,image-*;topics=help;namespaces=shop, got {part!r:.80}"
            )
        found[kind.strip()] = values
    for name in found.get("namespaces", ()):
        check_namespace(name)
    return found


def _moment(text: str, where: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{where}: expected a date such as 2027-01-31, got {text!r:.40}") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class TooMany(Exception):
    """A password or token is not looked at, or was wrong once more than is allowed. `seconds`: when to try again."""

    def __init__(self, seconds: float = TRY_SECONDS) -> None:
        super().__init__("too many tries")
        self.seconds = seconds


class _Failures:
    """The wrong tries of the last minute, by what was tried from where. Used by the threads that compute passwords, too."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], deque[float]] = {}
        self._lock = threading.Lock()

    def are_too_many(self, key: tuple[str, str]) -> bool:
        with self._lock:
            recent = self._by_key.get(key)
            while recent and recent[0] < time.monotonic() - TRY_SECONDS:
                recent.popleft()
            return recent is not None and len(recent) >= TRIES

    def note(self, key: tuple[str, str]) -> None:
        with self._lock:
            recent = self._by_key.pop(key, None) or deque(maxlen=TRIES)
            recent.append(time.monotonic())
            self._by_key[key] = recent  # the last one of the dictionary; the first one is the oldest
            if len(self._by_key) > _MOST_FAILURES:
                del self._by_key[next(iter(self._by_key))]

    def take_back(self, key: tuple[str, str]) -> None:
        """Forget the newest one."""
        with self._lock:
            recent = self._by_key.get(key)
            if recent:
                recent.pop()


def _stamp_of(path: Path | None) -> tuple[int, ...]:
    """Return what shows that a file has changed; () if it cannot be looked at."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        found = None
    return () if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


class Credentials:
    """The users of a file. A password that was right is not computed again for five minutes.

    Tokens are looked up, and the right one always counts. Passwords are computed in two threads, because that takes long:
    after five wrong ones of a name from an address that name is barred there for a minute. An address alone is never barred.
    A change of the file at `path` is taken within a second; one that cannot be read is logged, and the users stay.
    """

    def __init__(self, users: Mapping[str, Credential], path: Path | None = None) -> None:
        self._take(users)
        self._path = path
        self._stamp = _stamp_of(path)
        self._look_at = 0.0
        self._nobody = Credential(User("nobody"), hash_password(secrets.token_hex(16)))
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, float] = {}
        self._failures = _Failures()
        self._checks: dict[bytes, Future[bool]] = {}
        self._places = Places(_MOST_CHECKS)
        self._pool = ThreadPoolExecutor(_THREADS, "holdfast-passwords")

    def named(self, name: str) -> Credential | None:
        """Return the credential of a name that has not ended, None if there is none."""
        self._follow_file()
        found = self._users.get(name)
        return found if found is not None and found.is_valid else None

    async def with_password(self, name: str, password: str, address: str) -> User | None:
        """Return the user with that name and password, None if there is none. Raises TooMany."""
        self._follow_file()
        found = self._users.get(name, self._nobody)
        key = hmac.digest(self._key, f"{name}\0{password}\0{found.secret}".encode(), "sha256")
        if self._right.get(key, 0.0) <= time.monotonic():
            tried = (name, address)
            if key not in self._checks and self._failures.are_too_many(tried):
                raise TooMany
            if not await self._is_right(found, password, key, tried):
                if self._failures.are_too_many(tried):
                    raise TooMany
                return None
        is_current = self._users.get(name) == found  # the file may have changed meanwhile
        return found.user if is_current and found.is_valid else None

    def _take(self, users: Mapping[str, Credential]) -> None:
        self._users = users
        self._by_token = {one.secret: one for one in users.values() if one.secret.startswith("sha256$")}

    def _follow_file(self) -> None:
        """Take the users of a file that has changed."""
        if self._path is None or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + _LOOK
        stamp = _stamp_of(self._path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._take(read_users(self._path))
        except (OSError, UsageError) as error:
            log.error("the users file cannot be read; the users stay as they were: %s", one_line(str(error)))

    async def _is_right(self, found: Credential, password: str, key: bytes, tried: tuple[str, str]) -> bool:
        """Return whether a password is right. Requests of one moment with the same one wait for one computation."""
        running = self._checks.get(key)
        if running is not None:
            return await asyncio.shield(asyncio.wrap_future(running))
        try:
            with self._places.taken(tried[1]):
                self._failures.note(tried)  # before it is known, or many of one moment would all be looked at
                made = self._checks[key] = self._pool.submit(self._check, found, password, key, tried)
                made.add_done_callback(lambda _: self._checks.pop(key, None))
                return await asyncio.shield(asyncio.wrap_future(made))
        except AllTaken:
            raise TooMany(1.0) from None

    def _check(self, found: Credential, password: str, key: bytes, tried: tuple[str, str]) -> bool:
        if not found.is_password(password):
            return False
        self._failures.take_back(tried)
        if len(self._right) > 1000:
            self._right.clear()
        self._right[key] = time.monotonic() + _RIGHT_SECONDS
        return True

    def with_token(self, token: str, address: str) -> User | None:
        """Return the user, or program, that has that token, None if it has ended or is unknown. Raises TooMany for too many unknown ones."""
        self._follow_file()
        found = self._by_token.get(hash_token(token))
        if found is not None:
            return found.user if found.is_valid else None
        tried = ("", address)
        self._failures.note(tried)
        if self._failures.are_too_many(tried):
            raise TooMany
        return None
