"""All that is visible of a root, from the model and from the core, side by side."""

from math import isclose
from typing import Any

from calls import Core, failure_of
from model_lines import NumberedModel
from model_throttles import NEVER

from holdfast.commands.admin import AuditList
from holdfast.commands.operations import JobRow, Scan
from holdfast.models import Counts, JobFacts, Sample, Stats

LONGEST_IN_RECORD = 512
"""Bytes; longer data live in a key of their own."""
PAGE = 2
"""Jobs of a page of a scan: so few that every set of some jobs has several."""

NUMBERS = (*Counts.__struct_fields__[:10], "limit", "heartbeat_ms", "paused_until_ms")
"""What the model knows of a queue; the sizes of sets before all."""


def compare(model: NumberedModel, core: Core, jids: list[str], queues: list[str]) -> None:
    look = core.door.look
    jids = sorted({*jids, *model.jobs})
    for jid, row in zip(jids, look("job_get", *jids), strict=True):
        same_job(model, jid, row)
    counts = [Counts.from_row(row) for row in look("counts")]
    assert [tuple(getattr(count, name) for name in NUMBERS) for count in counts] == model.counts()
    assert [name.decode() for name in look("queues")] == model.known
    assert [jid.decode() for jid in look("jobs_complete", 0, 1000)] == model.completed[::-1]
    _, *groups = look("failures", 0, 512)
    assert {groups[i].decode(): groups[i + 1] for i in range(0, len(groups), 2)} == model.failures()
    for group in model.failures():
        total, *page = look("failed", group, 0, 100)
        assert (total, [jid.decode() for jid in page]) == (len(page), model.failed(group))
    for queue in queues:
        peeked = [JobFacts.from_job_row(row).jid for row in look("peek", queue, 0, 100)]
        assert peeked == model.peek(queue, 0, 100), queue
    same_day(model, core, queues, model.now)
    same_tags(model, core)
    for name in model.limits:
        assert tuple(look("throttle_get", name)) == model.throttle_get(name), name
    same_operations(model, core)
    same_scans(model, core, queues)
    add_up(model, counts, core)
    nothing_leaks(model, core)


def same_job(model: NumberedModel, jid: str, row: Any) -> None:
    expected, shown = model.job_get(jid), seen(row)
    if shown and expected and expected["tracked"] is None:
        shown["tracked"] = None
    assert shown == expected, jid


def same_day(model: NumberedModel, core: Core, queues: list[str], when: int) -> None:
    """The figures of the day of `when`."""
    for queue in queues:
        same_stats(Stats.from_row(core.door.look("stats", queue, when)), model.stats(queue, when))


def seen(row: Any) -> dict[str, Any] | None:
    if not row:
        return None
    job = JobFacts.from_job_row(row)
    fields = (
        "klass queue data priority state worker token expires_ms due_ms retries remaining attempts losses created_ms "
        "queued_ms popped_ms ended_ms result"
    )
    shown: dict[str, Any] = {name: getattr(job, name) for name in fields.split()}
    shown["failure"] = failure_of(job)
    shown |= {name: set(getattr(job, name)) for name in ("dependencies", "dependents")}
    shown |= {"tags": job.tags, "options": dict(job.options), "spawned_from": job.spawned_from}
    progress = job.progress
    shown["progress"] = (progress.fraction, progress.note, progress.when_ms) if progress else None
    shown |= {"log": job.log, "throttles": job.throttles, "tracked": job.tracked}
    shown["history"] = [
        (line.what, line.when_ms, line.name) for line in job.history if not line.refusal
    ]  # late reports change nothing else: see `test_history_story.py`
    return shown


def same_stats(stats: Stats, expected: tuple[Any, ...]) -> None:
    assert (stats.retries, stats.failed, stats.failures, stats.retried) == expected[:4]
    for sample, figures in zip((stats.wait, stats.run), expected[4:], strict=True):
        same_sample(sample, figures)


def same_sample(sample: Sample, figures: tuple[int, float, float, list[int]]) -> None:
    count, mean, std, histogram = figures
    assert (sample.count, list(sample.histogram)) == (count, histogram)
    assert isclose(sample.mean, mean, rel_tol=1e-12, abs_tol=1e-12)
    assert isclose(sample.std, std, rel_tol=1e-12, abs_tol=1e-12)
    assert sum(number for _, number in sample.fine) == count


def same_tags(model: NumberedModel, core: Core) -> None:
    """The index by tag, and how many jobs have each."""
    ask, key, counts = core.door.ask, core.door.key, model.tag_counts()
    found = ask("ZRANGE", key("G"), 0, -1, "WITHSCORES")
    assert {tag.decode(): int(number) for tag, number in pairs(found)} == counts
    for tag in counts:
        members = pairs(ask("ZRANGE", key(f"g:{tag}"), 0, -1, "WITHSCORES"))
        assert [(jid.decode(), int(when)) for jid, when in members] == model.tagged(tag), tag


def same_operations(model: NumberedModel, core: Core) -> None:
    """Operations, newest first, all that is kept of each, and the audit log."""
    later: Any = core
    assert later.operations(0, 64) == model.operations(0, 64)
    for id in model.operations_by_id:
        assert later.operation_get(id, 0, 64) == model.operation_get(id, 0, 64), id
        assert later.operation_get(id, 1, 1) == model.operation_get(id, 1, 1), id
    lines = AuditList("", 100).read(core.door.look("audit_list", "", 100))
    shown = [(line.when_ms, line.who, line.what, line.target, line.detail) for line in lines]
    assert shown == model.audit[::-1][:100]


def same_scans(model: NumberedModel, core: Core, queues: list[str]) -> None:
    """Every set of jobs, read in pages, with all that a search compares."""
    for kind, name in model.sets(queues):
        expected = model.members(kind, name)
        found, size = scanned(core, kind, name)
        assert size == len(expected), (kind, name)
        if not model.is_ordered(kind):
            found = sorted(found, key=lambda row: row.jid)
        assert [row.jid for row in found] == [jid for jid in expected if jid in model.jobs], (kind, name)
        for row in found:
            shown = {field: getattr(row, field) for field in row.__struct_fields__ if field != "tracked"}
            if row.state not in (
                "running",
                "stalled",
            ):  # then it is that of the last run, which the model forgets
                shown["worker"] = ""
            assert shown == model.scanned(row.jid), (kind, name)


def scanned(core: Core, kind: str, name: str) -> tuple[list[JobRow], int]:
    """All rows of a set, and its size."""
    rows: list[JobRow] = []
    after: Any = None
    while True:
        command = Scan(kind, name, after, PAGE, "dte")
        page = command.read(core.door.look("scan", *command.words()))
        rows += page.jobs
        after = page.next
        if after is None:
            return rows, page.size


def pairs(reply: Any) -> list[tuple[Any, Any]]:
    """What an engine answers in pairs, flat or not."""
    if reply and isinstance(reply[0], list):
        return [(one, other) for one, other in reply]
    return list(zip(reply[::2], reply[1::2], strict=True))


def add_up(model: NumberedModel, counts: list[Counts], core: Core) -> None:
    """Every job is counted in exactly one state, and no key is left of one that is gone (L3, L12)."""
    keys = core.door.names()
    jobs = {key[2:] for key in keys if key.startswith("j:")}
    in_queues = sum(
        count.waiting
        + count.running
        + count.stalled
        + count.throttled
        + count.scheduled
        + count.depends
        + count.failed
        for count in counts
    )
    assert jobs == set(model.jobs)
    assert in_queues + len(model.completed) == len(jobs)
    assert {key[2:] for key in keys if key.startswith("x:")} <= jobs
    long = {jid for jid, job in model.jobs.items() if len(job.data) > LONGEST_IN_RECORD}
    assert {key[2:] for key in keys if key.startswith("b:")} == long


def nothing_leaks(model: NumberedModel, core: Core) -> None:
    """Every key belongs to somebody (L17): a job, what it holds or waits for, or a queue that was used."""
    owned = owned_keys(model)
    always = (
        *(
            "s:",
            "q:",
            "aw:",
            "ar:",
            "z:",
            "k:",
            "m:",
            "o:",
            "n:",
            "i:",
            "a:",
            "e:",
            "v:",
            "j:",
            "x:",
            "b:",
            "E:",
        ),
    )
    single = {"", "c", "C", "E", "Q", "W", "A", "K", "qi", "qp", "H", "F", "R", "T", "N"}
    keys = {key for key in core.door.names() if key not in single and not key.startswith(always)}
    assert keys == owned


def owned_keys(model: NumberedModel) -> set[str]:
    """The keys that must exist, and no others of their kinds."""
    jobs = list(model.jobs.values())
    keys = {"G"} if model.tag_counts() else set[str]()
    keys |= {f"g:{tag}" for tag in model.tag_counts()}
    keys |= {f"d:{parent}" for job in jobs for parent in job.parents}
    of_state = {"running": "l:", "scheduled": "t:", "depends": "D:", "failed": "fq:"}
    keys |= {of_state[job.state] + job.queue for job in jobs if job.state in of_state}
    keys |= {f"w:{job.queue}" for job in jobs if job.ready}
    keys |= {f"P:{job.queue}" for job in jobs if job.state == "throttled" and not job.ready}
    keys |= {f"p:{job.pends}" for job in jobs if job.pends} | {
        f"h:{name}" for job in jobs for name in job.holds
    }
    keys |= {f"hx:ql:q:{job.queue}" for job in jobs if job.freed}
    operations = model.operations_by_id
    keys |= {"O"} if operations else set()
    keys |= {f"O:{id}" for id in operations} | {f"Ou:{id}" for id, one in operations.items() if one.parts}
    keys |= {f"Or:{id}" for id, one in operations.items() if one.refusals}
    keys |= {"U"} if any(ends < NEVER for _, ends in model.limits.values()) else set()
    keys |= {f"r:{jid}" for jid in model.templates} | {f"y:{t.queue}" for t in model.templates.values()}
    return keys | {f"f:{group}" for group in model.failures()}
