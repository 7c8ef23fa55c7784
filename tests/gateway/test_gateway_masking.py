"""What `redact` hides leaves by no verb and no topic endpoint to those who only look or operate; programs that do the work get it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from callers import Verbs
from test_gateway_verbs import EXAMPLES

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.console.masking import MASKED, Mask
from holdfast.console.operations.spec import Spec
from holdfast.web.gateway.verbs import verbs as table
from holdfast.web.users import User

SECRET, CARD = "hunter2-of-ada", "4111111111111111"
DATA = {
    "password": SECRET,
    "card": CARD,
    "number": int(CARD),
    "list": [{"password": SECRET}],
    CARD: "a key",
    "n": 7,
}
RULES = ["*.password", "password", r"re:\b\d{16}\b"]


@pytest.fixture
def verbs(programs: Callable[..., Verbs]) -> Verbs:
    return programs(redact=RULES)


def clean(found: Any) -> Any:
    """Return a response whose text has no secret."""
    assert SECRET not in found.text, found.text
    assert CARD not in found.text, found.text
    return found


@pytest.fixture
def scene(client: Client, verbs: Verbs) -> None:
    """What `EXAMPLES` name, each with secrets: in data, result, message, notes, logged lines, bodies, operations, audit log."""
    client.config.set("keep-data", 1)
    queue, console = client.queues["q"], Console(client, "ada")
    for jid in ("runs", "done", "again", "bad"):
        queue.put("K", DATA, jid=jid, tags=["t"])
    for job in queue.pop(4):
        job.log(f"tried {CARD}", {"password": SECRET})
        lease = {"worker": job.worker_name, "jid": job.jid, "token": job.facts.token}
        if job.jid == "runs":
            verbs("report", **lease, progress=0.5, note=f"note {CARD}", lines=[f"line {CARD}"])
        elif job.jid == "done":
            verbs("complete", **lease, result=DATA)
        elif job.jid == "again":
            verbs("retry", **lease, group="g", message=f"retried {CARD}", data=DATA | {"n": 8})
        else:
            verbs("fail", **lease, group="g", message=f"no {CARD}")
    for jid in ("a", "b"):
        queue.put("K", DATA, jid=jid, tags=["t"])
    queue.put("K", DATA, jid="waits", depends=["a"])
    queue.recur("K", DATA, interval=3600, offset=60, jid="hourly")
    verbs(
        "topic_put", topic="help", messages=[{"id": "m", "body": DATA}, {"id": "text", "body": f"a {CARD}"}]
    )
    client.throttles["t"].maximum = 2
    for jid in ("a", "b", "bad"):
        verbs("track", jid=jid, on=True)
    verbs("log", jid="a", message=f"line {CARD}", data=DATA)
    verbs("pause", queues=["other"], why=f"because of {CARD}")
    verbs("audit", what="deploy", target="x", detail=json.dumps({"password": SECRET, "why": f"card {CARD}"}))
    spec = Spec(action="data", filter="state:failed", value=json.dumps(DATA))
    console.run_operation(console.start_operation(spec))
    console.edit("b", DATA | {"n": 9})


LOOKS: list[tuple[str, dict[str, Any]]] = [
    ("job_get", {"jids": ["runs", "done", "again", "bad", "a", "b", "waits"]}),
    *(("explain", {"jid": jid}) for jid in ("runs", "done", "again", "bad", "a", "waits")),
    *(
        ("scan", {"set": name, "name": owner, "wants": "dte"})
        for name, owner in (
            ("waiting", "q"), ("running", "q"), ("depends", "q"), ("failed", "q"), ("group", "g"), ("tagged", "t"), ("completed", ""), ("tracked", ""),
        )
    ),
    ("peek", {"queue": "q", "count": 9}),
    ("topic_get", {"topic": "help", "ids": ["m", "text"]}),
    ("audit_list", {"count": 100}),
    ("operations", {}),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.usefixtures("scene")
@pytest.mark.parametrize("user", ["vic", "oli"])
def test_no_verb_shows_what_is_masked_to_who_looks_or_operates(verbs: Verbs, user: str) -> None:
    hidden = 0
    for verb, body in LOOKS:
        found = clean(verbs.post(verb, user, **body))
        assert found.status_code == 200, (verb, found.text)
        hidden += MASKED in found.text
    assert hidden > 12
    [one] = verbs("operations", user)
    assert clean(verbs.post("operation_get", user, id=one["id"], count=9)).status_code == 200
    for verb in table():
        clean(verbs.post(verb, user, **EXAMPLES[verb]))


@pytest.mark.usefixtures("scene")
def test_an_operator_who_takes_jobs_gets_them_masked_and_a_worker_as_they_are(
    verbs: Verbs, client: Client
) -> None:
    [job] = clean(verbs.post("pop", "oli", worker="o", queues=["q"])).json()["result"]
    assert job["data"]["password"] == MASKED
    assert job["data"]["n"] in (7, 8)
    lease = {"jid": job["jid"], "token": job["token"]}
    [job] = clean(verbs.post("resume", "oli", worker="p", jobs=[{**lease, "worker": "o"}])).json()["result"]
    done = {"queues": ["q"], "jobs": [{**lease, "result": DATA}], "limit": 1}
    [second] = clean(verbs.post("complete_pop", "oli", worker="p", **done)).json()["result"]["jobs"]
    [ended] = clean(verbs.post("await", "oli", jids=[job["jid"]])).json()["result"]
    assert (ended["status"], ended["result"]["password"]) == ("done", MASKED)
    lease = {"jid": second["jid"], "token": second["token"]}
    verbs("fail", "oli", worker="p", **lease, group="h", message=f"no {CARD}")
    [ended] = clean(verbs.post("await", "oli", jids=[second["jid"]])).json()["result"]
    assert (ended["status"], ended["message"]) == ("failed", f"no {MASKED}")
    assert client.jobs.get(job["jid"])[0].result is not None  # type: ignore[union-attr]
    [ended] = verbs("await", "pam", jids=[job["jid"]])
    assert ended["result"] == DATA
    verbs("put", "pam", queue="y", klass="K", data=DATA)
    [job] = verbs("pop", "wes", worker="w", queues=["y"])
    assert job["data"] == DATA
    verbs("put", "pam", queue="z", klass="K", data=DATA)
    [job] = verbs(
        "pop", "ada", worker="w", queues=["z"]
    )  # as everybody of this machine is, without authentication
    assert job["data"] == DATA


def test_bodies_of_messages_are_masked_where_an_operator_takes_them(verbs: Verbs, client: Client) -> None:
    client.topics["plain"].put("text", f"a {CARD}")
    for at in range(4):
        client.topics["t"].put(f"m{at}", json.dumps(DATA))
    base = {"Authorization": "Bearer oli", "Sec-Fetch-Site": "same-origin"}
    found = clean(verbs.http.post("/reserve/plain", headers=base)).json()
    assert found["contents"] == f"a {MASKED}"
    found = clean(verbs.http.post("/pull/t", headers=base)).json()
    assert json.loads(found["contents"])["n"] == 7
    [message] = clean(verbs.post("topic_reserve", "oli", topic="t", ttr=9)).json()["result"]["messages"]
    assert json.loads(message["body"])["password"] == MASKED
    pulled = clean(verbs.post("topic_pull", "oli", topic="t")).json()["result"]
    message = pulled["messages"][0] if isinstance(pulled, dict) else pulled[0]
    assert json.loads(message["body"])["password"] == MASKED
    found = verbs.http.post("/reserve/t", headers={**base, "Authorization": "Bearer wes"}).json()
    assert json.loads(found["contents"]) == DATA


def test_new_data_of_an_action_is_not_in_the_audit_log(verbs: Verbs, client: Client) -> None:
    client.queues["q"].put("K", {}, jid="a")
    verbs.post("act", action="data", jobs=[["a", ""]], common="0" * 40 + json.dumps(DATA))
    line = verbs("audit_list")[0]
    assert (line["what"], line["target"], line["detail"]) == ("act", "a", '{"action":"data"}')


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        (f"card {CARD}", f"card {MASKED}"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"x": {"password": "s"}}', '{"x":{"password":"' + MASKED + '"}}'),
        ('{"value": "{\\"password\\": \\"s\\"}"}', '{"value":"{\\"password\\":\\"' + MASKED + '\\"}"}'),
        ('{"password": "cut', MASKED),
        (f"[{CARD}]", f'["{MASKED}"]'),
    ],
)
def test_json_in_texts_is_masked_as_data_is(text: str, shown: str) -> None:
    assert Mask(RULES).json_text(text) == shown
    assert Mask([]).json_text(text) == text


@pytest.mark.parametrize(
    ("role", "looks", "works"),
    [
        ("viewer", False, False),
        ("operator", False, False),
        ("producer", True, True),
        ("worker", True, True),
        ("admin", False, True),
    ],
)
def test_who_gets_data_without_masks(role: Any, looks: bool, works: bool) -> None:
    user = User("a", role)
    assert (user.sees_data(is_read=True), user.sees_data(is_read=False)) == (looks, works)
