"""What sixty actions of an operator leave in the audit log is on record, line by line: `audit_session.txt`."""

import os
import re
from pathlib import Path

from holdfast import Client
from holdfast.client.patterns import QueuePriorityPattern
from holdfast.commands.recurring import RecurUpdate
from holdfast.console.configuration import SettingChange
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.console.put import NamedCode
from holdfast.testing.clock import StoppedClock

RECORD = Path(__file__).with_name("audit_session.txt")


def prepare(client: Client) -> None:
    queue = client.queues["mail"]
    for number in range(12):
        queue.put("Klass", {"n": number}, jid=f"job-{number}", throttles=["printer"], tags=["old"])
    queue.put("Klass", {}, jid="child", depends=["job-9"])
    queue.put("Klass", {}, jid="waiting", depends=["job-11"])
    queue.recur("Klass", {"n": 1}, 3600, jid="nightly")
    queue.recur("Klass", {}, 60, jid="hourly")
    client.queues["empty"].put("Klass", {}, jid="gone")
    client.jobs["gone"].cancel()
    topic = client.topics["reminders"]
    for number in range(3):
        topic.put(f"m{number}", "body", delay=60)
    for name in ("host-1", "host-2", "host-3"):
        with Client(client.store_url, namespace=client.settings.namespace, hostname=name) as worker:
            [job] = worker.queues["mail"].pop(1)
            if name != "host-2":
                job.fail("g", "m")


def act(console: Console) -> None:
    """Sixty actions: each audited verb, single ones and those of many things, with and without options."""
    for action, value in (
        ("track", ""), ("untrack", ""), ("priority", "7"), ("retries", "2"), ("delay", "60"), ("run", ""), ("tag", "vip,new"), ("untag", "old"),
        ("move", "other"), ("data", '{"n": 99}'),
    ):  # fmt: skip
        console.act(action, "job-5", value=value)  # type: ignore[arg-type]
    console.act("priority", "job-6", "job-7", "job-8", value="3")
    console.act("retry", "job-0")
    console.act("expire", "job-1")
    console.act("cancel", "job-6")
    console.act("cancel", "job-9", dependents=True)
    console.act("delete", "job-10")
    console.edit("job-7", {"new": "data"})
    console.edit("job-8", patch='{"n": null}')
    console.reveal("job-8")
    console.reveal("nightly")
    console.undepend("waiting", "job-11")
    console.pause("mail")
    console.pause("mail", "other", why="deploy", seconds=60)
    console.resume("mail", "other")
    console.forget_queue("empty")
    console.set_queue("mail", "max-waiting", 5000)
    console.set_queue("mail", "max-losses", 2)
    console.set_queue("mail", "max-waiting", None)
    console.quiet("host-2")
    console.resume_workers("host-2")
    console.forget_workers("host-1", "host-3")
    console.set_throttle("printer", 4)
    console.set_throttle("printer", 2, 30.5)
    console.set_throttle("printer", None, 60)
    console.release_throttle("printer", "job-1", "job-2")
    console.delete_throttle("printer")
    console.set_throttle("ql:q:mail", 9)
    console.configure("heartbeat", 90)
    console.configure("own", "text")
    console.configure("own", None)
    console.change_settings(SettingChange("heartbeat", "60"), SettingChange("stats-days", "9"))
    console.change_settings(SettingChange("heartbeat", None))
    console.set_patterns({"fast": ["mail", "oth*"]})
    console.set_priorities([QueuePriorityPattern(["mail"]), QueuePriorityPattern(["x*"], True)])
    console.pause_recurring("nightly", why="holidays")
    console.pause_recurring("nightly", False)
    console.run_recurring("nightly")
    console.edit_recurring(RecurUpdate("nightly", priority=3))
    console.update_recurring("nightly", interval=7200, data={"a": 1}, queue="other")
    console.tag_recurring("nightly", "a", "b")
    console.tag_recurring("nightly", "a", remove=True)
    console.delete_recurring("hourly", "never-was")
    console.reschedule_messages("reminders", "m0", "m1", delay=5)
    console.delete_messages("reminders", "m2")
    console.snooze("failure group", "g", seconds=3600)
    console.unsnooze("failure group", "g")
    console.put_job("mail", NamedCode("Klass", True, 1000), {}, {"jid": "by-hand"})
    running = console.start_operation(Spec(action="priority", filter="queue:mail state:waiting", value="1"))
    done = console.run_operation(running)
    console.run_operation(console.undo_operation(done.id))
    console.stop_operation(console.start_operation(Spec(action="cancel", filter="queue:other")).id)


def lines_of(console: Console) -> list[str]:
    rows = reversed(console.audit(limit=500).rows)
    return [masked(f"{line.who} | {line.what} | {line.target} | {line.detail}") for line in rows]


def masked(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{32}\b", "(id)", text)


def test_the_audit_log_of_a_session_is_the_one_on_record(client: Client) -> None:
    StoppedClock(client, 1_700_000_000_000).start()
    prepare(client)
    console = Console(client, "ada@laptop")
    act(console)
    found = lines_of(console)
    if os.environ.get("HOLDFAST_LAYOUTS") == "write":
        RECORD.write_text("\n".join(found) + "\n")
    assert found == RECORD.read_text().splitlines()
    assert len(found) >= 60


def test_without_an_actor_nothing_is_audited(client: Client) -> None:
    prepare(client)
    console = Console(client)
    console.pause("mail")
    console.act("priority", "job-5", value="7")
    assert lines_of(console) == []
