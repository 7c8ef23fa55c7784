"""python-api 8: `client.config`."""

import pytest

from holdfast import Config, UsageError

DEFAULTS = {
    "application": "holdfast", "grace-period": "5", "heartbeat": "30", "jobs-history": "604800",
    "jobs-history-count": "50000", "max-job-history": "100", "max-pop-retry": "1", "max-worker-age": "86400",
}  # fmt: skip


@pytest.fixture
def config(client) -> Config:
    return client.config


def test_the_defaults_are_these_eight(do):
    assert do(lambda: do.client.config.all) == DEFAULTS


def test_a_value_is_decoded_and_text_that_is_no_json_is_text(do):
    config = do.client.config
    do(lambda: config.set("mine", "some words"))
    do(lambda: config.set("half", 0.5))
    do(lambda: config.set("list", "[1]"))
    found = [
        do(lambda key=key: config.get(key)) for key in ("heartbeat", "application", "mine", "half", "list")
    ]
    assert found == [30, "holdfast", "some words", 0.5, [1]]
    assert do(lambda: config.all)["half"] == "0.5"


def test_what_is_not_set_is_none_or_the_given_default(do):
    config = do.client.config
    assert do(lambda: config.get("nothing")) is None
    assert do(lambda: config.get("nothing", 0)) == 0
    assert do(lambda: config.get("heartbeat", 7)) == 30


def test_a_setting_that_is_taken_away_is_back_at_its_default(do):
    config = do.client.config
    do(lambda: config.update({"heartbeat": 30, "mine": 1}))
    assert do(lambda: config.unset("heartbeat")) is True
    do(lambda: config.unset("mine"))
    do(lambda: config.unset("never"))
    assert do(lambda: config.all) == DEFAULTS


def test_popping_a_setting_answers_it_and_takes_it_away(do):
    config = do.client.config
    do(lambda: config.set("heartbeat", 30))
    assert do(lambda: config.pop("heartbeat")) == 30
    assert do(lambda: config.pop("heartbeat")) == 30
    assert do(lambda: config.pop("nothing")) is None
    assert do(lambda: config.pop("nothing", 7)) == 7
    assert do(lambda: config.all) == DEFAULTS


@pytest.mark.parametrize("given", [{"a": 1, "b": "x"}, [("a", 1), ("b", "x")]])
def test_many_settings_are_written_from_a_mapping_pairs_or_names(do, given):
    do(lambda: do.client.config.update(given, c=True))
    do(lambda: do.client.config.update(d=2))
    assert do(lambda: do.client.config.all) == {**DEFAULTS, "a": "1", "b": "x", "c": "1", "d": "2"}


def test_clearing_brings_all_or_one_setting_back_to_the_defaults(do):
    config = do.client.config
    do(lambda: config.update(a=1, heartbeat=30))
    do(lambda: config.clear("a"))
    assert do(lambda: config.all) == {**DEFAULTS, "heartbeat": "30"}
    do(lambda: config.clear())
    assert do(lambda: config.all) == DEFAULTS


@pytest.mark.parametrize("value", [None, [1], float("nan"), float("inf"), b"60"])
def test_nothing_is_written_when_one_of_the_values_cannot_be(do, value):
    with pytest.raises(UsageError, match="value"):
        do(lambda: do.client.config.update({"a": 1, "b": value}))
    with pytest.raises(UsageError, match="value"):
        do(lambda: do.client.config.set("b", value))
    with pytest.raises(UsageError, match="key"):
        do(lambda: do.client.config.update({7: 1}))
    with pytest.raises(UsageError, match="settings"):
        do(lambda: do.client.config.update(7))
    assert do(lambda: do.client.config.all) == DEFAULTS


def test_a_queue_may_have_a_heartbeat_of_its_own(do):
    do(lambda: do.client.config.set("mail-heartbeat", 7))
    assert do(lambda: do.client.queues["mail"].heartbeat) == 7
    assert do(lambda: do.client.queues["other"].heartbeat) == 30


def test_a_blocking_client_s_settings_are_a_mapping(config):
    config["mine"] = 7
    assert config["mine"] == 7
    assert config["nothing"] is None
    assert ("mine" in config, "heartbeat" in config, "nothing" in config) == (True, True, False)
    del config["mine"]
    del config["nothing"]
    assert len(config) == 8
    assert set(config) == set(config.keys()) == set(DEFAULTS)
    assert sorted(config.values()) == sorted(DEFAULTS.values())
    assert dict(config.items()) == DEFAULTS


def test_a_default_is_written_where_there_is_none(do):
    config = do.client.config
    assert do(lambda: config.setdefault("heartbeat", 7)) == 30
    assert do(lambda: config.setdefault("mine")) is None
    assert do(lambda: config.setdefault("mine", 7)) == 7
    assert do(lambda: config.all) == {**DEFAULTS, "mine": "7"}
