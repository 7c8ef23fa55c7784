"""flow: jobs that are skipped, jobs that run only where another one did not complete, and jobs that end as a flow does."""

import json
from typing import Any

import pytest

from holdfast.commands.admin import SettingSet
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each

DATA = '{"args":[null],"kwargs":{}}'
PLACE = f"{DATA.index('null')} 4"


def part(jid: str, *edges: str) -> list[Any]:
    return ["q", 0, 0, 0, jid, "k", DATA, len(edges), *(word for one in edges for word in ("edge", one))]


def put(door: Door, *parts: list[Any], flow: str = "f") -> None:
    assert door("flow_put", "", 0, flow, "label", *(word for one in parts for word in one)) == 1


def end(door: Door, jid: str, result: str = "1") -> None:
    """A ready job ends: with "!" it fails."""
    [job] = [one for one in door.pop("w", "q", n=50) if one.jid == jid]
    if result == "!":
        door("fail", "w", "Broken", "it broke", jid, job.token, "")
    else:
        door("complete", "w", jid, job.token, "", 0, result)


def states(door: Door, *jids: str) -> list[str]:
    return ["gone" if door.job(jid) is None else door.state(jid) for jid in jids]


def argument(door: Door, jid: str) -> Any:
    facts = door.job(jid)
    assert facts is not None
    return json.loads(facts.data)["args"][0]


def test_what_takes_the_result_of_a_job_that_skips_is_deleted_with_all_behind_it(door: Door):
    put(door, part("f-0"), part("f-1", f"fail {PLACE} f-0"), part("f-2", f"fail {PLACE} f-1"))
    end(door, "f-0", "\0no orders")
    assert states(door, "f-0", "f-1", "f-2") == ["complete", "gone", "gone"]
    [mark] = door("await", "f-2")[:1]
    assert mark


def test_what_runs_in_any_case_gets_that_a_job_was_skipped(door: Door):
    put(door, part("f-0"), part("f-1", f"run {PLACE} f-0"))
    end(door, "f-0", "\0no orders")
    assert argument(door, "f-1") == {
        "ok": False,
        "result": None,
        "failure": {"group": "skipped", "message": "no orders"},
    }


def test_what_only_depends_on_a_job_that_skips_starts(door: Door):
    door.put("q", "parent")
    door.put_waiting("child", "parent")
    end(door, "parent", "\0no orders")
    assert states(door, "parent", "child") == ["complete", "waiting"]


@pytest.mark.parametrize(("place", "state"), [(PLACE, "gone"), ("-1 0", "waiting")])
def test_what_waits_for_a_result_is_skipped_too(door: Door, place: str, state: str):
    put(door, part("f-0"), part("f-1", f"wait {place} f-0"))
    end(door, "f-0", "\0no orders")
    assert states(door, "f-1") == [state]


def test_what_only_depends_on_a_skipped_job_starts(door: Door):
    put(
        door,
        part("f-0"),
        part("f-1", f"fail {PLACE} f-0"),
        part("f-2", "wait -1 0 f-1"),
        part("f-3", f"wait {PLACE} f-1"),
    )
    door.put_waiting("plain", "f-1")
    end(door, "f-0", "\0no orders")
    assert states(door, "f-1", "f-2", "f-3", "plain") == ["gone", "waiting", "gone", "waiting"]
    assert not [name for name in door.names() if name[:2] in ("d:", "D:", "u")]


def test_a_job_that_rescues_runs_with_the_failure_and_is_skipped_otherwise(door: Door):
    put(door, part("f-0"), part("f-1", f"rescue {PLACE} f-0"), part("f-2", f"fail {PLACE} f-0"))
    end(door, "f-0", "!")
    assert states(door, "f-0", "f-1", "f-2") == ["failed", "waiting", "failed"]
    assert argument(door, "f-1") == {"group": "Broken", "message": "it broke"}
    put(door, part("g-0"), part("g-1", f"rescue {PLACE} g-0"), part("g-2", f"fail {PLACE} g-0"), flow="g")
    end(door, "g-0")
    assert states(door, "g-0", "g-1", "g-2") == ["complete", "gone", "waiting"]


def test_a_rescue_runs_once_however_often_its_job_fails(door: Door):
    put(door, part("f-0"), part("f-1", f"rescue {PLACE} f-0"))
    end(door, "f-0", "!")
    end(door, "f-1")
    for result in ("!", "1"):
        door("act", "", 0, "retry", "", "", "", "", 0, "", 0, 0, "f-0", "")
        end(door, "f-0", result)
    assert states(door, "f-0", "f-1") == ["complete", "complete"]


def test_a_rescue_of_a_cancelled_job_runs_and_of_a_skipped_one_does_not(door: Door):
    put(door, part("f-0"), part("f-1", f"rescue {PLACE} f-0"))
    door("cancel", "", 0, "f-0")
    assert [states(door, "f-1"), argument(door, "f-1")["group"]] == [["waiting"], "cancelled"]
    put(door, part("g-0"), part("g-1", f"fail {PLACE} g-0"), part("g-2", f"rescue {PLACE} g-1"), flow="g")
    end(door, "g-0", "\0nothing")
    assert states(door, "g-0", "g-1", "g-2") == ["complete", "gone", "gone"]


def end_with(
    door: Door, jid: str, token: int, *parts: list[Any], last: tuple[int, ...] = (0,), kind: str = "one"
) -> Any:
    words = [word for one in parts for word in one]
    return door("end_with_flow", "w", jid, token, "", 60000, kind, "own", "label", len(last), *last, *words)


def test_a_job_that_ends_with_a_flow_gives_up_its_lease_and_is_complete_with_its_result(door: Door):
    put(door, part("f-0"), part("f-1", f"fail {PLACE} f-0"))
    [job] = door.pop("w", "q")
    assert end_with(door, "f-0", job.token, part("own-0")) == [b"depends"]
    assert end_with(door, "f-0", job.token, part("own-0")) == [b"again", b"depends"]
    assert states(door, "f-0", "f-1", "own-0") == ["depends", "depends", "waiting"]
    end(door, "own-0", "42")
    assert states(door, "f-0", "f-1") == ["complete", "waiting"]
    assert argument(door, "f-1") == 42
    assert end_with(door, "f-0", job.token, part("own-0"))[0] == b"again"


def test_a_job_that_ends_with_several_has_the_list_of_their_results(door: Door):
    door.put("q", "j")
    [job] = door.pop("w", "q")
    parts = [part("own-0"), part("own-1"), part("own-2")]
    end_with(door, "j", job.token, *parts, last=(2, 0, 1), kind="list")
    for number in (0, 1, 2):
        [one] = door.pop("w", "q")
        door("complete", "w", one.jid, one.token, "", 0, one.jid[4:])
        assert door.state("j") == ("depends" if number < 2 else "complete")
    assert door.ask("GET", door.key("a:j")) == b"[2,0,1]"


def test_a_job_whose_flow_fails_fails_and_a_retry_of_the_flow_completes_it(door: Door):
    door.put("q", "j")
    [job] = door.pop("w", "q")
    end_with(door, "j", job.token, part("own-0"))
    end(door, "own-0", "!")
    assert states(door, "j", "own-0") == ["failed", "failed"]
    for jid in ("j", "own-0"):
        door("act", "", 0, "retry", "", "", "", "", 0, "", 0, 0, jid, "")
    assert states(door, "j", "own-0") == ["depends", "waiting"]
    end(door, "own-0", "7")
    assert door.state("j") == "complete"


def test_a_lease_that_is_lost_puts_no_flow(door: Door):
    door.put("q", "j")
    [job] = door.pop("w", "q")
    [code, _] = end_with(door, "j", job.token + 1, part("own-0"))
    assert code.startswith(b"HF_LEASE_LOST")
    with pytest.raises(StoreMessage, match="one or list"):
        end_with(door, "j", job.token, part("own-0"), kind="some")
    with pytest.raises(StoreMessage, match="jids of a flow"):
        end_with(door, "j", job.token, part("other-0"))
    assert states(door, "j", "own-0") == ["running", "gone"]


def test_a_job_whose_flow_ends_with_more_than_max_data_allows_fails_and_names_the_sizes(
    core: Any, door: Door
):
    core(SettingSet("max-data", 2000))
    door.put("q", "j")
    [job] = door.pop("w", "q")
    end_with(door, "j", job.token, part("own-0"), part("own-1"), last=(0, 1), kind="list")
    for one in door.pop("w", "q", n=2):
        door("complete", "w", one.jid, one.token, "", 0, json.dumps("x" * 1500))
    found = door.job("j")
    assert found is not None
    assert found.failure is not None
    assert "max-data allows 2000" in found.failure.message
