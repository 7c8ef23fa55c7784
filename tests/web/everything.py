"""One of everything that has a page, under names of any characters, and the addresses of all pages with their tabs."""

from collections.abc import Iterator, Sequence

from holdfast import Client
from holdfast.commands.flows import Edge, FlowJob, FlowPut
from holdfast.commands.options import JobWithOptions
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.console.page_paths import segment
from holdfast.web.pages import TABLE
from holdfast.web.views import View

NAME = "a/b: 50 %. 🦑"
TABS = ("stats", "running", "waiting", "throttled", "scheduled", "stalled", "depends", "recurring", "failed", "settings")  # fmt: skip
VARIANTS = {
    "/": ["range=24h", "wall=1"],
    "/queues": ["filter=*", "sort=-waiting"],
    "/queues/{name}": [f"tab={tab}" for tab in TABS],
    "/jobs": ["q=state:failed", "q=)"],
    "/jobs/{name}": ["at=1", "first=1&second=1"],
    "/tracked": ["tab=waiting"],
    "/failed": ["hours=1", "sort=-latest"],
    "/recurring": ["new=1"],
    "/flows/{name}": ["state=depends", "node=0"],
    "/workers": ["by=host"],
    "/workers/{name}": ["failures=1"],
    "/config": ["tab=patterns", "tab=priorities", "tab=priorities&patterns=@x,mail-*"],
    "/about": ["doctor=1"],
}


def fill(client: Client, name: str = NAME, klass: str = "jobs.Send") -> dict[str, str]:
    """Make one of everything, and return the name that each kind of page is opened with, by the first segment of its path."""
    queue, other = client.queues[name], client.queues["failing"]
    for at in range(3):
        queue.put(
            klass, {"n": at, name: name}, jid=f"{name} {at}", tags=[name], priority=at, throttles=[name]
        )
    queue.put(klass, {}, jid=f"{name} later", delay=600)
    queue.put(klass, {}, jid=f"{name} child", depends=[f"{name} 1"])
    other.put(klass, {}, jid="failed", tags=[name])
    other.put(klass, {}, jid="over")
    client.throttles[name].maximum = 1
    client.job(f"{name} 0").track()
    with Client(client.store_url, namespace=client.settings.namespace, hostname=name[:60]) as worker:
        worker.queues[name].pop(1)
        worker.queues["failing"].pop(1)[0].fail(
            name, f"Traceback (most recent call last):\nValueError: {name}"
        )
        worker.queues["failing"].pop(1)[0].complete()
    queue.recur("jobs.Digest", {name: name}, interval=60, jid=name)
    client.topics[name].put("m", name, delay=60)
    put_flow(client, name, [(klass, ()), (klass, (Edge(f"{name}-0", "run"),))], queue="of flows", label=name)
    client.config["of a user"] = name
    console = Console(client, name[:60])
    console.pause(name, why=name)
    operation = console.run_operation(console.start_operation(Spec(action="track", filter="state:failed"))).id
    fixed = {"jobs": f"{name} 0", "workers": console.workers().rows[0].name, "operations": operation}
    return (
        dict.fromkeys(("queues", "tags", "failed", "recurring", "flows", "topics", "throttles"), name) | fixed
    )


def put_flow(
    client: Client,
    jid: str,
    jobs: Sequence[tuple[str, Sequence[Edge]]],
    queue: str = "q",
    label: str = "last",
) -> None:
    """Put a flow of jobs of any klass, without data; each with what it waits for."""
    made = [
        FlowJob(queue, JobWithOptions(klass, b"{}", f"{jid}-{number}"), edges=edges)
        for number, (klass, edges) in enumerate(jobs)
    ]
    assert client.run(FlowPut(jid, label, made))


def addresses(names: dict[str, str]) -> list[tuple[View, str, str]]:
    """Return each view with the address of its page, and that of its twin."""
    found = []
    for view in TABLE.views:
        name = segment(names.get(view.path.split("/")[1], ""))
        found.append((view, view.path.replace("{name}", name), "/api/v1" + view.twin.replace("{name}", name)))
    return found


def places(names: dict[str, str]) -> Iterator[str]:
    """Yield the address of each page, and of each of its tabs and variants."""
    for view, place, _ in addresses(names):
        yield place
        for query in VARIANTS.get(view.path, ()):
            yield f"{place}?{query}"
