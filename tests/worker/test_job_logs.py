"""Logs of workers (workers.md 14): every line of a job tells which job it is of, and the last go with its failure."""

import json
import logging
import re
from types import SimpleNamespace

import pytest
from worker_kit import until

from holdfast import JobFailed
from holdfast.code.current import RunningJob, running
from holdfast.logs import DescriptorHandler, FinishedJob, FinishedJobs, JsonFormatter, TextFormatter, jobs_log
from holdfast.models import JobFacts
from holdfast.worker.middleware.builtin import MOST_LINES, Records

TALKING = """
import logging, os, signal, threading
import chores
from holdfast import current_job

log = logging.getLogger("talking")


@chores.app.job(queue="q")
def talk(name: str) -> None:
    log.info("hello from %s", name)
    thread = threading.Thread(target=log.warning, args=("from a thread of %s", name))
    thread.start()
    thread.join()


@chores.app.job(queue="q")
async def atalk(name: str) -> None:
    log.info("hello from %s", name, extra={"queue": "mine", "who": name})


@chores.app.job(queue="q")
def stumble(name: str) -> None:
    for number in range(30):
        log.info("step %d of %s\\n\\x1b[31m", number, name)
    raise LookupError("stumbled")


class Settling:
    @staticmethod
    def process(job):
        job.complete()


@chores.app.job(queue="q", max_losses=0)
async def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@chores.app.job(queue="q", retries=1, backoff=0.01)
def twice() -> None:
    log.warning("attempt %d", current_job().attempt)
    raise LookupError("twice")
"""


@pytest.fixture
def talking(shop):
    (shop.here / "talking.py").write_text(TALKING)
    import sys

    import talking

    yield talking
    del sys.modules["talking"]


FAILED = r"\[{}\] jid={} queue=q attempt={} \| job {} \(talking\.{}\) {}: LookupError: {}\n    Traceback .*\n"
INFOS = r"\[INFO\] jid=\S+ queue=q attempt=1 \| job (\S+) \(\S+\) took \d+\.\d+ seconds and is complete\n"


def test_each_failed_attempt_has_one_line_with_its_traceback_an_error_if_it_was_the_last(shop, pool, talking):
    worker = shop.start(pool, "-m", "talking")
    once, twice = talking.stumble.put("me"), talking.twice.put()
    for handle in (once, twice):
        with pytest.raises(JobFailed):
            handle.result(30)
    worker.process.terminate()
    assert worker.wait() == 0
    said = worker.said()
    group = "failed in group q-LookupError"
    assert re.search(FAILED.format("ERROR", once.jid, 1, once.jid, "stumble", group, "stumbled"), said)
    retried = r"failed and is tried again after its backoff \(0.01 s\)"
    assert re.search(FAILED.format("WARNING", twice.jid, 1, twice.jid, "twice", retried, "twice"), said)
    assert re.search(FAILED.format("ERROR", twice.jid, 2, twice.jid, "twice", group, "twice"), said)
    assert said.count('    raise LookupError("stumbled")\n') == 1
    assert said.count('    raise LookupError("twice")\n') == 2
    assert "holdfast/work" not in said
    assert " took " not in said


@pytest.mark.full
def test_failures_are_in_json_with_type_message_and_stack_which_can_be_left_out(shop, pool, talking):
    for flags in ((), ("--no-log-tracebacks",)):
        worker = shop.start(pool, "-m", "talking", "--quiet", "--log-format", "json", *flags)
        with pytest.raises(JobFailed):
            talking.stumble.put("me").result(30)
        unknown = shop.q.put("nowhere.at_all")
        until(lambda jid=unknown: shop.state(jid) == "failed", "it fails")
        worker.process.terminate()
        assert worker.wait() == 0
        found, missing = (json.loads(line) for line in worker.said().splitlines())
        assert (found["level"], found["logger"]) == ("ERROR", "holdfast.jobs")
        assert found["error"].items() >= {"type": "LookupError", "message": "stumbled"}.items()
        assert ("stack" in found["error"]) == (not flags)
        if not flags:
            assert found["error"]["stack"].startswith("Traceback (most recent call last):\n")
        assert missing["error"].keys() == {"type", "message"}
        assert missing["error"]["type"] == "ModuleNotFoundError"


@pytest.mark.full
def test_without_tracebacks_an_exception_is_on_the_line_of_what_logged_it(records):
    try:
        raise ValueError("inside\nit")
    except ValueError as error:
        record = record_of("it broke")
        record.exc_info = (ValueError, error, error.__traceback__)
    assert TextFormatter(tracebacks=False).format(record).endswith("[INFO] it broke: ValueError: inside it")
    assert "Traceback" in TextFormatter().format(record)


@pytest.mark.full
def test_a_process_that_is_killed_right_after_a_failed_attempt_has_logged_it(shop, talking):
    worker = shop.start("asyncio", "-m", "talking", "-w", "1", "--concurrency", "1")
    jids = [talking.stumble.put("me").jid, talking.die.put().jid]
    until(lambda: all(shop.state(jid) == "failed" for jid in jids), "both have failed")
    assert worker.said().index('raise LookupError("stumbled")') < worker.said().index("SIGKILL")


@pytest.mark.full
def test_the_end_of_a_job_that_settles_itself_is_logged_although_nothing_is_left_to_report(
    shop, pool, talking
):
    worker = shop.start(pool, "-m", "talking")
    jid = shop.q.put(talking.Settling)
    until(lambda: re.findall(INFOS, worker.said()) == [jid], "it has a line")


LISTENING = """
import logging

class Handler(logging.Handler):
    def emit(self, record):
        with open("seen", "a") as file:
            file.write(f"{record.levelname} {record.getMessage()}\\n")

def begin():
    logging.getLogger().addHandler(Handler())
"""


@pytest.mark.full
def test_a_handler_of_the_program_gets_a_record_of_each_job_and_the_log_its_line_once(shop, pool, talking):
    (shop.here / "listening.py").write_text(LISTENING)
    worker = shop.start(pool, "-m", "talking", "--setup", "listening:begin")
    jids = {talking.talk.put("me").jid for _ in range(3)}
    until(lambda: all(shop.state(jid) == "complete" for jid in jids), "they are complete")
    until(lambda: set(re.findall(INFOS, worker.said())) == jids, "each has a line")
    seen = (shop.here / "seen").read_text()
    assert sorted(re.findall(r"INFO job (\S+) \(talking.talk\) took", seen)) == sorted(jids)
    assert len(re.findall(INFOS, worker.said())) == 3


@pytest.mark.full
@pytest.mark.parametrize("make", [TextFormatter, JsonFormatter])
def test_lines_that_are_written_together_are_those_of_records(records, make, tmp_path):
    odd = JobFacts("j\n1", 'shop."Öl\x1b"', "q\udcff", token=7, worker="w", attempts=3, remaining=4)
    with (tmp_path / "log").open("w") as file:
        handler = DescriptorHandler(file.fileno())
    finished = FinishedJobs([handler], make())
    for created, facts in ((1764325117.085, FACTS), (1764325117.999, odd), (1764325118.0, FACTS)):
        record = jobs_log.makeRecord(jobs_log.name, logging.INFO, "f", 1, "took\n%s", ("long",), None)
        record.created, record.msecs, record.holdfast_job = created, (created % 1) * 1000, facts
        handler.emit(record)
        finished.add(FinishedJob(created, facts, "took\nlong"))
    handler.flush()
    lines = (tmp_path / "log").read_bytes().splitlines()
    # A record writes what was added before it.
    one, added, two, again, three, last = lines if make is JsonFormatter else _joined(lines)
    assert (one, two, three) == (added, again, last)


def _joined(lines: list[bytes]) -> list[bytes]:
    """Return whole messages: further lines of one are indented."""
    return b"\n".join(lines).replace(b"\n    ", b"\v").split(b"\n")


@pytest.mark.full
def test_every_line_of_a_job_names_it_in_json_and_in_the_file_too(shop, pool, talking):
    worker = shop.start(pool, "-m", "talking", "--log-format", "json", "-l", "its.log")
    jids = {name: talk.put(name).jid for name, talk in (("plain", talking.talk), ("awaited", talking.atalk))}
    until(lambda: all(shop.state(jid) == "complete" for jid in jids.values()), "both are complete")
    said = [json.loads(line) for line in worker.said().splitlines()]
    assert [json.loads(line) for line in (shop.here / "its.log").read_text().splitlines()] == said
    assert all(line.keys() >= {"time", "level", "logger", "pid", "message"} for line in said)
    [plain] = [line for line in said if line["message"] == "hello from plain"]
    expected = {"level": "INFO", "logger": "talking", "jid": jids["plain"], "queue": "q", "attempt": 1}
    assert plain.items() >= {**expected, "klass": "talking.talk"}.items()
    [awaited] = [line for line in said if line["message"] == "hello from awaited"]
    assert awaited.items() >= {**expected, "jid": jids["awaited"], "who": "awaited"}.items()
    [threaded] = [line for line in said if line["message"] == "from a thread of plain"]
    if pool in ("process", "fork"):
        assert threaded["jid"] == jids["plain"]
    assert not any("jid" in line for line in said if "working for" in line["message"])


@pytest.mark.full
def test_lines_to_read_name_the_job_and_with_verbose_its_start_and_end(shop, pool, talking, monkeypatch):
    monkeypatch.setenv("VERBOSE", "1")
    worker = shop.start(pool, "-m", "talking")
    jid = talking.talk.put("me").jid
    until(lambda: "and is complete" in worker.said(), "its end is told")
    said = worker.said()
    mark = rf"\[INFO\] jid={jid} queue=q attempt=1 \| "
    assert re.search(mark + r"hello from me$", said, re.MULTILINE)
    assert re.search(mark + rf"job {jid} \(talking.talk\) of queue q started$", said, re.MULTILINE)
    assert re.search(
        mark + rf"job {jid} \(talking.talk\) took 0\.\d+ seconds and is complete$", said, re.MULTILINE
    )


@pytest.mark.full
def test_a_failure_keeps_the_last_lines_that_its_job_logged(shop, pool, talking):
    worker = shop.start(pool, "-m", "talking")
    handle = talking.stumble.put("me")
    with pytest.raises(JobFailed, match="stumbled"):
        handle.result(30)
    lines = shop.job(handle.jid).log_lines
    assert len(lines) == MOST_LINES
    assert re.fullmatch(r"\d{4}-\S+ INFO talking: step 29 of me\?\?\[31m", lines[-1])
    assert "step 10 of me" in lines[0]
    assert "of queue q started" not in worker.said()
    found = shop.client.jobs.explain(handle.jid)
    [told] = [check for check in found.checks if check.check == "log"]
    assert told.facts["lines"] == lines
    assert "step 29 of me" in told.text
    twice = talking.twice.put()
    with pytest.raises(JobFailed, match="twice"):
        twice.result(30)
    assert [line.partition("talking: ")[2] for line in shop.job(twice.jid).log_lines] == [
        "attempt 1",
        "attempt 2",
    ]


FACTS = JobFacts("j1", "shop.Job", "q", token=7, worker="w", attempts=3, remaining=4)


@pytest.fixture
def records():
    before = logging.getLogRecordFactory()
    # A worker that ran in this process may have left one of these, and two would note each line twice.
    logging.setLogRecordFactory(logging.LogRecord)
    records = Records()
    logging.setLogRecordFactory(records)
    yield records
    logging.setLogRecordFactory(before)


def record_of(message: str, *args: object, **extra: object) -> logging.LogRecord:
    logger = logging.getLogger("shop")
    return logger.makeRecord("shop", logging.INFO, "f", 1, message, args, None, extra=extra)


@pytest.mark.full
def test_records_of_a_job_carry_it_and_leave_all_names_to_the_program(records):
    assert not hasattr(record_of("before"), "holdfast_job")
    current = RunningJob(FACTS, SimpleNamespace)
    token = running.set(current)
    try:
        record = record_of("it %s", "works", jid="mine", queue="mine", attempt="mine")
        assert TextFormatter().format(record).endswith("[INFO] jid=j1 queue=q attempt=2 | it works")
        said = json.loads(JsonFormatter().format(record))
        assert (said["jid"], said["queue"], said["attempt"]) == ("j1", "q", 2)
        record_of("does not %d fit", "what")
        record_of("x" * 5000)
    finally:
        running.reset(token)
    assert current.lines is not None
    assert [line.partition("shop: ")[2][:20] for line in current.lines] == [
        "it works",
        "does not %d fit",
        "x" * 20,
    ]
    assert max(len(line) for line in current.lines) == 400


@pytest.mark.full
def test_json_lines_are_json_whatever_is_logged():
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    try:
        raise ValueError("inside\nit")
    except ValueError:
        import sys

        record = logging.getLogger("shop").makeRecord(
            "shop",
            logging.ERROR,
            "f",
            1,
            "\udcff\n%s",
            ("\x00",),
            sys.exc_info(),
            extra={"odd": Odd(), "n": 1},
        )
    line = JsonFormatter().format(record)
    assert line.isascii()
    assert "\n" not in line
    said = json.loads(line)
    assert said["message"] == "\udcff\n\x00"
    assert (said["error"]["type"], said["error"]["message"]) == ("ValueError", "inside\nit")
    assert said["error"]["stack"].endswith("ValueError: inside\nit")
    assert (said["odd"], said["n"]) == ("(its text is not available)", 1)
