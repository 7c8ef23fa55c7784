"""A user with limits neither touches nor sees what another tenant of the namespace has: by no verb, page, action and field, over HTTP."""

import json
from collections.abc import Iterator
from typing import Any, get_args

import httpx
import pytest
from callers import Verbs, served, tokens
from test_gateway_verbs import EXAMPLES, put_flow

from holdfast import Client
from holdfast.commands.operations import Action
from holdfast.settings import OWN_THROTTLE
from holdfast.web import create_app
from holdfast.web.gateway.verbs import verbs as table
from holdfast.web.pages import TABLE
from holdfast.web.reach import ACTIONS, IN_PLACE, PAGES, VERBS, Reach, reach_of
from holdfast.web.users import User

CANARY = "canary"
"""In every name and text of the other tenant."""
QUEUE, JID, PARENT, CHILD, HOURLY = (f"{CANARY}-{one}" for one in ("q", "job", "parent", "child", "r"))
WORKER, TOPIC, THROTTLE, FLOW = (f"{CANARY}-{one}" for one in ("w", "topic", "throttle", "flow"))
LINES = {
    "ada": "admin",
    **{
        role: f"{role}::queues=q,other,none;topics=help;throttles=t"
        for role in ("viewer", "producer", "worker", "operator", "admin")
    },
}
NAMES: dict[str, str] = {
    **dict.fromkeys(("queue", "queues", "next_queue"), QUEUE),
    **dict.fromkeys(("topic", "topics"), TOPIC),
    **dict.fromkeys(("jid", "jids", "depends", "parents"), JID),
    **dict.fromkeys(("flow", "flows"), FLOW),
    "throttles": THROTTLE,
}
"""What stands in place of the user's own things, by the field that names one."""
WORDS = {*NAMES, "worker", "workers", "jobs", "follow", "held"}
"""All names of fields that name something; `held` are messages of the topic beside it."""


def test_the_table_has_every_verb_page_and_action() -> None:
    assert set(VERBS) == set(table())
    assert set(PAGES) == {view.path for view in TABLE.views}
    assert set(ACTIONS) == {"/".join(one) for one in TABLE.actions}
    assert {*IN_PLACE, "retry", "fail", "move", "move-back"} == set(get_args(Action))


def fields(reach: Reach) -> set[str]:
    parts = (
        reach.queues,
        reach.topics,
        reach.throttles,
        reach.workers,
        reach.jobs,
        reach.recurring,
        reach.flows,
    )
    return {name for part in parts for name in part}


@pytest.mark.parametrize("verb", sorted(name for name, reach in VERBS.items() if not reach.is_whole))
def test_the_table_knows_each_field_that_names_something(verb: str) -> None:
    known = set(table()[verb].request.__struct_fields__)
    assert fields(VERBS[verb]) <= known
    read_by_code = {"follow", "jobs"} if VERBS[verb].more else set()
    assert (known & WORDS) - {"held"} <= fields(VERBS[verb]) | read_by_code


@pytest.fixture
def shared(client: Client) -> Client:
    """What `EXAMPLES` name, which is the user's, and a job, a template, a topic, a worker and throttles of another tenant."""
    mine, other = client.queues["q"], client.queues[QUEUE]
    mine.put("K", {}, jid="runs")
    mine.pop()
    for jid in ("a", "b"):
        mine.put("K", {"n": 1}, jid=jid, tags=["t"], throttles=["t"])
    mine.recur("K", {}, interval=3600, offset=60, jid="hourly")
    mine.put("K", {}, jid="bad", priority=9)
    client.topics["help"].put("m", "body", delay=60)
    client.throttles["t"].maximum = 1
    other.put("K", {CANARY: 1}, jid=PARENT, throttles=["t"], tags=["t"])
    job = other.pop()
    assert job is not None  # it holds the only slot of a throttle that both use
    mine.put("K", {}, jid="waits", depends=["a", PARENT])
    for jid, more in ((JID, {}), (CHILD, {"depends": ["a"]})):
        other.put("K", {CANARY: 1}, jid=jid, tags=["t"], throttles=[THROTTLE], **more)
    other.recur("K", {CANARY: 1}, interval=3600, offset=60, jid=HOURLY)
    client.topics[TOPIC].put("m", CANARY, delay=60)
    client.throttles[THROTTLE].maximum = 1
    client.throttles[OWN_THROTTLE + QUEUE].maximum = 5
    failed = mine.pop()
    assert failed is not None
    failed.fail("g", "no luck")
    put_flow(client, "f", "q")
    put_flow(client, FLOW, QUEUE)
    return client


@pytest.fixture
def verbs(shared: Client) -> Iterator[Verbs]:
    """Callers of a real server, with a worker of the other tenant."""
    with served(create_app(shared, auth=tokens(LINES))) as address, httpx.Client(timeout=30) as http:
        found = Verbs(http, address)
        found("worker_seen", worker=WORKER, facts={"host": CANARY, "queues": json.dumps([QUEUE])})
        yield found


def of_the_other(verbs: Verbs) -> Any:
    """What the other tenant has, without what changes by itself."""
    jobs = verbs("job_get", jids=[PARENT, JID, CHILD])
    return (
        [{name: one for name, one in job.items() if name != "dependencies"} for job in jobs],
        [verbs("list", set=state, name=QUEUE) for state in ("running", "waiting", "depends", "failed")],
        verbs("recur_get", jids=[HOURLY]),
        verbs("topic_get", topic=TOPIC, ids=["m"]),
        [verbs("throttle_get", name=name) for name in (THROTTLE, OWN_THROTTLE + QUEUE)],
        verbs("queue_get", queue=QUEUE),
        [(one["name"], one["facts"], one["quiet"]) for one in verbs("workers") if CANARY in one["name"]],
        verbs("flow_states", flow=FLOW),
        verbs("settings"),
    )


@pytest.mark.full
def test_what_verbs_return_of_the_users_own_has_nothing_of_others(verbs: Verbs) -> None:
    before = of_the_other(verbs)
    for verb, body in EXAMPLES.items():
        for role in ("viewer", "operator", "admin"):
            found = verbs.post(verb, role, **body)
            assert CANARY not in found.text, (verb, role)
            may = all(User(role, role).may_call(one) for one in table()[verb].functions)
            is_refused = VERBS[verb].is_whole or not may
            assert (found.status_code == 403) is is_refused, (verb, role, found.text)
    assert of_the_other(verbs) == before


def swapped(body: dict[str, Any], jid: str = JID) -> Iterator[dict[str, Any]]:
    """Yield a request with each of the names in it, one after the other, replaced by one of the other tenant."""
    for field, value in body.items():
        if field in NAMES:
            name = jid if NAMES[field] == JID else NAMES[field]
            yield {**body, field: [*value, name] if isinstance(value, list) else name}
        if field in ("jobs", "follow"):
            for at, one in enumerate(value):
                if "queue" in one and field == "jobs":
                    for changed in (*swapped({"queue": "q"}), {"parents": [{"jid": JID}]}):
                        yield {**body, field: [*value[:at], {**one, **changed}]}
                    continue
                inside = [[JID, *one[1:]]] if isinstance(one, list) else [{**one, "jid": JID}, *swapped(one)]
                for changed in inside:
                    yield {**body, field: [*value[:at], changed, *value[at + 1 :]]}


OPTIONAL: dict[str, dict[str, Any]] = {
    "put": {"jid": "new", "throttles": [], "depends": []},
    "move": {"throttles": [], "depends": []},
    "recur": {"throttles": []},
    "recur_update": {"queue": "q", "throttles": []},
    "complete_x": {"next_queue": "q", "depends": []},
    "counts": {"queues": []},
}
MORE: list[tuple[str, dict[str, Any]]] = [
    *(("put", {"queue": "q", "klass": "K", "jid": JID, "data": {CANARY: 1}, "mode": mode}) for mode in ("only", "old", "move")),
    ("put", {"queue": "q", "klass": "K", "throttles": [OWN_THROTTLE + QUEUE]}),
    ("put", {"queue": "q", "klass": "K", "jobs": [{}, {"throttles": [THROTTLE]}]}),
    ("put", {"queue": "q", "klass": "K", "jobs": [{}, {"jid": JID, "mode": "only"}]}),
    ("complete_x", {"worker": "w", "jid": "runs", "token": 1, "follow": [{"queue": "q", "klass": "K", "throttles": [THROTTLE]}]}),
    *(
        ("act", {"action": action, "jobs": [["a", value]], "common": common})
        for action in ("retry", "fail", "move", "move-back")
        for value, common in ((QUEUE, ""), (f"1 1 {QUEUE}", ""), ("", QUEUE), ("", f"1 1 {QUEUE}"), ("1 1 q", f"9 0 {QUEUE}"))
    ),
    *((verb, {"set": name, "name": QUEUE}) for verb in ("list", "scan") for name in ("waiting", "failed", "depends")),
    *((verb, {"set": "holders", "name": name}) for verb in ("list", "scan") for name in ("t", THROTTLE)),
    *((verb, {"set": "tagged", "name": "t"}) for verb in ("list", "scan")),
    ("list", {"set": "queued", "name": TOPIC}),
    *((verb, {"name": name, **more}) for verb, more in (("throttle_get", {}), ("throttle_set", {"maximum": 9}), ("throttle_delete", {}), ("throttle_release", {"jids": []})) for name in (THROTTLE, OWN_THROTTLE + QUEUE)),
    ("throttle_release", {"name": "t", "jids": [PARENT]}),
    ("worker_seen", {"worker": "w", "facts": {"queues": json.dumps([QUEUE])}}),
    ("worker_seen", {"worker": "w", "facts": {"queues": QUEUE}}),
    ("worker_jobs", {"worker": WORKER}),
    ("pop", {"worker": "w", "queues": []}),
    ("flow_put", {"flow": "new", "jobs": [{"queue": QUEUE, "klass": "K"}]}),
    ("flow_put", {"flow": "new", "jobs": [{"queue": "q", "klass": "K", "throttles": [THROTTLE]}]}),
    ("topic_counts", {"topics": []}),
    ("worker_forget", {"workers": [WORKER]}),
    ("worker_quiet", {"worker": WORKER}),
    *((f"recur_{verb}", {"jid": HOURLY, **more}) for verb, more in (("pause", {}), ("run", {}), ("update", {"priority": 3}), ("tag", {"mode": "add", "tags": ["x"]}))),
    ("recur", {"queue": "q", "klass": "K", "interval": 60, "jid": HOURLY}),
    *((f"recur_{verb}", {"jids": [HOURLY]}) for verb in ("get", "cancel")),
]  # fmt: skip
"""Requests for what is of the other tenant, beside those that are made of `EXAMPLES`."""


@pytest.mark.full
def test_a_request_that_names_anything_of_others_is_refused(verbs: Verbs) -> None:
    before, tried = of_the_other(verbs), 0
    made = [
        (verb, body)
        for verb, example in EXAMPLES.items()
        for body in swapped({**OPTIONAL.get(verb, {}), **example}, HOURLY if "recur" in verb else JID)
    ]
    for verb, body in (*made, *MORE):
        found = verbs.post(verb, "admin", **body)
        # Whose the result of a job was that is gone is not known.
        assert found.status_code == (404 if verb == "await" else 403), (verb, body, found.text)
        tried += 1
    assert tried > 100
    assert of_the_other(verbs) == before


def test_a_worker_of_a_limited_user_has_a_name_of_its_own(verbs: Verbs, shared: Client) -> None:
    before = of_the_other(verbs)
    assert verbs("worker_seen", "worker", worker=WORKER, facts={"host": "mine"}) is False
    shared.queues["other"].put("K", {}, jid="mine")
    [job] = verbs("pop", "worker", worker=WORKER, queues=["other"])
    assert job["worker"] == f"worker:{WORKER}"
    lease = {"jid": job["jid"], "token": job["token"]}
    assert verbs(
        "heartbeat", "worker", worker=WORKER, **lease
    )  # the name as it was given, and as it came back
    assert verbs("report", "worker", worker=job["worker"], **lease, progress=0.5) is True
    [again] = verbs("resume", "worker", worker="second", jobs=[{**lease, "worker": WORKER}])
    assert again["worker"] == "worker:second"
    assert verbs("complete", "worker", worker="second", **lease) == "complete"
    assert of_the_other(verbs)[:6] == before[:6]
    names = {one["name"]: one["facts"] for one in verbs("workers")}
    assert names[WORKER] == {"host": CANARY, "queues": json.dumps([QUEUE])}
    assert names[f"worker:{WORKER}"] == {"host": "mine"}


def test_the_error_of_a_cancel_does_not_name_jobs_of_others(verbs: Verbs) -> None:
    for found in (
        verbs.post("cancel", "operator", jids=["a"]),
        verbs.post("act", "operator", action="cancel", jobs=[["a", ""]]),
    ):
        assert "depend on this one" in found.text
        assert CANARY not in found.text


def test_an_explanation_shows_own_holders_and_parents_only(verbs: Verbs) -> None:
    assert [row[0] for row in verbs("explain", jid="waits")["parents"]] == ["a", PARENT]
    assert [row[0] for row in verbs("explain", "viewer", jid="waits")["parents"]] == ["a"]
    assert PARENT in json.dumps(verbs("explain", jid="a")["throttles"])
    assert verbs("explain", "viewer", jid="a")["throttles"][0][0] == "t"
    assert set(verbs("dependents", jid="a")["jids"]) == {"waits", CHILD}
    assert verbs("dependents", "viewer", jid="a")["jids"] == ["waits"]


@pytest.mark.full
def test_no_page_twin_action_or_stream_is_open_to_a_limited_user(verbs: Verbs) -> None:
    before = of_the_other(verbs)
    base = verbs._base.removesuffix("/v1/")
    places = ["/live", "/live?once=1", "/api/v1/openapi.json"]
    for view in TABLE.views:
        places += [path.replace("{name}", "q") for path in (view.path, f"/api/v1{view.twin}")]
    sent = {"Authorization": "Bearer admin", "Sec-Fetch-Site": "same-origin"}
    for place in places:
        found = verbs.http.get(base + place, headers=sent)
        assert (found.status_code, CANARY in found.text) == (403, False), place
    for noun, verb in TABLE.actions:
        for found in (
            verbs.http.post(f"{base}/api/v1/{noun}/{verb}", headers=sent, json={"name": QUEUE, "jid": [JID]}),
            verbs.http.post(f"{base}/act/{noun}/{verb}", headers=sent, data={"name": "q", "jid": "a"}),
        ):
            assert (found.status_code, CANARY in found.text) == (403, False), (noun, verb)
    assert of_the_other(verbs) == before


@pytest.mark.parametrize(
    ("user", "name", "may"),
    [
        (User("a"), "any", True),
        (User("a", queues=("mail-*",)), OWN_THROTTLE + "mail-7", True),
        (User("a", queues=("mail-*",)), OWN_THROTTLE + "shop", False),
        (User("a", queues=("mail-*",)), "mail-7", False),
        (User("a", queues=("mail-*",), throttles=("smtp*",)), "smtp-1", True),
        (User("a", queues=("mail-*",), throttles=("*",)), OWN_THROTTLE + "shop", False),
        (User("a", topics=("help",)), "smtp", False),
    ],
)
def test_throttles_belong_to_a_user_by_its_queues_or_by_name(user: User, name: str, may: bool) -> None:
    assert user.may_use_throttle(name) is may


def test_what_is_not_in_the_table_is_refused() -> None:
    assert reach_of("a verb of tomorrow").is_whole
