"""A page with every component, for tests of looks, accessibility and script: `python tests/web/gallery.py [PORT]` serves it."""

import asyncio
import json
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from holdfast import AsyncClient
from holdfast.client.reasons import Check
from holdfast.models import Counts
from holdfast.web.charts import GraphNode
from holdfast.web.context import Context, Flash
from holdfast.web.gate import Gate
from holdfast.web.options import Options
from holdfast.web.rendering import Pages
from holdfast.web.site import Site
from holdfast.web.users import User
from holdfast.web.views import Done, Question, Repeal, read_form, table

NOW = 1_795_500_000_000
QUEUES = ("mailers", "webhooks", "search-index", "thumbnails", "reports", "nightly")


def _series(rng: random.Random, base: float, spread: float) -> list[float]:
    return [round(base + spread * math.sin(at / 9) + rng.random() * spread, 1) for at in range(90)]


def _queues(rng: random.Random, extra: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    for index, name in enumerate((*QUEUES, *extra)):
        counts = Counts(name, waiting=11_183 >> (2 * index), running=46 - 7 * index, scheduled=887 if index < 3 else 0, depends=373 if index % 2 else 0, failed=649 if index < 4 else 0, paused=name == "nightly", oldest_ms=NOW - 7 ** (index + 3) * 90)  # fmt: skip
        extra = {
            "rates": [] if name == "nightly" else [rng.randrange(40) for _ in range(30)],
            "p95": 0.31 * 7**index / 3,
        }
        found.append(SimpleNamespace(**{f: getattr(counts, f) for f in counts.__struct_fields__}, **extra))
    return found


def _jobs(rng: random.Random) -> list[Any]:
    classes = ("Mail.send_receipt", "Mail.password_reset", "Mail.digest", "crm.sync.Contacts")
    tags = (
        ["vip"],
        [],
        ["retry-me", "black-friday"],
        ["eu", "vip", "a-very-long-tag-that-does-not-end", "x", "y"],
    )
    return [
        SimpleNamespace(
            jid=f"0193{rng.getrandbits(112):028x}",
            klass=classes[at % 4],
            priority=25 if at < 3 else 0 if at < 7 else -25,
            left=5 - at % 3,
            tags=tags[at % 4],
            since_ms=NOW - 18_180_000 + at * 613_000,
        )
        for at in range(9)
    ]


def _graph() -> tuple[list[GraphNode], list[tuple[str, str, str]]]:
    nodes = [("a", "Feed.fetch", "complete", "#"), ("b", "Feed.parse", "complete", "#"), ("own", "Webhooks.deliver", "failed", "#"), ("c", "Search.index", "depends", "#"), ("d", "Mail.notify", "depends", "#"), ("e", "acme.archive.long.Store", "depends", "#")]  # fmt: skip
    edges = [
        ("a", "own", ""),
        ("b", "own", "wait"),
        ("own", "c", "fail"),
        ("own", "d", "run"),
        ("own", "e", "fail"),
    ]
    return [GraphNode(*one) for one in nodes], edges


TRACE = """Traceback (most recent call last):
  File "/srv/app/jobs/webhooks.py", line 225, in deliver
    result = client.call(body, timeout=10)
  File "/srv/venv/lib/python3.13/site-packages/httpx/_client.py", line 914, in send
    response = self._send_handling_auth(request)
httpx.ReadTimeout: upstream did not answer within 10.0 s"""


def content(extra: Sequence[str] = ()) -> Any:
    """Return what the gallery shows, the same at every call but for `extra` queues."""
    rng = random.Random(7)
    x = [NOW // 1000 - 60 * (90 - at) for at in range(90)]
    nodes, edges = _graph()
    return SimpleNamespace(
        throughput={"x": x, "series": [{"label": "Completed", "color": "complete", "values": _series(rng, 200, 55)}, {"label": "Retried", "color": "throttled", "values": _series(rng, 30, 9)}, {"label": "Failed", "color": "failed", "values": [round(9 + (at / 20) ** 3 / 2 + rng.random() * 5, 1) for at in range(90)]}], "unit": " / min", "marks": [{"x": x[52], "label": "deploy 2.5.0"}]},
        wait={"x": x, "series": [{"label": "p95", "color": "running", "values": _series(rng, 8, 3)}, {"label": "Median", "color": "waiting", "values": _series(rng, 1.1, 0.2)}], "unit": "s"},
        queues=_queues(rng, extra),
        jobs=_jobs(rng),
        data={"account_id": 65785, "locale": "fr-FR", "ok": True, "note": None, "token": "••••", "items": [{"sku": "A-1", "price": 12.5}, {"sku": "B‮2", "price": 3}], "empty": {}},
        trace=TRACE,
        nodes=nodes,
        edges=edges,
        checks=[Check("state", "blocks", "It failed and has used its 5 retries.", fix="holdfast jobs retry 8e3e3ea1218421fc2161363780c1d32d"), Check("paused", "fine", "webhooks is not paused."), Check("workers", "fine", "6 workers take from webhooks."), Check("throttle", "blocks", "Throttle webhooks is full: 40 of 40."), Check("position", "note", "1 204 jobs are ahead of it, about 3 m 10 s.")],
        moments=[(0.0015 * 1.6**at, int(4000 * math.exp(-(((at - 11) / 5) ** 2)))) for at in range(28)],
        earlier=[(0.0015 * 1.6**at, int(3300 * math.exp(-(((at - 12) / 6) ** 2)))) for at in range(28)],
        runs=[(0.004 * 1.7**at, int(2000 * math.exp(-(((at - 12) / 3) ** 2)))) for at in range(22)],
        turns=[NOW + at * 900_000 for at in range(96) if at % 3 == 0] + [NOW + 40_000_000],
    )  # fmt: skip


def application(live: str = "stream", role: str = "admin") -> Starlette:
    """Return the gallery as an application, behind the gate of the real one, so that its policy holds."""
    client = AsyncClient("redis://localhost:1/0", namespace="default")
    options = Options(environment="production", accent="#b0450f", live=live)  # type: ignore[arg-type]
    site = Site(client, options, table((), ()))
    site.pages = Pages(Path(__file__).parent)
    extra: list[str] = []  # names of queues that were added meanwhile
    site.hub.counters = {"t.queues": 8, "t.failed": 3396, "t.recurring": 6, "t.workers": 10, "t.tracked": 0}

    def context(request: Request) -> Context:
        ctx = Context(site, request, User("ops@acme", role))  # type: ignore[arg-type]
        ctx.now_ms = NOW
        return ctx

    async def page(request: Request) -> Response:
        ctx = context(request)
        if region := request.query_params.get("fragment"):
            return HTMLResponse(site.pages.region("gallery.html", region, ctx, content(extra)))
        if "flash" in request.query_params:
            ctx.flash = Flash("Queue nightly paused.", undo=Repeal("queues", "resume", {"name": ["nightly"]}))
        return HTMLResponse(site.pages.page("gallery.html", ctx, content(extra)))

    async def act(request: Request) -> Response:
        form = await read_form(request)
        if request.path_params["noun"] == "gallery":
            extra.append(f"queue-{len(extra)}")
        if form.get("q"):
            action: Any = SimpleNamespace(**request.path_params)
            question = Question(title="Cancel 11 183 jobs?", text="11 183 jobs searched.", button="Cancel 11 183 jobs", details=("11 183 waiting", "11 183 in queue mailers"), word="cancel")  # fmt: skip
            return HTMLResponse(site.pages.page("question.html", context(request), question, action=action, fields=[("q", form["q"])]))  # fmt: skip
        done = Done(text=f"{len(form.getlist('jid'))} jobs: {request.path_params['verb']} done.", undo=Repeal("jobs", "untag", {"jid": ["8e3e"]}))  # fmt: skip
        headers = {"HX-Trigger": json.dumps({"hf:done": True, "hf:queues": True})}
        return HTMLResponse(
            site.pages.page("toast.html", context(request), done, kind="done"), headers=headers
        )

    async def stream(request: Request) -> Response:
        if "once" in request.query_params:
            return Response(
                json.dumps({"tick": {"t.failed": 3400}, "k": [], "v": 1}), media_type="application/json"
            )

        async def events() -> Any:
            for at in range(600):
                yield f"event: tick\ndata: {json.dumps({'t.failed': 3396 + at, 'q.mailers.waiting': 11183 - at})}\n\n".encode()
                await asyncio.sleep(1)

        return StreamingResponse(events(), media_type="text/event-stream")

    async def error(request: Request) -> Response:
        page = {"status": 404, "text": "0193a1b2 doesn't exist, was canceled, or expired."}
        return HTMLResponse(site.pages.page("error.html", context(request), page), 404)

    routes = [
        Route("/", page),
        Route("/live", stream),
        Route("/act/{noun}/{verb}", act, methods=["POST"]),
        Route("/static/{hash}/{name:path}", site.files.serve),
        Route("/{rest:path}", error),
    ]
    inner = Starlette(routes=routes)
    return Gate(inner, options)  # type: ignore[return-value]


if __name__ == "__main__":
    uvicorn.run(application(), port=int(sys.argv[1]) if len(sys.argv) > 1 else 5699, log_level="warning", timeout_graceful_shutdown=1)  # fmt: skip
