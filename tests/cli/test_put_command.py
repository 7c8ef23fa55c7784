"""`holdfast put`, through the command itself: the same jobs as those that programs put."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from command_line import holdfast, on_a_terminal
from holdfast import Client
from holdfast.commands.jobs import JobGet
from holdfast.testing import LocalWorker
from holdfast.testing.store import ScratchStore
from waiting import until

EVIL = "\x1b]0;owned\x07\u202e\x9b31m"


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


@pytest.fixture
def worker(client: Client) -> Iterator[LocalWorker]:
    made = LocalWorker(client)
    yield made
    made.close()


def piped(text: bytes, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "holdfast.cli.main", "put", *words]
    ended = subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)
    return subprocess.CompletedProcess(
        command, ended.returncode, ended.stdout.decode(), ended.stderr.decode()
    )


def until_awaited(store: ScratchStore, channel: str) -> None:
    until(lambda: store.ask("PUBSUB", "NUMSUB", channel).split()[-1] == "1", "it waits")


def stored(client: Client, jid: str) -> dict[str, Any]:
    """Everything about a job but what differs between two puts of the same."""
    [facts] = client.run(JobGet([jid]))
    assert facts is not None
    found = msgspec.structs.asdict(facts)
    return {name: found[name] for name in found if name not in ("jid", "created_ms", "history", "queued_ms")}


@pytest.mark.full
@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((), {}, ()),
        ((7,), {"lang": "de"}, ("--arg", "7", "--arg", "lang=de")),
        (("a b", None, 1.5, [1]), {}, ("-a", "a b", "-a", "null", "-a", "1.5", "-a", "[1]")),
        (("7", "x=y", "http://h/?a=b", "a-b=c"), {},
         ("-a", '"7"', "-a", '"x=y"', "-a", "http://h/?a=b", "-a", "a-b=c")),
        ((), {"n": 2**53 + 1, "empty": "", "ü": "{"}, ("-a", f"n={2**53 + 1}", "-a", "empty=", "-a", "ü={")),
        ((1, [2]), {"c": 3}, ("--data", "[1, [2]]", "--arg", "c=3")),
        ((1,), {"b": {"c": 3}}, ("--data", ' {"b": {"c": 3}}\n', "--arg", "1")),
    ],
)  # fmt: skip
def test_a_function_job_is_the_one_that_the_decorated_function_puts(
    client: Client, place: tuple[str, ...], args: Any, kwargs: Any, words: tuple[str, ...]
) -> None:
    @client.job(name="shop.welcome")
    def welcome(*args: Any, **kwargs: Any) -> None: ...

    put = holdfast("put", "shop.welcome", *words, *place)
    assert (put.returncode, put.stderr) == (0, "")
    assert stored(client, put.stdout.strip()) == stored(client, welcome.put(*args, **kwargs).jid)


@pytest.mark.full
def test_all_options_of_a_put_are_those_of_the_client(client: Client, place: tuple[str, ...]) -> None:
    parent = client.queues["mail"].put("shop.Parent", {})
    words = (
        "--klass", "-q", "mail", "--data", '{"n":  1.10}', "--priority", "-3", "--retries", "2", "--max-losses", "1",
        "--tag", "vip", "--tag", "eu", "--throttle", "smtp", "--depends", parent, "--expires", "100", "--timeout", "9.5",
        "--result-keep", "60", "--backoff", "exponential", "--delay", "5",
    )  # fmt: skip
    put = holdfast("put", "shop.Order", "--json", *words, *place)
    assert put.returncode == 0, put.stderr
    jid = json.loads(put.stdout)["jid"]
    same = client.queues["mail"].put(
        "shop.Order", '{"n":  1.10}', priority=-3, retries=2, max_losses=1, tags=["vip", "eu"], throttles=["smtp"],
        depends=[parent], expires=100, timeout=9.5, result_keep=60, backoff="exponential", delay=5,
    )  # fmt: skip
    ours, theirs = stored(client, jid), stored(client, same)
    for one in (ours, theirs):
        one["options"].pop("expires", None)
    assert ours == theirs
    assert client.jobs[jid].raw_data == b'{"n":  1.10}'
    plain = holdfast("put", "shop.Order", "--klass", "--jid", "order-7", *place)
    assert plain.stdout == "order-7\n"
    assert stored(client, "order-7") == stored(client, client.queues["default"].put("shop.Order"))
    again = holdfast("put", "shop.Other", "--klass", "--jid", "order-7", "--only-new", *place)
    assert (again.returncode, again.stdout, again.stderr.count("\n")) == (1, "", 1)
    assert client.jobs["order-7"].klass_name == "shop.Order"


@pytest.mark.full
def test_json_has_whether_the_put_made_the_job(client: Client, place: tuple[str, ...]) -> None:
    def put(*words: str) -> tuple[str, bool]:
        done = json.loads(holdfast("put", "shop.Order", "--klass", "--json", *words, *place).stdout)
        return done["jid"], done["is_new"]

    assert put()[1] is True
    assert put("--jid", "order-7") == ("order-7", True)
    assert put("--jid", "order-7") == ("order-7", False)
    assert put("--jid", "order-7", "--only-new") == ("order-7", False)
    assert put("--jid", "order-8", "--only-new") == ("order-8", True)


@pytest.mark.full
def test_data_come_from_a_file_or_standard_input(
    client: Client, place: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "order.json").write_text('{"n": [1]}\n')
    jid = holdfast("put", "shop.Order", "--klass", "-d", f"@{tmp_path}/order.json", *place).stdout.strip()
    assert json.loads(client.jobs[jid].data) == {"n": [1]}
    jid = piped(b"[1, 2]", "shop.welcome", "-d", "-", *place).stdout.strip()
    assert json.loads(client.jobs[jid].data) == {"args": [1, 2], "kwargs": {}}
    missing = holdfast("put", "shop.Order", "--klass", "-d", "@nowhere.json", *place)
    assert (missing.returncode, missing.stderr) == (1, "holdfast: No such file or directory: nowhere.json\n")


@pytest.mark.full
def test_it_waits_and_prints_the_result(client: Client, worker: LocalWorker, place: tuple[str, ...]) -> None:
    @client.job(name="shop.total", queue="sums")
    def total(a: int, b: int = 0) -> dict[str, object]:
        return {"sum": a + b, "evil": EVIL}

    words = (sys.executable, "-m", "holdfast.cli.main", "put", "shop.total", "-q", "sums", "--wait", *place)
    for more, read in (((), lambda found: found), (("--json",), lambda found: found["result"])):
        with subprocess.Popen(
            [*words, "-a", "7", "-a", "b=35", *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as waiting:
            until(lambda: client.queues["sums"].counts["waiting"], "the job is put")
            [done] = worker.drain()
            out, err = waiting.communicate(timeout=60)
        assert waiting.returncode == 0, err
        assert read(json.loads(out)) == {"sum": 42, "evil": EVIL}
        assert "\x1b" not in out
        assert err == ("" if more else f"job {done.jid}\n")


@pytest.mark.full
def test_a_job_that_ends_otherwise_has_exit_code_1_and_a_sentence(
    store: ScratchStore, client: Client, worker: LocalWorker, place: tuple[str, ...]
) -> None:
    @client.job(name="shop.wrong", queue="sums")
    def wrong() -> None:
        raise ValueError("on purpose " + EVIL)

    words = (sys.executable, "-m", "holdfast.cli.main", "put", "shop.wrong", "-q", "sums", "--wait", *place)
    ends = {
        "failed": lambda jid: worker.drain(raises=False),
        "cancelled": lambda jid: client.jobs.cancel(jid),
    }
    for status, end in ends.items():
        for more in ((), ("--json",)):
            with subprocess.Popen(
                [*words, "--jid", f"{status}{len(more)}", *more],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as waiting:
                jid = f"{status}{len(more)}"
                until_awaited(store, client.shard.result_channel(jid))
                end(jid)
                out, err = waiting.communicate(timeout=60)
            assert waiting.returncode == 1
            assert "\x1b" not in out + err
            if more:
                found = json.loads(out)
                assert found["status"] == status
                if status == "failed":
                    assert (found["group"], EVIL in found["message"]) == ("sums-ValueError", True)
            else:
                assert out == ""
                assert f"job {status}0" in err.splitlines()[1]
                assert ("failed in group sums-ValueError: " in err) == (status == "failed")
                assert ("Traceback" in err) == (status == "failed")


@pytest.mark.full
def test_waiting_ends_after_the_time_that_was_given(client: Client, place: tuple[str, ...]) -> None:
    late = holdfast("put", "shop.Never", "--wait-timeout", "0.05", *place)
    jid = late.stderr.splitlines()[0].removeprefix("job ")
    assert (late.returncode, late.stdout) == (1, "")
    assert f"holdfast: job {jid} has not ended in time; no worker has been seen in " in late.stderr
    assert "; `holdfast jobs why" in late.stderr
    late = holdfast("put", "shop.Never", "--wait", "--wait-timeout", "0", "--json", *place)
    assert (late.returncode, json.loads(late.stdout)["status"]) == (1, "open")
    assert client.queues["default"].counts["waiting"] == 2


@pytest.mark.full
def test_many_jobs_are_put_from_lines(client: Client, place: tuple[str, ...]) -> None:
    lines = b"".join(b'{"n": %d}\n\n' % n for n in range(1100))
    put = piped(lines, "shop.Order", "--klass", "--many", "-q", "mail", "--tag", "bulk", *place)
    assert (put.returncode, put.stderr) == (0, "")
    jids = put.stdout.split()
    assert len(set(jids)) == 1100 == client.queues["mail"].counts["waiting"]
    assert [json.loads(client.jobs[jids[n]].data) for n in (0, 512, 1099)] == [
        {"n": 0},
        {"n": 512},
        {"n": 1099},
    ]
    assert client.jobs[jids[0]].tags == ["bulk"]
    put = piped(b'[7]\n{"b": 8}\n', "shop.welcome", "--many", "--json", *place)
    datas = [json.loads(client.jobs[json.loads(line)["jid"]].data) for line in put.stdout.splitlines()]
    assert datas == [{"args": [7], "kwargs": {}}, {"args": [], "kwargs": {"b": 8}}]


def test_the_jids_of_many_puts_with_one_key_are_those_of_the_job_that_stands(
    client: Client, place: tuple[str, ...]
) -> None:
    words = ("shop.Import", "--klass", "--many", "-q", "imports", "--unique-key", "b.csv", *place)
    first = piped(b"{}\n{}\n", *words)
    assert client.queues["imports"].counts["waiting"] == 1
    job = client.queues["imports"].peek()
    assert job is not None
    assert (first.returncode, first.stdout.split()) == (0, [job.jid, job.jid])
    again = piped(b"{}\n", *words, "--json")  # a call of one put is read elsewhere
    assert json.loads(again.stdout) == {"jid": job.jid, "is_new": False}
    raised = piped(b"{}\n", *words, "--on-conflict", "raise")
    assert (raised.returncode, raised.stdout) == (1, "")
    assert job.jid in raised.stderr


@pytest.mark.full
def test_a_line_that_is_wrong_is_named_and_those_before_its_call_are_put(
    client: Client, place: tuple[str, ...]
) -> None:
    put = piped(b"{}\n" * 600 + b"{\n{}\n", "shop.Order", "--klass", "--many", *place)
    assert (put.returncode, len(put.stdout.split())) == (2, 512)
    assert put.stderr.startswith("holdfast: line 601: data is not JSON: ")
    assert put.stderr.endswith("; 512 jobs of the lines before were put\n")
    assert client.queues["default"].counts["waiting"] == 512


@pytest.mark.full
def test_refused_lines_are_named_and_the_others_are_put(client: Client, place: tuple[str, ...]) -> None:
    client.queues["mail"].set_bound("max-waiting", 2)
    put = piped(b"{}\n" * 4, "shop.Order", "--klass", "--many", "-q", "mail", *place)
    assert (put.returncode, len(put.stdout.split())) == (1, client.queues["mail"].counts["waiting"])
    assert len(put.stderr.splitlines()) == 4 - client.queues["mail"].counts["waiting"] > 0
    assert "line 4: " in put.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--arg", "a=1", "--arg", "a=2"), "argument 'a' is given twice"),
        (("--data", "{", "--klass"), "data is not JSON"),
        (("--data", "7"), "expected an array of its arguments or an object of named ones, got 7"),
        (("--klass", "--arg", "7"), "arguments are for functions"),
        (("--priority", "5000"), "priority"),
        (("--expires", "1", "--delay", "2"), "expires must be later than delay"),
        (("--backoff", "sometimes"), "backoff: kind is"),
        (("--many", "--wait"), "--many cannot be used with"),
        (("--many", "--jid", "x"), "--many cannot be used with"),
        (("-q", "a\x1bb"), "queue"),
        (("--delay", "nan"), "delay must be a finite number"),
    ],
)
def test_what_cannot_be_put_is_refused_before_anything_is_sent(
    client: Client, place: tuple[str, ...], words: tuple[str, ...], why: str
) -> None:
    refused = holdfast("put", "shop.welcome", *words, *place)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert why in refused.stderr
    assert "\x1b" not in refused.stderr
    assert client.queues.counts == []


@pytest.mark.full
def test_data_that_are_too_large_are_refused_before_anything_is_sent(
    client: Client, place: tuple[str, ...]
) -> None:
    refused = piped(b'["%s"]' % (b"x" * (1 << 20)), "shop.welcome", "--data", "-", *place)
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "more than the 1048576 allowed" in refused.stderr
    assert client.queues.counts == []


def test_a_hostile_jid_stays_printable_on_a_terminal(client: Client, place: tuple[str, ...]) -> None:
    code, shown = on_a_terminal("put", "shop.Order", "--klass", "--jid", "a\u202eb\U000e0001c", *place)
    assert (code, shown.strip()) == (0, "a?b?c")
    assert client.jobs["a\u202eb\U000e0001c"]


def test_a_store_that_does_not_respond_has_an_exit_code_of_its_own() -> None:
    put = holdfast("put", "shop.Order", "--url", "unix:///nowhere.sock", "--store-wait", "0.1")
    assert (put.returncode, put.stderr.count("\n"), put.stdout) == (3, 1, "")
