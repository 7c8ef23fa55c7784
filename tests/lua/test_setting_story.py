"""Pause, limits, settings, retention, and what belongs to the root."""

import pytest

from holdfast.commands.admin import (
    ConfigGet,
    ConfigSet,
    ConfigUnset,
    Describe,
    Info,
    SetClock,
    SettingSet,
    SettingsGet,
    Sweep,
)
from holdfast.commands.jobs import JobGet, JobsComplete
from holdfast.commands.leases import Complete, CompleteMany, Done, Pop
from holdfast.commands.queues import CountQueues, Pause, QueueNames, QueueSet, ThrottleGet, ThrottleSet
from holdfast.errors import WrongState
from native_door import Door, StoreMessage

DEFAULTS = {
    "application": "holdfast", "grace-period": "5", "heartbeat": "30", "jobs-history": "604800",
    "jobs-history-count": "50000", "max-job-history": "100", "max-pop-retry": "1", "max-worker-age": "86400",
}  # fmt: skip


def test_a_paused_queue_hands_out_nothing_until_it_goes_on(core, clock, door: Door):
    door.put("q", "a")
    lost = core(Pop("w", ["q"]))
    door.put("q", "b")
    door.put("other", "c")
    assert core(Pause(["q", "later"], who="me", why="deploy")) == 2
    assert core(Pause(["q"])) == 0
    clock.advance(seconds=90)
    assert [job.jid for job in core(Pop("w", ["q", "other"], limit=9))] == ["c"]
    assert core(CountQueues(["q"]))[0].paused
    core(Complete("w", lost[0]))  # what runs may end
    assert core(Pause(["q"], on=False)) == 1
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["b"]


def test_who_paused_a_queue_and_why_is_kept_while_it_lasts(core, door: Door):
    core(Pause(["q"], who="me", why="deploy"))
    kept = door.ask("HGETALL", door.key("o:q"))
    assert dict(zip(kept[::2], kept[1::2], strict=True)) == {
        b"paused-by": b"me", b"paused-why": b"deploy", b"paused-since": b"1700000000000",
    }  # fmt: skip
    core(Pause(["q"], on=False))
    assert "o:q" not in door.names()


SEEN = {
    "setting with a default": (ConfigSet("heartbeat", "60", "30"), ConfigSet("heartbeat", "90", "30")),
    "setting without a value": (ConfigSet("team", "a", ""), ConfigSet("team", "b", "")),
    "setting that is reset": (ConfigSet("heartbeat", "60"), ConfigUnset("heartbeat", "30")),
    "setting of the root": (SettingSet("stats-days", 5, 400), SettingSet("stats-days", None, 400)),
    "throttle": (ThrottleSet("api", 3, 0, 0), ThrottleSet("api", 4, 0, 0)),
    "bound of a queue": (QueueSet("q", "max-waiting", 5, ""), QueueSet("q", "max-waiting", None, 9)),
}


@pytest.mark.parametrize(("first", "second"), SEEN.values(), ids=SEEN)
def test_what_was_changed_since_it_was_seen_is_left_alone(core, door: Door, first, second):
    core(first)
    before = {key: value for key, value in door.dump().items() if not key.startswith("i:")}
    with pytest.raises(WrongState, match=r'was changed meanwhile: it is "[^"]*" now, not "'):
        core(second)
    assert {key: value for key, value in door.dump().items() if not key.startswith("i:")} == before


def test_a_setting_that_is_written_again_has_what_was_seen(core):
    assert core(ConfigSet("heartbeat", "60", "30"))
    assert core(ConfigSet("heartbeat", "60", "30"))  # as a repeated call does


def test_a_limit_holds_at_pop_and_puts_are_set_aside_while_it_is_reached(core, door: Door):
    assert core(ThrottleSet("ql:q:q", 2)) == 1
    door.put("q", "a", "b", "c")
    jobs = core(Pop("w", ["q"], limit=9))
    assert [job.jid for job in jobs] == ["a", "b"]
    door.put("q", "d", "e")
    facts = core(ThrottleGet("ql:q:q"))
    assert (facts.maximum, facts.used, facts.pending) == (2, 2, 2)
    [d] = core(JobGet(["d"]))
    assert (d.state, [line.what for line in d.history]) == ("throttled", ["put", "throttled"])
    core(Complete("w", jobs[0]))
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["c"]
    core(Complete("w", jobs[1]))
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["d"]


def test_a_higher_limit_lets_jobs_go_and_none_lets_all_go(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "holder")
    core(Pop("w", ["q"]))
    door.put("q", *"abcd")
    core(ThrottleSet("ql:q:q", 3))
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["a", "b"]
    core(ThrottleSet("ql:q:q", 0))
    assert [job.jid for job in core(Pop("w", ["q"], limit=9))] == ["c", "d"]
    assert core(ThrottleGet("ql:q:q")).maximum == 0


def test_hundreds_set_aside_all_come_when_the_limit_is_taken_away(core, door: Door):
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "holder")
    core(Pop("w", ["q"]))
    door.put("q", *[f"j{n}" for n in range(250)])
    core(ThrottleSet("ql:q:q", 0))
    got = 0
    while jobs := core(Pop("w", ["q"], limit=60)):
        got += len(jobs)
    assert got == 250


def test_jobs_set_aside_go_on_when_those_that_ran_were_popped_before_the_limit(core, door: Door):
    door.put("q", "before")
    [before] = core(Pop("w", ["q"]))
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "after")
    assert door.state("after") == "throttled"
    core(Complete("w", before))
    assert [job.jid for job in core(Pop("w", ["q"]))] == ["after"]


def test_a_lost_lease_keeps_its_slot(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "a", "b")
    core(Pop("w", ["q"]))
    clock.advance(seconds=60)
    assert [job.jid for job in core(Pop("v", ["q"], limit=2))] == ["a"]


def test_a_job_handed_out_again_under_a_limit_hands_its_slot_on_when_it_ends(core, clock, door: Door):
    core(ConfigSet("grace-period", "0"))
    door.put("q", "a")
    core(Pop("w", ["q"]))
    core(ThrottleSet("ql:q:q", 1))
    door.put("q", "aside")
    clock.advance(seconds=60)
    [again] = core(Pop("v", ["q"]))
    core(Complete("v", again))
    [counts] = core(CountQueues(["q"]))
    assert (counts.waiting, counts.throttled) == (1, 0)


def test_settings_have_defaults_and_can_be_set_and_unset(core):
    assert core(ConfigGet()) == DEFAULTS
    core(ConfigSet("heartbeat", "20"))
    core(ConfigSet("colour", "red"))
    assert core(ConfigGet()) == {**DEFAULTS, "heartbeat": "20", "colour": "red"}
    assert core(ConfigGet(["colour", "heartbeat", "unknown"])) == {
        "colour": "red", "heartbeat": "20", "unknown": None,
    }  # fmt: skip
    assert core(ConfigUnset("heartbeat")) is True
    assert core(ConfigUnset("heartbeat")) is False
    assert core(ConfigGet(["heartbeat"])) == {"heartbeat": "30"}
    assert core(Info()).heartbeat == 30_000.0


def test_a_setting_that_is_no_number_counts_as_not_set(core, door: Door):
    door.put("q", "a", "b")
    core(ConfigSet("heartbeat", "soon"))
    core(ConfigSet("q-heartbeat", "later"))
    assert core(Pop("w", ["q"]))[0].lease_ms == 30_000
    core(ConfigSet("q-heartbeat", "5"))
    core(ConfigUnset("q-heartbeat"))
    assert core(Pop("w", ["q"]))[0].lease_ms == 30_000


def complete_some(core, door: Door, count: int, first: int = 0) -> None:
    door.put("q", *[f"j{n}" for n in range(first, first + count)])
    jobs = core(Pop("w", ["q"], limit=count))
    core(CompleteMany("w", [Done(job.jid, job.token) for job in jobs]))


def test_a_short_list_of_completed_jobs_is_exact_after_each_completion(core, clock, door: Door):
    core(ConfigSet("jobs-history-count", "2"))
    complete_some(core, door, 10)
    assert core(JobsComplete(0, 100)) == ["j9", "j8"]
    for n in range(10, 15):
        complete_some(core, door, 1, n)
        assert core(JobsComplete(0, 100)) == [f"j{n}", f"j{n - 1}"]
    core(ConfigSet("jobs-history-count", "1000"))
    core(ConfigSet("jobs-history", "1"))
    clock.advance(seconds=2)
    complete_some(core, door, 1, 20)
    assert core(JobsComplete(0, 100)) == ["j20"]
    clock.advance(seconds=0.5)
    complete_some(core, door, 1, 21)
    clock.advance(seconds=0.6)
    complete_some(core, door, 1, 22)
    assert core(JobsComplete(0, 100)) == ["j22", "j21"]
    # The age of those that stayed is known from that look.
    clock.advance(seconds=0.5)
    complete_some(core, door, 1, 23)
    assert core(JobsComplete(0, 100)) == ["j23", "j22"]


def test_queues_first_used_in_one_millisecond_are_listed_in_order_of_first_use(core, door: Door):
    names = ["late", "early", "middle", "a", "z", "b"]
    for name in names:
        door.put(name, f"in-{name}")
    assert [count.name for count in core(CountQueues())] == names
    assert core(QueueNames()) == names


@pytest.mark.parametrize(("number", "over"), [(100, 0), (1000, 0), (1001, 64)])
def test_a_list_of_more_than_a_thousand_completed_jobs_is_shortened_a_little_late(
    core, door: Door, number: int, over: int
):
    core(ConfigSet("jobs-history-count", str(number)))
    lengths: list[int] = []
    for n in range(30):
        complete_some(core, door, 50, n * 50)
        lengths.append(len(core(JobsComplete(0, 2000))))
    assert number <= max(lengths) <= number + over
    kept = core(JobsComplete(0, 2000))
    assert kept[:3] == ["j1499", "j1498", "j1497"]
    records = {name for name in door.names() if name.startswith("j:")}
    assert records == {f"j:{jid}" for jid in kept}
    core(Sweep())
    assert len(core(JobsComplete(0, 2000))) == number


def test_a_number_of_nothing_forgets_a_whole_batch_in_the_call_that_completes_it(core, door: Door):
    core(ConfigSet("jobs-history-count", "0"))
    complete_some(core, door, 512)
    assert core(JobsComplete(0, 1000)) == []
    assert not {name for name in door.names() if name[:2] in ("j:", "x:", "b:")}


def test_completed_jobs_are_kept_for_a_time(core, clock, door: Door):
    core(ConfigSet("jobs-history", "100"))
    complete_some(core, door, 5)
    clock.advance(seconds=99)
    assert core(Sweep()) == 0
    complete_some(core, door, 1, first=5)
    clock.advance(seconds=1)
    assert core(Sweep()) == 5
    assert core(JobsComplete()) == ["j5"]


def test_old_jobs_go_when_others_complete_whatever_the_size_of_the_batches(core, clock, door: Door):
    core(ConfigSet("jobs-history", "100"))
    complete_some(core, door, 67)
    clock.advance(seconds=101)
    for n in range(22):
        complete_some(core, door, 3, first=100 + 3 * n)
    assert "j0" not in core(JobsComplete(0, 1000))


def test_a_forgotten_job_takes_its_other_keys_along(core, door: Door):
    core(ConfigSet("jobs-history-count", "0"))
    door("put", "", 0, "new", "q", 0, 5, 0, "long", "k", "x" * 600)
    [job] = core(Pop("w", ["q"]))
    door("retry", "w", 0, "", "", "long", job.token, "")
    core(Complete("w", core(Pop("w", ["q"]))[0]))
    assert not {name for name in door.names() if name.endswith(":long")}


@pytest.mark.parametrize("most", ["5", "2", "1"])
def test_a_history_keeps_its_first_and_its_newest_lines(most: str, core, clock, door: Door):
    core(ConfigSet("max-job-history", most))
    door.put("q", "j")
    first = clock.now_ms
    for _ in range(20):
        clock.advance(seconds=1)
        door("move", "", 0, "q", 0, "j", "", "")
    whens = [line.when_ms for line in core(JobGet(["j"]))[0].history]
    newest = [clock.now_ms - 1000 * back for back in reversed(range(int(most) - 1))]
    assert whens == [first, *newest]


def test_a_history_has_at_most_a_hundred_lines(core, door: Door):
    door.put("q", "j")
    for _ in range(130):
        door("move", "", 0, "q", 0, "j", "", "")
    assert len(core(JobGet(["j"]))[0].history) == 100


def test_a_root_is_made_only_on_purpose_and_a_test_root_only_where_it_may_be(
    engine_store, clock, door: Door, namespace
):
    unknown = f"hf:{{{namespace}-other}}:"
    for words in (("info", "", 0), ("counts",), ("put", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}")):
        with pytest.raises(StoreMessage, match="HF_NO_ROOT"):
            door.ask("FCALL", f"hf1_{words[0]}", 1, unknown, *words[1:])
    for words in (("info", "test", 5), ("clock", 5)):
        with pytest.raises(StoreMessage, match=r"HF_NO(T_A_TEST)?_ROOT"):
            door.ask("FCALL", f"hf1_{words[0]}", 1, f"hf:{{real-{namespace}}}:", *words[1:])
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door.ask("FCALL", "hf1_info", 1, unknown, "maybe", 0)
    made = door.ask("FCALL", "hf1_info", 1, unknown, "make", 0)
    assert door.ask("FCALL", "hf1_info", 1, unknown, "test", 5)[3:6:2] == [made[3], 0]
    with pytest.raises(StoreMessage, match="HF_NOT_A_TEST_ROOT"):
        door.ask("FCALL", "hf1_clock", 1, unknown, 5)
    door.ask("UNLINK", unknown)


def test_the_clock_of_a_test_root_stands_until_it_is_set(core, clock):
    assert core(Info()).now_ms == core(Info()).now_ms == clock.now_ms
    assert core(SetClock(clock.now_ms - 5000)) == clock.now_ms - 5000
    assert core(Info()).now_ms == clock.now_ms - 5000
    assert core(Info()).is_test


def test_the_door_describes_every_function_it_has(core):
    described = {verb.verb: verb for verb in core(Describe())}
    assert {"put", "pop", "complete", "info", "describe"} <= set(described)
    assert described["pop"].flags == ("allow-oom",)
    assert described["counts"].flags == ("no-writes",)
    assert described["put"].arguments.startswith("line number mode queue")


TOO_LONG = '"' + "x" * 2047 + '"'


@pytest.mark.parametrize(
    "call",
    [
        ("put", "", 0, "new", "q", 0, 5, 0, "a", "k", TOO_LONG),
        ("put", "", 0, "new", "q", 0, 5, 0, "a", "k", "{}", "b", "k", TOO_LONG),
        ("put_x", "", 0, "new", "q", 0, 5, 0, "a", "k", TOO_LONG, 0),
        ("recur", "", 0, "set", "q", "t", "k", TOO_LONG, 1000, 0, 0, 0, 0, 0),
        ("recur_update", "", 0, "r", "data", TOO_LONG),
        ("move", "", 0, "q", 0, "run", TOO_LONG, ""),
        ("complete_x", "w", "run", "TOKEN", "", 0, "", "", 0, 0, "q", 0, 5, 0, "a", "k", TOO_LONG, 0),
        ("topic_put", "", 0, "t", "in", "m", 1000, TOO_LONG),
        ("call", "", 0, "queue.put", "w", "q", "a", "k", TOO_LONG, 0),
    ],
)
def test_data_with_more_bytes_than_allowed_are_refused_before_anything_is_written(core, door: Door, call):
    core(SettingSet("max-data", 2048))
    door.put("q", "run")
    door("recur", "", 0, "set", "q", "r", "k", "{}", 100_000_000, 100_000_000, 0, 0, 0, 0)
    [job] = door.pop("w", "q")
    before = door.dump()
    with pytest.raises(
        StoreMessage, match=r"HF_DATA_TOO_LARGE data has 2049 bytes, and max-data allows 2048"
    ):
        door(*[job.token if word == "TOKEN" else word for word in call])
    assert door.dump() == before
    fits = [TOO_LONG.replace("xx", "x", 1) if word == TOO_LONG else word for word in call]
    door(*[job.token if word == "TOKEN" else word for word in fits])


def test_what_a_worker_says_of_its_jobs_may_be_longer_than_what_is_put(core, door: Door):
    core(SettingSet("max-data", 1024))
    door.put("q", "a")
    [job] = door.pop("w", "q")
    assert door("heartbeat", 0, "w", "a", job.token, TOO_LONG)[0] > 0
    assert door("complete", "w", "a", job.token, TOO_LONG, 1000, TOO_LONG) == [1]
    core(SettingSet("max-data", None))
    assert core(SettingsGet())["max-data"] == 1 << 20
