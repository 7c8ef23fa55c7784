"""Every verb of the core over HTTP: the shapes of requests and results, batches, stored data, the audit log."""

import json
import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from callers import Verbs
from openapi_spec_validator import validate

from holdfast import Client
from holdfast.commands import COMMANDS
from holdfast.commands.flows import Edge, FlowJob, FlowPut
from holdfast.commands.options import JobWithOptions
from holdfast.core.library import library
from holdfast.web.gateway.exceptions import LEFT_OUT, UNAUDITED
from holdfast.web.gateway.verbs import verbs as table

JOB = {"worker": "w", "jid": "j", "token": 1}
LOST = ("advance", "complete", "complete_x", "fail", "heartbeat", "report", "retry")
EXAMPLES: dict[str, dict[str, Any]] = {
    "act": {"action": "priority", "jobs": [["a", "3"], ["none", "1"]]},
    "advance": {**JOB, "next_queue": "q"},
    "audit": {"what": "deploy", "detail": "v3"},
    "audit_list": {},
    "await": {"jids": ["a", "none"]},
    "cancel": {"jids": ["none", "b"]},
    "complete": JOB,
    "complete_pop": {"worker": "w", "queues": ["q"], "jobs": [{"jid": "x", "token": 1}], "limit": 1},
    "complete_x": {**JOB, "follow": [{"queue": "q", "klass": "K", "data": [1], "tags": ["t"]}]},
    "config_get": {"keys": ["heartbeat"]},
    "config_set": {"key": "heartbeat", "value": 45},
    "config_unset": {"key": "heartbeat"},
    "counts": {},
    "depend": {"jid": "waits", "parents": ["none"]},
    "dependents": {"jid": "a"},
    "explain": {"jid": "a"},
    "fail": {**JOB, "group": "g"},
    "failed": {"group": "g"},
    "failure_groups": {},
    "failures": {},
    "flow_forget": {"flows": ["f", "none"]},
    "flow_get": {"flows": ["f", "none"]},
    "flow_list": {},
    "flow_put": {
        "flow": "new",
        "jobs": [
            {"queue": "q", "klass": "K", "tags": ["t"]},
            {"queue": "q", "klass": "K", "data": {"n": None}, "parents": [{"job": 0, "into": "/n"}]},
        ],
    },
    "flow_states": {"flow": "f"},
    "flow_steps": {"flow": "f"},
    "heartbeat": JOB,
    "identifiers_set": {"identifiers": {"default": ["q*"]}},
    "info": {},
    "job_get": {"jids": ["a", "none"]},
    "jobs_complete": {},
    "list": {"set": "waiting", "name": "q"},
    "log": {"jid": "a", "message": "seen", "data": {"by": "me"}},
    "minutes": {"queue": "q"},
    "move": {"queue": "other", "jid": "a", "priority": 2},
    "operation_get": {"id": "none"},
    "operations": {},
    "patterns": {},
    "pause": {"queues": ["q"], "length": 60},
    "peek": {"queue": "q"},
    "pop": {"worker": "w", "queues": ["q"]},
    "priorities_set": {"rules": [{"pattern": ["q*"], "fairly": True}]},
    "priority": {"priority": 5, "jids": ["a"]},
    "put": {"queue": "q", "klass": "K", "data": {"n": 1}, "tags": ["t"], "delay": 60, "backoff": {"kind": "fixed", "first": 3}},
    "queue_forget": {"queues": ["none"]},
    "queue_get": {"queue": "q"},
    "queue_set": {"queue": "q", "option": "max-waiting", "value": 100},
    "queues": {},
    "recur": {"queue": "q", "klass": "K", "interval": 60, "offset": -5, "jid": "daily"},
    "recur_cancel": {"jids": ["none"]},
    "recur_get": {"jids": ["hourly", "none"]},
    "recur_pause": {"jid": "hourly"},
    "recur_run": {"jid": "hourly"},
    "recur_tag": {"mode": "add", "jid": "hourly", "tags": ["t"]},
    "recur_update": {"jid": "hourly", "interval": 90, "data": {"n": 2}},
    "release": {"jobs": [{"jid": "none", "token": 1, "worker": "w"}], "how": "preempted"},
    "report": {**JOB, "progress": 0.5},
    "resume": {"worker": "w", "jobs": [{"jid": "none", "token": 1, "worker": "v"}]},
    "retry": {**JOB, "delay": None},
    "scan": {"set": "waiting", "name": "q", "wants": "dt"},
    "setting": {"name": "stats-days", "value": 30},
    "settings": {},
    "stats": {"queue": "q"},
    "sweep": {},
    "tag": {"mode": "add", "jid": "a", "tags": ["t"]},
    "tagged": {"tag": "t"},
    "tags": {"least": 1},
    "throttle_delete": {"name": "t"},
    "throttle_get": {"name": "t"},
    "throttle_release": {"name": "t", "jids": ["a"]},
    "throttle_set": {"name": "t", "maximum": 3},
    "throttles": {},
    "timeout": {"jids": ["runs"]},
    "topic_counts": {"topics": ["help"]},
    "topic_delete": {"topic": "help", "ids": ["none"]},
    "topic_get": {"topic": "help", "ids": ["m", "none"]},
    "topic_pull": {"topic": "help"},
    "topic_put": {"topic": "help", "messages": [{"id": "m2", "body": {"n": 1}, "when": 5}, {"id": "m3", "body": "text"}]},
    "topic_release": {"topic": "help", "held": [{"id": "none"}]},
    "topic_requeue": {"topic": "help"},
    "topic_reschedule": {"topic": "help", "ids": ["m"], "when": 9},
    "topic_reserve": {"topic": "help", "ttr": 30},
    "track": {"on": True, "jid": "a"},
    "tracked": {},
    "unfail": {"queue": "q", "group": "g"},
    "worker_forget": {"workers": ["none"]},
    "worker_jobs": {},
    "worker_quiet": {"worker": "v"},
    "worker_seen": {"worker": "v", "facts": {"pid": "3"}},
    "workers": {},
}  # fmt: skip
"""A request of each verb; those of LOST name a lease that nobody has."""


@pytest.fixture
def scene(client: Client) -> None:
    """One of everything."""
    queue = client.queues["q"]
    queue.put("K", {"n": 1}, jid="runs")
    queue.pop()
    for jid in ("a", "b"):
        queue.put("K", {"n": 1.50}, jid=jid, tags=["t"])
    queue.put("K", {}, jid="waits", depends=["a"])
    queue.put("K", {}, jid="bad", priority=9)
    job = queue.pop()
    assert job is not None
    job.fail("g", "no luck")
    queue.recur("K", {}, interval=3600, offset=60, jid="hourly")
    client.topics["help"].put("m", "body", delay=60)
    client.throttles["t"].maximum = 2
    put_flow(client, "f", "q")


def put_flow(client: Client, flow: str, queue: str) -> None:
    """Put a flow of two jobs that pass no result."""
    first = FlowJob(queue, JobWithOptions("K", b"{}", f"{flow}-0"))
    second = FlowJob(queue, JobWithOptions("K", b"{}", f"{flow}-1"), edges=[Edge(f"{flow}-0")])
    client.run(FlowPut(flow, "K", [first, second]))


def test_each_verb_of_the_core_is_a_verb_here_or_is_left_out_for_a_reason() -> None:
    assert set(table()) | set(LEFT_OUT) == set(COMMANDS)
    assert set(table()) & set(LEFT_OUT) == set()
    assert set(EXAMPLES) == set(table())


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("verb", sorted(EXAMPLES))
def test_a_verb_returns_what_the_description_says(verbs: Verbs, verb: str) -> None:
    description = verbs.http.get("/v1/openapi.json", headers={"Authorization": "Bearer vic"}).json()
    operation = description["paths"][f"/{verb}"]["post"]
    found = verbs.post(verb, **EXAMPLES[verb])
    if verb in LOST:
        assert found.status_code in (404, 409)
        assert found.json()["code"] in ("HF_JOB_NOT_FOUND", "HF_LEASE_LOST")
        return
    assert found.status_code == 200, found.text
    media = operation["responses"]["200"]["content"]["application/json"]
    schema = {**media["schema"], "components": description["components"]}
    jsonschema.validate(found.json(), schema)
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    jsonschema.validate(EXAMPLES[verb], {**body, "components": description["components"]})


@pytest.mark.full
@pytest.mark.usefixtures("scene")
def test_the_description_is_a_valid_document(verbs: Verbs) -> None:
    found = verbs.http.get("/v1/openapi.json", headers={"Authorization": "Bearer wes"}).json()
    validate(found)
    assert (found["openapi"], found["servers"]) == ("3.1.0", [{"url": "/v1"}])


def unaudited_by_the_core() -> set[str]:
    inside = re.search(r"local UNAUDITED = \{(.*?)\}", library().text, re.DOTALL)
    assert inside is not None
    return set(re.findall(r'\[?"?(\w+)"?\]? ?= ?true', inside[1]))


def test_what_is_not_audited_is_what_the_core_does_not_audit() -> None:
    own = {"audit", "info"}  # one is itself a line, the other changes nothing
    assert UNAUDITED - own == unaudited_by_the_core() & set(table())


@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize(
    "verb", sorted(name for name, one in table().items() if not one.reads and name not in UNAUDITED)
)
def test_what_an_operator_changes_leaves_a_line_with_the_name_of_the_token(
    verbs: Verbs, client: Client, verb: str
) -> None:
    verbs(verb, **EXAMPLES[verb])
    line = verbs("audit_list")[0]
    assert (line["who"], line["what"]) == ("ada", verb)
    words = set(re.findall(r"\w+", json.dumps(EXAMPLES[verb])))
    assert verb == "sweep" or words & set(re.findall(r"\w+", line["target"] + line["detail"]))


@pytest.mark.usefixtures("scene")
def test_nobody_can_write_another_name_into_the_audit_log(verbs: Verbs, client: Client) -> None:
    assert verbs.refused("cancel", jids=["a"], who="eve") == (400, "cancel has no field 'who'; it has jids")
    verbs("audit", what="deploy")
    assert verbs("cancel", jids=["runs"]) == [True]
    assert [line["who"] for line in verbs("audit_list")] == ["ada", "ada"]
    [ended] = verbs("await", jids=["runs"])
    assert (ended["status"], ended["by"]) == ("cancelled", "ada")


def test_data_and_results_keep_every_digit(verbs: Verbs, client: Client) -> None:
    text = '{"n":9007199254740993,"x":1.000000000000000000001,"e":[],"s":"\\u00e9"}'
    body = f'{{"queue":"q","klass":"K","data":{text}}}'
    headers = {"Authorization": "Bearer ada", "Content-Type": "application/json"}
    jid = verbs.http.post("/v1/put", content=body, headers=headers).json()["result"]
    assert client.jobs.get(jid)[0].data == text  # type: ignore[union-attr]
    popped = verbs.post("pop", worker="w", queues=["q"])
    assert text in popped.text
    token = popped.json()["result"][0]["token"]
    done = f'{{"worker":"w","jid":"{jid}","token":{token},"result":{text}}}'
    assert verbs.http.post("/v1/complete", content=done, headers=headers).json() == {"result": "complete"}
    assert text in verbs.post("await", jids=[jid]).text


def test_data_of_other_programs_that_are_no_json_come_as_text(verbs: Verbs, client: Client) -> None:
    from holdfast.commands.jobs import Put

    client.run(Put("q", "K", b"\xffnot json"))
    [job] = verbs("pop", worker="w", queues=["q"])
    assert job["data"] == "\ufffdnot json"


def test_the_life_of_a_job(verbs: Verbs, client: Client) -> None:
    jid = verbs(
        "put", "pam", queue="mail", klass="Mail.send", data={"to": "a"}, priority=3, retries=2, timeout=5
    )
    [job] = verbs("pop", "wes", worker="w1", queues=["other", "mail"], limit=5)
    facts = {
        "jid": jid, "klass": "Mail.send", "queue": "mail", "data": {"to": "a"}, "worker": "w1", "priority": 3, "retries": 2,
        "remaining": 2, "attempts": 1, "timeout": 5.0, "tags": [],
    }  # fmt: skip
    assert {name: job[name] for name in facts} == facts
    lease = {"worker": "w1", "jid": jid, "token": job["token"]}
    assert verbs("heartbeat", "wes", **lease) >= job["lease_ends"]
    assert verbs("retry", "wes", **lease, group="later", message="busy") == 1
    [job] = verbs("pop", "wes", worker="w2", queues=["mail"])
    assert (job["failure"]["group"], job["token"] > lease["token"]) == ("later", True)
    assert verbs.refused("complete", "wes", **lease)[0] == 409
    assert verbs("complete", "wes", worker="w2", jid=jid, token=job["token"], result=[1, None]) == "complete"
    [ended] = verbs("await", "pam", jids=[jid])
    assert (ended["status"], ended["result"]) == ("done", [1, None])
    assert client.jobs.get(jid)[0].state == "complete"  # type: ignore[union-attr]


def test_recurring_jobs_follow_calendars(verbs: Verbs, client: Client) -> None:
    calendar = {"cron": "0 3 * * *", "zone": "Europe/Berlin", "missed": 5, "overlap": "skip", "jitter": 30}
    assert verbs("recur", queue="q", klass="K", jid="r", unique_key="a", **calendar) == "r"
    [found] = verbs("recur_get", jids=["r"])
    assert {name: found["calendar"][name] for name in calendar} == {**calendar, "missed": "5"}
    assert (found["interval"], found["overlap"], found["unique_key"]) == (86_400, "skip", "a")
    assert verbs("recur_update", jid="r", cron="30 4 * * *", zone="UTC") is True
    assert verbs("recur_update", jid="r", missed="all", overlap="queue") is True
    [found] = verbs("recur_get", jids=["r"])
    assert {name: found["calendar"][name] for name in ("cron", "zone", "missed", "jitter")} == {
        "cron": "30 4 * * *", "zone": "UTC", "missed": "all", "jitter": None,
    }  # fmt: skip
    until = client.store_time() + 60
    assert verbs("recur_pause", jid="r", until=until) is True
    assert verbs("recur_get", jids=["r"])[0]["paused_until"] == pytest.approx(until, abs=0.001)


@pytest.mark.parametrize(
    ("verb", "body", "words"),
    [
        ("recur", {}, "give the seconds between two jobs, or cron"),
        ("recur", {"interval": 60, "zone": "UTC"}, "zone needs cron"),
        ("recur", {"interval": 60, "cron": "* * * * *"}, "interval cannot be given with cron"),
        ("recur", {"offset": 60, "cron": "* * * * *"}, "offset cannot be given with cron"),
        ("recur", {"cron": "61 * * * *"}, "bad minute"),
        ("recur_update", {"cron": "* * * * *"}, "give cron and zone"),
        ("recur_update", {"jitter": 5}, "give cron and zone"),
    ],
)
def test_a_calendar_that_does_not_fit_is_refused(
    verbs: Verbs, verb: str, body: dict[str, Any], words: str
) -> None:
    required = {"queue": "q", "klass": "K"} if verb == "recur" else {}
    response = verbs.post(verb, jid="r", **required, **body)
    assert response.status_code == 400
    assert words in response.text


def test_a_result_is_kept_for_an_hour_unless_a_time_is_given(verbs: Verbs, client: Client) -> None:
    for keep, kept in ((None, True), (0, False), (60, True)):
        jid = verbs("put", queue="q", klass="K")
        [job] = verbs("pop", worker="w", queues=["q"])
        more = {} if keep is None else {"keep": keep}
        verbs("complete", worker="w", jid=jid, token=job["token"], result=5, **more)
        assert (verbs("await", jids=[jid])[0]["result"] == 5) is kept


def test_a_batch_has_a_result_or_an_error_for_each_job_in_order(verbs: Verbs) -> None:
    jobs: list[dict[str, Any]] = [
        {"data": 1},
        {"data": 2, "jid": "two"},
        {"data": 3, "klass": "Other", "priority": 7},
    ]
    first, second, third = verbs("put", queue="q", klass="K", jobs=jobs)
    assert (second, len({first, third})) == ("two", 2)
    assert (
        verbs("put", queue="q", klass="K", mode="only", jobs=[{"jid": "two", "data": 9}, {"jid": "new"}])[1]
        == "new"
    )
    [refused, _] = verbs(
        "put", queue="q", klass="K", mode="only", jobs=[{"jid": "two", "data": 9}, {"jid": "new"}]
    )
    assert refused["code"] == "HF_JOB_EXISTS"
    popped = verbs("pop", worker="w", queues=["q"], limit=10)
    assert [job["data"] for job in popped] == [3, 1, 2, {}]
    leases = [{"jid": job["jid"], "token": job["token"]} for job in popped]
    gone = {"jid": "none", "token": 1}
    ends = verbs("heartbeat", worker="w", jobs=[*leases, gone], ttl=60)
    assert all(end > 1e9 for end in ends[:4])
    assert ends[4]["error"] == "none: the job is gone"
    assert verbs("complete", worker="w", jobs=[{**leases[0], "result": 7}, gone])[0] == "complete"
    assert verbs("retry", worker="w", delay=5, jobs=[leases[1], {**leases[2], "delay": 0}]) == [4, 4]
    failed = verbs("fail", worker="w", group="g", jobs=[leases[3], gone])
    assert (failed[0], failed[1]["code"]) == (popped[3]["jid"], "HF_JOB_NOT_FOUND")


def test_a_job_of_a_batch_that_lacks_a_field_is_named_and_nothing_is_put(verbs: Verbs) -> None:
    assert verbs.refused("put", queue="q", jobs=[{"klass": "K"}, {}]) == (
        400,
        "jobs[1] needs the field klass",
    )
    assert verbs("queues") == []


@pytest.mark.parametrize(
    ("verb", "fields", "sentence"),
    [
        ("put", {"queue": "q", "klas": "K"}, "put has no field 'klas'; did you mean 'klass'?"),
        ("put", {"queue": "q"}, "put: object missing required field `klass`"),
        ("put", {"queue": 5, "klass": "K"}, "queue: expected `str`, got `int`"),
        ("put", {"queue": "a\nb", "klass": "K"}, "queue 'a\\nb' contains control characters"),
        ("put", {"queue": "é" * 101, "klass": "K"}, "queue must have 1 to 200 bytes, not 202"),
        ("put", {"queue": "q", "klass": "K", "priority": 5000}, "priority: expected `int` <= 4095"),
        ("put", {"queue": "q", "klass": "K", "delay": -1}, "delay: expected `float` >= 0.0"),
        ("put", {"queue": "q", "klass": "K", "mode": "new"}, "mode: invalid enum value 'new'"),
        ("put", {"queue": "q", "klass": "K", "backoff": {"kinds": 1}}, "backoff has no option 'kinds'; did you mean 'kind'?"),
        ("put", {"queue": "q", "klass": "K", "jobs": [{"queue": "r"}]}, "put: 'queue' belongs beside jobs, and applies to all of them"),
        ("put", {"queue": "q", "klass": "K", "jobs": [{"dta": 1}]}, "put has no field 'dta'; did you mean 'data'?"),
        ("pop", {"worker": "w", "queues": ["q"], "wait": 21}, "wait: expected `float` <= 20.0"),
        ("config_set", {"key": "heartbeat", "value": "x"}, "setting heartbeat"),
        ("list", {"set": "waitin", "name": "q"}, "set: invalid enum value 'waitin'"),
    ],
)  # fmt: skip
def test_a_field_that_is_wrong_is_named(
    verbs: Verbs, verb: str, fields: dict[str, Any], sentence: str
) -> None:
    status, title = verbs.refused(verb, **fields)
    assert status == 400
    assert title.startswith(sentence)


def test_deep_data_are_refused(verbs: Verbs) -> None:
    deep: Any = 1
    for _ in range(101):
        deep = [deep]
    assert verbs.refused("put", queue="q", klass="K", data=deep) == (400, "data is nested deeper than 100")


def test_an_empty_body_is_an_empty_object(verbs: Verbs) -> None:
    found = verbs.http.post("/v1/queues", headers={"Authorization": "Bearer ada"})
    assert found.json() == {"result": []}


def test_masked_parts_of_data_are_masked_for_people_and_whole_for_workers(
    programs: Callable[..., Verbs],
) -> None:
    verbs = programs(redact=["password"])
    verbs("put", queue="q", klass="K", data={"password": "p4ss", "n": 1.50}, jid="a")
    assert verbs("job_get", "oli", jids=["a"])[0]["data"] == {"password": "••••", "n": 1.5}
    assert verbs("scan", "vic", set="waiting", name="q", wants="d")["jobs"][0]["data"]["password"] == "••••"
    assert verbs("job_get", "wes", jids=["a"])[0]["data"]["password"] == "p4ss"
    assert (
        json.loads(verbs.post("pop", "wes", worker="w", queues=["q"]).text)["result"][0]["data"]["password"]
        == "p4ss"
    )
