"""Recurring jobs that functions declare: each worker that has loaded them puts them, and the store has each once."""

from worker_kit import until

from holdfast.commands.admin import AuditList
from holdfast.console.handles import Console

DECLARING = """
import holdfast
from chores import note

app = holdfast.Client()

@app.job(queue="q", every=0.2)
def tock() -> None:
    note("tock")

@app.job(queue="q", every="0 3 * * *", zone="Europe/Berlin", missed="skip")
def nightly() -> None:
    note("nightly")
"""


def test_a_worker_puts_what_its_code_declares_and_performs_it(shop, pool):
    (shop.here / "declaring.py").write_text(DECLARING)
    shop.start(pool, "--import", "declaring")
    until(lambda: shop.notes("tock"), "it is put and performed")
    names = sorted(shop.client.queues["q"].jobs.recurring())
    assert [name.partition(":")[0] for name in names] == ["declaring.nightly", "declaring.tock"]
    found = shop.client.recurring[names[0]]
    assert (found.cron, found.zone, found.facts.calendar.missed) == ("0 3 * * *", "Europe/Berlin", "skip")


def test_a_worker_puts_what_its_code_schedules_with_arguments(shop):
    (shop.here / "scheduling.py").write_text(
        """
from declaring import app, tock

app.schedule(tock.options(queue="other", tags=["x"]).call("tax"), every="0 3 * * *", zone="Europe/Berlin", jid="taxes")
app.schedule(tock.call(name="sales"), every=3600)
"""
    )
    (shop.here / "declaring.py").write_text(DECLARING.replace("tock() ->", "tock(name: str = '') ->"))
    shop.start("process", "--import", "scheduling")
    until(lambda: len(shop.client.queues["q"].jobs.recurring()) == 3, "those of both modules are put")
    facts = shop.client.recurring["taxes"].facts
    assert (facts.queue, facts.tags, facts.data) == ("other", ("x",), b'{"args":["tax"],"kwargs":{}}')


def test_a_second_worker_changes_nothing_and_a_changed_declaration_is_taken_over(shop):
    code = shop.here / "declaring.py"
    code.write_text(DECLARING)
    shop.start("process", "--import", "declaring")
    queue = shop.client.queues["q"]
    until(lambda: len(queue.jobs.recurring()) == 2, "both are put")
    [name] = [name for name in queue.jobs.recurring() if "nightly" in name]
    before = shop.client.recurring[name].next
    code.write_text(DECLARING.replace('"0 3 * * *"', '"0 5 * * *"'))
    shop.start("process", "--import", "declaring", "--name", "second")
    until(lambda: shop.client.recurring[name].cron == "0 5 * * *", "it is taken over")
    assert shop.client.recurring[name].next != before
    assert len(queue.jobs.recurring()) == 2


def test_a_worker_whose_declaration_cannot_be_put_takes_jobs_all_the_same(shop):
    shop.client.queues["q"].put("chores.count", {"args": [1]})
    (shop.here / "declaring.py").write_text(
        DECLARING
        + """
app.job(queue="q", name="over", every="@daily", end=5)(lambda: None)
"""
    )
    worker = shop.start("process", "--import", "declaring")
    until(lambda: shop.notes("count"), "the job is performed")
    assert "the recurring job of over was not put: cron: " in worker.said()


def test_a_declaration_is_marked_by_module_and_version_and_audited_when_it_changes(shop, monkeypatch):
    code = shop.here / "declaring.py"
    code.write_text(DECLARING)
    shop.start("process", "--import", "declaring", "--app-version", "1.0")
    queue = shop.client.queues["q"]
    until(lambda: len(queue.jobs.recurring()) == 2, "both are put")
    [name] = [name for name in queue.jobs.recurring() if "nightly" in name]
    first = shop.client.recurring[name].facts.declared
    assert (first.module, first.version, first.vanished_ms) == ("declaring", "1.0", 0)
    code.write_text(DECLARING.replace('"0 3 * * *"', '"0 5 * * *"'))
    monkeypatch.setenv("HOLDFAST_APP_VERSION", "1.1")
    shop.start("process", "--import", "declaring", "--name", "second")
    until(lambda: shop.client.recurring[name].facts.declared.version == "1.1", "it is taken over")
    [line] = shop.client.run(AuditList())
    assert (line.what, line.target, line.detail) == ("declare recurring", name, "cron, by declaring 1.1")
    assert line.who.startswith("second")


def test_a_declaration_that_vanished_is_noted_runs_on_and_is_pruned(shop):
    code = shop.here / "declaring.py"
    code.write_text(DECLARING)
    shop.start("process", "--import", "declaring")
    queue = shop.client.queues["q"]
    until(lambda: len(queue.jobs.recurring()) == 2, "both are put")
    [gone] = [name for name in queue.jobs.recurring() if "nightly" in name]
    code.write_text(DECLARING.replace(', every="0 3 * * *", zone="Europe/Berlin", missed="skip"', ""))
    worker = shop.start("process", "--import", "declaring", "--name", "second")
    until(lambda: shop.client.recurring[gone].facts.declared.vanished_ms, "it is noted")
    until(lambda: "1 recurring job is declared by no code any more" in worker.said(), "it is logged")
    assert len(queue.jobs.recurring()) == 2
    assert [one.jid for one in Console(shop.client).vanished_recurring()] == [gone]
    code.write_text(DECLARING)
    shop.start("process", "--import", "declaring", "--name", "third")
    until(lambda: not shop.client.recurring[gone].facts.declared.vanished_ms, "it is declared again")
