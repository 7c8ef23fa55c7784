"""Data that cannot be read, exceptions that cannot be described: the job fails with its reason, and its process works on."""

import importlib
import sys
from collections.abc import Iterator

import pytest
from hostile_code import HOSTILE
from hostile_jobs import MODULES, Job, made
from worker_kit import until

from holdfast import CodecError
from native_door import Door, StoreMessage

EVERY = 10  # so many hostile jobs stand before a good one


@pytest.fixture
def hostile(shop) -> Iterator[None]:
    for name, text in {"hostile": HOSTILE, **MODULES}.items():
        (shop.here / f"{name}.py").write_text(text)
    importlib.invalidate_caches()
    yield
    sys.modules.pop("hostile", None)


def wrong_end(shop, job: Job, jid: str) -> str:
    """What is wrong with how a job ended, "" if nothing is."""
    found, groups = shop.job(jid), job.groups.split("|")
    if found.attempts != 1 or found.losses:
        return f"{job.name}: {found.attempts} attempts, {found.losses} losses"
    if found.state == "complete":
        return "" if "" in groups else f"{job.name} is complete"
    if found.state != "failed":
        return f"{job.name} is {found.state}"
    group, message = found.failure["group"], found.failure["message"]
    if not message or len(message) > 20_000:
        return f"{job.name}: a message of {len(message)} characters"
    if "Failed to import hostile" in message and not job.name.startswith("klass"):
        return f"{job.name}: {message[-300:]}"
    if "*" in groups or group.removeprefix("q-") in groups:
        return ""
    return f"{job.name} failed in {group}: {message[-300:]}"


def perform_all(shop, pool: str, jobs: list[Job]) -> None:
    """Have one worker perform jobs, with good ones among them, and see how each ended."""
    door, good = Door(shop.client), [shop.chores.add.put(0)]
    for number, job in enumerate(jobs):
        door("put", "", 0, "new", "q", 0, 1000, 0, f"hostile-{number}", job.klass, job.data)
        if number % EVERY == EVERY - 1:
            good.append(shop.chores.add.put(number))
    worker = shop.start(pool, "--import", "chores", "--import", "hostile")
    until(lambda: shop.q.length() < len(jobs), "the first jobs have ended", 60)
    children = worker.children()
    until(lambda: shop.q.length() == 0, "all jobs have ended", 300)
    assert [handle.result(30) for handle in good] == [1, *range(EVERY, len(jobs) + 1, EVERY)]
    assert worker.process.poll() is None
    assert pool == "fork" or worker.children() == children
    wrong = [wrong_end(shop, job, f"hostile-{number}") for number, job in enumerate(jobs)]
    assert [each for each in wrong if each] == []


@pytest.mark.parametrize("some", ["essential", pytest.param("all", marks=pytest.mark.full)])
def test_hostile_jobs_fail_with_their_reason_and_end_no_process(shop, pool, hostile, some):
    perform_all(shop, pool, [job for job in made() if job.essential or some == "all"])


NO_TEXT = (b"a\xff", b"\xed\xa0\x80", b"a\0b", b"")
PUT_X = ("put_x", "", 0, "new", "q", 0, 5, 0)


@pytest.mark.full
def test_names_and_options_that_are_no_text_are_refused_at_each_door(shop):
    door = Door(shop.client)
    assert shop.q.length() == 0
    for bad in NO_TEXT:
        for words in (
            ("put", "", 0, "new", "q", 0, 5, 0, bad, "k", "{}"),
            ("put", "", 0, "new", "q", 0, 5, 0, "j", bad, "{}"),
            ("put", "", 0, "new", bad, 0, 5, 0, "j", "k", "{}"),
            *(
                (*PUT_X, "j", "k", "{}", 1, option, bad)
                for option in ("tag", "throttle", "trace", "backoff", "limit", bad)
            ),
            ("call", "", 0, "queue.put", "w", "q", bad, "k", "{}", "0"),
            ("call", "", 0, "queue.put", "w", "q", "j", bad, "{}", "0"),
            ("call", "", 0, "queue.put", "w", bad, "j", "k", "{}", "0"),
            ("call", "", 0, "queue.put", "w", "q", "j", "k", "{}", "0", "tags", b'["%s"]' % bad),
            ("call", "", 0, "queue.put", "w", "q", "j", "k", "{}", "0", "throttles", b'["%s"]' % bad),
        ):
            with pytest.raises(StoreMessage) as said:
                door(*words)
            assert said.value.code in ("HF_BAD_ARGUMENT", "HF_REFUSED"), words
    assert shop.q.length() == 0


@pytest.mark.full
def test_a_job_is_performed_though_what_belongs_to_it_is_no_text(shop):
    """No door lets that in: somebody wrote it past the core."""
    door = Door(shop.client)
    handles = [shop.chores.add.put(number) for number in range(4)]
    spoilt = {"t": b"\x91\xa1\xff", "k": b"\x91\xa1\xff", "s": b"\xff", "o": b"\x81\xa5trace\xa1\xff"}
    for handle, (field, bytes_of_it) in zip(handles, spoilt.items(), strict=True):
        shop.job(handle.jid).tag("a")
        door.ask("HSET", door.key(f"x:{handle.jid}"), field, bytes_of_it)
    worker = shop.start("process")
    assert [handle.result(30) for handle in handles] == [1, 2, 3, 4]
    assert all(shop.job(handle.jid).attempts == 1 for handle in handles)
    assert worker.process.poll() is None


@pytest.mark.full
def test_a_job_whose_data_are_no_text_can_be_looked_at_all_the_same(shop):
    door = Door(shop.client)
    assert shop.q.length() == 0
    door("put", "", 0, "new", "q", 0, 5, 0, "odd", "k", b'{"a": "\xff"}')
    door("log", "", 0, "odd", "noted", b'{"b": "\xff"}')
    job = shop.job("odd")
    assert [entry.get("data") for entry in job.history] == [None, '{"b": "\ufffd"}']
    assert job.to_hash()["data"] == '{"a": "\ufffd"}'
    for look in (lambda: job.data, lambda: job["a"], lambda: "a" in job, lambda: job.enqueue_opts()):
        with pytest.raises(CodecError, match="not JSON"):
            look()
    assert job.move("r") == "odd"
    assert shop.job("odd").raw_data == b'{"a": "\xff"}'
