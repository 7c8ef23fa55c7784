"""The rules of docs/guide/security.md on real stores: each user can do its work, and nothing else."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from command_line import holdfast
from holdfast import Client, StoreUnsupported, group
from holdfast.commands.leases import Pop
from holdfast.commands.operations import Act, Audited, OperationGet, Operations, OperationSet, Progress, Scan
from holdfast.commands.queues import Pause
from holdfast.console.access import ROLES
from holdfast.core.library import library
from holdfast.testing.store import Engine, ScratchStore, find_engine
from holdfast.wire.meeting import READS, WRITES
from waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "security.md").read_text(encoding="utf-8")
LOAD, RULES, LOGIN = (
    block
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    if "redis-cli" in block
)
CONNECT = {"info", "ping", "subscribe", "unsubscribe"}
ANYBODY = {"auth", "hello", "quit", "reset"}
"""Commands that every store grants to everyone."""
ROOT = "hf:{shop}:"
BEFORE = ("hget", "hmget", "time", "hgetall", "exists")
"""The commands that the core needs before it can report a missing right."""

REDIS_CLI = f"""#!{sys.executable}
import os, shlex, sys
from holdfast.store import resp
words = sys.argv[1:]
if words[:1] == ["-x"]:
    words = [*words[1:], sys.stdin.read()]
for call in [words] if words else map(shlex.split, sys.stdin.read().splitlines()):
    print(resp.call(os.environ["SOCKET"], *call, timeout=30.0))
"""

TASKS = """
import os, pathlib, threading
import holdfast

app = holdfast.Client(namespace="shop")

@app.job(queue="mail-fast", retries=2)
def add(a: int, b: int = 1) -> int:
    return a + b

@app.job(queue="mail-fast")
def parent() -> str:
    job = holdfast.current_job()
    job.progress(0.5, "half")
    job.log("putting")
    return add.put(5).jid

@app.job(queue="mail-fast")
def pages(numbers: holdfast.Results[int]) -> int:
    return sum(numbers)

@app.job(queue="mail-fast")
def nested(number: int) -> holdfast.Call[int]:
    return add.call(number).then(add)

@app.job(queue="mail-fast")
def block() -> None:
    while not pathlib.Path("gate").exists():
        threading.Event().wait(0.01)

@app.job(queue="mail-fast")
def wrong() -> None:
    raise ValueError("on purpose")

class Parcel:
    @staticmethod
    def perform(job):
        job["weight"] = 12
        job.heartbeat()
        job.complete("mail-next") if job.queue_name == "mail-fast" else job.complete()
"""


class Guarded:
    """A store with the rules of the page: only the administrator has all rights."""

    def __init__(self, store: ScratchStore, directory: Path) -> None:
        self.store = store
        tool = directory / "redis-cli"
        (directory / "redis_cli.py").write_text(REDIS_CLI)
        # The path of the interpreter may have spaces, which the first line of a script may not.
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{directory}/redis_cli.py" "$@"\n')
        tool.chmod(0o755)
        self._path = f"{directory}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        for block in (LOAD, RULES, LOGIN):
            self._run(block)
        self.admin = redis.Redis(port=store.port, username="admin", password="admin-secret")

    def _run(self, block: str) -> None:
        passwords = {f"{role.upper()}_PASSWORD": f"{role}-secret" for role in (*ROLES, "admin")}
        environment = os.environ | passwords | {"SOCKET": str(self.store.socket_path), "PATH": self._path}
        subprocess.run(["sh", "-euc", block], env=environment, check=True, timeout=60)

    def url(self, user: str) -> str:
        return self.store.tcp_url.replace("://", f"://{user}:{user}-secret@")

    def client(self, user: str, namespace: str = "shop", **options: Any) -> Client:
        return Client(self.url(user), namespace=namespace, deadline=30.0, **options)

    def direct(self, user: str) -> redis.Redis:
        return redis.Redis(port=self.store.port, username=user, password=f"{user}-secret")

    def refusals(self) -> set[str]:
        """Return the commands refused to any user since the last call, without the driver's own `client setinfo`."""
        found = {entry["object"] for entry in self.admin.acl_log()}
        self.admin.acl_log_reset()
        return found - {"client|setinfo"}


@pytest.fixture(scope="module", params=["valkey", "redis"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    engine: Engine = request.param
    if find_engine(engine) is None:
        pytest.skip(f"{engine}-server is not installed")
    with ScratchStore(engine, tcp=True) as store:
        made = Guarded(store, tmp_path_factory.mktemp("tools"))
        for namespace in ("shop", "other"):
            with made.client("admin", namespace) as client:
                client.queues["mail"].put("K", {"secret": 1})
        yield made
        made.admin.close()


@pytest.fixture
def users(guarded: Guarded) -> Iterator[dict[str, Client]]:
    """A client of each user, on queues that are empty."""
    made = {role: guarded.client(role) for role in ROLES}
    operator = made["operator"]
    for counts in operator.queues.counts:
        queue = operator.queues[counts["name"]]
        operator.bulk_cancel([job.jid for job in queue.peek(count=100)])
    guarded.refusals()
    yield made
    for client in made.values():
        client.close()


@pytest.mark.full
def test_a_producer_puts_waits_and_cancels(guarded, users):
    producer, operator = users["producer"], users["operator"]
    mail = producer.queues["mail"]
    jid = mail.put("letters.Letter", {"to": "ada"}, priority=5)
    many = mail.put_many([("letters.Letter", {"to": n}) for n in range(3)])
    after = mail.put("letters.Letter", {}, depends=[jid], tags=["x"], delay=10, retries=3)
    mail.recur("letters.Letter", {}, interval=3600, offset=3600)
    producer.topics["orders"].put("o-1", {"n": 1}, delay=60)
    operator.queues["mail"].pop().complete()
    assert producer.wait_for(jid, 30).status == "done"
    assert producer.jobs[many[0]].cancel()
    producer.bulk_cancel(many[1:])
    producer.jobs[after].cancel()

    @producer.job(name="letters.count", queue="mail")
    def count(number: int) -> int:
        return number

    for calls in (2, 513):
        flow = producer.put(group(count.call(number) for number in range(calls)))
        assert flow.state == "running"
        assert producer.flow(flow.jid).cancel() >= calls
    assert guarded.refusals() == set()


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio"])
def test_a_worker_does_its_work(guarded, users, tmp_path, monkeypatch, pool):
    (tmp_path / "tasks.py").write_text(TASKS)
    monkeypatch.setenv("HOLDFAST_URL", guarded.url("producer"))
    monkeypatch.syspath_prepend(str(tmp_path))
    operator = users["operator"]
    operator.config["mail-fast-heartbeat"] = 3
    command = [sys.executable, "-m", "holdfast.cli.main", "worker", "--url", guarded.url("worker")]
    flags = ["--namespace", "shop", "-q", "mail*", "--import", "tasks", "-w", "1", "--pool", pool]
    worker = subprocess.Popen([*command, *flags], cwd=tmp_path)
    try:
        tasks = __import__("tasks")
        assert tasks.add.put(1).result(60) == 2
        # It is idle now, and is woken up by the next.
        assert operator.wait_for(tasks.parent.put().result(60), 60).status == "done"
        large = group(tasks.add.call(number) for number in range(513))
        assert tasks.app.put(large.then(tasks.pages)).result(60) == sum(range(514))
        assert tasks.nested.put(1).result(60) == 3
        parcel = tasks.app.queues["mail-fast"].put(tasks.Parcel, {})
        wrong = tasks.wrong.put()
        assert operator.wait_for(parcel, 60).status == "done"
        until(lambda: operator.jobs[wrong.jid].state == "failed", "a job that raises fails", 60)
        held = tasks.block.put()
        first = until(lambda: operator.jobs[held.jid].expires_at or 0, "it runs", 60)
        until(lambda: operator.jobs[held.jid].expires_at > first, "its lease is renewed", 60)
        assert "block" in str(operator.jobs.stack(held.jid, 60))
        worker.terminate()
        assert worker.wait(60) == 0
        assert operator.jobs[held.jid].state == "waiting"
        assert guarded.refusals() == set()
    finally:
        sys.modules.pop("tasks").app.close()
        worker.kill()
        worker.wait()


@pytest.mark.full
def test_a_viewer_sees_everything_and_changes_nothing(guarded, users):
    viewer, operator = users["viewer"], users["operator"]
    jid = operator.queues["mail"].put("letters.Letter", {"to": "ada"}, tags=["x"])
    operator.queues["lost"].put("letters.Letter")
    operator.queues["lost"].pop().fail("lost-NoSuchUser", "no such user")
    where = ("--url", guarded.url("viewer"), "--namespace", "shop")
    for words in (("stats",), ("workers", "list"), ("jobs", "why", jid), ("config", "dump")):
        shown = holdfast(*words, *where)
        assert (shown.returncode, shown.stderr) == (0, ""), words
    assert viewer.jobs[jid]["to"] == "ada"
    assert viewer.jobs.failed()["lost-NoSuchUser"] == 1
    assert [row.jid for row in viewer.run(Scan("waiting", "mail", None, 5, "dte")).jobs] == [jid]
    assert (viewer.run(Operations()), viewer.run(OperationGet("o"))) == ([], None)
    assert {counts["name"] for counts in viewer.queues.counts} >= {"mail", "lost"}
    assert guarded.refusals() == set()

    before = guarded.admin.execute_command("DEBUG", "DIGEST")
    for change in (
        lambda: viewer.queues["mail"].put("K"),
        lambda: viewer.queues["mail"].put("K", delay=5, tags=["y"]),
        lambda: viewer.queues["mail"].pop(),
        lambda: viewer.queues["mail"].pause(),
        lambda: viewer.queues["mail"].recur("K", {}, interval=60),
        lambda: viewer.jobs[jid].cancel(),
        lambda: viewer.jobs[jid].track(),
        lambda: viewer.jobs[jid].tag("z"),
        lambda: viewer.jobs[jid].move("other"),
        lambda: viewer.unfail_all(),
        lambda: viewer.topics["orders"].put("o-2", {}),
        lambda: viewer.config.__setitem__("heartbeat", 5),
        lambda: viewer.wait_for(jid, 0.1),
        lambda: viewer.run(Act("priority", [(jid, "")], "3")),
        lambda: viewer.run(OperationSet("start", "o", "me", 1000, "{}")),
        lambda: viewer.run(Audited("me", "pause", "mail", "", Pause(("mail",)))),
    ):
        with pytest.raises(StoreUnsupported, match=r"^\w+: the user of this URL lacks rights"):
            change()
    assert guarded.admin.execute_command("DEBUG", "DIGEST") == before


@pytest.mark.full
def test_an_operator_looks_after_everything(guarded, users):
    operator = users["operator"]
    mail = operator.queues["mail"]
    jid = mail.put("letters.Letter")
    mail.pop().fail("mail-NoSuchUser", "no such user")
    assert operator.unfail_all() >= 1
    mail.pause()
    assert mail.pop() is None
    mail.unpause()
    operator.config["mail-heartbeat"] = 10
    del operator.config["mail-heartbeat"]
    operator.queues["mail"].throttle.maximum = 5
    operator.queues["mail"].throttle.delete()
    operator.jobs[jid].move("slow")
    operator.run(OperationSet("start", "o", "me", 60_000, "{}"))
    progress = Progress("o", "me", 60_000)
    assert operator.run(Act("priority", [(jid, "")], "3", operation=progress)) == [True]
    assert operator.run(Audited("me", "done", "o", "", OperationSet("finish", "o", "me", detail="done")))
    operator.jobs[jid].track()
    assert operator.jobs[jid].cancel()
    assert guarded.refusals() == set()


@pytest.mark.full
@pytest.mark.parametrize(
    ("role", "function", "call"),
    [
        ("producer", "pop", lambda client: client.run(Pop("p", ["mail"]))),
        ("producer", "pause", lambda client: client.queues["mail"].pause()),
        ("producer", "config_set", lambda client: client.config.__setitem__("heartbeat", 5)),
        ("worker", "pause", lambda client: client.queues["mail"].pause()),
        ("worker", "config_set", lambda client: client.config.__setitem__("heartbeat", 5)),
        ("worker", "cancel_by", lambda client: client.bulk_cancel(["j"])),
    ],
)
def test_a_function_of_another_role_is_refused_by_name(users, role, function, call):
    with pytest.raises(StoreUnsupported, match=f"^{function}: the user of this URL lacks rights: .*fcall"):
        call(users[role])


@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
def test_a_user_may_run_the_commands_of_the_page_and_no_others(guarded, role):
    writes = set() if role == "viewer" else {*WRITES}
    others = {"fcall"} if role in ("viewer", "operator") else {"blpop"} if role == "worker" else set()
    assert may_run(guarded.admin, role) == CONNECT | ANYBODY | READS | writes | others


def may_run(admin: redis.Redis, user: str) -> set[str]:
    """The commands, and subcommands, that the store would let a user run."""
    link = admin.connection_pool.get_connection()
    link.send_command("COMMAND", "INFO")
    commands = [command for command in link.read_response() if command]
    commands += [part for command in commands for part in command[9]]
    sizes = {command[0].decode(): abs(command[1]) for command in commands if not command[9]}
    replies = []
    for name, size in sizes.items():
        words = name.split("|")
        link.send_command("ACL", "DRYRUN", user, *words, *["x"] * (size - len(words)))
        replies.append(link.read_response())
    link.disconnect()
    return {name for name, reply in zip(sizes, replies, strict=True) if b"permissions to run" not in reply}


@pytest.mark.parametrize("role", ROLES)
def test_a_user_is_kept_out_of_all_else(guarded, role):
    user = guarded.direct(role)
    for words in (
        ("FUNCTION", "LOAD", "REPLACE", library().text),
        ("FUNCTION", "FLUSH"),
        ("FLUSHALL",),
        ("CONFIG", "SET", "maxmemory", "1"),
        ("CONFIG", "GET", "requirepass"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("EVAL", "return 1", "0"),
        ("ACL", "SETUSER", role, "+@all"),
        ("HGETALL", "hf:{other}:"),
        ("ZRANGE", "hf:{other}:Q", "0", "-1"),
        ("FCALL", "hf1_info", "1", "hf:{other}:", ""),
        ("SUBSCRIBE", "hf:{other}:e:c"),
    ):
        with pytest.raises(redis.ResponseError, match=r"(?i)permission"):
            user.execute_command(*words)
    user.close()
    with guarded.client(role, "other") as client, pytest.raises(StoreUnsupported, match=r"hf:\{other\}:"):
        client.jobs["j"]


def test_nobody_comes_in_without_a_login(guarded):
    client = Client(guarded.store.tcp_url, namespace="shop")
    with pytest.raises(StoreUnsupported, match="credentials"):
        client.queues["mail"].put("K")


@pytest.fixture
def core(guarded: Guarded) -> Iterator[redis.Redis]:
    """The administrator, who may remove the core: it is loaded again afterwards."""
    yield guarded.admin
    guarded.admin.function_load(library().text, replace=True)


@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("found", ["no core", "an older core"])
def test_a_missing_core_is_an_error_that_says_how_to_load_it(guarded, core, role, found):
    core.function_flush("SYNC")
    if found == "an older core":
        older = (
            library().text.replace(f'"{library().version}"', '"0.0.1"').replace(library().digest, "0" * 16)
        )
        core.function_load(older)
    with guarded.client(role) as client:
        with pytest.raises(StoreUnsupported, match=r"holdfast lua native \| redis-cli -x FUNCTION LOAD"):
            client.jobs["j"]
        core.function_load(library().text, replace=True)
        assert client.jobs["j"] is None


@pytest.mark.full
def test_a_worker_command_ends_with_that_error(guarded, core):
    core.function_flush("SYNC")
    where = ("--url", guarded.url("worker"), "--namespace", "shop")
    ended = holdfast("worker", "-q", "mail", "--drain", *where)
    assert ended.returncode != 0
    assert "may not load it" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("role", "why"), [("viewer", "may only read"), ("producer", "pop: the user .* rights")]
)
@pytest.mark.parametrize("pool", ["process", "serial"])
def test_a_worker_without_the_rights_of_one_does_not_start(guarded, role, why, pool):
    where = ("--url", guarded.url(role), "--namespace", "shop")
    ended = holdfast("worker", "-q", "mail", "--pool", pool, *where)
    assert ended.returncode == 1
    assert re.search(f"^holdfast: .*{why}", ended.stderr, re.MULTILINE), ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_viewer_learns_that_a_namespace_does_not_exist(guarded):
    guarded.admin.execute_command(
        "ACL", "SETUSER", "viewer2", "on", "nopass", "~hf:{new}:*", "+info", "+fcall"
    )
    guarded.admin.execute_command("ACL", "SETUSER", "viewer2", *[f"+{name}" for name in READS])
    url = guarded.store.tcp_url.replace("://", "://viewer2:any@")
    with Client(url, namespace="new") as client, pytest.raises(StoreUnsupported, match="does not exist yet"):
        client.jobs["j"]


def test_the_client_knows_every_command_that_the_core_runs(guarded):
    """One more in the core belongs into `READS` or `WRITES`, and on the page."""
    guarded.admin.execute_command(
        "ACL", "SETUSER", "bare", "on", "nopass", f"~{ROOT}*", "+fcall", *(f"+{name}" for name in BEFORE)
    )
    with redis.Redis(port=guarded.store.port, username="bare", password="any") as bare:
        reply = bare.execute_command("FCALL", "hf1_info", 1, ROOT, "", 0)
    assert {*reply[6].decode().split(","), *BEFORE} == READS | WRITES
