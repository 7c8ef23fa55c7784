"""config.get, config.getAll, config.set and config.unset."""

import pytest
from stories import popped, put, refusal
from two_doors import Door

DEFAULTS = {
    "application": "reqless", "grace-period": "10", "heartbeat": "60", "jobs-history": "604800",
    "jobs-history-count": "50000", "max-job-history": "100", "max-pop-retry": "1", "max-worker-age": "86400",
}  # fmt: skip


@pytest.mark.full
def test_fresh_settings_are_texts_also_where_they_are_numbers(door: Door) -> None:
    assert door.call("config.getAll", 1) == DEFAULTS
    assert [door.raw("config.get", 1, key) for key in DEFAULTS] == list(DEFAULTS.values())
    assert door.raw("config.get", 1, "none") is None


def test_any_key_may_be_set_and_unset(door: Door) -> None:
    assert door.call("config.set", 1, "heartbeat", "0x10") is None
    door.call("config.set", 1, "my key", "")
    assert door.call("config.getAll", 1) == {**DEFAULTS, "heartbeat": "0x10", "my key": ""}
    assert door.raw("config.get", 1, "my key") == ""
    assert door.call("config.unset", 1, "heartbeat") is None
    door.call("config.unset", 1, "my key")
    assert door.call("config.getAll", 1) == DEFAULTS


def test_each_change_is_told_also_where_nothing_changed(door: Door) -> None:
    door.messages()
    door.call("config.set", 1, "foo", "bar")
    door.call("config.unset", 1, "foo")
    door.call("config.unset", 1, 'quo"te')
    assert door.messages() == [
        ("ql:log", '{"option":"foo","event":"config_set","value":"bar"}'),
        ("ql:log", '{"event":"config_unset","option":"foo"}'),
        ("ql:log", '{"event":"config_unset","option":"quo\\"te"}'),
    ]


@pytest.mark.full
def test_a_queue_may_have_a_heartbeat_of_its_own(door: Door) -> None:
    door.call("config.set", 0, "heartbeat", 30)
    door.call("config.set", 0, "q-heartbeat", 100)
    for queue in ("q", "other"):
        put(door, 1, queue, queue)
    assert popped(door, 1) == [("q", 5, 101)]
    assert popped(door, 1, "other") == [("other", 5, 31)]
    door.call("config.unset", 2, "q-heartbeat")
    assert door.call("job.heartbeat", 2, "q", "w") == 32


@pytest.mark.full
def test_a_queue_may_be_looked_through_more_often(door: Door) -> None:
    door.call("throttle.set", 0, "t", 1)
    for now, jid in ((1, "a"), (2, "b"), (3, "c")):
        put(door, now, jid, "q", 0, "throttles", '["t"]')
    put(door, 4, "free")
    door.call("config.set", 4, "max-pop-retry", 1)
    door.call("config.set", 4, "q-max-pop-retry", 4)
    assert [jid for jid, *_ in popped(door, 5, limit=2)] == ["a", "free"]


@pytest.mark.full
@pytest.mark.parametrize(
    "key", ["heartbeat", "grace-period", "jobs-history", "max-job-history", "max-pop-retry"]
)
def test_a_number_that_is_none_counts_as_not_set(door: Door, key: str) -> None:
    door.call("config.set", 0, key, "many")
    put(door, 1, "j")
    assert popped(door, 2) == [("j", 5, 62)]
    assert popped(door, 62, worker="v") == []
    assert popped(door, 72, worker="v") == [("j", 4, 132)]
    assert door.call("job.complete", 73, "j", "v", "q", "{}") == "complete"
    assert door.call("jobs.completed", 73) == ["j"]


@pytest.mark.full
@pytest.mark.parametrize(("words", "sentence"), [
    (("config.get",), "config.get(): Argument 'key' missing"),
    (("config.set",), 'config.set(): Arg "option" missing'),
    (("config.set", "a"), 'config.set(): Arg "value" missing'),
    (("config.unset",), 'config.unset(): Arg "option" missing'),
])  # fmt: skip
def test_what_is_missing_is_refused(door: Door, words: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(door.call(words[0], 1, *words[1:]))
