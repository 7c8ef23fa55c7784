"""What does HTTP cost? The gateway beside a bare Starlette endpoint that reads JSON and returns JSON, in rounds that take turns; a batch
of a hundred beside single calls; and how long after its put a job reaches a program that waits for it."""

import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.report import Row, Say, at_least, at_most, shown
from benchmarks.web import port_of
from holdfast import Client
from holdfast.testing.store import ScratchStore
from holdfast.web.serving import Folder

HALF, TWENTY, PICK_UP_MS = 0.5, 20, 3
BATCH = 100
CONNECTIONS = "32"
"""Of wrk: calls of one moment share a pipeline to the store, so with few connections the gateway waits more than it computes."""
BARE = """
import sys
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from holdfast.web.serving import bound, serve

async def put(request: Request) -> JSONResponse:
    body = await request.json()
    return JSONResponse({"result": body["klass"]})

serve(Starlette(routes=[Route("/v1/put", put, methods=["POST"])]), bound("127.0.0.1", int(sys.argv[1])))
"""
PUT: dict[str, Any] = {"queue": "q", "klass": "jobs.Thumbnail", "data": {"file": "a.png", "width": 640}}
# Each thread of wrk has one connection here, so what it knows of the last response belongs to its next request.
SCRIPT = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local worker, held = "w" .. math.random(1e9), nil
function request()
  if PATH ~= "/v1/complete_pop" then return wrk.format(nil, PATH, nil, BODY) end
  local jobs = held and ('{"jid":"%s","token":%s}'):format(held[1], held[2]) or ""
  held = nil
  return wrk.format(nil, PATH, nil, ('{"worker":"%s","queues":["q"],"limit":1,"jobs":[%s]}'):format(worker, jobs))
end
function response(status, headers, body)
  if status ~= 200 then print("status", status, body) end
  local jid, token = body:match('"jid":"(%x+)".-"token":(%d+)')
  if jid then held = { jid, token } end
end
function done(summary) print("per second", summary.requests / summary.duration * 1e6, "not 200", summary.errors.status) end
"""


def run(quick: bool, say: Say) -> list[Row]:
    if shutil.which("wrk") is None:
        return [Row("HTTP", "not measured: the program wrk is not installed")]
    rounds, seconds = (3, 2) if quick else (7, 4)
    with (
        ScratchStore() as store,
        Client(store.url, namespace="bench", timeout=60) as client,
        served(store.url) as gateway,
        bare() as other,
    ):
        return [
            *beside_bare(client, gateway, other, rounds, seconds, say),
            *batches(gateway.port, rounds, say),
            *pick_up(client, gateway.port, other.port, 100 if quick else 500, say),
        ]


@contextmanager
def served(url: str) -> Iterator["Served"]:
    """Serve the gateway in a process of its own."""
    with tempfile.TemporaryDirectory() as here:
        words = [
            "web",
            "-F",
            "-L",
            "--only",
            "gateway",
            "--auth",
            "none",
            "--url",
            url,
            "--namespace",
            "bench",
        ]
        command = [sys.executable, "-m", "holdfast.cli.main", *words, "--app-dir", f"{here}/web"]
        process = subprocess.Popen(command)
        try:
            yield Served(port_of(Folder(Path(here) / "web"), process), process.pid)
        finally:
            process.terminate()
            process.wait(30)


@contextmanager
def bare(port: int = 5900) -> Iterator["Served"]:
    """Serve one endpoint of Starlette alone, by the same server with the same options."""
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)])
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            try:
                Caller(port)("put", PUT)
                break
            except OSError:
                time.sleep(0.05)
        yield Served(port, process.pid)
    finally:
        process.terminate()
        process.wait(30)


class Served(NamedTuple):
    """A server: its port, and its process."""

    port: int
    pid: int

    def cpu(self) -> float:
        """Return the seconds that its process has computed."""
        words = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Caller:
    """One connection that is kept."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __call__(self, verb: str, body: dict[str, Any]) -> Any:
        self._connection.request(
            "POST", f"/v1/{verb}", json.dumps(body), {"Content-Type": "application/json"}
        )
        response = self._connection.getresponse()
        text = response.read()
        if response.status != 200:
            raise SystemExit(f"{verb}: {response.status} {text[:300]!r}")
        return json.loads(text)["result"]


def per_second(served: Served, verb: str, body: dict[str, Any], seconds: int) -> tuple[float, float]:
    """Requests a second of wrk, over connections that are kept, and the microseconds that the server computes for one."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f"PATH = '/v1/{verb}'\nBODY = [[{json.dumps(body)}]]\n{SCRIPT}")
        script.flush()
        words = [
            "wrk",
            "-t",
            CONNECTIONS,
            "-c",
            CONNECTIONS,
            "-d",
            f"{seconds}s",
            "-s",
            script.name,
            f"http://127.0.0.1:{served.port}/",
        ]
        begun = served.cpu()
        text = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    found = re.search(r"per second\s+([\d.]+)\s+not 200\s+(\d+)", text)
    if found is None or int(found[2]):
        raise SystemExit(f"{verb}: {text[:600]}")
    rate = float(found[1])
    return rate, (served.cpu() - begun) / (rate * seconds) * 1e6


def beside_bare(
    client: Client, gateway: Served, other: Served, rounds: int, seconds: int, say: Say
) -> Iterator[Row]:
    ratios: dict[str, list[float]] = {"put": [], "complete_pop": []}
    costs: dict[str, list[float]] = {"put": [], "complete_pop": []}
    rates: dict[str, list[float]] = {"bare": [], "put": [], "complete_pop": []}
    for number in range(rounds):
        for verb, found in ratios.items():
            say(f"{verb}, round {number + 1} of {rounds}")
            if verb == "complete_pop":
                client.queues["q"].put_many(("jobs.Thumbnail", PUT["data"]) for _ in range(20_000))
            without, plain = per_second(other, "put", PUT, seconds)
            with_it, whole = per_second(gateway, verb, PUT, seconds)
            rates["bare"].append(without)
            rates[verb].append(with_it)
            found.append(with_it / without)
            costs[verb].append(plain / whole)
    for verb, found in ratios.items():
        beside = f"{statistics.median(rates[verb]):,.0f}/s beside {statistics.median(rates['bare']):,.0f}/s; {min(found):.2f} to {max(found):.2f}"
        yield at_least(
            f"{verb} over HTTP, of a bare endpoint's rate", statistics.median(found), HALF, "×", beside
        )
        cost = costs[verb]
        yield at_least(
            "the same, by what the two servers compute for a request",
            statistics.median(cost),
            HALF,
            "×",
            f"{min(cost):.2f} to {max(cost):.2f}; without the store's own work",
        )


def rate_of(call: Callable[[], Any], jobs: int, seconds: float) -> float:
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        call()
        count += jobs
    return count / (time.perf_counter() - begun)


def batches(gateway: int, rounds: int, say: Say) -> Iterator[Row]:
    call = Caller(gateway)
    many = {"queue": "batches", "klass": PUT["klass"], "jobs": [{"data": PUT["data"]}] * BATCH}
    one = {**PUT, "queue": "batches"}

    def cycle(limit: int) -> None:
        found = call("pop", {"worker": "w", "queues": ["batches"], "limit": limit})
        leases = [{"jid": job["jid"], "token": job["token"]} for job in found]
        call("complete", {"worker": "w", "jobs": leases} if limit > 1 else {"worker": "w", **leases[0]})

    puts, cycles = list[float](), list[float]()
    for number in range(rounds):
        say(f"batches, round {number + 1} of {rounds}")
        single = rate_of(lambda: call("put", one), 1, 1)
        puts.append(rate_of(lambda: call("put", many), BATCH, 1) / single)
        cycles.append(rate_of(lambda: cycle(BATCH), BATCH, 0.5) / rate_of(lambda: cycle(1), 1, 0.5))
    yield at_least(
        "puts in batches of 100, of single ones' jobs a second", statistics.median(puts), TWENTY, "×"
    )
    yield at_least("pop and complete in batches of 100", statistics.median(cycles), TWENTY, "×")


def pick_up(client: Client, gateway: int, other: int, times: int, say: Say) -> Iterator[Row]:
    say("picking up")
    took, trips = list[float](), list[float]()
    popping, plain, queue = Caller(gateway), Caller(other), client.queues["awaited"]
    arrived: list[float] = []

    def wait() -> None:
        assert popping("pop", {"worker": "w", "queues": ["awaited"], "wait": 20})
        arrived.append(time.perf_counter())

    for _ in range(times):
        begun = time.perf_counter()
        plain("put", PUT)
        trips.append((time.perf_counter() - begun) * 1000)
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.03)  # it waits in the store by now
        begun = time.perf_counter()
        queue.put("jobs.Thumbnail", {})
        waiting.join(30)
        took.append((arrived.pop() - begun) * 1000)
    trip = statistics.median(trips)
    beside = f"{statistics.median(took):.2f} ms from before the put to the end of the response; a bare round trip is {trip:.2f} ms"
    yield at_most(
        "pick-up by a pop that waits, beyond a round trip: p50",
        statistics.median(took) - trip,
        PICK_UP_MS,
        "ms",
        beside,
    )
    yield shown("the same: p95", statistics.quantiles(took, n=20)[-1] - trip, "ms")
