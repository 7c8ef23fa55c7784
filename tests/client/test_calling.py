"""`client(command, …)`: the commands of the reqless protocol, with their raw replies."""

import json

import pytest

from holdfast import Client
from holdfast.errors import HoldfastError, Refused, ReqlessError, StoreFull, UsageError
from holdfast.testing import ScratchStore


def test_a_client_is_called_with_a_command_and_its_arguments(do) -> None:
    client = do.client
    assert (
        do(lambda: client("queue.put", "w", "mail", "j1", "Welcome", '{"id":7}', 0.5, "priority", 3)) == "j1"
    )
    job = json.loads(do(lambda: client("job.get", "j1")))
    assert (job["state"], job["priority"], job["data"]) == ("scheduled", 3, '{"id":7}')
    assert do(lambda: client("queue.length", "mail")) == 1
    assert do(lambda: client("job.get", "nobody")) is None
    assert do(lambda: client("job.cancel", "j1", b"j2")) == ["j1", "j2"]


def test_what_a_command_puts_is_a_job_like_any_other(client: Client) -> None:
    client("queue.put", "w", "mail", "j1", "Welcome", '{"id":7}', 0)
    job = client.queues["mail"].pop()
    assert job is not None
    assert (job.jid, job.klass_name) == ("j1", "Welcome")
    assert client("job.complete", "j1", client.worker_name, "mail", "{}") == "complete"
    assert client.jobs.complete() == ["j1"]


def test_a_refusal_says_what_the_protocol_says_and_nothing_else(client: Client) -> None:
    with pytest.raises(ReqlessError) as said:
        client("job.complete", "j1", "w", "mail", "{}")
    assert str(said.value) == "Complete(): Job does not exist"
    assert isinstance(said.value, Refused)
    with pytest.raises(HoldfastError, match=r"^Unknown command queue\.fly$"):
        client("queue.fly")


@pytest.mark.parametrize("odd", [True, None, {"a": 1}, ["a"], float("nan"), float("inf"), "\ud800", object()])
def test_an_argument_that_cannot_travel_is_the_callers_mistake(client: Client, odd: object) -> None:
    with pytest.raises(UsageError):
        client("job.get", odd)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        client(odd)  # type: ignore[arg-type]


def test_an_argument_is_no_longer_than_the_data_of_a_job(url: str, namespace: str) -> None:
    with Client(url, namespace=namespace, max_data=100) as small, pytest.raises(UsageError, match="max_data"):
        small("queue.put", "w", "mail", "j1", "Welcome", "[" + "1," * 60 + "1]", 0)


def test_a_full_store_takes_no_command(namespace: str) -> None:
    with ScratchStore() as store, Client(store.url, namespace=namespace) as client:
        client("queue.put", "w", "mail", "j1", "Welcome", "{}", 0)
        store.ask("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(StoreFull):
            client("queue.put", "w", "mail", "j2", "Welcome", "{}", 0)
        assert client.queues["mail"].pop() is not None
