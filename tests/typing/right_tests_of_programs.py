"""Right calls of tests that use the fixtures."""

from holdfast import AsyncClient, Client
from holdfast.testing import (
    AsyncLocalWorker,
    LocalWorker,
    Performed,
    StoppedClock,
    assert_not_put,
    assert_put,
)

app = Client()


@app.job(queue="mail")
def welcome(user: int) -> str:
    return str(user)


def test_blocking(
    holdfast_client: Client, holdfast_worker: LocalWorker, holdfast_clock: StoppedClock
) -> None:
    priority: int = assert_put(holdfast_client, welcome, 7).priority
    performed: list[Performed] = holdfast_worker.run_for(hours=24, raises=False)
    one: Performed | None = holdfast_worker.run_one()
    with holdfast_worker.inline():
        answer: str = welcome.put(7).result(1)
    holdfast_clock.advance(days=1)
    print(priority, performed, one, answer)


async def test_async(holdfast_async_client: AsyncClient, holdfast_async_worker: AsyncLocalWorker) -> None:
    assert_not_put(holdfast_async_client, welcome, 8)
    performed: list[Performed] = await holdfast_async_worker.drain()
    async with holdfast_async_worker.inline():
        print(performed)
