"""Why a job runs or does not: one story a verdict. Nothing of it may write."""

import pytest

from holdfast.client.explanation import Explanation, explained
from holdfast.client.reasons import Check
from holdfast.commands.admin import ConfigSet, IdentifiersSet
from holdfast.commands.attributes import Report
from holdfast.commands.jobs import Mode
from holdfast.commands.leases import Complete, Pop
from holdfast.commands.options import ExtraOptions, JobWithOptions, PutWithOptions, PutX
from holdfast.commands.outcomes import Fail, Release, Retry
from holdfast.commands.queues import Pause
from holdfast.commands.workers import WorkerSeen
from native_door import Door


@pytest.fixture
def why(core, door: Door):
    """Explains a job, and makes sure that this wrote nothing."""

    def ask(jid: str) -> Explanation:
        before = door.dump()
        found: Explanation = core(explained(jid))
        assert door.dump() == before
        return found

    return ask


@pytest.fixture
def worker(core):
    """Says that a worker with two slots works for a queue."""

    def say(name: str, *queues: str, busy: int = 0) -> None:
        listed = ",".join(f'"{queue}"' for queue in queues)
        core(WorkerSeen(name, {"queues": f"[{listed}]", "slots": "2", "busy": str(busy)}))

    return say


def check(found: Explanation, name: str) -> Check:
    [one] = [check for check in found.checks if check.check == name]
    return one


def blocks(found: Explanation) -> list[str]:
    return [check.check for check in found.blocked_by]


def test_a_job_that_is_not_there(why, core, door: Door):
    found = why("nobody")
    assert (found.exists, found.state, blocks(found)) == (False, "gone", ["exists"])
    assert "no such job" in found.text


def test_a_job_that_is_over_and_forgotten_but_for_its_result(why, core, door: Door):
    core(ConfigSet("jobs-history-count", "0"))
    door.put("q", "a")
    [job] = core(Pop("w", ["q"]))
    door("complete", "w", "a", job.token, "", 60_000, "42")
    found = why("a")
    assert (found.exists, blocks(found)) == (False, [])
    assert "result is still kept" in found.text


def test_the_next_job_of_a_queue_with_a_free_worker_is_blocked_by_nothing(why, worker, door: Door):
    worker("w", "q", "other")
    door.put("q", "a")
    found = why("a")
    assert (found.state, blocks(found), found.text) == ("waiting", [], "It is the next job of queue q.")
    assert check(found, "workers").facts["free"] == 2


def test_a_job_without_a_worker(why, worker, door: Door):
    worker("w", "other")
    door.put("q", "a")
    found = why("a")
    assert blocks(found) == ["workers"]
    assert found.text == "No worker is known for queue q."
    assert check(found, "workers").fix == "holdfast worker -q q"


def test_a_job_whose_workers_are_busy(why, worker, core, door: Door):
    worker("w", "q", busy=2)
    door.put("q", "a")
    found = why("a")
    assert blocks(found) == ["workers"]
    assert "0 free slots" in found.text


def test_a_job_whose_workers_were_told_to_be_quiet(why, worker, door: Door):
    worker("w", "q")
    door("worker_quiet", "w", 1)
    door.put("q", "a")
    assert "are quiet" in why("a").text


@pytest.mark.parametrize(
    ("patterns", "serves"),
    [
        (["ma*"], True),
        (["*"], True),
        (["*", "!mail"], False),
        (["ops-*"], False),
        (["@letters"], True),
        (["@bills"], False),
    ],
)
def test_a_worker_by_patterns_counts_for_the_queues_that_they_match_alone(
    why, core, worker, door: Door, patterns, serves
):
    core(IdentifiersSet({"letters": '["mail"]', "bills": '["bill*"]'}))
    worker("w", *patterns)
    door.put("mail", "a")
    found = why("a")
    assert blocks(found) == ([] if serves else ["workers"])
    if not serves:
        assert found.text == "No worker is known for queue mail."


@pytest.mark.parametrize("queue", ["q", "*"])
def test_a_job_whose_only_worker_is_silent(why, clock, worker, door: Door, queue):
    worker("w", queue)
    door.put("q", "a")
    clock.advance(seconds=70)
    found = why("a")
    assert blocks(found) == ["workers"]
    assert "No worker takes jobs of queue q: its only worker is frozen, gone, or cannot reach" in found.text
    assert "worker w has been silent for 70 s, since " in found.text
    assert check(found, "workers").fix == "holdfast worker -q q"
    worker("other", "q")
    text = check(why("a"), "workers").text
    assert text.startswith("1 worker works for queue q, with 2 free slots; worker w has been silent for 70 s")


def test_a_job_behind_others_and_behind_higher_priorities(why, worker, door: Door):
    worker("w", "q")
    door.put("q", "a", "b", "mine")
    door.put("q", "high", priority=3)
    door.put("q", "low", priority=-3)
    found = why("mine")
    assert blocks(found) == []
    facts = check(found, "place").facts
    assert (facts["ahead"], facts["higher_priority"], facts["waiting"]) == (3, 1, 5)
    assert "3 jobs are ahead of it, 1 of them by priority" in found.text
    assert check(why("high"), "place").facts["ahead"] == 0
    assert check(why("low"), "place").facts["higher_priority"] == 4


def test_a_job_that_is_due_later(why, clock, worker, door: Door):
    worker("w", "q")
    door.put("q", "a", delay=90_000)
    found = why("a")
    assert (found.state, blocks(found), found.text) == ("scheduled", ["due"], "It is due in 90 s.")
    clock.advance(seconds=95)
    worker("w", "q")
    found = why("a")
    assert (found.state, blocks(found)) == ("waiting", [])
    assert check(found, "due").text == "It was due 5 s ago; the next pop makes it ready."


def test_a_job_that_waits_for_others_one_of_which_failed(why, core, worker, door: Door):
    worker("w", "q")
    parents = [f"p{n}" for n in range(30)]
    door.put("q", *parents)
    core(PutX("q", [JobWithOptions("K", b"{}", "child", ExtraOptions(depends=parents))]))
    [first, second] = core(Pop("w", ["q"], limit=2))
    core(Complete("w", first))
    core(Fail("w", second, "G", "broken"))
    found = why("child")
    assert (found.state, blocks(found)) == ("depends", ["dependencies"])
    facts = check(found, "dependencies").facts
    assert (facts["open"], len(facts["parents"]), facts["failed"]) == (29, 20, ["p1"])
    assert facts["parents"][0] == {"jid": "p1", "state": "failed", "group": "G"}
    assert "p1 has failed" in found.text
    assert check(found, "dependencies").fix == "holdfast jobs retry p1"


def test_a_job_of_a_paused_queue(why, core, clock, worker, door: Door):
    worker("w", "q")
    door.put("q", "a")
    core(Pause(("q",), True, "ann", "deploy", 60_000))
    clock.advance(seconds=10)
    found = why("a")
    assert blocks(found) == ["pause"]
    assert found.text == "Queue q was paused 10 s ago by ann: deploy; the pause ends in 50 s."
    clock.advance(seconds=50)
    worker("w", "q")
    assert blocks(why("a")) == []


def test_a_job_that_finds_its_throttle_full(why, core, worker, door: Door):
    worker("w", "q")
    door("throttle_set", "", 0, "ql:q:q", 1, 0)
    door.put("q", "holder")
    core(Pop("bee", ["q"]))
    door.put("q", "before", "mine")
    found = why("mine")
    assert (found.state, blocks(found)) == ("throttled", ["throttles"])
    [facts] = check(found, "throttles").facts["throttles"]
    assert (facts["id"], facts["maximum"], facts["used"], facts["place"]) == ("ql:q:q", 1, 1, 2)
    assert facts["holders"] == {"holder": "bee"}
    assert "1 of 1 slots are taken, and 1 job waits before it" in found.text
    assert "throttle" in check(found, "throttles").fix


def test_a_job_whose_throttle_has_slots(why, core, worker, door: Door):
    worker("w", "q")
    door("throttle_set", "", 0, "ql:q:q", 5, 0)
    door.put("q", "a")
    found = why("a")
    assert blocks(found) == []
    assert check(found, "throttles").verdict == "fine"


@pytest.mark.usefixtures("long_leases")
def test_a_job_that_runs(why, core, clock, worker, door: Door):
    door.put("q", "a")
    core(Pop("w", ["q"]))
    clock.advance(seconds=15)
    worker("w", "q", busy=1)
    clock.advance(seconds=4)
    found = why("a")
    assert (found.state, blocks(found)) == ("running", [])
    assert found.text == "w has held it for 19 s, and was last seen 4 s ago; its lease has 41 s left."


@pytest.mark.usefixtures("long_leases")
def test_a_job_whose_lease_ended_and_then_was_noticed(why, core, clock, door: Door):
    door.put("q", "a")
    core(Pop("w", ["q"]))
    clock.advance(seconds=65)
    found = why("a")
    assert blocks(found) == ["lease"]
    assert "its lease ended 5 s ago" in found.text
    assert core(Pop("v", ["q"])) == []
    clock.advance(seconds=4)
    assert why("a").text == "w lost its lease; the job is handed out again in 6 s."
    clock.advance(seconds=6)
    assert why("a").text == "w lost its lease; the next pop hands the job out again."
    core(Pop("v", ["q"]))
    facts = check(why("a"), "retries").facts
    assert (facts["remaining"], facts["losses"]) == (4, 1)


def test_a_job_that_failed(why, core, clock, door: Door):
    door.put("q", "a", "b")
    for job in core(Pop("w", ["q"], limit=2)):
        core(Report("w", job, lines=["looking", "it is user 7"]))
        core(Fail("w", job, "G", "Traceback …\nValueError: no such user"))
    clock.advance(seconds=180)
    found = why("a")
    assert (found.state, blocks(found)) == ("failed", ["failure"])
    assert (
        found.text
        == "It failed 3 min ago in group G and stays there until it is retried: ValueError: no such user"
    )
    facts = check(found, "failure").facts
    assert (facts["in_group"], facts["worker"]) == (2, "w")
    log = check(found, "log")
    assert (log.text, log.facts["lines"]) == (
        "Its last log line: it is user 7",
        ["looking", "it is user 7"],
    )
    assert check(found, "failure").fix == "holdfast jobs retry a"
    door("unfail", "", 0, "q", "G", 1)
    assert check(why("a"), "failure").verdict == "note"


def test_a_job_that_is_complete(why, core, door: Door):
    door.put("q", "a")
    core(Complete("w", core(Pop("w", ["q"]))[0]))
    found = why("a")
    assert (found.exists, found.state, blocks(found)) == (True, "complete", [])


def test_a_job_that_must_start_soon_and_one_that_is_too_late(why, core, clock, worker, door: Door):
    worker("w", "q")
    core(PutX("q", [JobWithOptions("K", b"{}", "a", ExtraOptions(expires_ms=60_000))]))
    assert "within 60 s" in check(why("a"), "expires").text
    clock.advance(seconds=61)
    worker("w", "q")
    assert blocks(why("a")) == ["expires"]


def test_a_job_that_was_timed_out_goes_first(why, core, worker, door: Door):
    worker("w", "q")
    door.put("q", "a", "b")
    core(Pop("w", ["q"]))
    door.put("q", "high", priority=9)
    door("timeout", "", 0, "a")
    found = why("a")
    assert (found.state, blocks(found)) == ("stalled", [])
    assert check(found, "place").facts["ahead"] == 0


def test_the_last_tries_are_told(why, core, door: Door):
    door.put("q", "a")
    for n in range(4):
        [job] = core(Pop("w", ["q"]))
        door("retry", "w", 0, f"G{n}", "why", "a", job.token, "")
    tries = why("a").facts["tries"]
    assert [row[0] for row in tries] == ["retried", "popped", "retried", "popped", "retried"]
    assert tries[-1][4:] == ["G3", "why"]


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            "Traceback (most recent call last):\n  File …, line 3\nValueError: no such thing\n\n",
            "ValueError: no such thing",
        ),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    f()\nE: 1 error\nname\n  Field required\na note',
            "E: 1 error",
        ),
        ('x\n  File "a.py", line 3, in f\n    f()', "    f()"),
        ("one line", "one line"),
        ("\n \n", ""),
        ("a\n" + "ü" * 3000, "ü" * 100),
    ],
)
def test_the_history_has_the_end_of_a_traceback(why, core, door: Door, message: str, kept: str):
    door.put("q", "a")
    [job] = core(Pop("w", ["q"]))
    door("retry", "w", 0, "G", message, "a", job.token, "")
    assert why("a").facts["tries"][-1][4:] == ["G", kept]


def test_a_job_that_is_complete_after_a_failure_is_just_complete(why, core, door: Door):
    door.put("q", "a")
    [job] = core(Pop("w", ["q"]))
    core(Retry("w", job))
    [job] = core(Pop("w", ["q"]))
    core(Complete("w", job))
    assert why("a").text == "The job is complete."


def test_a_message_moves_no_cursor_and_a_name_is_one_word_of_a_command(why, core, door: Door):
    door.put("a b", "-x")
    assert check(why("-x"), "workers").fix == "holdfast worker -q 'a b'"
    [job] = core(Pop("w", ["a b"]))
    core(Fail("w", job, "G", "first\n  \x1b[31mred\x07\tcell  "))
    assert why("-x").text.endswith("in group G and stays there until it is retried: ?[31mred? cell")
    door.put_waiting("child", "-x")
    assert check(why("child"), "dependencies").fix == "holdfast jobs retry -- -x"


def test_a_job_whose_place_among_those_who_wait_was_taken(why, core, clock, door: Door):
    door("throttle_set", "", 0, "t", 1, 60_000)
    core(
        PutX(
            "q",
            [JobWithOptions("K", jid=jid, options=ExtraOptions(throttles=["t"])) for jid in ("a", "b", "c")],
        )
    )
    core(Pop("w", ["q"], 3))
    assert check(why("b"), "throttles").text == "Throttle t is full: 1 of 1 slots are taken."
    assert check(why("c"), "throttles").text.endswith(", and 1 job waits before it.")
    door("throttle_release", "", 0, "t", "b")
    found = check(why("b"), "throttles")
    assert (found.verdict, found.fix) == ("blocks", "holdfast jobs move q b")
    assert "stays throttled" in found.text
    clock.advance(seconds=60)
    assert check(why("c"), "throttles").verdict == "fine"


def test_a_worker_that_says_nonsense_of_itself_has_no_slots(why, core, door: Door):
    core(WorkerSeen("w", {"queues": '["q"]', "slots": "many", "busy": "-1"}))
    door.put("q", "a")
    assert "with 0 free slots" in check(why("a"), "workers").text


def test_lost_attempts_are_told_with_their_cause_and_their_budget(why, core, door: Door):
    door("put", "", 0, "new", "q", 0, "1/2", 0, "a", "k", "{}")
    [job] = core(Pop("w", ["q"]))
    core(Release([job], "crashed", "SIGSEGV"))
    [job] = core(Pop("w", ["q"]))
    core(Retry("w", job))
    said = check(why("a"), "retries")
    assert said.text.startswith("1 of 1 failures and 1 of 2 losses are used; the last loss was ")
    assert said.text.endswith(" ago, attempt 1 on w: its process died (SIGSEGV).")
    assert (said.facts["losses"], said.facts["max_losses"]) == (1, 2)


def test_preemptions_are_told_from_the_fifth_on(why, core, door: Door):
    door.put("q", "a")
    for count in range(1, 6):
        [job] = core(Pop("w", ["q"]))
        core(Release([job], "preempted", "TERM"))
        found = [one for one in why("a").checks if one.check == "preempted"]
        assert bool(found) == (count == 5)
    assert found[0].text.startswith("It was preempted 5 times, at no cost; the last time ")
    assert found[0].text.endswith("on w (TERM).")


def test_a_job_whose_code_nobody_knows_says_who_looked_and_what_they_met(why, core, clock, door: Door):
    door.put("q", "a")
    [job] = core(Pop("w-7", ["q"]))
    core(Release([job], "unknown", "ModuleNotFoundError: No module named 'x'", "q-ModuleNotFoundError"))
    clock.advance(seconds=0.5)
    found = why("a")
    assert blocks(found)[0] == "unknown"
    assert found.text == (
        "Worker w-7 tried it 500 ms ago, but does not have its code: ModuleNotFoundError: No module named 'x'. "
        "It waits for a worker that has it, and fails in 10 min if there is none."
    )
    clock.advance(seconds=1)
    core(Pop("w-8", ["q"]))
    assert "unknown" not in [one.check for one in why("a").checks]


def test_whose_the_unique_key_of_a_job_is(why, core, door: Door):
    def put(jid: str, mode: Mode, hold: str = "end") -> None:
        job = JobWithOptions("k", b"{}", jid, ExtraOptions(unique_key="a", unique_for=hold))
        core(PutWithOptions("q", job, mode=mode))

    put("one", "move")
    assert check(why("one"), "unique").text == "It holds its unique key until its end."
    [job] = door.pop("w", "q")
    door("fail", "w", "g", "m", "one", job.token, "")
    assert "unique" not in [one.check for one in why("one").checks]
    put("two", "move", "start")
    assert check(why("two"), "unique").text == "It holds its unique key until its start."
    found = check(why("one"), "unique")
    assert found.text == "Job two holds its unique key; until that has ended, this one cannot be retried."
    assert found.fix.split()[-1] == "two"
    door.pop("w", "q")
    assert "unique" not in [one.check for one in why("one").checks]
