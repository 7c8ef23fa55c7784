"""What type checkers must find wrong about flows: each line marked so, and no other."""

import holdfast
from holdfast import Call, FlowOutcome, Results, chain, group, join

app = holdfast.Client("redis://nowhere")


@app.job()
def fetch(url: str) -> bytes:
    return url.encode()


@app.job()
def parse(body: bytes) -> list[int]:
    return list(body)


@app.job()
def store(numbers: list[int], *, table: str) -> str:
    return f"{table} {numbers}"


@app.job()
def total(lists: list[list[int]]) -> int:
    return sum(map(sum, lists))


@app.job()
def in_pieces(counts: Results[int]) -> int:
    return sum(counts)


@app.job()
def report(outcome: FlowOutcome[bytes]) -> None: ...


@app.job()
def invoice(body: bytes, count: int) -> str:
    return f"{body!r} {count}"


@app.job()
def expand(url: str) -> Call[list[int]]:
    return fetch.call(url).then(parse)


def flows() -> None:
    expand.call("a").then(parse)  # wrong: the result of the flow is of another type
    fetch.call("a").on_failure(parse)  # wrong: the step takes no failure
    chain(fetch.call("a"), store.partial(table="t"))  # wrong: the step takes another type
    chain(fetch.call("a"), parse, total)  # wrong: the step takes another type
    chain(fetch, parse)  # wrong: a job in place of a call
    fetch.call("a").then(report)  # wrong: an outcome comes only with on_failure="run"
    fetch.call("a").then(parse, on_failure="never")  # wrong: no policy
    group([fetch.call("a")]).then(total)  # wrong: the step takes another type
    group([parse.call(b"")]).then(in_pieces)  # wrong: results of another type
    fetch.map([1, 2])  # wrong: items of another type
    join(fetch.call("a"), parse.call(b"")).then(invoice)  # wrong: the second result is of another type
    number: int = app.put(chain(fetch.call("a"), parse)).result()  # wrong: the result is of another type
    print(number)
