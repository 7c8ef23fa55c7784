"""What operators do from a shell beside single jobs: each command as a process, on a terminal and in a pipe, on a real store."""

import json
import os
import subprocess
import sys
import time
from typing import Any

import pytest

import programs
from command_line import holdfast
from holdfast import Client
from holdfast.cli.tables import width
from holdfast.commands.admin import Audit
from holdfast.commands.queues import Pause
from holdfast.commands.recurring import DeclaredFacts, Recur, RecurUpdate
from holdfast.commands.workers import WorkerSeen
from holdfast.testing.clock import START_MS, StoppedClock
from terminal import Terminal, written
from waiting import until

EVIL = "\x1b]0;owned\x07\x1b[2J\u202e"


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


@pytest.fixture
def run(place: tuple[str, ...]) -> Any:
    """Runs a command in a pipe."""
    return lambda *words: holdfast(*words, *place)


@pytest.fixture
def read(run: Any) -> Any:
    """Runs a command, which succeeds, and returns its JSON."""

    def reads(*words: str) -> Any:
        done = run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return reads


def lines(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


@pytest.fixture
def busy(client: Client) -> Client:
    client.config["heartbeat"] = 3600  # a slow machine is no lost lease
    mail = client.queues["mail"]
    for number in range(6):
        mail.put("jobs.send", {"n": number}, tags=["vip"])
    client.queues["mail-eu"].put("jobs.send")
    client.queues["audit"].put("jobs.check", delay=3600)
    done, failed, _running = mail.pop(3)
    done.complete()
    failed.fail("mail-ValueError", "no such address")
    return client


# Queues.


@pytest.mark.full
def test_queues_are_listed_with_a_column_for_each_state_and_paged_by_cursor(
    busy: Client, run: Any, read: Any
) -> None:
    head, *rows = lines(run("queues", "list").stdout)
    assert head[:4] == ["queue", "waiting", "running", "failed"]
    assert [row[:4] for row in rows] == [
        ["audit", "0", "0", "0"],
        ["mail", "3", "1", "1"],
        ["mail-eu", "1", "0", "0"],
    ]
    first = run("queues", "list", "--limit", "1", "mail*")
    assert [row[0] for row in lines(first.stdout)] == ["queue", "mail"]
    assert "1 queue of 2 shown; --after 'mail' shows more" in first.stderr
    found = read("queues", "list", "mail*", "--after", "mail")
    assert ([row["name"] for row in found["queues"]], found["next"], found["total"]) == (["mail-eu"], "", 2)
    assert abs(found["queues"][0]["oldest"] - time.time()) < 600
    most = read("queues", "list", "--sort", "waiting", "--all")["queues"]
    assert [row["name"] for row in most] == ["mail", "mail-eu", "audit"]


@pytest.mark.parametrize(("rows", "columns"), [(24, 80), (50, 200)])
def test_lists_fit_the_terminal_and_show_no_empty_columns(
    busy: Client, place: tuple[str, ...], rows: int, columns: int
) -> None:
    busy.queues["q" * 150].put("jobs.send")
    with Terminal("queues", "list", *place, rows=rows, columns=columns) as terminal:
        assert terminal.code() == 0
        shown = terminal.text.splitlines()
    assert len(shown) == 5
    assert shown[0].split() == ["queue", "waiting", "running", "failed", "oldest", "scheduled"]
    assert shown[2].split()[:4] == ["mail", "3", "1", "1"]
    assert ("…" in shown[4]) == (columns == 80)


@pytest.mark.full
def test_one_queue_is_shown_with_its_limits_and_its_pause(busy: Client, run: Any, read: Any) -> None:
    assert run("queues", "set", "mail", "max-waiting", "100").stdout == "max-waiting of mail is 100\n"
    assert run("queues", "pause", "mail", "--why", "no mail server", "--for", "2h").stdout == "paused mail\n"
    shown = run("queues", "show", "mail").stdout
    assert "jobs         3 waiting, 1 running, 1 failed" in shown
    assert ": no mail server, resumes in " in shown
    assert "workers      none takes jobs from this queue" in shown
    found = read("queues", "show", "mail")
    assert found["counts"]["waiting"] == 3
    assert (found["limits"], found["throttle"]["maximum"]) == ({"max-waiting": 100, "max-losses": None}, 0)
    assert 7000 < found["counts"]["paused_until"] - time.time() < 7300
    assert run("queues", "set", "mail", "max-waiting", "none").returncode == 0
    assert read("queues", "show", "mail")["limits"]["max-waiting"] is None


def test_queues_are_paused_and_resumed_by_pattern_and_audited(busy: Client, run: Any, read: Any) -> None:
    assert read("queues", "pause", "mail*") == {"queues": ["mail", "mail-eu"], "changed": 2}
    assert busy.queues["mail-eu"].counts["paused"]
    assert run("queues", "resume", "mail*", "audit").stdout == (
        "resumed mail, mail-eu, audit (1 queue already resumed)\n"
    )
    said = [(line["what"], line["target"]) for line in read("audit")["lines"]]
    assert said == [("resume", "mail, mail-eu, audit"), ("pause", "mail, mail-eu")]


@pytest.mark.parametrize(
    "words",
    [
        ("queues", "show", "mial"),
        ("queues", "stats", "mial"),
        ("queues", "pause", "mial", "mail-eu"),
        ("queues", "purge", "mial", "--yes"),
        ("queues", "drain", "mial"),
        ("queues", "forget", "mial"),
        ("queues", "set", "mial", "max-losses", "3"),
    ],
)
def test_an_unknown_queue_is_one_sentence_with_the_nearest_name(
    busy: Client, run: Any, words: tuple[str, ...]
) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'holdfast: there is no queue "mial"; did you mean "mail"?\n'
    assert not busy.queues["mail-eu"].counts["paused"]


@pytest.mark.full
def test_a_purge_cancels_what_is_in_the_states_and_nothing_else(busy: Client, run: Any, read: Any) -> None:
    busy.queues["mail-eu"].put("jobs.send", delay=3600)
    assert "1 job to cancel" in run("queues", "purge", "mail-eu", "--dry-run").stdout
    asked = run("queues", "purge", "mail-eu")
    assert (asked.returncode, "--yes" in asked.stderr) == (2, True)
    assert busy.queues["mail-eu"].counts["waiting"] == 1
    done = read("queues", "purge", "mail-eu", "--yes")
    assert (done["state"], done["changed"], done["refused"]) == ("done", 1, 0)
    counts = busy.queues["mail-eu"].counts
    assert (counts["waiting"], counts["scheduled"], busy.queues["mail"].counts["waiting"]) == (0, 1, 3)
    assert run("queues", "purge", "mail", "--state", "waiting,failed", "--yes").returncode == 0
    counts = busy.queues["mail"].counts
    assert (counts["waiting"], counts["failed"], counts["running"]) == (0, 0, 1)
    assert run("queues", "purge", "mail", "--state", "asleep").returncode == 2


def test_a_purge_asks_on_a_terminal(busy: Client, place: tuple[str, ...]) -> None:
    with Terminal("queues", "purge", "mail", *place) as terminal:
        terminal.shows("Cancel 3 jobs?")
        terminal.press("n\n")
        assert terminal.code() == 1
    assert busy.queues["mail"].counts["waiting"] == 3
    with Terminal("queues", "purge", "mail", *place) as terminal:
        terminal.shows("Cancel 3 jobs?")
        terminal.press("y\n")
        assert terminal.code() == 0
    assert busy.queues["mail"].counts["waiting"] == 0


@pytest.mark.full
def test_a_drain_ends_when_the_queue_is_empty_or_the_time_is_up(
    busy: Client, run: Any, read: Any, place: tuple[str, ...]
) -> None:
    late = run("queues", "drain", "mail", "--timeout", "100ms")
    assert (late.returncode, late.stdout) == (1, "")
    assert late.stderr.startswith("holdfast: mail still has 3 waiting, 1 running after ")
    assert read("queues", "drain", "audit")["drained"]  # what is scheduled is not waited for
    waits = programs.popen(
        [sys.executable, "-m", "holdfast.cli.main", "queues", "drain", "mail-eu", *place],
        stdout=subprocess.DEVNULL,
    )
    assert waits.poll() is None
    busy.queues["mail-eu"].pop().complete()  # type: ignore[union-attr]
    assert waits.wait(30) == 0


def test_stats_have_percentiles_a_histogram_and_the_throughput(busy: Client, run: Any, read: Any) -> None:
    found = read("queues", "stats", "mail")
    times = found["stats"]["percentiles"]["wait"]
    assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"] < 600
    assert sum(row[1] for row in found["histogram"]) == 3
    text = run("queues", "stats", "mail").stdout
    assert "3 popped, 1 completed, 1 failures" in text
    assert "\tp50\tp90\tp99\tmax\n" in text
    assert "█" * 20 in text
    assert any(line.startswith("completed |") and line.endswith("| 1") for line in text.splitlines())
    assert read("queues", "stats", "mail", "--day", "yesterday")["stats"]["wait"]["count"] == 0
    assert run("queues", "stats", "mail", "--day", "someday").returncode == 2


def test_words_that_are_no_numbers_or_no_text_are_usage_errors(busy: Client, run: Any) -> None:
    for words, sentence in (
        (("stats", "--watch", "nan"), "'nan' is not a number"),
        (("queues", "set", "mail", "max-waiting", "-1"), "expected a whole number or none, got '-1'"),
        (("queues", "pause", "mail", "--why", "\udcff"), r"'\udcff' cannot be written as UTF-8"),
    ):
        said = run(*words)
        assert (said.returncode, said.stdout) == (2, "")
        assert sentence in said.stderr


@pytest.mark.full
def test_only_an_empty_queue_is_forgotten(busy: Client, run: Any) -> None:
    refused = run("queues", "forget", "mail")
    assert (refused.returncode, refused.stderr) == (1, "holdfast: mail has 5 jobs\n")
    busy.queues["mail-eu"].pop().complete()  # type: ignore[union-attr]
    assert run("queues", "forget", "mail-eu").stdout == "forgot mail-eu\n"
    assert "mail-eu" not in run("queues", "list").stdout


# Workers.


@pytest.mark.full
def test_a_worker_is_shown_with_what_its_slots_run(client: Client, run: Any, read: Any) -> None:
    client.config["heartbeat"] = 3600
    queue = client.queues["mail"]
    jid = queue.put("jobs.send")
    queue.pop()
    [worker] = client.workers.all()
    [found] = read("workers", "show", worker.name)
    assert [(one["jid"], one["klass"], one["queue"], one["stalled"]) for one in found["holds"]] == [
        (jid, "jobs.send", "mail", False)
    ]
    assert found["holds"][0]["since"] <= time.time() < found["holds"][0]["expires"]
    head, row = lines(run("workers", "show", worker.name).stdout)[-2:]
    assert (head, row[:3]) == (
        ["jid", "job", "queue", "running for", "lease left"],
        [jid, "jobs.send", "mail"],
    )
    silent = run("workers", "stack", worker.name, "--timeout", "100ms")
    assert (silent.returncode, silent.stdout) == (1, "")
    assert "was the job popped by hand?" in silent.stderr


@pytest.mark.full
def test_workers_of_a_command_are_shown_and_forgotten_together(client: Client, run: Any, read: Any) -> None:
    for name in ("w-0", "w-1", "other"):
        client.run(WorkerSeen(name, {"host": "box", "pool": "process", "slots": "4"}))
    assert sorted(one["name"] for one in read("workers", "show", "w")) == ["w-0", "w-1"]
    assert run("workers", "stack", "w").stdout == "w runs no jobs\n"
    unknown = run("workers", "show", "othr")
    assert (unknown.returncode, unknown.stderr) == (
        1,
        'holdfast: there is no worker "othr"; did you mean "other"?\n',
    )
    assert run("workers", "forget", "w", "nobody").returncode == 1
    assert len(client.workers.all()) == 3
    assert sorted(read("workers", "forget", "w")["forgotten"]) == ["w-0", "w-1"]
    assert [worker.name for worker in client.workers.all()] == ["other"]
    assert run("workers", "quiet", "other").stdout == "other is quiet: it takes no more jobs\n"
    assert read("audit")["lines"][0]["what"] == "quiet"


# Recurring jobs.


@pytest.mark.full
def test_what_code_declares_no_more_is_shown_and_pruned_after_a_day(
    client: Client, run: Any, read: Any
) -> None:
    for jid, module in (("old", "shop.reports"), ("kept", "shop.mails"), ("declared", "shop.mails")):
        client.run(Recur("q", "K", 60_000, jid=jid, declared=DeclaredFacts(module, "2.1", "w")))
        client.run(RecurUpdate(jid, vanished=jid != "declared"))
    shown = run("recurring", "show", "old").stdout
    assert "in shop.reports, version 2.1, until " in shown
    assert "holdfast recurring prune" in shown
    assert "put by worker w" in run("recurring", "show", "declared").stdout
    assert sorted(read("recurring", "prune")["kept"]) == ["kept", "old"]
    asked = run("recurring", "prune", "--recent", "--module", "shop.reports")
    assert "old: 1 min, in shop.reports" in asked.stdout
    assert "Give --yes" in asked.stderr
    assert client.recurring["old"]
    assert read("recurring", "prune", "--recent", "--module", "shop.reports", "--yes")["deleted"] == ["old"]
    assert (client.recurring["old"], client.recurring["kept"].jid) == (None, "kept")
    client.run(Recur("q", "K", 60_000, jid="kept"))
    assert client.recurring["kept"].facts.declared is None
    assert read("recurring", "prune", "--recent") == {"deleted": [], "kept": []}


def test_the_outcome_of_the_last_job_of_a_recurring_job_is_shown(client: Client, run: Any) -> None:
    queue = client.queues["q"]
    queue.recur("K", {}, 3600, jid="hourly")
    queue.pop().fail("q-Error", "no luck")
    client.run(
        Recur("q", "K", 60_000, offset_ms=60_000, jid="fresh", declared=DeclaredFacts("shop.a", "1", "w"))
    )
    shown = " ".join(run("recurring", "show", "hourly").stdout.split())
    assert "put 1 job, the last one is hourly-1, failed" in shown
    assert "put 0 jobs" in " ".join(run("recurring", "show", "fresh").stdout.split())
    rows = {row.split("\t")[0]: row.split("\t") for row in run("recurring", "list").stdout.splitlines()}
    assert rows["jid"][-3:] == ["last", "left out", "declared"]
    assert (rows["hourly"][-3:], rows["fresh"][-3:]) == (["failed", "", ""], ["", "", "shop.a"])
    client.jobs["hourly-1"].cancel()
    assert "hourly-1, which is kept no more" in run("recurring", "show", "hourly").stdout


def test_the_next_moments_show_when_jobs_with_a_jitter_are_put(client: Client, run: Any) -> None:
    client.queues["q"].recur("K", {}, cron="0 * * * *", jitter=600, jid="jittered")
    first = run("recurring", "next", "jittered", "--count", "2").stdout.splitlines()[0]
    due = time.strftime("%H:%M:%S", time.gmtime(client.recurring["jittered"].next))
    assert first.endswith(f":00:00 +0000  put at {due}")


def test_a_calendar_may_begin_and_end(client: Client, run: Any) -> None:
    words = ("recurring", "add", "K", "--klass", "-q", "q", "--cron", "0 3 * * *", "--jid", "short")
    added = run(*words, "--start", "2030-01-01", "--end", "2030-01-02 12:00")
    assert added.returncode == 0, added.stderr
    moments = run("recurring", "next", "short").stdout.splitlines()
    assert [line[4:20] for line in moments] == ["2030-01-01 03:00", "2030-01-02 03:00"]
    assert "such as 2h" in run(*words, "--start", "tomorrow").stderr


def test_missed_turns_of_a_recurring_job_are_shown_as_on_its_page(client: Client, run: Any) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    client.queues["reports"].recur("shop.Hourly", {}, 3600, jid="hourly", offset=3600, backlog=1)
    assert "missed" not in run("recurring", "show", "hourly").stdout.split()
    clock.advance(hours=3, minutes=1)
    assert (
        "3 runs: no worker has polled queue reports since the first of them; up to 1 of their jobs are put when one does"
        in run("recurring", "show", "hourly").stdout
    )
    run("recurring", "pause", "hourly")
    shown = run("recurring", "show", "hourly").stdout
    assert "3 runs missed" in shown
    assert "no worker has asked" not in shown


def test_the_next_moments_of_a_calendar_are_listed_in_its_zone(client: Client, run: Any, read: Any) -> None:
    added = run(
        "recurring",
        "add",
        "shop.Nightly",
        "-q",
        "reports",
        "--cron",
        "30 3 * * *",
        "--zone",
        "Europe/Berlin",
        "--jid",
        "nightly",
    )
    assert added.returncode == 0
    shown = run("recurring", "next", "nightly", "--count", "3")
    assert shown.returncode == 0
    assert shown.stdout.count("03:30") == 3
    assert "30 3 * * * Europe/Berlin" in " ".join(run("recurring", "list").stdout.split())
    edit = (
        "recurring",
        "edit",
        "nightly",
        "--cron",
        "45 4 * * *",
        "--missed",
        "3",
        "--overlap",
        "queue",
        "--jitter",
        "30s",
    )
    assert run(*edit).stdout == "changed cron, missed, overlap, jitter of nightly\n"
    changed = read("recurring", "show", "nightly")
    assert (changed["calendar"]["cron"], changed["calendar"]["zone"]) == ("45 4 * * *", "Europe/Berlin")
    assert (changed["calendar"]["missed"], changed["overlap"], changed["calendar"]["jitter"]) == (
        "3",
        "queue",
        30,
    )
    assert "cron='45 4 * * *' zone='Europe/Berlin'" in read("audit")["lines"][0]["detail"]
    assert run("recurring", "edit", "nightly", "--interval", "1h").returncode == 1
    wrong = run("recurring", "add", "shop.Nightly", "-q", "reports", "--cron", "1h")
    assert (wrong.returncode, "five fields" in wrong.stderr) == (2, True)
    assert run("recurring", "next", "unknown").returncode == 1


@pytest.mark.full
def test_recurring_jobs_are_shown_run_paused_changed_and_deleted(client: Client, run: Any, read: Any) -> None:
    client.queues["mail"].recur("jobs.nightly", {"a": 1}, 3600, jid="nightly", tags=["slow"], offset=60)
    [row] = lines(run("recurring", "list").stdout)[1:]
    assert row[:4] == ["nightly", "mail", "jobs.nightly", "1 h"]
    assert run("recurring", "run", "nightly").stdout == "nightly: put nightly-1\n"
    assert client.job("nightly-1").state == "waiting"
    shown = read("jobs", "show", "nightly-1")["facts"]
    assert shown["scheduled_for"] == shown["created"]
    assert "scheduled for" in run("jobs", "show", "nightly-1").stdout
    assert run("recurring", "pause", "nightly").stdout == "nightly is paused\n"
    assert run("recurring", "pause", "nightly", "--until", "2h").stdout == "nightly is paused\n"
    assert "resumes in" in run("recurring", "list").stdout
    until = read("recurring", "show", "nightly")["paused_until"]
    assert 7000 < until - client.store_time() <= 7200
    assert run("recurring", "pause", "nightly", "--until", "2020-01-01").returncode == 1
    assert run("recurring", "pause", "nightly", "--until", "tomorrow").returncode == 2
    assert read("recurring", "show", "nightly")["paused"] is True
    assert read("recurring", "resume", "nightly") == {"nightly": True}
    changes = ("--interval", "1d", "--data", '{"b": 2}', "--priority", "7", "--tag", "new", "--untag", "slow")
    assert run("recurring", "edit", "nightly", *changes).stdout == (
        "changed interval, data, priority, tags of nightly\n"
    )
    found = read("recurring", "show", "nightly")
    assert (found["interval"], found["data"], found["priority"], found["tags"]) == (
        86400,
        {"b": 2},
        7,
        ["new"],
    )
    unknown = run("recurring", "run", "nigtly")
    assert (unknown.returncode, unknown.stderr) == (
        1,
        'holdfast: there is no recurring job "nigtly"; did you mean "nightly"?\n',
    )
    assert run("recurring", "edit", "nightly").returncode == 2
    assert run("recurring", "edit", "nightly", "--data", "{").returncode == 2
    assert run("recurring", "delete", "nightly").returncode == 2  # nobody can be asked
    assert read("recurring", "delete", "nightly", "--yes") == {"nightly": True}
    assert read("recurring", "list") == {"recurring": [], "next": "", "total": 0}
    said = [line["what"] for line in read("audit")["lines"]]
    assert said == [
        "delete recurring", "tag recurring", "untag recurring", "edit recurring", "resume recurring", "pause recurring",
        "pause recurring", "run recurring",
    ]  # fmt: skip


# Throttles.


@pytest.mark.full
def test_a_throttle_is_shown_with_its_holders_and_changed(client: Client, run: Any, read: Any) -> None:
    client.config["heartbeat"] = 3600
    queue = client.queues["print"]
    client.throttles["printer"].maximum = 1
    jids = [queue.put("jobs.print", throttles=["printer"]) for _ in range(2)]
    queue.pop(2)
    found = read("throttles", "show", "printer")
    assert (found["maximum"], found["used"], found["pending"], found["ttl"]) == (1, 1, 1, None)
    assert {found["holders"][0]["jid"], found["waiters"][0]["jid"]} == set(jids)
    assert abs(found["holders"][0]["since"] - time.time()) < 600
    assert lines(run("throttles", "list").stdout)[1][:4] == ["printer", "1", "1", "1"]
    assert "-1 is not in the range" in run("throttles", "set", "printer", "-1").stderr
    assert run("throttles", "set", "printer", "3", "--for", "2h").stdout == (
        "the limit of printer is 3 for 2 h\n"
    )
    assert 7000 < read("throttles", "show", "printer")["ttl"] <= 7200
    assert run("throttles", "release", "printer", "nobody", "--yes").returncode == 1
    assert read("throttles", "release", "printer", *jids, "--yes")["released"] >= 1
    assert run("throttles", "delete", "printer", "--yes").stdout == "printer has no limit now\n"
    unknown = run("throttles", "show", "ql:q:prnt")
    assert (unknown.returncode, unknown.stderr) == (
        1,
        'holdfast: there is no throttle "ql:q:prnt"; did you mean "ql:q:print"?\n',
    )


# Topics, tags, settings, audit log.


@pytest.mark.full
def test_messages_of_topics_are_put_shown_pulled_and_deleted(client: Client, run: Any, read: Any) -> None:
    assert run("topics", "put", "reminders", "one", '{"x": 1}', "--delay", "2h").stdout == (
        "put one into reminders\n"
    )
    assert run("topics", "put", "reminders", "two", "hello").returncode == 0
    again = run("topics", "put", "reminders", "two", "other")
    assert (again.returncode, "already" in again.stderr) == (1, True)
    assert lines(run("topics", "list").stdout)[1][:4] == ["reminders", "2", "1", "0"]
    found = read("topics", "show", "reminders")
    assert [(one["id"], one["body"]) for one in found["messages"]] == [("two", "hello"), ("one", '{"x": 1}')]
    assert run("topics", "pull", "reminders").stdout == "two\thello\n"
    assert run("topics", "pull", "reminders").returncode == 1
    gone = run("topics", "delete", "reminders", "one", "two", "--yes")
    assert (gone.returncode, gone.stdout) == (1, "deleted one\n")
    assert run("topics", "show", "reminders").returncode == 1


def test_tags_are_listed_most_used_first(busy: Client, run: Any, read: Any) -> None:
    busy.queues["mail"].put("jobs.send", tags=["rare"])
    assert lines(run("tags").stdout) == [["tag", "jobs"], ["vip", "6"], ["rare", "1"]]
    found = read("tags", "--limit", "1")
    assert found["tags"] == [{"tag": "vip", "jobs": 6}]
    assert read("tags", "--after", found["next"])["tags"] == [{"tag": "rare", "jobs": 1}]


@pytest.mark.full
def test_every_setting_is_listed_with_its_meaning_and_changes_are_audited(
    client: Client, run: Any, read: Any
) -> None:
    assert run("config", "set", "heartbeat", "40").returncode == 0
    assert run("config", "set", "mine", "5").returncode == 0
    found = read("config", "list")
    by_name = {one["name"]: one for one in found["settings"]}
    assert set(client.config.all) <= set(by_name) | {"mine"}
    heartbeat = by_name["heartbeat"]
    assert (heartbeat["value"], heartbeat["default"], heartbeat["unit"], heartbeat["is_set"]) == (
        40,
        30,
        "seconds",
        True,
    )
    assert all(one["meaning"] for one in found["settings"])
    assert not by_name["max-data"]["is_set"]
    assert found["others"] == {"mine": 5}
    assert run("config", "unset", "mine").stdout == "mine was set\n"
    said = [(line["what"], line["target"], line["detail"]) for line in read("audit")["lines"]]
    assert said == [
        ("unset config", "mine", ""),
        ("set config", "mine", "5"),
        ("set config", "heartbeat", "40"),
    ]


@pytest.mark.full
def test_the_audit_log_is_paged_filtered_and_followed(
    busy: Client, run: Any, read: Any, place: tuple[str, ...]
) -> None:
    for number in range(3):
        run("config", "set", "mine", str(number))
    first = read("audit", "--limit", "2")
    assert [line["detail"] for line in first["lines"]] == ["2", "1"]
    assert [line["detail"] for line in read("audit", "--before", first["next"])["lines"]] == ["0"]
    assert read("audit", "--who", "nobody@*")["lines"] == []
    assert len(read("audit", "--who", "*@*")["lines"]) == 3
    words = [sys.executable, "-m", "holdfast.cli.main", "audit", "--follow", "--limit", "1", "--json", *place]
    follows = programs.popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert json.loads(follows.stdout.readline())["detail"] == "2"
        run("queues", "pause", "mail")
        assert json.loads(follows.stdout.readline())["what"] == "pause"
    finally:
        follows.kill()
        follows.wait(30)
        follows.stdout.close()


# The first look.


def test_stats_begin_with_what_needs_attention(client: Client, run: Any, read: Any) -> None:
    client.queues["o.t:h er"].put("jobs.send")
    finding, command, *_ = run("stats").stdout.splitlines()
    assert finding.startswith("note: queue o.t:h er: 1 job waits, the first for ")
    assert command.startswith("  holdfast worker -q 'o.t:h er' --url ")
    [found] = read("stats")["attention"]
    assert (found["severity"], found["kind"], found["subject"]) == ("note", "no-worker", "o.t:h er")


def test_two_findings_that_one_command_helps_are_shown_once(client: Client, run: Any) -> None:
    clock = StoppedClock(client, START_MS)
    clock.start()
    client.queues["q"].recur("jobs.nightly", {}, 60, jid="nightly")
    client.queues["q"].put("jobs.send")
    clock.advance(minutes=10)
    shown = run("stats").stdout
    assert shown.count("holdfast worker -q q") == 1
    assert shown.startswith("urgent: queue q: ")


@pytest.mark.full
def test_every_finding_is_reachable_where_many_are_of_one_kind(client: Client, run: Any, read: Any) -> None:
    for number in range(12):
        client.queues[f"q{number}"].put("jobs.send")
    shown = run("stats").stdout
    assert shown.startswith("note: 12 queues with waiting jobs and no worker: q0, q1, q2 and 9 more")
    assert "and 11 more findings; --all shows all" in shown
    shown = run("stats", "--all").stdout
    assert all(f"note: queue q{number}: 1 job waits" in shown for number in range(12))
    assert len(read("stats", "--all")["attention"]) == 12


# All of them.

LISTS = (
    ("queues", "list"), ("queues", "show", "q"), ("queues", "stats", "q"), ("workers", "list"), ("workers", "show", "w"),
    ("recurring", "list"), ("recurring", "show", "r"), ("throttles", "list"), ("throttles", "show", "t"), ("topics", "list"),
    ("topics", "show", "t"), ("tags",), ("audit",), ("config", "list"), ("stats",),
)  # fmt: skip


ODD = "o\u202e[red] 漢字, 'x'"
"""A name that may be given to anything."""


@pytest.fixture
def hostile(client: Client) -> Client:
    """A namespace in which everything has names and texts that would steer a terminal."""
    client.config["heartbeat"] = 3600
    queue = client.queues["q"]
    queue.put(f"jobs.{ODD}", tags=[ODD], throttles=["t", ODD])
    client.throttles["t"].maximum = 1
    client.throttles[ODD].maximum = 1
    queue.pop()
    queue.recur(f"jobs.{ODD}", {"a": EVIL}, 3600, jid="r", tags=[ODD])
    client.queues[ODD].put("jobs.send")
    client.topics["t"].put(ODD, EVIL)
    client.topics[ODD].put("one", EVIL)
    client.config[ODD] = EVIL
    client.run(WorkerSeen("w", {"host": EVIL, "pool": EVIL, "queues": json.dumps([EVIL]), "slots": EVIL}))
    client.run(Audit("ada", "pause", ODD, EVIL))
    client.run(Pause(["q"], True, "ada", EVIL))
    return client


def steers(text: str) -> set[str]:
    return {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}


@pytest.mark.full
@pytest.mark.parametrize("words", LISTS, ids=lambda words: "-".join(words))
def test_what_others_wrote_is_shown_without_steering_the_terminal(
    hostile: Client, run: Any, words: tuple[str, ...]
) -> None:
    for more in ((), ("--json",)):
        done = run(*words, *more)
        assert (done.returncode, done.stderr) == (0, "")
        assert not steers(done.stdout)


@pytest.mark.full
@pytest.mark.parametrize("words", LISTS, ids=lambda words: "-".join(words))
def test_a_terminal_of_80_columns_is_enough(
    hostile: Client, place: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """Only a command is not cut, so that it can be copied."""
    code, text = written([sys.executable, "-m", "holdfast.cli.main", *words, *place], 80)
    assert code == 0
    assert not [
        line for line in text.decode().splitlines() if width(line) > 80 and not line.startswith("  holdfast ")
    ]


def test_a_list_is_shown_again_and_again_and_ends_with_the_reader(
    busy: Client, place: tuple[str, ...]
) -> None:
    with Terminal("queues", "list", "--watch", "0.2", *place, env={"TERM": "dumb"}) as terminal:
        terminal.shows("mail-eu")
        busy.queues["zebra"].put("jobs.send")
        assert "\x1b" not in terminal.shows("zebra")
        terminal.press("\x03")
        assert terminal.code() == 0
    words = [sys.executable, "-m", "holdfast.cli.main", "tags", "--watch", "0.1", *place]
    watches = programs.popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert watches.stdout.readline() == "tag\tjobs\n"
    watches.stdout.close()
    assert watches.wait(30) == 1
    assert watches.stderr.read() == ""
    watches.stderr.close()


# The completion of a shell.


def completed(line: str, **environment: str) -> list[str]:
    """What a shell offers at the end of a line."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main"],
        env={
            **os.environ,
            "_HOLDFAST_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [one.partition(",")[2] for one in done.stdout.splitlines() if one]


@pytest.mark.full
def test_a_shell_completes_commands_and_options_without_a_store() -> None:
    assert completed("holdfast thr") == ["throttles"]
    assert completed("holdfast queues re") == ["resume"]
    assert completed("holdfast queues list --so") == ["--sort"]
    assert completed("holdfast queues show ma", HOLDFAST_URL="unix:///nowhere.sock") == []


@pytest.mark.full
def test_a_shell_completes_names_of_the_store(busy: Client, url: str, namespace: str) -> None:
    busy.queues["ma il"].put("jobs.send")  # is no single word
    busy.queues["mail"].recur("jobs.nightly", {}, 3600, jid="nightly")
    busy.run(WorkerSeen("box-7-0", {}))
    store = {"HOLDFAST_URL": url, "HOLDFAST_NAMESPACE": namespace}

    def offered(line: str, names: list[str]) -> bool:
        return completed(line, **store) == names

    for line, names in (
        ("holdfast queues pause ma", ["mail", "mail-eu"]),
        ("holdfast queues pause mail ma", ["mail-eu"]),
        ("holdfast jobs move ma", ["mail", "mail-eu"]),
        ("holdfast put jobs.send --queue ma", ["mail", "mail-eu"]),
        ("holdfast workers show box", ["box-7-0"]),
        ("holdfast recurring run ", ["nightly"]),
        ("holdfast failed show mail", ["mail-ValueError"]),
        ("holdfast config get grace", ["grace-period"]),
    ):  # half a second can be too short on a machine that is full of work
        until(lambda line=line, names=names: offered(line, names), line, 60)


@pytest.mark.full
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_completion_of_other_shells_can_be_printed(shell: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main"],
        env={**os.environ, "_HOLDFAST_COMPLETE": f"{shell}_source"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    assert "_HOLDFAST_COMPLETE" in done.stdout
