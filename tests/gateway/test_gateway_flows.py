"""Flows over HTTP: they are put by number and pointer, and programs in other languages are members of them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from callers import Verbs

from holdfast import Client, UsageError
from holdfast.testing.worker import LocalWorker
from holdfast.web.gateway.flows import placed

FETCH = {"queue": "web", "klass": "sites.fetch", "data": {"url": "http://a"}}


@pytest.fixture
def over_http(address: str) -> Iterator[Verbs]:
    """Callers of a real server."""
    with httpx.Client(timeout=30) as http:
        yield Verbs(http, address)


def total(*numbers: int, into: str = "/numbers", **more: Any) -> dict[str, Any]:
    """A job that sums the results of the jobs with these numbers."""
    places = [f"{into}/{at}" for at in range(len(numbers))]
    parents = [{"job": one, "into": place, **more} for one, place in zip(numbers, places, strict=True)]
    data = {"unit": "EUR", "numbers": [None] * len(numbers)}
    return {"queue": "web", "klass": "sums.total", "data": data, "parents": parents}


def worked(verbs: Verbs, result: Callable[[dict[str, Any]], Any], queue: str = "web") -> list[dict[str, Any]]:
    """Take the jobs of a queue and complete each with a result, or fail it if there is none. Returns the jobs."""
    jobs: list[dict[str, Any]] = []
    while popped := verbs("pop", "wes", worker="w", queues=[queue], limit=10):
        for job in popped:
            lease = {"worker": "w", "jid": job["jid"], "token": job["token"]}
            try:
                verbs("complete", "wes", **lease, result=result(job))
            except ValueError as error:
                verbs("fail", "wes", **lease, group="web-ValueError", message=str(error))
        jobs += popped
    return jobs


def test_workers_over_http_are_members_of_a_flow(over_http: Verbs) -> None:
    jobs = [FETCH, FETCH, total(0, 1)]
    put = over_http("flow_put", "pam", flow="nightly", label="sums", jobs=jobs)
    assert put == {"flow": "nightly", "new": True, "jids": ["nightly-0", "nightly-1", "nightly-2"]}
    assert over_http("flow_states", "pam", flow="nightly") == ["waiting", "waiting", "depends"]
    done = worked(over_http, lambda job: 7 if "url" in job["data"] else sum(job["data"]["numbers"]))
    assert [job["data"] for job in done][2:] == [{"unit": "EUR", "numbers": [7, 7]}]
    [end] = over_http("await", "pam", jids=["nightly-2"], wait=10)
    assert (end["status"], end["result"]) == ("done", 14)
    assert over_http("flow_put", "pam", flow="nightly", label="sums", jobs=jobs)["new"] is False
    [facts, none] = over_http("flow_get", "pam", flows=["nightly", "none"])
    assert (facts["label"], none) == ("sums", None)
    assert over_http("flow_list") == {"next": "", "total": 1, "flows": ["nightly"]}
    assert over_http("flow_steps", flow="nightly") == [
        {"klass": "sites.fetch", "parents": []},
        {"klass": "sites.fetch", "parents": []},
        {
            "klass": "sums.total",
            "parents": [{"on_failure": "fail", "first": 0, "last": 1, "jid": None}],
        },
    ]
    assert over_http("flow_forget", flows=["nightly", "none"]) == [True, False]
    assert over_http.refused("flow_states", flow="nightly")[0] == 404


def test_a_function_in_python_and_a_program_over_http_pass_results_to_each_other(
    over_http: Verbs, client: Client
) -> None:
    @client.job(name="double", queue="py")
    def double(number: int) -> int:
        return 2 * number

    call = {
        "queue": "py",
        "klass": "double",
        "data": {"args": [None]},
        "parents": [{"job": 0, "into": "/args/0"}],
    }
    over_http("flow_put", flow="f", jobs=[FETCH, call, total(1)])
    worked(over_http, lambda _: 21)
    worker = LocalWorker(client)
    worker.run_one()
    worker.close()
    [job] = worked(over_http, lambda job: job["data"])
    assert job["data"]["numbers"] == [42]


@pytest.mark.parametrize(
    ("policy", "state", "numbers"),
    [
        ("fail", "failed", None),
        ("wait", "depends", None),
        (
            "run",
            "complete",
            [
                {"ok": True, "result": 3, "failure": None},
                {"ok": False, "result": None, "failure": {"group": "web-ValueError", "message": "no page"}},
            ],
        ),
    ],
)
def test_the_policy_decides_what_becomes_of_a_job_whose_parent_fails(
    over_http: Verbs, policy: str, state: str, numbers: Any
) -> None:
    bad = {**FETCH, "data": {"url": ""}}
    over_http("flow_put", flow="f", jobs=[FETCH, bad, total(0, 1, on_failure=policy)])

    def result(job: dict[str, Any]) -> Any:
        if job["data"].get("url") == "":
            raise ValueError("no page")
        return 3

    done = worked(over_http, result)
    assert over_http("flow_states", flow="f")[2] == state
    if numbers is not None:
        assert done[2]["data"]["numbers"] == numbers


@pytest.mark.parametrize(
    ("page", "state", "data"),
    [
        ("http://a", "gone", None),
        ("", "complete", {"why": {"group": "web-ValueError", "message": "no page"}}),
    ],
)
def test_a_job_runs_only_if_another_one_fails(over_http: Verbs, page: str, state: str, data: Any) -> None:
    first = {**FETCH, "data": {"url": page}}
    rescue = {**FETCH, "data": {"why": None}, "parents": [{"job": 0, "on_failure": "rescue", "into": "/why"}]}
    over_http("flow_put", flow="f", jobs=[first, rescue])

    def result(job: dict[str, Any]) -> Any:
        if job["data"].get("url") == "":
            raise ValueError("no page")

    done = worked(over_http, result)
    assert over_http("flow_states", flow="f")[1] == state
    assert [job["data"] for job in done][1:] == ([] if data is None else [data])


def test_a_job_that_exists_passes_its_result_into_a_flow(over_http: Verbs) -> None:
    over_http("put", jid="before", **FETCH)
    over_http(
        "flow_put",
        flow="f",
        jobs=[{**total(), "data": {"x": None}, "parents": [{"jid": "before", "into": "/x"}]}],
    )
    assert [job["data"] for job in worked(over_http, lambda _: "page")] == [FETCH["data"], {"x": "page"}]
    assert over_http("flow_steps", flow="f")[0]["parents"][0]["jid"] == "before"


def test_a_result_of_none_and_a_job_without_one_differ(over_http: Verbs) -> None:
    over_http("flow_put", flow="f", jobs=[FETCH, total(0)])
    [job] = over_http("pop", worker="w", queues=["web"])
    over_http("complete", worker="w", jid=job["jid"], token=job["token"])
    assert "it has no result" in over_http("job_get", jids=["f-1"])[0]["failure"]["message"]
    over_http("flow_put", flow="g", jobs=[FETCH, total(0)])
    assert worked(over_http, lambda _: None)[1]["data"]["numbers"] == [None]


REFUSED: list[tuple[list[dict[str, Any]], str]] = [
    ([], "jobs: expected `array` of length >= 1"),
    ([{**FETCH, "jid": "x"}], "flow_put: jobs[0] has no field 'jid'"),
    ([{**FETCH, "group": None}], "flow_put has no field 'group'"),
    ([{**FETCH, "unique_key": "x"}], "flow_put has no field 'unique_key'; it has"),
    ([{**FETCH, "parents": [{"job": 0}]}], "jobs[0].parents[0].job: expected the number of an earlier job"),
    ([{**FETCH, "parents": [{}]}], "jobs[0].parents[0]: give either job, the number of an earlier job, or jid"),
    ([{**FETCH, "parents": [{"job": 0, "jid": "x"}]}], "jobs[0].parents[0]: give either job"),
    ([{**FETCH, "parents": [{"jid": "f-0"}]}], "jobs[0].parents[0].jid: f-0 is a job of this flow"),
    ([{**FETCH, "parents": [{"jid": "none"}]}], "job none does not exist"),
    ([FETCH, total(0, on_failure="explode")], "jobs[1].parents[0].on_failure: invalid enum value"),
    ([FETCH, {**FETCH, "parents": [{"job": 0}, {"job": 0}]}], "jobs[1].parents: it waits for 'f-0' twice"),
    ([FETCH, total(0, into="/number")], "jobs[1].parents[0].into: the data of the job have no null at '/number/0'"),
    ([FETCH, total(0, into="numbers")], "jobs[1].parents[0].into: expected a JSON pointer such as /args/0"),
    ([FETCH, total(0, into="/unit")], "jobs[1].parents[0].into: the data of the job have no null at '/unit/0'"),
    ([{**FETCH, "queue": ""}], "jobs[0].queue: expected `str` of length >= 1"),
]  # fmt: skip


@pytest.mark.parametrize(("jobs", "sentence"), REFUSED)
def test_a_flow_that_is_wrong_is_refused_and_nothing_is_put(
    verbs: Verbs, jobs: list[dict[str, Any]], sentence: str
) -> None:
    status, title = verbs.refused("flow_put", flow="f", jobs=jobs)
    assert title.startswith(sentence)
    assert status in (400, 404)
    assert (verbs("queues"), verbs("flow_list")["total"]) == ([], 0)


@pytest.mark.parametrize(
    ("data", "pointers", "found"),
    [
        ("null", [""], ["null"]),
        ('{"a" : [1.50, null ,{"b":null}], "c":9007199254740993}', ["/a/1", "/a/2/b"], None),
        ('{"a/b":{"m~n":null},"":null}', ["/a~1b/m~0n", "/"], None),
        ("[[null,null],null]", ["/1", "/0/1", "/0/0"], None),
    ],
)
def test_a_place_is_the_byte_at_which_its_null_begins(data: str, pointers: list[str], found: Any) -> None:
    text, starts = placed(data.encode(), dict(enumerate(pointers)))
    assert json.loads(text) == json.loads(data)
    assert sorted(starts) == list(range(len(pointers)))
    for start in starts.values():
        assert text[start : start + 4] == b"null"
    filled = text
    for number, start in sorted(starts.items(), key=lambda one: -one[1]):
        filled = filled[:start] + b"%d" % (number + 1000) + filled[start + 4 :]
    value = json.loads(filled)
    for number, pointer in enumerate(pointers):
        at: Any = value
        for part in pointer.split("/")[1:]:
            at = at[int(part) if isinstance(at, list) else part.replace("~1", "/").replace("~0", "~")]
        assert at == number + 1000


@pytest.mark.parametrize(
    ("data", "pointers", "words"),
    [
        ('{"a":null}', ["/a", "/a"], "another result goes to '/a'"),
        ('{"a":[null]}', ["/a/0", "/a"], "no null at"),
        ('{"a":null}', ["/a/0"], "no null at '/a/0'"),
        ("[null]", ["/00"], "no null at '/00'"),
        ("[null]", ["/-"], "no null at '/-'"),
        ("[null]", ["/99999999999999999999"], "no null at"),
        ('{"a":"null"}', ["/a"], "no null at '/a'"),
        ('{"a":1}', ["/b"], "no null at '/b'"),
        ('{"a":null}', ["a"], "expected a JSON pointer such as /args/0, got 'a'"),
        ('{"a":null}', ["/a\u001b[31m"], "no null at"),
        ("null", ["/a" * 101], "expected a JSON pointer"),
    ],
)
def test_a_pointer_to_no_place_is_refused(data: str, pointers: list[str], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        placed(data.encode(), dict(enumerate(pointers)))
    assert words in str(caught.value)
    assert "\u001b" not in str(caught.value)


def test_a_limited_user_has_flows_of_its_own_queues_only(verbs: Verbs) -> None:
    mail, secret = {"queue": "mail", "klass": "K"}, {"queue": "secret", "klass": "K"}
    verbs("put", jid="hidden", **secret)
    verbs("flow_put", "leo", flow="own", jobs=[mail, {**mail, "parents": [{"job": 0}]}])
    verbs("flow_put", flow="mixed", jobs=[mail, {**secret, "parents": [{"job": 0}]}])
    verbs("flow_put", flow="waits", jobs=[{**mail, "parents": [{"jid": "hidden"}]}])
    assert verbs("flow_states", "leo", flow="own") == ["waiting", "depends"]
    for jobs in ([mail, secret], [{**mail, "parents": [{"jid": "hidden"}]}]):
        assert verbs.refused("flow_put", "leo", flow="more", jobs=jobs)[0] == 403
    for flow in ("mixed", "waits"):
        held = verbs.post("flow_put", "leo", flow=flow, jobs=[mail] * (2 if flow == "mixed" else 1))
        assert (held.status_code, "hidden" in held.text) == ((403 if flow == "mixed" else 200), False)
    assert verbs.refused("flow_get", "leo", flows=["own", "mixed"])[0] == 403
    assert verbs.refused("flow_states", "leo", flow="mixed")[0] == 403
    assert verbs.refused("flow_list", "lou")[0] == 403
    assert verbs.refused("flow_forget", "lou", flows=["mixed"])[0] == 403
    assert verbs("flow_steps", "len", flow="waits") == [{"klass": "K", "parents": []}]
    assert verbs("flow_forget", "lou", flows=["own"]) == [True]


def test_nobody_limited_takes_the_result_of_a_job_that_is_gone(verbs: Verbs, client: Client) -> None:
    jid = verbs("put", queue="secret", klass="K")
    [job] = verbs("pop", worker="w", queues=["secret"])
    verbs("complete", worker="w", jid=jid, token=job["token"], result="secret")
    client.config["jobs-history-count"] = 0
    verbs("sweep")
    assert verbs("job_get", jids=[jid]) == [None]
    taken = [{"queue": "mail", "klass": "K", "data": [None], "parents": [{"jid": jid, "into": "/0"}]}]
    assert verbs.refused("flow_put", "leo", flow="f", jobs=taken)[0] == 404
    assert verbs("peek", queue="mail") == []
    verbs("flow_put", flow="f", jobs=taken)
    assert verbs("peek", queue="mail")[0]["data"] == ["secret"]


def test_a_limited_user_has_no_flow_whose_jobs_are_all_gone(verbs: Verbs) -> None:
    verbs("flow_put", flow="f", jobs=[{"queue": "mail", "klass": "K"}])
    verbs("cancel", jids=["f-0"])
    assert verbs("flow_states", flow="f") == ["gone"]
    assert verbs.refused("flow_states", "leo", flow="f")[0] == 403
