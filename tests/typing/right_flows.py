"""What type checkers must know about flows."""

from typing import assert_type

import holdfast
from holdfast import AsyncFlowHandle, FlowFailure, FlowHandle, FlowOutcome, Results, chain, group, join
from holdfast.client.calls import Call, Group

app = holdfast.Client("redis://nowhere")
aapp = holdfast.AsyncClient("redis://nowhere")


@app.job()
def fetch(url: str) -> bytes:
    return url.encode()


@app.job()
def parse(body: bytes, strict: bool = False) -> list[int]:
    return list(body) if strict else []


@app.job()
def store(numbers: list[int], *, table: str) -> str:
    return f"{table} {numbers}"


@app.job()
def total(lists: list[list[int]]) -> int:
    return sum(map(sum, lists))


@app.job()
def report(outcomes: list[FlowOutcome[list[int]]]) -> str:
    return str(outcomes)


@app.job()
def in_pieces(lists: Results[list[int]]) -> float:
    return float(len(lists))


@app.job()
def outcomes_in_pieces(outcomes: Results[FlowOutcome[list[int]]]) -> bytes:
    return b"".join(bytes(one.result or ()) for one in outcomes)


@app.job()
def after_all(outcome: FlowOutcome[bytes]) -> None: ...


@app.job()
def invoice(body: bytes, count: int) -> str:
    return f"{body!r} {count}"


@aapp.job()
async def later(body: bytes) -> float:
    return float(len(body))


@app.job()
def expand(url: str) -> Call[list[int]]:
    return fetch.call(url).then(parse)


@aapp.job()
async def spread(urls: list[str]) -> Group[bytes]:
    return fetch.map(urls)


@app.job()
def take_all(bodies: list[bytes]) -> None: ...


@app.job()
def undo(failure: FlowFailure, order: int) -> None: ...


def flows() -> None:
    assert_type(expand.call("a").then(store.partial(table="t")), Call[str])
    assert_type(spread.call(["a"]).then(take_all), Call[None])
    assert_type(fetch.call("a").on_failure(undo.partial(order=7)), Call[bytes])
    assert_type(chain(fetch.call("a"), parse), Call[list[int]])
    assert_type(chain(fetch.call("a"), parse, store.partial(table="t")), Call[str])
    assert_type(fetch.call("a").then(parse.partial(strict=True)), Call[list[int]])
    assert_type(fetch.call("a").then(after_all, on_failure="run"), Call[None])
    lists = group(chain(fetch.call(url), parse) for url in ("a", "b"))
    assert_type(lists, Group[list[int]])
    assert_type(lists.then(total), Call[int])
    assert_type(lists.then(report, on_failure="run"), Call[str])
    assert_type(lists.then(in_pieces), Call[float])
    assert_type(lists.then(outcomes_in_pieces, on_failure="run"), Call[bytes])
    with app.put(lists.then(total), open=True) as handle:
        assert_type(handle.add([fetch.call("a")]), int)
    assert_type(fetch.map(["a", "b"]), Group[bytes])
    assert_type(join(fetch.call("a"), lists.then(total)).then(invoice), Call[str])
    assert_type(fetch.call("a").after(parse.call(b""), lists, "job"), Call[bytes])
    assert_type(app.put(lists.then(total)), FlowHandle[int])
    assert_type(app.put(lists), FlowHandle[list[list[int]]])
    assert_type(app.put(lists).result(), list[list[int]])


async def awaiting() -> None:
    handle = await aapp.put(chain(fetch.call("a"), later))
    assert_type(handle, AsyncFlowHandle[float])
    assert_type(await handle, float)
    assert_type(await handle.result(5), float)
