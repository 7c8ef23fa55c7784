"""Invalid arguments in raw calls of the native door: refused with an error code, without a change of any key."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from cases import CASES, Case
from twins import a_namespace, in_stopped_time, say

from holdfast import Client
from holdfast.commands import Command
from holdfast.commands.jobs import JobGet
from holdfast.commands.leases import Pop
from holdfast.commands.queues import CountQueues, Peek
from holdfast.testing.store import ScratchStore
from holdfast.wire.plans import ErrorReply

MB = 1 << 20
DUMP_ALL = """
local all = {}
for _, name in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  all[#all + 1] = name .. redis.sha1hex(redis.call('DUMP', name))
end
table.sort(all)
return all
"""

NAMES = {
    "empty": b"",
    "a control character": b"a\nb",
    "a zero": b"a\0b",
    "delete": b"a\x7f",
    "a high control character": "a\x85b".encode(),
    "201 bytes": b"x" * 201,
    "101 letters of two bytes": "é".encode() * 101,
    "no UTF-8": b"a\xff\xfe",
    "half a letter": "é".encode()[:1],
    "half a surrogate": b"\xed\xa0\x80",
    "overlong": b"\xe0\x80\xaf",
}
NUMBERS = {
    "empty": b"",
    "words": b"many",
    "a fraction": b"1.5",
    "not a number": b"nan",
    "endless": b"inf",
    "below": b"-4096",
    "negative endless": b"-inf",
    "huge": b"1e300",
    "beyond whole numbers": b"9007199254740993",
    "hexadecimal nonsense": b"0xzz",
}
GOOD_NAMES = {
    "200 bytes": "x" * 200,
    "100 letters of two bytes": "é" * 100,
    "braces": "{a}{b}",
    "colons": "j:w:l:",
    "blanks": " a b ",
    "stars": "*?[x]\\",
    "quotes": "\"'`$(x)",
    "emoji": "😀 работа 作業",
    "a percent sign": "%s%d%%",
}


def dump(client: Client) -> Any:
    """Return every key of the namespace with its content, replay records included."""
    return say(client, "EVAL", DUMP_ALL, 0, client.root)


def raw_words(command: Command[Any]) -> list[str | bytes | int]:
    """The words of a command as they are sent, with a line and a number if it has room for them."""
    words: list[str | bytes | int] = list(command.words())
    if command.request_id_at >= 0:
        words[command.request_id_at : command.request_id_at] = ["a-line", 7]
    return words


@contextmanager
def prepared(store: ScratchStore, made: Case) -> Iterator[tuple[Client, str, list[str | bytes | int]]]:
    with in_stopped_time(store.url, a_namespace()) as client:
        command = made(client)
        yield client, f"hf1_{command.verb}", raw_words(command)


def call(client: Client, function: str, words: list[Any]) -> Any:
    return say(client, "FCALL", function, 1, client.root, *words)


def is_readable(client: Client) -> bool:
    """Read and pop all jobs: none of these calls fails."""
    for row in client.run(CountQueues()):
        for job in client.run(Peek(row.name, 0, 50)):
            client.run(JobGet((job.jid,)))
        client.run(Pop("reader", (row.name,), 50))
    return True


@pytest.mark.full
@pytest.mark.parametrize("verb", sorted(CASES))
def test_a_word_of_nonsense_is_refused_without_a_trace_or_does_no_harm(
    verb: str, store: ScratchStore
) -> None:
    made = CASES[verb][0]
    with prepared(store, made) as (_, _, words):
        places = len(words)
    for at in range(min(places, 12)):
        for nonsense in {*NAMES.values(), *NUMBERS.values()}:
            check(
                store, made, lambda words, at=at, nonsense=nonsense: [*words[:at], nonsense, *words[at + 1 :]]
            )


@pytest.mark.full
@pytest.mark.parametrize("verb", sorted(CASES))
def test_words_too_few_or_too_many_are_refused_without_a_trace_or_do_no_harm(
    verb: str, store: ScratchStore
) -> None:
    for made in CASES[verb]:
        with prepared(store, made) as (_, _, words):
            places = len(words)
        for kept in range(min(places, 12)):
            check(store, made, lambda words, kept=kept: words[:kept])
        check(store, made, lambda words: [*words, "more"])
        check(store, made, lambda words: [*words, "more", "and", "more"])


def check(store: ScratchStore, made: Case, spoil: Any) -> None:
    """Assert that a changed call is refused with a code of the core and changes nothing, or that it is valid."""
    with prepared(store, made) as (client, function, words):
        before, spoilt = dump(client), spoil(words)
        reply = call(client, function, spoilt)
        if isinstance(reply, ErrorReply):
            assert reply.code.startswith("HF_"), (made.__name__, spoilt, reply.text)
            assert dump(client) == before, (made.__name__, spoilt, reply.text)
        else:
            assert is_readable(client), (made.__name__, spoilt)


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_bad_names_are_refused(name: str, store: ScratchStore) -> None:
    bad = NAMES[name]
    with in_stopped_time(store.url, a_namespace()) as client:
        client.run(CountQueues())
        before = dump(client)
        for words in (
            ["put", "", 0, "new", bad, 0, 5, 0, "jid", "K", "1"],
            ["put", "", 0, "new", "q", 0, 5, 0, bad, "K", "1"],
            ["put", "", 0, "new", "q", 0, 5, 0, "jid", bad, "1"],
            ["pop", "bee", "", 0, 1, 0, bad, 1],
            ["pop", bad, "", 0, 1, 0, "q", 1],
            ["pause", "", 0, 1, "me", "why", bad],
            ["config_set", bad, "1"],
            ["job_get", bad],
        ):
            reply = call(client, f"hf1_{words[0]}", words[1:])
            assert isinstance(reply, ErrorReply), words
            assert reply.code == "HF_BAD_ARGUMENT", words
        assert dump(client) == before


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_odd_names_are_names(name: str, store: ScratchStore) -> None:
    odd = GOOD_NAMES[name]
    with in_stopped_time(store.url, a_namespace()) as client:
        queue = client.queues[odd]
        queue.put(odd, {"n": 1}, jid=odd)
        assert [job.jid for job in queue.peek(count=5)] == [odd]
        client.worker_name = odd
        job = client.queues[odd].pop()
        assert (job.jid, job.klass_name, job.queue_name, job.worker_name) == (odd, odd, odd, odd)
        assert job.retry() == 4
        job = client.queues[odd].pop()
        job.fail(odd, odd)
        assert client.jobs.failed() == {odd: 1}
        assert client.jobs[odd].failure["message"] == odd
        assert client.queues.names == [odd]


@pytest.mark.full
@pytest.mark.parametrize("value", NUMBERS.values(), ids=list(NUMBERS))
@pytest.mark.parametrize("place", [5, 6, 7], ids=["priority", "retries", "delay"])
def test_absurd_numbers_are_refused(place: int, value: bytes, store: ScratchStore) -> None:
    words: list[str | bytes | int] = ["", 0, "new", "q", 0, 5, 0, "jid", "K", "1"]
    words[place - 1] = value
    with in_stopped_time(store.url, a_namespace()) as client:
        client.run(CountQueues())
        before = dump(client)
        reply = call(client, "hf1_put", words)
        assert isinstance(reply, ErrorReply)
        assert reply.code == "HF_BAD_ARGUMENT"
        assert dump(client) == before


@pytest.mark.full
def test_more_than_512_jobs_in_one_call_are_too_many(store: ScratchStore) -> None:
    with in_stopped_time(store.url, a_namespace()) as client:
        client.run(CountQueues())
        before = dump(client)
        jobs = [word for n in range(513) for word in (f"a{n}", "K", "1")]
        jids = jobs[::3]
        for function, words in {
            "hf1_put": ["", 0, "new", "q", 0, 5, 0, *jobs],
            "hf1_cancel": ["", 0, *jids],
            "hf1_job_get": jids,
            "hf1_complete": ["bee", *[word for jid in jids for word in (jid, 1, "", 0, "")]],
            "hf1_heartbeat": [0, *[word for jid in jids for word in ("bee", jid, 1, "")]],
        }.items():
            reply = call(client, function, words)
            assert isinstance(reply, ErrorReply)
            assert reply.code == "HF_TOO_MANY", function
        assert dump(client) == before


@pytest.mark.full
def test_data_above_64_mib_are_refused(store: ScratchStore) -> None:
    with in_stopped_time(store.url, a_namespace()) as client:
        client.run(CountQueues())
        before = dump(client)
        reply = call(client, "hf1_put", ["", 0, "new", "q", 0, 5, 0, "jid", "K", b"1" * (64 * MB + 1)])
        assert isinstance(reply, ErrorReply)
        assert reply.code in ("HF_BAD_ARGUMENT", "HF_TOO_MANY", "HF_DATA_TOO_LARGE")
        assert dump(client) == before


@pytest.mark.full
def test_a_message_of_many_letters_is_cut_between_letters(store: ScratchStore) -> None:
    with in_stopped_time(store.url, a_namespace()) as client:
        for start in ("", "a", "ab"):
            jid = client.queues["q"].put("K")
            job = client.queues["q"].pop()
            job.retry(group="odd", message=start + "é😀" * 9000)
            job = client.queues["q"].pop()
            job.fail("broken", start + "é😀" * 9000)
            found = client.jobs[jid]
            assert found.failure["message"].startswith(start + "é")
            assert "\ufffd" not in found.failure["message"] + str(found.history)


@pytest.mark.full
def test_a_setting_that_makes_no_sense_is_refused_and_pops_go_on(store: ScratchStore) -> None:
    with in_stopped_time(store.url, a_namespace()) as client:
        client.queues["q"].put("K")
        before = dump(client)
        for key in ("heartbeat", "q-heartbeat", "grace-period", "jobs-history"):
            for value in ("nan", "inf", "-inf", "1e300"):
                reply = call(client, "hf1_config_set", [key, value])
                assert isinstance(reply, ErrorReply), (key, value)
                assert reply.code == "HF_BAD_ARGUMENT"
        assert dump(client) == before
        assert client.queues["q"].pop() is not None
