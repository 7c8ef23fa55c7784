"""How fast is the web UI over a million jobs in fifty queues? Each page and its first live region from a server process over
loopback: time, calls of the store, and size, beside the budgets of its design."""

import gzip
import http.client
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import NamedTuple

from benchmarks.console import cpu, fill
from benchmarks.report import Row, Say, at_most
from holdfast import Client
from holdfast.commands.jobs import PutMany
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.console.page_paths import segment
from holdfast.ids import mint_jid
from holdfast.testing.store import ScratchStore
from holdfast.web.pages import TABLE
from holdfast.web.serving import Folder

QUEUES = 50
ROUNDS = 50
PAGE_MS, REGION_MS, SEARCH_MS = 50, 25, 250
CALLS, PACKED_KB, RAW_KB = 150, 12, 120
MORE = (
    "/queues/queue-0007?tab=waiting",
    "/queues/broken?tab=failed",
    "/jobs?q=state%3Awaiting+queue%3Aqueue-0007",
    "/config?tab=patterns",
)
SEARCHES = ("/jobs?q=klass%3Ajobs.none", "/jobs?q=data.order.id%3D-1", "/jobs?q=%22nowhere%22")
REGION = re.compile(r'hx-get="([^"]*[?&](?:amp;)?fragment=[^"]*)"')


class Web(NamedTuple):
    """The process that serves."""

    pid: int
    port: int


def run(quick: bool, say: Say) -> list[Row]:
    jobs, failed = (100_000, 2_000) if quick else (1_000_000, 20_000)
    with ScratchStore() as store, Client(store.url, namespace="bench", timeout=60, deadline=60) as client:
        client.config["jobs-history-count"] = 10_000_000
        fill(client, jobs, failed, say, queues=QUEUES)
        names = furnish(client)
        with served(store.url) as web:
            return [*pages(store, web, names, say), *searches(store, web, say)]


def furnish(client: Client) -> dict[str, str]:
    """Add a page of everything else; returns a name of each kind, by the first segment of its page."""
    queue = client.queues["queue-0007"]
    for at in range(40):
        queue.recur(f"jobs.klass{at % 7}", {"at": at}, interval=60 * (at + 1), jid=f"recurring-{at}")
        client.topics[f"topic-{at:02d}"].put("m", "x" * 100, delay=3600)
        client.throttles[f"throttle-{at:02d}"].maximum = at + 1
    words = [word for _ in range(200) for word in (mint_jid(), "jobs.klass1", b'{"args":[1]}')]
    jids = client.run(PutMany("queue-0008", words)) and words[::3]
    for jid in jids[:100]:
        job = client.job(str(jid))
        job.tag("vip", "eu")
        job.track()
    for _ in range(3):
        for job in queue.pop(100)[:80]:
            job.complete()
    console = Console(client, "bench@here")
    done = console.run_operation(console.start_operation(Spec(action="track", filter="tag:vip")))
    return {
        "queues": "queue-0007", "jobs": str(jids[0]), "tags": "vip", "failed": "broken-ValueError", "recurring": "recurring-3",
        "topics": "topic-03", "throttles": "throttle-03", "operations": done.id, "workers": console.workers().rows[0].name,
    }  # fmt: skip


@contextmanager
def served(url: str) -> Iterator[Web]:
    """Serve the web UI in a process of its own."""
    with tempfile.TemporaryDirectory() as here:
        words = ["web", "-F", "-L", "--auth", "none", "--live", "off", "--url", url, "--namespace", "bench"]
        command = [sys.executable, "-m", "holdfast.cli.main", *words, "--app-dir", f"{here}/web"]
        process = subprocess.Popen(command)
        try:
            yield Web(process.pid, port_of(Folder(Path(here) / "web"), process))
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait(30)


def port_of(folder: Folder, process: "subprocess.Popen[bytes]") -> int:
    until = time.monotonic() + 60
    while (found := folder.running()) is None:
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("the web UI did not start")
        time.sleep(0.05)
    return int(found.url.rstrip("/").rpartition(":")[2])


class Figures(NamedTuple):
    """What 50 requests took, in ms: on the clock, and of a processor in server and store; the least number of store calls of
    one of them; its size as it is and packed, in kB."""

    p50: float
    p95: float
    server: float
    store: float
    calls: int
    raw: float
    packed: float
    text: str

    def __str__(self) -> str:
        used = f"CPU {self.server:.1f} ms, store {self.store:.1f} ms"
        return f"p50 {self.p50:.1f} ms; {used}; {self.calls} calls; {self.packed:.1f} kB packed, {self.raw:.0f} raw"


def measured(store: ScratchStore, web: Web, path: str) -> Figures:
    port = web.port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body, times, calls = b"", list[float](), list[int]()
    begun_cpu = 0.0, 0.0
    for number in range(ROUNDS + 3):
        begun_cpu = (cpu_of(web.pid), cpu(store)) if number == 3 else begun_cpu
        before = commands(store) if number < 3 else 0
        begun = time.perf_counter()
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        took = (time.perf_counter() - begun) * 1000
        if response.status != 200:
            raise SystemExit(f"{path}: {response.status} {body[:300]!r}")
        if number < 3:  # these warm up, too
            calls.append(commands(store) - before)
        else:
            times.append(took)
    connection.close()
    server, of_store = (
        (now - then) * 1000 / ROUNDS
        for now, then in zip((cpu_of(web.pid), cpu(store)), begun_cpu, strict=True)
    )
    p95 = statistics.quantiles(times, n=20)[-1]
    packed = len(gzip.compress(body, 6)) / 1000
    return Figures(
        statistics.median(times),
        p95,
        server,
        of_store,
        min(calls),
        len(body) / 1000,
        packed,
        body.decode(errors="replace"),
    )


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def commands(store: ScratchStore) -> int:
    """How many calls of functions the store has had."""
    lines = store.ask("INFO", "commandstats").splitlines()
    found = [re.match(r"cmdstat_fcall(?:_ro)?:calls=(\d+)", line) for line in lines]
    return sum(int(one[1]) for one in found if one)


def pages(store: ScratchStore, web: Web, names: dict[str, str], say: Say) -> list[Row]:
    places = [
        view.path.replace("{name}", segment(names.get(view.path.split("/")[1], ""))) for view in TABLE.views
    ]
    rows, largest = list[Row](), [0.0, 0.0, 0.0]
    for place in (*places, *MORE):
        say(place)
        one = measured(store, web, place)
        rows.append(at_most(f"{short(place, names)}: p95", one.p95, PAGE_MS, "ms", str(one)))
        figures = (one.calls, one.packed, one.raw)
        largest = [max(before, now) for before, now in zip(largest, figures, strict=True)]
        region = REGION.search(one.text)
        if region is not None:
            address = unescape(region[1])
            part, what = measured(store, web, address), f"region {address.rpartition('fragment=')[2]}"
            rows.append(at_most(f"{short(place, names)} {what}: p95", part.p95, REGION_MS, "ms", str(part)))
    limits = (("store calls", CALLS, ""), ("HTML, packed", PACKED_KB, "kB"), ("HTML", RAW_KB, "kB"))
    return rows + [
        at_most(f"most {what} of a page", value, limit, unit)
        for value, (what, limit, unit) in zip(largest, limits, strict=True)
    ]


def short(place: str, names: dict[str, str]) -> str:
    """A place without the long ids that differ from run to run."""
    for name in names.values():
        place = place.replace(segment(name), "…") if len(name) > 20 else place
    return place


def searches(store: ScratchStore, web: Web, say: Say) -> list[Row]:
    """Filters without an index, which look at a part of the jobs and offer the next part."""
    rows = []
    for place in SEARCHES:
        say(place)
        one = measured(store, web, place)
        rows.append(at_most(f"{place}: p95", one.p95, SEARCH_MS, "ms", str(one)))
    return rows
