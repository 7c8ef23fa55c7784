"""flow: jobs that wait for each other, get each other's results, and fail or run by what became of the others."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast.commands.admin import SettingSet
from holdfast.commands.failures import Unfail
from native_door import Door, StoreMessage

pytestmark = pytest.mark.each

DATA = '{"args":[null],"kwargs":{}}'
PLACE = f"{DATA.index('null')} 4"


def edge(parent: str, policy: str = "fail", place: str = PLACE) -> str:
    return f"{policy} {place} {parent}"


def part(jid: str, *edges: str, data: str = DATA, queue: str = "q") -> list[Any]:
    words: list[Any] = [queue, 0, 0, 0, jid, "k", data, len(edges)]
    for one in edges:
        words += ("edge", one)
    return words


def put(door: Door, flow: str, *parts: Sequence[Any]) -> int:
    return door("flow_put", "", 0, flow, "label", *(word for one in parts for word in one))


def chain(door: Door, count: int = 3, policy: str = "fail", flow: str = "f") -> None:
    parts = [part(f"{flow}-{n}", *([edge(f"{flow}-{n - 1}", policy)] if n else [])) for n in range(count)]
    assert put(door, flow, *parts) == 1


def complete(door: Door, jid: str, result: str = "", worker: str = "w") -> None:
    [job] = [one for one in door.pop(worker, "q", n=50) if one.jid == jid]
    door("complete", worker, jid, job.token, "", 0, result)


def fail(door: Door, jid: str) -> None:
    [job] = [one for one in door.pop("w", "q", n=50) if one.jid == jid]
    door("fail", "w", "Broken", "it broke", jid, job.token, "")


def retry(door: Door, jid: str) -> Any:
    return door("act", "", 0, "retry", "", "", "", "", 0, "", 0, 0, jid, "")


def data(door: Door, jid: str) -> Any:
    job = door.job(jid)
    assert job is not None
    return json.loads(job.data)


def states(door: Door, *jids: str) -> list[str]:
    return [door.state(jid) for jid in jids]


def test_what_the_jobs_of_a_flow_are_and_wait_for_stays_known_when_they_have_ended(door: Door):
    door.put("other", "outside")
    members = [part(f"f-{n}") for n in range(4)]
    several = part("f-4", *(edge(f"f-{n}", place="-1 0") for n in (0, 1, 3)), edge("f-2", "run", "-1 0"))
    put(
        door,
        "f",
        *members,
        several,
        part("f-5", edge("outside", "wait", "-1 0"), edge("f-4", "wait", "-1 0")),
    )
    before = door("flow_steps", "f")
    assert before[0] == [b"k"]
    assert before[4] == [b"k", 0, 1, b"fail", 3, 3, b"fail", 2, 2, b"run"]
    assert before[5] == [b"k", b"outside", b"outside", b"wait", 4, 4, b"wait"]
    for job in door.pop("w", "q", n=4):
        door("complete", "w", job.jid, job.token, "", 0, "")
    assert door("flow_steps", "f") == before


def test_each_job_of_a_chain_gets_the_result_before_it(door: Door):
    chain(door)
    assert states(door, "f-0", "f-1", "f-2") == ["waiting", "depends", "depends"]
    complete(door, "f-0", '{"a":[1,2]}')
    assert states(door, "f-1", "f-2") == ["waiting", "depends"]
    assert data(door, "f-1") == {"args": [{"a": [1, 2]}], "kwargs": {}}
    complete(door, "f-1", '"' + "x" * 600 + '"')
    assert data(door, "f-2") == {"args": ["x" * 600], "kwargs": {}}


def test_a_job_gets_the_results_of_several_in_their_places(door: Door):
    text = '{"args":[null,7,[null,null]],"kwargs":{"a":null}}'
    places = [at for at in range(len(text)) if text.startswith("null", at)]
    edges = [edge(f"f-{n}", place=f"{at} 4") for n, at in enumerate(places)]
    put(door, "f", *(part(f"f-{n}") for n in range(4)), part("f-4", *edges, data=text))
    jobs = {job.jid: job for job in door.pop("w", "q", n=9)}
    for n in (2, 0, 3, 1):
        assert door.state("f-4") == "depends"
        jid = f"f-{n}"
        door("complete", "w", jid, jobs[jid].token, "", 0, f"{n * 11}")
    assert data(door, "f-4") == {"args": [0, 7, [11, 22]], "kwargs": {"a": 33}}
    assert door.state("f-4") == "waiting"


def test_results_come_in_batches_too(door: Door):
    text = '{"args":[[null,null]],"kwargs":{}}'
    places = [at for at in range(len(text)) if text.startswith("null", at)]
    edges = [edge(f"f-{n}", place=f"{at} 4") for n, at in enumerate(places)]
    put(door, "f", part("f-0"), part("f-1"), part("f-2", *edges, data=text))
    jobs = door.pop("w", "q", n=9)
    door("complete", "w", *(word for job in jobs for word in (job.jid, job.token, "", 0, f'"{job.jid}"')))
    assert data(door, "f-2") == {"args": [["f-0", "f-1"]], "kwargs": {}}


def test_what_follows_a_failed_job_fails_and_names_it(door: Door):
    chain(door)
    fail(door, "f-0")
    assert states(door, "f-1", "f-2") == ["failed", "failed"]
    job = door.job("f-2")
    assert job is not None
    assert job.failure is not None
    assert job.failure.group == "q-ParentFailed"
    assert job.failure.message == ("f-1 did not complete, because f-0 did not complete: Broken: it broke")


@pytest.mark.parametrize("first", ["Broken", "q-ParentFailed"])
def test_a_chain_whose_jobs_are_retried_in_any_order_ends(core, door: Door, first: str):
    chain(door)
    fail(door, "f-0")
    groups = [first, *({"Broken", "q-ParentFailed"} - {first})]
    for group in groups:
        core(Unfail("q", group, 10))
    assert states(door, "f-0", "f-1", "f-2") == ["waiting", "depends", "depends"]
    complete(door, "f-0", "5")
    complete(door, "f-1", "6")
    assert data(door, "f-2") == {"args": [6], "kwargs": {}}


def test_a_parent_that_completes_at_last_revives_what_failed_for_it(core, door: Door):
    chain(door)
    fail(door, "f-0")
    core(Unfail("q", "Broken", 10))
    assert states(door, "f-0", "f-1", "f-2") == ["waiting", "failed", "failed"]
    complete(door, "f-0", "5")
    assert states(door, "f-1", "f-2") == ["waiting", "failed"]
    complete(door, "f-1", "6")
    assert (door.state("f-2"), data(door, "f-2")) == ("waiting", {"args": [6], "kwargs": {}})
    assert door.look("failure_groups", 0, 10)[1:] == []


def test_what_runs_whatever_became_of_the_others_gets_the_outcome(door: Door):
    put(door, "f", part("f-0"), part("f-1", edge("f-0", "run")), part("f-2", edge("f-1", "run")))
    fail(door, "f-0")
    assert data(door, "f-1")["args"] == [
        {"ok": False, "result": None, "failure": {"group": "Broken", "message": "it broke"}}
    ]
    complete(door, "f-1", "[1]")
    assert data(door, "f-2")["args"] == [{"ok": True, "result": [1], "failure": None}]


def test_the_outcome_of_a_job_without_a_result_has_none(door: Door):
    chain(door, 2, "run")
    complete(door, "f-0")
    assert data(door, "f-1")["args"] == [{"ok": True, "result": None, "failure": None}]


def test_a_cancelled_job_counts_as_one_that_did_not_complete(door: Door):
    put(door, "f", part("f-0"), part("f-1", edge("f-0")), part("f-2", edge("f-0", "run")))
    door("cancel_by", "", 0, "ada", "f-0")
    assert states(door, "f-0", "f-1", "f-2") == ["absent", "failed", "waiting"]
    assert data(door, "f-2")["args"][0]["failure"] == {"group": "cancelled", "message": "by ada"}


def test_what_waits_until_a_job_is_complete_waits_on_when_it_fails(core, door: Door):
    chain(door, 2, "wait")
    fail(door, "f-0")
    assert door.state("f-1") == "depends"
    core(Unfail("q", "Broken", 10))
    complete(door, "f-0", "1")
    assert data(door, "f-1") == {"args": [1], "kwargs": {}}


def test_an_order_without_a_result(door: Door):
    put(door, "f", part("f-0"), part("f-1", edge("f-0", place="-1 0")))
    complete(door, "f-0")
    assert (door.state("f-1"), data(door, "f-1")) == ("waiting", {"args": [None], "kwargs": {}})


def test_a_missing_result_fails_what_needs_it(door: Door):
    chain(door, 2)
    complete(door, "f-0")
    job = door.job("f-1")
    assert job is not None
    assert job.failure is not None
    assert job.failure.message == "f-0 has ended, but it has no result"


def test_a_result_that_makes_the_data_too_large_fails_what_needs_it(core, door: Door):
    core(SettingSet("max-data", "2000"))
    chain(door, 2)
    complete(door, "f-0", '"' + "x" * 3000 + '"')
    job = door.job("f-1")
    assert job is not None
    assert job.failure is not None
    assert "max-data allows 2000" in job.failure.message


def test_data_that_were_changed_meanwhile_are_not_mixed_with_a_result(door: Door):
    chain(door, 2)
    door("move", "", 0, "q", 0, "f-1", '{"args":[1,2,3,4,5],"kwargs":{}}', "", "", "", 0)
    complete(door, "f-0", "7")
    job = door.job("f-1")
    assert job is not None
    assert job.failure is not None
    assert "were changed while it waited" in job.failure.message
    assert data(door, "f-1") == {"args": [1, 2, 3, 4, 5], "kwargs": {}}


def test_what_failed_for_a_result_that_was_too_large_runs_when_it_is_retried_with_more_room(core, door: Door):
    core(SettingSet("max-data", "2000"))
    chain(door, 2)
    complete(door, "f-0", '"' + "x" * 3000 + '"')
    assert retry(door, "f-1")[0].startswith(
        b"HF_WRONG_STATE f-1 cannot be tried again: its data have 3025 bytes"
    )
    core(SettingSet("max-data", "5000"))
    assert retry(door, "f-1") == [1]
    assert (door.state("f-1"), data(door, "f-1")) == ("waiting", {"args": ["x" * 3000], "kwargs": {}})


def test_a_job_that_only_came_after_a_cancelled_one_starts_when_it_is_retried(door: Door):
    put(door, "f", part("f-0"), part("f-1", edge("f-0", place="-1 0")))
    door("cancel", "", 0, "f-0")
    assert door.state("f-1") == "failed"
    assert retry(door, "f-1") == [1]
    assert (door.state("f-1"), [job.jid for job in door.pop("w", "q")]) == ("waiting", ["f-1"])


@pytest.mark.parametrize("how", ["move", "put"])
def test_a_job_that_needs_a_cancelled_one_is_not_moved(door: Door, how: str):
    chain(door, 2)
    door("cancel", "", 0, "f-0")
    before = door.dump()
    if how == "move":
        with pytest.raises(
            StoreMessage,
            match="HF_WRONG_STATE f-1 cannot be tried again: f-0 has ended, but it has no result",
        ):
            door("move", "", 0, "other", 0, "f-1", "", "")
    else:
        assert b"HF_WRONG_STATE" in door.put("other", "f-1", mode="move")[2]
    assert [door.state("f-1"), door.dump()["f:q-ParentFailed"]] == ["failed", before["f:q-ParentFailed"]]


def test_a_job_waits_for_the_new_life_of_one_that_had_no_result(door: Door):
    chain(door, 2)
    complete(door, "f-0")
    door("move", "", 0, "q", 0, "f-0", "", "")
    assert retry(door, "f-1") == [1]
    assert door.state("f-1") == "depends"
    complete(door, "f-0", "7")
    assert (door.state("f-1"), data(door, "f-1")) == ("waiting", {"args": [7], "kwargs": {}})


@pytest.mark.parametrize("order", [("f-0", "f-1"), ("f-1", "f-0")])
def test_jobs_that_are_cancelled_together_leave_nothing(door: Door, order: tuple[str, str]):
    put(door, "f", part("f-0"), part("f-1", edge("f-0")))
    assert door("cancel", "", 0, *order) == [1, 1]
    assert {name for name in door.names() if name[:2] in ("f:", "fq", "x:", "D:", "w:", "d:", "j:")} == set()


def test_what_waits_for_a_job_that_fails_as_it_is_put_learns_of_it(door: Door):
    door.put("q", "broken", retries=0)
    fail(door, "broken")
    put(
        door, "f", part("f-0", edge("broken")), part("f-1", edge("f-0")), part("f-2", edge("f-0", "run")),
    )  # fmt: skip
    assert states(door, "f-0", "f-1", "f-2") == ["failed", "failed", "waiting"]
    assert data(door, "f-2")["args"][0]["failure"]["group"] == "q-ParentFailed"


def test_jobs_that_have_ended_before_are_parents_too(door: Door):
    door.put("q", "done", "broken", retries=0)
    for job in door.pop("w", "q", n=2):
        if job.jid == "done":
            door("complete", "w", "done", job.token, "", 60000, "7")
        else:
            door("fail", "w", "Broken", "it broke", "broken", job.token, "")
    put(
        door, "f", part("f-0", edge("done")), part("f-1", edge("broken")), part("f-2", edge("broken", "run")),
    )  # fmt: skip
    assert states(door, "f-0", "f-1", "f-2") == ["waiting", "failed", "waiting"]
    assert data(door, "f-0")["args"] == [7]
    assert data(door, "f-2")["args"][0]["failure"]["group"] == "Broken"


def test_cores_that_do_not_know_flows_are_kept_from_a_root_that_has_one(door: Door):
    door.put("q", "plain")
    assert level_of(door) == 0
    chain(door)
    assert level_of(door) == 1


def level_of(door: Door) -> int:
    return door.ask("HGET", door.root, "h")[3]


def test_the_same_flow_is_put_once(door: Door):
    chain(door)
    before = door.dump()
    assert put(door, "f", *(part(f"f-{n}") for n in range(3))) == 0
    assert door.dump() == before
    with pytest.raises(StoreMessage, match="HF_JOB_EXISTS f is a flow of 3 jobs"):
        put(door, "f", part("f-0"))


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ([part("f-0", edge("nobody"))], "HF_JOB_NOT_FOUND nobody"),
        ([part("f-0", edge("f-1")), part("f-1")], "HF_JOB_NOT_FOUND f-1"),
        ([part("g-0")], "jids of a flow are its id and a number"),
        ([part("f-0", edge("x", "never"))], "an edge is wait, run, fail or rescue"),
        ([part("f-0", edge("x", place="0 999"))], "outside the data"),
        ([part("f-0", edge("x"), edge("x", "run"))], "by one edge"),
        ([], "a flow is put with 1 to 512 jobs"),
        ([part("f-0"), part("f-1", edge("f-0"), queue="full")], "HF_QUEUE_FULL full"),
    ],
)
def test_a_flow_that_cannot_be_put_whole_is_not_put_at_all(door: Door, parts, error: str):
    door("queue_set", "", 0, "full", "max-waiting", 1)
    door.put("full", "first")
    before = door.dump()
    with pytest.raises(StoreMessage, match=error):
        put(door, "f", *parts)
    assert {key: value for key, value in door.dump().items() if not key.endswith("Q")} == {
        key: value for key, value in before.items() if not key.endswith("Q")
    }


def test_flows_are_listed_newest_first_and_forgotten(door: Door, clock):
    for number in range(3):
        put(door, f"f{number}", part(f"f{number}-0"))
        clock.advance(seconds=1)
    assert door.look("flow_list", "", 2)[1:] == [3, b"f2", b"f1"]
    cursor = door.look("flow_list", "", 2)[0]
    assert door.look("flow_list", cursor, 2) == [b"", 3, b"f0"]
    assert door.look("flow_get", "f1", "other") == [[1, clock.now_ms - 2000, b"label", 0], []]
    assert door("flow_forget", "", 0, "f1", "other") == [1, 0]
    assert door.look("flow_list", "", 5) == [b"", 2, b"f2", b"f0"]
    assert door.state("f1-0") == "waiting"


def test_no_more_jobs_follow_one_than_learn_of_its_failure(door: Door):
    put(door, "f", part("f-0"))
    put(door, "g", *(part(f"g-{n}", "fail -1 0 f-0") for n in range(300)))
    with pytest.raises(StoreMessage, match="HF_TOO_MANY"):
        put(door, "h", *(part(f"h-{n}", "fail -1 0 f-0") for n in range(300)))
    put(door, "h", *(part(f"h-{n}", "fail -1 0 f-0") for n in range(212)))
    fail(door, "f-0")
    assert set(states(door, *(f"g-{n}" for n in range(300)), *(f"h-{n}" for n in range(212)))) == {"failed"}


def test_a_job_of_a_flow_that_names_parents_otherwise_than_by_edges_is_refused(door: Door):
    put(door, "f", part("f-0"))
    with pytest.raises(StoreMessage, match="waits by edges"):
        put(door, "g", ["q", 0, 0, 0, "g-0", "k", "{}", 1, "depends", "f-0"], part("g-1"))


def test_one_call_fails_a_limited_number_of_jobs_for_others_and_later_calls_go_on(door: Door):
    put(door, "p", part("p-0"))
    put(door, "a", *(part(f"a-{n}", edge("p-0", place="-1 0"), queue="later") for n in range(500)))
    for b in range(4):
        put(
            door,
            f"b{b}",
            *(part(f"b{b}-{n}", edge(f"a-{b}", place="-1 0"), queue="last") for n in range(500)),
        )

    def failed() -> int:
        return sum(int(door.ask("ZCARD", door.key(f"fq:{queue}"))) for queue in ("q", "later", "last"))

    fail(door, "p-0")
    counts = [failed()]
    assert 500 <= counts[0] <= 520
    while counts[-1] < 2501:
        door.put("other", f"x{len(counts)}")
        counts.append(failed())
        assert 0 < counts[-1] - counts[-2] <= 620
    assert not [name for name in door.names() if name.endswith("uf")]
    door("act", "", 0, "retry", "", "", "", "", 0, "", 0, 0, "p-0", "")
    complete(door, "p-0")
    for n in range(40):
        door.put("other", f"y{n}")
    assert [door.state("a-0"), door.state("a-499"), door.state("b0-0")] == ["waiting", "waiting", "failed"]
