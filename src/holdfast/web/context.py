"""What loaders, actions and templates are given: the console as this user, the URLs of this mount, who asks."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from typing import Any, Final

import msgspec
from starlette.requests import Request

from holdfast.console.handles import AsyncConsole
from holdfast.console.page_paths import segment, with_query
from holdfast.console.plain import stored
from holdfast.web.sessions import SESSION
from holdfast.web.site import Site
from holdfast.web.users import Role, User


class Flash(msgspec.Struct, frozen=True):
    """A sentence about the action before, shown once. `kind` is done or failed; `undo` is the action that undoes it."""

    text: str
    kind: str = "done"
    undo: Any = None


class NavLink(msgspec.Struct, frozen=True):
    """A link of the navigation. `key` names the counter beside it, `icon` its picture."""

    label: str
    path: str
    icon: str
    key: str = ""


NAVIGATION: Final[tuple[tuple[str, tuple[NavLink, ...]], ...]] = (
    ("", (
        NavLink("Overview", "/", "overview"),
        NavLink("Queues", "/queues", "queues", "t.queues"),
        NavLink("Jobs", "/jobs", "jobs"),
        NavLink("Failed", "/failed", "failed", "t.failed"),
        NavLink("Recurring", "/recurring", "recurring", "t.recurring"),
        NavLink("Flows", "/flows", "flows"),
        NavLink("Topics", "/topics", "topics"),
    )),
    ("Fleet", (
        NavLink("Workers", "/workers", "workers", "t.workers"),
        NavLink("Throttles", "/throttles", "throttled"),
    )),
    ("Explore", (
        NavLink("Tracked", "/tracked", "tracked", "t.tracked"),
        NavLink("Tags", "/tags", "tags"),
        NavLink("Completed", "/completed", "complete"),
    )),
    ("System", (
        NavLink("Operations", "/operations", "operations"),
        NavLink("Audit", "/audit", "audit"),
        NavLink("Settings", "/config", "settings"),
        NavLink("About", "/about", "about"),
    )),
)  # fmt: skip
"""The sections of the navigation."""


class Context:
    """One request: who asks, for what, and where this application is mounted."""

    def __init__(self, site: Site, request: Request, user: User) -> None:
        self.site, self.request, self.user = site, request, user
        self.console = AsyncConsole(site.client, user.name)
        self.flash: Flash | None = None
        self.application = site.application
        self.namespace: str = site.client.settings.namespace
        self.environment, self.accent = site.options.environment, site.options.accent
        self.read_only = site.options.read_only
        self.live = site.options.live
        self.version = site.version
        self.changes = site.hub.version
        self.matched: Any = None
        """The thing to change, as it was when the entity tag of the request matched; None for a request without one."""
        self.twin = ""
        """The URL of the JSON twin, where this is a page that has one."""
        self.now_ms = 0
        """The time of the store, once a loader has asked for it."""
        self._here = ""

    @cached_property
    def root(self) -> str:
        """The path below which the application is mounted, "" at the top."""
        return str(self.request.scope.get("root_path", "")).rstrip("/")

    @property
    def request_id(self) -> str:
        """The name of this request in the log and in errors."""
        return str(self.request.scope.get("holdfast.request", ""))

    @property
    def has_session(self) -> bool:
        """Whether the user can log out."""
        return SESSION in self.request.scope

    @property
    def store(self) -> str:
        """The store as it may be shown, without secrets."""
        return self.site.store

    @property
    def description(self) -> Mapping[str, Any]:
        """The OpenAPI document of the application as it is mounted here."""
        return {**self.site.description, "servers": [{"url": self.url("/api/v1")}]}

    def can(self, role: Role) -> bool:
        """Return whether this user may do what a role may; in a read-only application everybody is a viewer."""
        return self.user.may(role) and (role == "viewer" or not self.read_only)

    def url(self, path: str, **query: object) -> str:
        """Return the URL of a path of this application, with a query string of what is not empty."""
        return with_query(self.root + path, query) if query else self.root + path

    def path(self, *names: str) -> str:
        """Return the path whose first segment is as given and whose last one is a name of any characters."""
        *before, last = names
        return "/" + "/".join((*before, segment(last)))

    def here(self, **changes: object) -> str:
        """Return this URL with some of its query changed; None or "" removes."""
        if changes:
            return self.same_query(self.place, **changes)
        self._here = self._here or self.same_query(self.place)  # forms ask for it, some in each row
        return self._here

    def same_query(self, path: str, **changes: object) -> str:
        """Return the URL of a path of this application with the query of this request."""
        query: dict[str, object] = {}
        for name, value in self.request.query_params.multi_items():
            if name != "fragment":
                query.setdefault(name, []).append(value)  # type: ignore[attr-defined]
        return with_query(self.root + path, query | changes)

    @cached_property
    def place(self) -> str:
        """The path of this request below the mount, as it was written."""
        raw = self.request.scope.get("raw_path") or self.request.scope["path"].encode()
        path = raw.split(b"?")[0].decode("ascii", "replace")
        return path.removeprefix(self.root) or "/"

    def static(self, name: str) -> str:
        """Return the URL of a file of the application, which changes with its content."""
        return self.url(f"/static/{self.site.files.hash_of(name)}/{name}")

    @property
    def nav(self) -> list[tuple[str, list[tuple[str, str, str, str, int | None, bool]]]]:
        """The navigation: sections of (label, path, icon, live key, count, is this one)."""
        counts = self.site.hub.counters
        section = "/" + self.place.strip("/").split("/")[0]
        return [
            (
                title,
                [
                    (one.label, one.path, one.icon, one.key, counts.get(one.key), one.path == section)
                    for one in links
                ],
            )
            for title, links in NAVIGATION
        ]

    def searching(self, *, is_watched: bool = True) -> AbstractAsyncContextManager[None]:
        """Wait for the turn of a search of this user. See `Searches.turn`."""
        return self.site.searches.turn(self.request, self.user.name, is_watched=is_watched)

    def data(self, stored_bytes: bytes) -> Any:
        """Return stored JSON as a value with what has to be hidden masked."""
        return self.site.mask(stored(stored_bytes))
