"""Section 13.5 of the Python API: what the store does while a block runs."""

import io

import pytest
from sync_async import Async, made_of

from holdfast import AsyncClient, Client, StoreUnsupported, UsageError
from holdfast.profile import Profiler, Timing
from holdfast.testing import ScratchStore


@pytest.fixture
def own_store(engine):
    with ScratchStore(
        engine, settings={"slowlog-log-slower-than": "12345", "slowlog-max-len": "77"}
    ) as store:
        yield store


def profiled(do, work, output):
    """Run `work` under a profiler, with each client."""
    profiler = Profiler(do.client, output)
    if isinstance(do, Async):

        async def story():
            async with profiler:
                for step in work:
                    await step()

        do(story)
    else:
        with profiler:
            for step in work:
                step()
    return profiler


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_calls_are_counted_and_what_they_did_inside_stands_below_them(kind, own_store):
    output = io.StringIO()
    with made_of(kind, own_store.url) as do:
        queue = do.client.queues["mail"]
        do(lambda: queue.put("app.Job"))
        profiler = profiled(do, [lambda: queue.put("app.Job")] * 3 + [queue.pop], output)
    timings = {timing.command: timing for timing in profiler.timings}
    assert timings["hf1_put"].calls == 3
    assert timings["hf1_pop"].calls == 1
    assert all(timing.average_us == timing.total_us / timing.calls for timing in profiler.timings)
    inner = {timing.command: timing.calls for timing in profiler.inner["hf1_put"]}
    assert (inner["ZADD"], inner["SETNX"]) == (3, 3)
    assert "ZPOPMIN" in {timing.command for timing in profiler.inner["hf1_pop"]}
    assert not {"CONFIG", "SLOWLOG"} & set(timings)
    printed = output.getvalue()
    assert printed == profiler.report()
    assert "hf1_put" in printed
    assert "\n  ZADD " in printed


def test_the_settings_of_the_slow_log_are_put_back(own_store):
    def settings():
        return own_store.ask("CONFIG", "GET", "slowlog-*").split()

    before = settings()
    client = Client(own_store.url)

    def fail():
        with Profiler(client, quiet=True):
            assert own_store.ask("CONFIG", "GET", "slowlog-log-slower-than").split()[1] == "0"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sorted(settings()) == sorted(before)
    client.close()


def test_plain_commands_of_others_are_no_part_of_a_call(own_store):
    client = Client(own_store.url)
    client.queues["mail"].put("app.Job")
    with Profiler(client, quiet=True) as profiler:
        client.database.set("mine", "1")
        client.database.get("mine")
        client.queues["mail"].put("app.Job")
        client.database.lpush("list", "1")
    timings = {timing.command: timing.calls for timing in profiler.timings}
    assert timings["LPUSH"] == 1
    if own_store.engine == "redis":  # on a Unix socket Valkey gives all clients one address
        assert (timings["SET"], timings["GET"]) == (1, 1)
    client.close()


def test_what_was_in_the_log_before_does_not_count_and_stays(own_store):
    client = Client(own_store.url)
    own_store.ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
    own_store.ask("ECHO", "before")
    own_store.ask("CONFIG", "SET", "slowlog-log-slower-than", "12345")
    with Profiler(client, quiet=True) as profiler:
        client.queues["mail"].length()
    assert "ECHO" not in {timing.command for timing in profiler.timings}
    assert "ECHO" in own_store.ask("SLOWLOG", "GET", "-1")
    assert profiler.missed == 0
    client.close()


def test_it_prints_to_standard_output_unless_told_otherwise(capsys, url):
    with Client(url) as client, Profiler(client) as profiler:
        client.queues["mail"].length()
    assert capsys.readouterr().out.startswith("command ")
    assert isinstance(profiler.timings[0], Timing)


def test_a_store_that_bars_its_settings_is_said_so_and_left_alone():
    with ScratchStore(tcp=True) as store:
        store.ask("ACL", "SETUSER", "ann", "on", ">secret", "~*", "&*", "+@all", "-config")
        client = Client(store.tcp_url, username="ann", password="secret")
        with pytest.raises(StoreUnsupported, match="needs CONFIG and SLOWLOG"), Profiler(client, quiet=True):
            pass
        client.close()


def test_only_clients_can_be_profiled():
    with pytest.raises(UsageError, match="client must be"):
        Profiler(object())
