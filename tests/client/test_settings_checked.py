"""Settings are checked before they are written; data that are no JSON are refused as Python's own encoder does."""

import pytest

from holdfast import CodecError, UsageError
from holdfast.errors import HoldfastError


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("heartbeat", "abc"), ("heartbeat", 0), ("heartbeat", -1), ("heartbeat", "nan"), ("mail-heartbeat", "soon"),
        ("grace-period", "x"), ("grace-period", -0.5), ("jobs-history", -1), ("jobs-history-count", "2.5"),
        ("max-worker-age", 0), ("max-job-history", ""),
    ],
)  # fmt: skip
def test_a_value_that_a_known_setting_cannot_have_is_refused_in_one_sentence(do, key: str, value: object):
    before = do(lambda: do.client.config.all)
    with pytest.raises(UsageError, match=f"^setting {key}: expected a (whole )?number .*, got "):
        do(lambda: do.client.config.set(key, value))
    with pytest.raises(UsageError):
        do(lambda: do.client.config.update({"mine": 1, key: value}))
    assert do(lambda: do.client.config.all) == before


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("heartbeat", 0.5),
        ("mail-heartbeat", "10"),
        ("grace-period", 0),
        ("jobs-history", 0),
        ("application", "x"),
    ],
)
def test_a_value_that_it_can_have_is_written_without_a_word(do, caplog, key: str, value: object):
    do(lambda: do.client.config.set(key, value))
    assert do(lambda: do.client.config.all)[key] == str(value)
    assert caplog.messages == []


@pytest.mark.parametrize("value", ["abc", -1, 0.5, 2_592_001])
def test_how_long_unknown_work_waits_is_a_whole_number_of_seconds_up_to_thirty_days(do, value: object):
    with pytest.raises(
        UsageError, match=r"^setting unknown-for: expected a whole number from 0 to 2592000, got "
    ):
        do(lambda: do.client.config.set("unknown-for", value))
    assert do(lambda: do.client.config.get("unknown-for")) == 600
    do(lambda: do.client.config.set("unknown-for", 86_400))
    assert do(lambda: do.client.config.get("unknown-for")) == 86_400
    assert "unknown-for" not in do(lambda: do.client.config.all)
    do(lambda: do.client.config.unset("unknown-for"))
    assert do(lambda: do.client.config.get("unknown-for")) == 600


def test_a_name_that_is_nearly_known_is_kept_and_the_known_one_is_suggested(do, caplog):
    do(lambda: do.client.config.set("heartbaet", 3))
    assert caplog.messages == [
        "setting 'heartbaet' is not known and is kept as it is; did you mean 'heartbeat'?"
    ]
    do(lambda: do.client.config.set("colour", "red"))
    found = do(lambda: do.client.config.all)
    assert (found["heartbaet"], found["colour"]) == ("3", "red")
    assert len(caplog.messages) == 1


@pytest.mark.parametrize(
    "data", [object(), {"a": object()}, {1: {2, object()}}, float("nan"), b"\\xff", "no json"]
)
def test_data_that_are_no_json_are_a_type_error_and_a_usage_error(do, data: object):
    with pytest.raises(CodecError) as caught:
        do(lambda: do.client.queues["q"].put("K", data))
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, UsageError)
    assert isinstance(caught.value, HoldfastError)


def test_a_set_is_written_as_a_list(do):
    jid = do(lambda: do.client.queues["q"].put("K", {"seen": {7}}))
    assert do(lambda: do.client.jobs[jid]).data == '{"seen":[7]}'
