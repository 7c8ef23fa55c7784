"""Pages, their JSON twins, actions, the live stream and files: the routes of the parts `pages` and `api`."""

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

import msgspec
from starlette.responses import Response

from holdfast.web.context import Flash
from holdfast.web.views import Repeal

if TYPE_CHECKING:
    from holdfast.web.context import Context

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.datastructures import ImmutableMultiDict
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, StreamingResponse
from starlette.routing import BaseRoute, Match, Route

from holdfast.console.handles import AsyncConsole
from holdfast.console.page_paths import name_of
from holdfast.console.plain import plain
from holdfast.errors import HoldfastError, Refused, UnknownName, UsageError, WrongState
from holdfast.text import one_line
from holdfast.web.auth import Authentication
from holdfast.web.context import Context
from holdfast.web.error_pages import status_of
from holdfast.web.reach import reach_of
from holdfast.web.site import Site
from holdfast.web.users import RANKS, Role, User
from holdfast.web.views import ActionRoute, Body, Done, Question, View, from_form, from_json, read_form

# The sentence about an action that the next page shows once, in a cookie, with what undoes the action.

_COOKIE: Final = "holdfast-flash"
_LONGEST: Final = 1000
_MOST_BYTES: Final = 3500
"""Browsers keep cookies of up to 4 kB; an undo that would make a cookie longer is left out."""

_Written = tuple[str, str, Repeal | None, str]


class Flashes:
    """Sets and reads the cookie. `secret` signs the undo of an action, so that another site cannot forge one."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def set(
        self, response: Response, ctx: "Context", text: str, kind: str, undo: Repeal | None = None
    ) -> None:
        """Let the next page of this browser show a sentence, and offer to undo what it is about."""
        value = self._written(ctx, text, kind, undo)
        if len(value) > _MOST_BYTES:
            value = self._written(ctx, text, kind, None)
        response.set_cookie(_COOKIE, value, max_age=60, path=ctx.url("/"), httponly=True, samesite="strict")

    def _written(self, ctx: "Context", text: str, kind: str, undo: Repeal | None) -> str:
        signature = self._signature(ctx, undo) if undo else ""
        return quote(json.dumps([text[:_LONGEST], kind, msgspec.to_builtins(undo), signature]))

    def _signature(self, ctx: "Context", undo: Repeal) -> str:
        content = msgspec.json.encode([ctx.user.name, undo], order="deterministic")
        return hmac.new(self._secret, content, hashlib.sha256).hexdigest()

    def read(self, ctx: "Context") -> Flash | None:
        """Return the sentence for this page. What another process signed is shown without its undo."""
        try:
            text, kind, undo, signature = msgspec.json.decode(
                unquote(ctx.request.cookies.get(_COOKIE, "")).encode(), type=_Written
            )
        except (msgspec.MsgspecError, UnicodeError):
            return None
        is_ours = undo is not None and hmac.compare_digest(
            signature.encode(), self._signature(ctx, undo).encode()
        )
        return Flash(text, "failed" if kind == "failed" else "done", undo if is_ours else None)

    @staticmethod
    def clear(response: Response, ctx: "Context") -> None:
        """Let no further page show the sentence."""
        response.delete_cookie(_COOKIE, path=ctx.url("/"))


_METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

Form = ImmutableMultiDict[str, str]
Handler = Callable[[Request], Awaitable[Response]]


class Faces:
    """The handlers of pages and of the JSON API: HTML and JSON of the same views and actions."""

    def __init__(self, site: Site, auth: Authentication) -> None:
        self.site, self.auth = site, auth
        self.flashes = Flashes(secrets.token_bytes(32))

    def routes(self) -> list[BaseRoute]:
        """Return all routes; names come last, so that they may have any characters."""
        found: list[BaseRoute] = [
            *self.auth.routes,
            Route("/static/{hash}/{name:path}", self.site.files.serve),
            Route("/live", self._guarded(self._live)),
            Route("/api/v1/openapi.json", self._guarded(self._openapi)),
            Route("/api/v1/health", self._health),
            *_routes("/act/{noun}/{verb}", self._guarded(self._form), "POST"),
            *_routes("/api/v1/{noun}/{verb}", self._guarded(self._json_action), "POST"),
        ]
        for view in self.site.table.views:
            found += _routes("/api/v1" + view.twin, self._guarded(self._twin(view), view.role, view.path))
            found += _routes(view.path, self._guarded(self._page(view), view.role, view.path))
        return [*found, Route("/{path:path}", self._guarded(self._nowhere(found)), methods=_METHODS)]

    def _nowhere(self, routes: Sequence[BaseRoute]) -> Callable[[Context], Awaitable[Response]]:
        async def nowhere(ctx: Context) -> Response:
            allowed = {
                method
                for route in routes
                if isinstance(route, Route) and route.matches(ctx.request.scope)[0] is Match.PARTIAL
                for method in route.methods or ()
            }
            place = one_line(ctx.place)[:200]
            if not allowed:
                raise HTTPException(404, f"There is no page {place}.")
            allow = ", ".join(sorted(allowed))
            sentence = f"{place} takes {allow}, not {one_line(ctx.request.method)[:40]}."
            raise HTTPException(405, sentence, {"Allow": allow})

        return nowhere

    # Who asks.

    def _guarded(
        self, handle: Callable[[Context], Awaitable[Response]], role: Role = "viewer", what: str = ""
    ) -> Handler:
        async def guarded(request: Request) -> Response:
            user = await self.auth.user(request)
            if user is None:
                return self.auth.refused(request)
            ctx = Context(self.site, request, user)
            request.state.ctx = ctx
            if not user.may(role) or not _reaches(user, what):
                return self._refuse_role(ctx, role)
            self.site.operations.watch(ctx.console)
            return await handle(ctx)

        return guarded

    def _refuse_role(self, ctx: Context, role: Role) -> Response:
        if ctx.read_only:
            raise HTTPException(403, "This application is read-only.")
        if ctx.user.role not in RANKS or ctx.user.is_limited:
            sentence = f"{ctx.user.name!r:.100} is limited to some queues or topics, and pages show all of them: use the gateway or the topic endpoints."
            raise HTTPException(403, sentence)
        raise HTTPException(
            403, f"This requires the role {role}; {ctx.user.name!r:.100} has the role {ctx.user.role}."
        )

    # Pages and their twins.

    def _page(self, view: View) -> Callable[[Context], Awaitable[Response]]:
        async def page(ctx: Context) -> Response:
            request, accepted = ctx.request, ctx.request.headers.get("accept", "")
            ctx.twin = ctx.same_query("/api/v1" + (view.twin if view.path == "/" else ctx.place))
            if "application/json" in accepted and "text/html" not in accepted:
                return RedirectResponse(ctx.twin, 303)
            region = request.query_params.get("fragment")
            if region is None:
                await self.site.hub.look()
                ctx.changes = self.site.hub.version
            try:
                found = await self._load(view, ctx)
            except (UnknownName, Refused) as error:
                if region is None or status_of(error) != 404:
                    raise
                return self._gone(ctx, region, error)
            if isinstance(found, Response):
                return found
            if region is not None:
                return HTMLResponse(self.site.pages.region(view.template, region, ctx, found))
            ctx.flash = self.flashes.read(ctx)
            html = self.site.pages.page(view.template, ctx, found)
            response = HTMLResponse(html, getattr(found, "http_status", 200))
            if ctx.flash is not None:
                self.flashes.clear(response, ctx)
            return response

        return page

    def _gone(self, ctx: Context, region: str, error: HoldfastError) -> Response:
        """Answer a page that loads a region again when what it shows is gone: with a sentence in its place, not with an error."""
        text = {"name": region, "text": one_line(str(error))}
        return HTMLResponse(self.site.pages.page("gone.html", ctx, text))

    def _twin(self, view: View) -> Callable[[Context], Awaitable[Response]]:
        async def twin(ctx: Context) -> Response:
            found = await self._load(view, ctx)
            if isinstance(found, Response):
                return found
            tag = getattr(found, "tag", "")
            headers = {"ETag": f'"{tag}"'} if tag else None
            return JSONResponse(plain(found), getattr(found, "http_status", 200), headers)

        return twin

    async def _load(self, view: View, ctx: Context) -> Any:
        request = ctx.request
        query = from_form(view.query, request.query_params)
        if "name" in request.path_params:
            return await view.load(ctx, name_of(request.path_params["name"]), query)
        return await view.load(ctx, query)

    # Actions.

    def _action(self, ctx: Context) -> ActionRoute:
        noun, verb = ctx.request.path_params["noun"], ctx.request.path_params["verb"]
        found = self.site.table.actions.get((noun, verb))
        if found is None:
            raise HTTPException(404, f"There is no action {noun}/{verb}"[:200] + ".")
        if not ctx.can(found.role) or not _reaches(ctx.user, f"{noun}/{verb}"):
            self._refuse_role(ctx, found.role)
        return found

    async def _form(self, ctx: Context) -> Response:
        action = self._action(ctx)
        form = await read_form(ctx.request)
        by_script = "hx-request" in ctx.request.headers
        if action.part and action.again is not None:
            return await self._again(ctx, action, form, by_script)
        try:
            outcome = await action.run(ctx, from_form(action.body, form))
        except HoldfastError as error:
            if action.again is not None and not by_script:
                return await self._again(ctx, action, form, error=error)
            return self._failed(ctx, action, error, form, by_script)
        if isinstance(outcome, Question):
            return self._asked(ctx, action, outcome, form, by_script)
        self.site.hub.changed("audit", *outcome.keys)
        return self._done(ctx, outcome, form, by_script)

    async def _again(
        self,
        ctx: Context,
        action: ActionRoute,
        form: Form,
        by_script: bool = False,
        error: HoldfastError | None = None,
    ) -> Response:
        """Show a form with what was typed in it, and what is wrong with it."""
        assert action.again is not None
        found = await action.again(ctx, form)
        if by_script:
            return HTMLResponse(self.site.pages.page(action.part, ctx, found.page))
        await self.site.hub.look()
        ctx.place, ctx.changes = found.place, self.site.hub.version
        if error is not None:
            ctx.flash = Flash(one_line(str(error)), "failed")
        html = self.site.pages.page(found.template, ctx, found.page)
        return HTMLResponse(html, 200 if error is None else status_of(error))

    def _done(self, ctx: Context, done: Done, form: Form, by_script: bool) -> Response:
        if not by_script:
            response = RedirectResponse(ctx.url(done.place) if done.place else _own_place(ctx, form), 303)
            self.flashes.set(response, ctx, done.text, "done", done.undo)
            return response
        headers = {"HX-Trigger": json.dumps({f"hf:{key}": True for key in ("done", *done.keys)})}
        if done.place:
            headers["HX-Redirect"] = ctx.url(done.place)
        html = self.site.pages.page("toast.html", ctx, done, kind="done", faults=_faults(form, {}))
        message = HTMLResponse(html, headers=headers)
        if done.place:  # the message is shown by the page that comes next
            self.flashes.set(message, ctx, done.text, "done", done.undo)
        return message

    def _failed(
        self, ctx: Context, action: ActionRoute, error: HoldfastError, form: Form, by_script: bool
    ) -> Response:
        if by_script:
            toast = Done(text=one_line(str(error)), changed=0)
            place = str(form.get(action.place, ""))
            faults = _faults(form, getattr(error, "fields", None) or {place: str(error)})
            html = self.site.pages.page("toast.html", ctx, toast, kind="failed", faults=faults)
            return HTMLResponse(html, status_of(error))
        if not form.get("back"):
            raise error
        response = RedirectResponse(_own_place(ctx, form), 303)
        self.flashes.set(response, ctx, one_line(str(error)), "failed")
        return response

    def _asked(
        self,
        ctx: Context,
        action: ActionRoute,
        question: Question,
        form: Form,
        by_script: bool,
    ) -> Response:
        fields = [(name, value) for name, value in form.multi_items() if name != "confirm"]
        template = "question.html" if by_script else "question_page.html"
        faults = _faults(form, {})
        html = self.site.pages.page(template, ctx, question, action=action, fields=fields, faults=faults)
        return HTMLResponse(html)

    async def _json_action(self, ctx: Context) -> Response:
        action = self._action(ctx)
        text = await ctx.request.body()
        kind = ctx.request.headers.get("content-type", "").partition(";")[0].strip()
        if text and kind != "application/json":
            raise HTTPException(415, "The body must be JSON, with Content-Type: application/json.")
        body = from_json(action.body, text)
        body = body if body.confirm else msgspec.structs.replace(body, confirm="api")
        await _match(ctx, action, body)
        try:
            outcome = await action.run(ctx, body)
        except WrongState as error:
            if ctx.matched is None:
                raise
            raise HTTPException(412, one_line(str(error))) from None  # it was changed at this moment
        if isinstance(outcome, Done):
            self.site.hub.changed("audit", *outcome.keys)
        return JSONResponse(plain(outcome))

    # Live numbers, and the description of the API.

    async def _live(self, ctx: Context) -> Response:
        if ctx.request.query_params.get("once"):
            since = ctx.request.query_params.get("v", "0")
            return JSONResponse(
                await self.site.hub.snapshot(int(since) if since.isdecimal() and len(since) < 16 else 0)
            )
        headers = {"X-Accel-Buffering": "no", "Cache-Control": "no-store"}
        events = self.site.hub.events(ctx.user.name, lambda: self._may_watch(ctx))
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def _may_watch(self, ctx: Context) -> bool:
        """Return whether the user of a live stream still exists, with the role that it began with."""
        return await self.auth.user(ctx.request) == ctx.user

    async def _openapi(self, ctx: Context) -> Response:
        return JSONResponse(ctx.description)

    async def _health(self, _: Request) -> Response:
        """Answer whether the store responds, to anybody: probes have no user."""
        await AsyncConsole(self.site.client).now_ms()
        return JSONResponse({"store": "ok"})


def _reaches(user: User, what: str) -> bool:
    """Return whether a user may use a page or an action by what that reaches."""
    return not user.is_limited or not reach_of(what).is_whole


def _routes(path: str, handle: Handler, method: str = "GET") -> list[BaseRoute]:
    """Return the routes of a path, with and without a slash at its end; a name in it may have any characters."""
    shown = path.replace("{name}", "{name:path}")
    return [Route(one, handle, methods=[method]) for one in dict.fromkeys((shown, shown.rstrip("/") + "/"))]


async def _match(ctx: Context, action: ActionRoute, body: Body) -> None:
    """Refuse a request whose entity tag is not that of what it changes."""
    wanted = ctx.request.headers.get("if-match")
    if wanted is None:
        return
    if action.tagged is None:
        raise UsageError(f"{action.noun}/{action.verb} takes no If-Match")
    found = await action.tagged(ctx, body)
    tags = [one.strip().removeprefix("W/").strip('"') for one in wanted.split(",")]
    if "*" not in tags and found.tag not in tags:
        sentence = f"This has changed since you read it: its ETag is now {found.tag}. Nothing was changed."
        raise HTTPException(412, sentence, {"ETag": f'"{found.tag}"'})
    ctx.matched = found.value


def _faults(form: Form, found: Mapping[str, str]) -> dict[str, str]:
    """Return what is shown beside the fields of a form that has places for that, "" where nothing is wrong any more."""
    return {name: found.get(name, "") for name in form.getlist("fault")}


def _own_place(ctx: Context, form: Form) -> str:
    """Return where to go after an action: a path of this application that the form named, else its first page."""
    back = str(form.get("back", ""))
    is_own = back.startswith(ctx.root + "/") and not back.startswith("//") and "\\" not in back
    return back if is_own else ctx.url("/")
