"""flow: a large group, whose members are counted by the job that stands for it."""

import json
from typing import Any

import pytest

from holdfast.commands.admin import ConfigSet, SettingSet
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each

DATA = '{"args":[null],"kwargs":{}}'
NOBODY = ("", "", 0, 0)
PLACE = f"{DATA.index('null')} 4"


def job(jid: str, *options: str, queue: str = "q", data: str = "{}") -> list[Any]:
    return [queue, 0, 0, 0, jid, "k", data, len(options) // 2, *options]


def put(door: Door, policy: str = "fail", gather: str = "list", stride: int = 1, flow: str = "f") -> None:
    """A flow of the job that stands for a large group, and one that follows it and takes what it ends with."""
    stands = job(f"{flow}-0", "group", f"{policy} {gather} {stride}")
    stands[5] = "holdfast.group"
    follows = job(f"{flow}-1", "edge", f"fail {PLACE} {flow}-0", data=DATA)
    assert door("flow_put", "", 0, flow, "label", *stands, *follows) == 1


def add(door: Door, *numbers: int, flow: str = "f", again: bool = True, adder: Any = NOBODY) -> int:
    words = [word for n in numbers for word in job(f"{flow}-{n}")]
    return door("flow_add", "", 0, flow, numbers[0], int(again), *adder, *words)


def close(door: Door, flow: str = "f") -> int:
    return door("flow_close", "", 0, flow)


def end_all(door: Door, **results: str) -> None:
    """Every ready job ends: `f_3="7"` is the result of f-3, `f_4="!"` fails it; the others end with their number."""
    for one in door.pop("w", "q", n=500):
        result = results.get(one.jid.replace("-", "_"), one.jid.rpartition("-")[2])
        if result == "!":
            door("fail", "w", "Broken", "it broke", one.jid, one.token, "")
        else:
            door("complete", "w", one.jid, one.token, "", 0, result)


def argument(door: Door, jid: str = "f-1") -> Any:
    facts = door.job(jid)
    assert facts is not None
    return json.loads(facts.data)["args"][0]


def act(door: Door, action: str, jid: str) -> Any:
    return door("act", "", 0, action, "", "", "", "", 0, "", 0, 0, jid, "")


def members(door: Door, flow: str = "f") -> list[int]:
    """Members, jobs of each, complete, failed, cancelled, open."""
    [row] = door("flow_get", flow)
    return row[3:9]


def test_what_follows_a_large_group_starts_once_it_is_closed_and_all_of_it_has_ended(door: Door):
    put(door)
    assert add(door, 2, 3, 4) == 3
    end_all(door)
    assert door.state("f-0") == "depends"
    assert members(door) == [3, 1, 3, 0, 0, 1]
    assert add(door, 5) == 1
    close(door)
    assert [door.state("f-0"), door.state("f-1")] == ["depends", "depends"]
    end_all(door)
    assert [door.state("f-0"), door.state("f-1")] == ["complete", "waiting"]
    assert argument(door) == [2, 3, 4, 5]


def test_members_that_end_in_one_call_are_counted_together(door: Door):
    put(door)
    add(door, *range(2, 102))
    close(door)
    found = door.pop("w", "q", n=100)
    words = [word for one in found for word in (one.jid, one.token, "", 0, one.jid[2:])]
    assert door("complete", "w", *words) == [100]
    assert argument(door) == list(range(2, 102))


def test_a_group_without_members_ends_when_it_is_closed(door: Door):
    put(door)
    assert close(door) == 1
    assert close(door) == 0
    assert [door.state("f-1"), argument(door)] == ["waiting", []]


def test_the_first_failure_fails_what_follows_and_a_retry_brings_it_back(door: Door):
    put(door)
    add(door, 2, 3)
    close(door)
    end_all(door, f_2="!")
    assert [door.state("f-0"), door.state("f-1")] == ["failed", "failed"]
    assert members(door) == [2, 1, 1, 1, 0, 0]
    act(door, "retry", "f-2")
    assert members(door) == [2, 1, 1, 0, 0, 0]
    end_all(door)
    assert [door.state("f-0"), door.state("f-1"), argument(door)] == ["complete", "waiting", [2, 3]]
    assert members(door) == [2, 1, 2, 0, 0, 0]


def test_what_runs_in_any_case_gets_how_each_member_ended(door: Door):
    put(door, "run")
    add(door, 2, 3, 4)
    close(door)
    door("cancel", "", 0, "f-4")
    end_all(door, f_3="!")
    assert door.state("f-1") == "waiting"
    first, second, third = argument(door)
    assert first == {"ok": True, "result": 2, "failure": None}
    assert [second["ok"], second["failure"]["group"]] == [False, "Broken"]
    assert [third["ok"], third["failure"]["group"]] == [False, "cancelled"]


def test_a_group_that_waits_for_failed_members_goes_on_when_they_are_complete(door: Door):
    put(door, "wait")
    add(door, 2, 3)
    close(door)
    end_all(door, f_2="!")
    assert [door.state("f-0"), door.state("f-1")] == ["depends", "depends"]
    act(door, "retry", "f-2")
    end_all(door)
    assert door.state("f-1") == "waiting"


@pytest.mark.parametrize("policy", ["fail", "wait"])
def test_a_cancelled_member_fails_what_follows_for_good(door: Door, policy: str):
    put(door, policy)
    add(door, 2, 3)
    close(door)
    door("cancel", "", 0, "f-2")
    end_all(door)
    assert [door.state("f-0"), door.state("f-1")] == ["failed", "failed"]
    assert "1 of the jobs of its group was cancelled" in str(act(door, "retry", "f-0"))


def test_members_that_were_added_before_stay_as_they_are(door: Door):
    put(door)
    assert [add(door, 2, 3), add(door, 2, 3), add(door, 2, 3, 4, 5), add(door, 3, 4)] == [2, 0, 2, 0]
    assert members(door)[0] == 4
    with pytest.raises(StoreMessage, match="the next job of flow f has the number 6"):
        add(door, 7)
    with pytest.raises(StoreMessage, match="the next job of flow f has the number 6"):
        add(door, 5, again=False)
    close(door)
    assert add(door, 4, 5) == 0
    with pytest.raises(StoreMessage, match="HF_FLOW_CLOSED"):
        add(door, 6)


def test_a_completed_member_that_is_put_again_counts_once(door: Door):
    put(door)
    add(door, 2, 3)
    close(door)
    [one, other] = door.pop("w", "q", n=2)
    door("complete", "w", one.jid, one.token, "", 0, "1")
    door.put("q", one.jid, mode="move")
    end_all(door, f_2="!")
    assert [members(door), door.state("f-0")] == [[2, 1, 1, 0, 0, 0], "depends"]
    door("complete", "w", other.jid, other.token, "", 0, "2")
    assert argument(door) == [1, 2]


def test_a_member_of_several_jobs_is_counted_by_its_last_one(door: Door):
    put(door, stride=2)
    words = [*job("f-2"), *job("f-3", "edge", f"fail {PLACE} f-2", data=DATA)]
    words += [*job("f-4"), *job("f-5", "edge", f"fail {PLACE} f-4", data=DATA)]
    assert door("flow_add", "", 0, "f", 2, 0, *NOBODY, *words) == 4
    close(door)
    end_all(door)
    assert [members(door)[:3], door.state("f-0")] == [[2, 2, 0], "depends"]
    end_all(door)
    assert argument(door) == [3, 5]
    with pytest.raises(StoreMessage, match="each member of flow f is 2 jobs"):
        add(door, 6)


def test_where_the_results_are_is_passed_on_if_they_are_read_in_pages(door: Door):
    put(door, gather="pages")
    add(door, *range(2, 12))
    close(door)
    end_all(door)
    assert argument(door) == {"flow": "f", "count": 10}
    assert door("flow_results", "f", 0, 3) == [b"2", b"3", b"4"]
    assert door("flow_results", "f", 8, 100) == [b"10", b"11"]


def test_results_that_are_too_large_for_the_data_of_what_follows_fail_it(door: Door, core: Any):
    core(SettingSet("max-data", 2000))
    put(door)
    add(door, *range(2, 8))
    close(door)
    end_all(door, **{f"f_{n}": json.dumps("x" * 500) for n in range(2, 8)})
    assert [door.state("f-0"), door.state("f-1")] == ["failed", "failed"]


def test_a_flow_is_listed_until_its_members_have_ended(door: Door):
    put(door)
    add(door, 2)
    close(door)
    assert door("flow_forget", "", 0, "f") == [0]
    end_all(door)
    assert door("flow_forget", "", 0, "f") == [1]
    assert door("flow_get", "f") == [[]]
    assert not [name for name in door.names() if "J:" in name]


def test_the_job_of_a_group_is_never_ready(door: Door):
    put(door)
    add(door, 2)
    act(door, "run", "f-0")
    door.put("other", "f-0", mode="move")
    assert door.state("f-0") == "depends"
    assert [one.jid for one in door.pop("w", "q", n=5)] == ["f-2"]


def test_a_running_member_adds_others_to_a_closed_group_once_however_often_it_runs(door: Door):
    put(door)
    add(door, 2)
    close(door)
    [one] = door.pop("w", "q")
    by_it = ("w", "f-2", one.token, 1)
    assert add(door, 3, 4, again=False, adder=by_it) == 2
    assert add(door, 5, 6, again=False, adder=by_it) == 0
    door("complete", "w", "f-2", one.token, "", 0, "2")
    assert door.state("f-0") == "depends"
    with pytest.raises(StoreMessage, match="HF_LEASE_LOST"):
        add(door, 5, again=False, adder=("w", "f-2", one.token, 2))
    end_all(door)
    assert argument(door) == [2, 3, 4]


def test_only_members_add_to_a_closed_group(door: Door):
    put(door)
    close(door)
    door.put("other", "f-9-7", "stranger")
    for stranger in door.pop("w", "other", n=2):
        with pytest.raises(StoreMessage, match="is not one of the jobs of the large group of flow f"):
            add(door, 2, again=False, adder=("w", stranger.jid, stranger.token, 1))


def test_calls_that_a_program_puts_are_not_taken_for_those_that_a_member_added_meanwhile(door: Door):
    put(door)
    add(door, 2)
    [one] = door.pop("w", "q")
    assert add(door, 3, again=False, adder=("w", "f-2", one.token, 1)) == 1
    assert add(door, 3, 4) == 2  # the program knows nothing of that
    assert add(door, 2, 3, 4) == 0
    assert add(door, 4, 5) == 1
    assert members(door)[0] == 5
    door("complete", "w", "f-2", one.token, "", 0, "2")
    close(door)
    end_all(door)
    assert argument(door) == [2, 3, 4, 5, 6]


def test_a_group_ends_with_a_batch_in_which_one_member_skips(door: Door):
    put(door, "run")
    add(door, 2, 3, 4)
    close(door)
    results = {"f-2": "2", "f-3": "\0no orders", "f-4": "4"}
    words = [w for one in door.pop("w", "q", n=3) for w in (one.jid, one.token, "", 0, results[one.jid])]
    door("complete", "w", *words)
    assert door.state("f-1") == "waiting"
    assert [one["ok"] for one in argument(door)] == [True, False, True]


def test_a_group_whose_results_were_too_large_ends_when_it_is_retried_with_more_room(door: Door, core: Any):
    core(SettingSet("max-data", 2000))
    put(door)
    add(door, *range(2, 8))
    close(door)
    end_all(door, **{f"f_{n}": json.dumps("x" * 500) for n in range(2, 8)})
    act(door, "retry", "f-0")
    assert [door.state("f-0"), door.state("f-1")] == ["failed", "failed"]
    core(SettingSet("max-data", 20000))
    act(door, "retry", "f-0")
    assert [door.state("f-0"), door.state("f-1")] == ["complete", "waiting"]
    assert len(argument(door)) == 6


def test_nothing_of_a_group_is_left_where_complete_jobs_are_not_kept(door: Door):
    door("config_set", "jobs-history-count", "0")
    put(door)
    add(door, 2, 3)
    close(door)
    end_all(door)
    end_all(door)
    assert door("flow_forget", "", 0, "f") == [1]
    assert not [name for name in door.names() if name.startswith("j:f-")]


def test_the_job_of_a_group_is_kept_as_long_as_other_completed_jobs(door: Door, clock: Any, core: Any):
    core(ConfigSet("jobs-history", "60"))
    put(door)
    close(door)
    assert door.look("jobs_complete", 0, 9) == [b"f-0"]
    end_all(door)
    clock.advance(seconds=61)
    assert door("sweep", "", 0) == 2
    assert door.state("f-0") == "absent"


def test_a_member_that_is_retried_after_the_group_ended_counts_as_what_it_is(door: Door):
    put(door, "run")
    add(door, 2, 3)
    close(door)
    end_all(door, f_2="!")
    assert [members(door), door.state("f-0")] == [[2, 1, 1, 1, 0, 0], "complete"]
    act(door, "retry", "f-2")
    assert members(door) == [2, 1, 1, 0, 0, 0]
    end_all(door)
    assert members(door) == [2, 1, 2, 0, 0, 0]
    assert [name for name in door.names() if name.startswith("J:")] == ["J:f"]


def test_jobs_of_a_group_that_are_cancelled_together_count_once(door: Door):
    put(door, "run", stride=2)
    words = [*job("f-2"), *job("f-3", "edge", f"fail {PLACE} f-2", data=DATA)]
    words += [*job("f-4"), *job("f-5", "edge", f"fail {PLACE} f-4", data=DATA)]
    door("flow_add", "", 0, "f", 2, 0, *NOBODY, *words)
    close(door)
    assert door("cancel", "", 0, "f-2", "f-3") == [1, 1]
    assert [members(door), door.state("f-0")] == [[2, 2, 0, 0, 1, 0], "depends"]


def test_a_group_that_lacks_a_result_is_not_retried_and_one_that_has_room_ends(door: Door, core: Any):
    core(SettingSet("max-data", "2000"))
    put(door)
    add(door, 2, 3)
    close(door)
    end_all(door, f_2=json.dumps("x" * 1500), f_3=json.dumps("y" * 1500))
    assert "more bytes than max-data allows" in str(act(door, "retry", "f-0"))
    core(SettingSet("max-data", "5000"))
    assert act(door, "retry", "f-0") == [1]
    assert [door.state("f-0"), door.state("f-1")] == ["complete", "waiting"]
    put(door, flow="g")
    assert add(door, 2, flow="g") == 1
    close(door, "g")
    end_all(door, g_2="")
    assert b"g-2 has no result" in act(door, "retry", "g-0")[0]
    assert door.state("g-0") == "failed"


def test_a_member_that_is_retried_after_the_group_ended_adds_nothing_to_it(door: Door):
    put(door, "run")
    add(door, 2)
    close(door)
    end_all(door, f_2="!")
    assert door.state("f-0") == "complete"
    act(door, "retry", "f-2")
    [one] = [one for one in door.pop("w", "q", n=2) if one.jid == "f-2"]
    with pytest.raises(StoreMessage, match="HF_FLOW_CLOSED"):
        add(door, 3, again=False, adder=("w", "f-2", one.token, 1))


def test_the_job_of_a_group_that_has_ended_is_not_put_again(door: Door):
    put(door)
    close(door)
    assert b"HF_WRONG_STATE" in door.put("q", "f-0", mode="move")[2]
    with pytest.raises(
        StoreMessage, match="f-0 cannot be tried again: it stands for a group, and has ended with it"
    ):
        door("move", "", 0, "q", 0, "f-0", "", "")
    assert door.state("f-0") == "complete"


def test_results_that_are_read_in_pieces_are_kept_until_what_reads_them_is_complete(door: Door):
    put(door, gather="pages")
    add(door, 2, 3)
    close(door)
    end_all(door)
    [reader] = door.pop("w", "q")
    assert door("flow_forget", "", 0, "f") == [0]
    assert door("flow_results", "f", 0, 5) == [b"2", b"3"]
    door("complete", "w", reader.jid, reader.token, "", 0, "5")
    assert door("flow_forget", "", 0, "f") == [1]
    assert not [name for name in door.names() if "J:" in name]
