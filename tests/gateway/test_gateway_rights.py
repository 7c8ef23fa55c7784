"""Who may call what: roles, limits to queues, topics and namespaces, and what tokens of programs do not open."""

from collections.abc import Callable
from typing import Any, get_args

import pytest
from callers import TOKENS, Verbs
from test_gateway_verbs import EXAMPLES

from holdfast import Client, UsageError
from holdfast.console.access import OF_ADMINS, ROLES
from holdfast.testing.store import ScratchStore
from holdfast.web.credentials import parsed_users
from holdfast.web.gateway.verbs import verbs as table
from holdfast.web.users import BY_NAME, Role, User

PRODUCER = {
    "put",
    "flow_put",
    "flow_get",
    "flow_states",
    "recur",
    "recur_get",
    "topic_put",
    "topic_delete",
    "topic_get",
    "await",
    "job_get",
    "cancel",
    "dependents",
    "info",
}
WORKER = {
    "pop", "complete", "complete_pop", "complete_x", "advance", "retry", "fail", "release", "heartbeat", "resume", "report", "log",
    "queues", "patterns", "job_get", "worker_seen", "worker_forget", "sweep", "topic_reserve", "topic_pull", "topic_release",
    "topic_requeue", "topic_counts", "put", "flow_put", "flow_get", "flow_states", "recur", "recur_get", "topic_put", "await", "info",
}  # fmt: skip
READS = {name for name, verb in table().items() if verb.reads} | {"info"}


@pytest.mark.full
@pytest.mark.parametrize(
    ("user", "allowed"),
    [
        ("vic", READS),
        ("pam", PRODUCER),
        ("wes", WORKER),
        ("oli", set(table()) - OF_ADMINS),
        ("ada", set(table())),
    ],
)
def test_a_role_may_call_its_verbs_and_no_others(verbs: Verbs, user: str, allowed: set[str]) -> None:
    status = {name: verbs.post(name, user, **EXAMPLES[name]).status_code for name in table()}
    assert {name for name, found in status.items() if found != 403} == allowed
    assert 500 not in status.values()


def test_roles_have_one_home() -> None:
    assert set(BY_NAME) == set(get_args(Role)) == {*ROLES, "admin"}


@pytest.mark.full
@pytest.mark.parametrize("user", ["pam", "wes", "lea", "len", "lou", "nia"])
def test_a_token_of_a_program_or_with_limits_opens_no_page(verbs: Verbs, user: str) -> None:
    sent = {"Authorization": f"Bearer {user}", "Sec-Fetch-Site": "same-origin"}
    for place in ("/", "/queues", "/api/v1/queues", "/api/v1/openapi.json", "/live?once=1"):
        assert verbs.http.get(place, headers=sent).status_code == 403, place
    assert verbs.http.post("/api/v1/queues/pause", json={"name": ["q"]}, headers=sent).status_code == 403
    found = verbs.http.post("/login", data={"token": user}, headers={"Sec-Fetch-Site": "same-origin"})
    assert (found.status_code, "set-cookie" in found.headers) == (401, False)


@pytest.mark.parametrize("how", ["", "keep", "raise", "replace", "cancel", "own keep"])
def test_a_key_of_another_queue_shows_and_changes_nothing_of_it(
    verbs: Verbs, client: Client, how: str
) -> None:
    client.queues["secret"].put("K", {"n": 1}, unique_key="a", jid="hidden")
    mine = client.queues["mail"].put("K", unique_key="b")
    one = {"klass": "K", "unique_key": "a", "data": {"n": 2}, **({"on_conflict": how} if how else {})}
    for body in ({"queue": "mail", **one}, {"queue": "mail", "jobs": [one, one]}):
        found = verbs.post("put", "leo", **body)
        assert "hidden" not in found.text
        if how != "own keep":
            assert "HF_NOT_UNIQUE" in found.text
    job = client.jobs["hidden"]
    assert job is not None
    assert (job.data, job.state) == ('{"n":1}', "waiting")
    assert verbs.post("put", "leo", queue="mail", klass="K", unique_key="b").json()["result"] == mine


def test_who_has_the_key_of_a_job_is_shown_if_that_is_the_user_s(verbs: Verbs, client: Client) -> None:
    client.queues["mail"].put("K", unique_key="a", jid="mine")
    for queue, holder in (("secret", "hidden"), ("mail", "shown")):
        for job in client.queues["mail"].pop(5):
            job.fail("g", "m")
        client.jobs.cancel("hidden")
        client.queues[queue].put("K", unique_key="a", jid=holder)
        found = verbs.post("explain", "len", jid="mine")
        assert (holder in found.text) == (holder == "shown"), found.text


@pytest.fixture
def shop(client: Client) -> Client:
    """Jobs, templates and topics of `mail`, which limited users may use, and of `secret`."""
    for name in ("mail", "secret"):
        queue = client.queues[name]
        queue.put("K", {}, jid=f"{name}-1")
        queue.put("K", {}, jid=f"{name}-2")
        queue.recur("K", {}, interval=3600, offset=60, jid=f"{name}-r")
    client.topics["help"].put("m", "x", delay=60)
    client.topics["secret"].put("m", "x", delay=60)
    return client


REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("leo", "put", {"queue": "secret", "klass": "K"}),
    ("leo", "put", {"queue": "mail", "klass": "K", "jobs": [{}, {"jid": "secret-1"}]}),
    ("leo", "put", {"queue": "mail", "klass": "K", "jid": "secret-1"}),
    ("leo", "put", {"queue": "mail", "klass": "K", "jid": "secret-1", "mode": "old"}),
    ("leo", "put", {"queue": "mail", "klass": "K", "depends": ["secret-1"]}),
    ("leo", "recur", {"queue": "secret", "klass": "K", "interval": 60}),
    ("leo", "recur", {"queue": "mail", "klass": "K", "interval": 60, "jid": "secret-r"}),
    ("leo", "recur_get", {"jids": ["mail-r", "secret-r"]}),
    ("leo", "cancel", {"jids": ["mail-1", "secret-1"]}),
    ("leo", "job_get", {"jids": ["secret-1"]}),
    ("leo", "await", {"jids": ["secret-1"], "wait": 1}),
    ("leo", "dependents", {"jid": "secret-1"}),
    ("leo", "topic_put", {"topic": "secret", "messages": []}),
    ("leo", "topic_put", {"topic": "help", "messages": []}),
    ("lea", "pop", {"worker": "w", "queues": ["mail", "secret"]}),
    ("lea", "complete_pop", {"worker": "w", "queues": ["secret"], "jobs": []}),
    ("lea", "complete_pop", {"worker": "w", "queues": ["mail"], "jobs": [{"jid": "secret-1", "token": 1}]}),
    ("lea", "complete", {"worker": "w", "jid": "secret-1", "token": 1}),
    ("lea", "complete", {"worker": "w", "jobs": [{"jid": "secret-1", "token": 1}]}),
    ("lea", "heartbeat", {"worker": "w", "jid": "secret-1", "token": 1}),
    ("lea", "release", {"jobs": [{"jid": "secret-1", "token": 1, "worker": "w"}], "how": "preempted"}),
    (
        "lea",
        "complete_x",
        {"worker": "w", "jid": "mail-1", "token": 1, "follow": [{"queue": "secret", "klass": "K"}]},
    ),
    ("lea", "complete_x", {"worker": "w", "jid": "mail-1", "token": 1, "next_queue": "secret"}),
    ("lea", "advance", {"worker": "w", "jid": "mail-1", "token": 1, "next_queue": "secret"}),
    ("lea", "log", {"jid": "secret-1", "message": "x"}),
    ("lea", "topic_reserve", {"topic": "secret", "ttr": 5}),
    ("lea", "topic_counts", {"topics": ["help", "secret"]}),
    ("lea", "worker_forget", {"workers": ["v"]}),
    ("lea", "sweep", {}),
    ("lea", "patterns", {}),
    ("len", "peek", {"queue": "secret"}),
    ("len", "list", {"set": "waiting", "name": "secret"}),
    ("len", "list", {"set": "completed"}),
    ("len", "list", {"set": "queued", "name": "help"}),
    ("len", "scan", {"set": "tagged", "name": "t"}),
    ("len", "failed", {"group": "g"}),
    ("len", "workers", {}),
    ("len", "worker_jobs", {"worker": "w"}),
    ("len", "audit_list", {}),
    ("len", "config_get", {}),
    ("len", "tracked", {}),
    ("len", "jobs_complete", {}),
    ("len", "counts", {"queues": ["mail", "secret"]}),
    ("lou", "act", {"action": "cancel", "jobs": [["secret-1", ""]]}),
    ("lou", "act", {"action": "move", "jobs": [["mail-1", ""]], "common": "secret"}),
    ("lou", "act", {"action": "retry", "jobs": [["mail-1", "secret"]]}),
    ("lou", "move", {"queue": "mail", "jid": "secret-1"}),
    ("lou", "move", {"queue": "secret", "jid": "mail-1"}),
    ("lou", "pause", {"queues": ["mail", "secret"]}),
    ("lou", "unfail", {"queue": "mail", "group": "g"}),
    ("lou", "throttle_release", {"name": "t", "jids": ["mail-1"]}),
    ("lou", "recur_update", {"jid": "mail-r", "queue": "secret"}),
    ("lou", "depend", {"jid": "mail-1", "parents": ["secret-1"]}),
]


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize(("user", "verb", "fields"), REFUSED)
def test_a_limited_token_is_refused_what_is_not_of_its_queues(
    verbs: Verbs, user: str, verb: str, fields: dict[str, Any]
) -> None:
    status, title = verbs.refused(verb, user, **fields)
    assert (status, "is limited to some queues or topics" in title) == (403, True)
    states = [job["state"] for job in verbs("job_get", jids=["secret-1", "secret-2", "mail-1", "mail-2"])]
    assert states == ["waiting"] * 4


@pytest.mark.usefixtures("shop")
def test_a_limited_token_does_its_work_in_its_own_queues(verbs: Verbs) -> None:
    assert verbs("queues", "lea") == ["mail"]
    assert [row["name"] for row in verbs("counts", "len")] == ["mail"]
    assert verbs("list", "len", set="waiting", name="mail")["entries"][0]["member"] == "mail-1"
    assert verbs("job_get", "leo", jids=["mail-1", "none"])[1] is None
    assert verbs("put", "leo", queue="image-9", klass="K", jid="new")
    assert verbs("recur_get", "leo", jids=["mail-r"])[0]["queue"] == "mail"
    [job] = verbs("pop", "lea", worker="w", queues=["mail"])
    lease = {"worker": "w", "jid": job["jid"], "token": job["token"]}
    assert verbs("heartbeat", "lea", **lease)
    assert verbs("complete", "lea", **lease) == "complete"
    assert verbs("topic_counts", "lea", topics=["help"])[0]["queued"] == 1
    assert verbs("act", "lou", action="priority", common="3", jobs=[["mail-2", ""]]) == [True]


@pytest.mark.usefixtures("shop")
def test_the_result_of_a_job_that_is_gone_is_not_shown_to_a_limited_token(verbs: Verbs) -> None:
    assert verbs.refused("await", "leo", jids=["was-secret"])[0] == 404


def test_the_lease_of_another_worker_cannot_be_used(verbs: Verbs) -> None:
    jid = verbs("put", queue="mail", klass="K")
    [job] = verbs("pop", worker="mine", queues=["mail"])
    for verb, more in (
        ("complete", {}),
        ("heartbeat", {}),
        ("fail", {"group": "g"}),
        ("retry", {}),
        ("advance", {"next_queue": "x"}),
    ):
        assert verbs.refused(verb, "wes", worker="other", jid=jid, token=job["token"], **more)[0] == 409
    assert (
        verbs("release", "wes", jobs=[{"jid": jid, "token": job["token"], "worker": "other"}], how="crashed")
        == 0
    )
    assert verbs("job_get", jids=[jid])[0]["state"] == "running"


def test_namespaces_are_those_of_the_token_or_of_the_application(
    programs: Callable[..., Verbs], client: Client, store: ScratchStore, namespace: str
) -> None:
    second = namespace + "-2"
    verbs = programs(namespaces=[second])
    there = {"Holdfast-Namespace": second}
    verbs("put", headers=there, queue="over-there", klass="K")
    verbs("put", headers={"Holdfast-Namespace": namespace}, queue="here", klass="K")
    assert (verbs("queues", headers=there), verbs("queues")) == (["over-there"], ["here"])
    assert Client(store.url, namespace=second).queues.names == ["over-there"]
    for name in ("test-third", "", "a b", "ql", second.upper()):
        status, _ = (200, "") if not name else verbs.refused("queues", headers={"Holdfast-Namespace": name})
        assert status == (403 if name else 200)
    assert verbs.refused("queues", "nia", headers=there)[0] == 403
    assert verbs.refused("queues", "nia", headers={"Holdfast-Namespace": namespace})[0] == 403
    assert (
        verbs("queues", "nia") == verbs("queues", "nia", headers={"Holdfast-Namespace": "test-other"}) == []
    )


def test_a_line_of_the_users_file_has_a_date_and_limits() -> None:
    digest = "sha256$" + "0" * 64
    found = parsed_users(
        f"a:worker:{digest}:2999-01-31:queues=mail, image-*;namespaces=shop,b\n"
        f"b:producer:{digest}::topics=help\n"
        f"c:admin:{digest}:2999-01-31T10:30:00+02:00\n"
        f"d:worker:{digest}:2999-01-31T10:30:00+02:00:queues=a:b\n"
        f"e:viewer:{digest}\n",
        "users",
    )
    assert found["a"].user == User("a", "worker", ("mail", "image-*"), (), ("shop", "b"))
    assert found["b"].user == User("b", "producer", (), ("help",))
    assert (found["c"].user.is_limited, found["c"].ends > 3e10) == (False, True)
    assert found["d"].user.queues == ("a:b",)
    assert found["e"].ends == 0
    for wrong in ("queue=mail", "queues=", "namespaces=a b", "mail", "queues=a;;x=y"):
        with pytest.raises(UsageError, match=r"users: line 1|namespace"):
            parsed_users(f"a:worker:{digest}::{wrong}", "users")


def test_what_is_limited_to_queues_may_use_no_topics_and_the_other_way_round() -> None:
    queues, topics, all_of_it = User("a", "worker", ("mail*",)), User("b", "worker", (), ("t",)), User("c")
    assert [queues.may_use_queue("mailbox"), queues.may_use_queue("amail"), queues.may_use_topic("mail")] == [
        True,
        False,
        False,
    ]
    assert [topics.may_use_topic("t"), topics.may_use_queue("t")] == [True, False]
    assert [all_of_it.may_use_queue("x"), all_of_it.may_use_topic("x")] == [True, True]


def test_the_users_of_these_tests_are_of_all_roles() -> None:
    assert {line.partition(":")[0] for line in TOKENS.values()} == set(BY_NAME)
