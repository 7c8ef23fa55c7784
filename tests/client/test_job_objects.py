"""python-api 4.1 and 4.2: a job as an object, made by the store or by hand, and what can be read of it and changed."""

import json
import sys
import time
from datetime import UTC, datetime

import pytest
from sync_async import Async

import holdfast
from holdfast import AsyncJob, Job, JobNotFound, UsageError
from holdfast.models import JobFacts
from holdfast.worker.performing.surroundings import HeldAsyncJob, HeldJob


class Greeter:
    """Says hello."""

    @staticmethod
    def process(job):
        job["greeted"] = True


KIND = {"sync": Job, "async": AsyncJob}
PARTS = {
    "jid": "j1", "klass": "app.Welcome", "data": '{"id": 7}', "priority": 3, "queue": "mail", "tags": ["red"],
    "throttles": ["gpu", "ql:q:mail"], "state": "failed", "dependents": ["c"], "dependencies": ["p"], "tracked": True,
    "failure": {"group": "g", "message": "m", "when": 12, "worker": "w"}, "worker": "w", "remaining": 2, "retries": 4,
    "expires": 1331326141.5, "history": [{"what": "put", "when": 11.0, "queue": "mail"}],
}  # fmt: skip


@pytest.fixture(params=[Job, AsyncJob], ids=["sync", "async"])
def kind(request):
    return request.param


def test_a_job_can_be_made_by_hand_and_shows_what_it_was_given(kind):
    job = kind(None, **PARTS)
    assert (job.jid, job.klass_name, job.data, job.priority) == ("j1", "app.Welcome", '{"id": 7}', 3)
    assert (job.queue_name, job.tags, job.throttles) == ("mail", ["red"], ["gpu", "ql:q:mail"])
    assert (job.state, job.worker_name, job.tracked) == ("failed", "w", True)
    assert (job.dependencies, job.dependents) == (["p"], ["c"])
    assert (job.original_retries, job.retries_left, job.expires_at) == (4, 2, 1331326141.5)
    assert (job.failure, job.history) == (PARTS["failure"], PARTS["history"])
    assert (job.spawned_from_jid, job.token, job.sandbox, job.state_changed) == (None, 0, None, False)
    assert job.ttl == pytest.approx(job.expires_at - time.time(), abs=25)


def test_a_job_made_by_hand_needs_no_more_than_jid_and_klass(kind):
    job = kind(None, jid="j", klass=Greeter)
    assert (job.klass_name, job.klass, job.data) == (f"{__name__}.Greeter", Greeter, "{}")
    assert (job.tags, job.throttles, job.failure, job.history, job.expires_at) == ([], [], {}, [], 0)
    assert (job.original_retries, job.retries_left, job.state) == (5, 5, "waiting")


def test_an_empty_mapping_in_place_of_a_list_is_an_empty_list(kind):
    empty = {"tags": {}, "throttles": {}, "dependencies": {}, "dependents": {}, "history": {}}
    job = kind(None, jid="j", klass="K", **empty)
    assert [job.tags, job.throttles, job.dependencies, job.dependents, job.history] == [[]] * 5


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"jid": 7}, "jid"), ({"state": "lost"}, "state"), ({"retries": -1}, "retries"), ({"data": {1, object()}}, "data"),
        ({"tags": "red"}, "tags"), ({"failure": "g"}, "failure"), ({"history": [1]}, "history"),
        ({"expires": "soon"}, "expires"), ({"prioriti": 1}, "did you mean 'priority'"), ({"klass": 7}, "klass must be"),
    ],
)  # fmt: skip
def test_what_a_job_cannot_be_made_of_is_named(kind, part, named):
    with pytest.raises(UsageError, match=named):
        kind(None, **{"jid": "j", "klass": "K", **part})


def test_a_job_that_was_put_shows_what_the_store_knows(do):
    queue, before = do.client.queues["mail"], time.time()
    do(lambda: queue.put("app.Parent", jid="p"))
    jid = do(
        lambda: queue.put(
            "app.Welcome", '{"id":7}', priority=2, tags=["red"], retries=4, depends=["p"], throttles=["gpu"]
        )
    )
    job = do(lambda: do.client.jobs[jid])
    assert (job.jid, job.klass_name, job.data, job.priority) == (jid, "app.Welcome", '{"id":7}', 2)
    assert (len(jid), jid == jid.lower(), int(jid, 16) >> 76 & 15) == (32, True, 7)
    assert (job.queue_name, job.queue, job.state) == ("mail", do.client.queues["mail"], "depends")
    assert (job.tags, job.throttles, job.dependencies) == (["red"], ["gpu", "ql:q:mail"], ["p"])
    assert (job.original_retries, job.retries_left) == (4, 4)
    assert (job.worker_name, job.expires_at, job.failure, job.token, job.tracked) == ("", 0, {}, 0, False)
    [put] = job.history
    assert (put["what"], put["queue"]) == ("put", "mail")
    assert put["when"] == pytest.approx(before, abs=60)
    assert do(lambda: do.client.jobs["p"]).dependents == [jid]


def test_every_state_is_told_by_its_word(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.throttle.set_maximum(4))
    for jid, options in (("run", {}), ("done", {}), ("bad", {}), ("lost", {}), ("later", {"delay": 60})):
        do(lambda jid=jid, options=options: queue.put("K", jid=jid, **options))
    held = {job.jid: job for job in do(lambda: queue.pop(4))}
    do(lambda: held["done"].complete())
    do(lambda: held["bad"].fail("g", "m"))
    do(lambda: held["lost"].timeout())
    do(lambda: queue.put("K", jid="child", depends=["run"]))
    do(lambda: queue.put("K", jid="next"))
    do(lambda: queue.throttle.set_maximum(1))
    do(lambda: queue.put("K", jid="aside"))
    words = {job.jid: job.state for job in do(
        lambda: do.client.jobs.get("run", "done", "bad", "lost", "later", "child", "next", "aside"))}  # fmt: skip
    assert words == {
        "run": "running", "done": "complete", "bad": "failed", "lost": "stalled", "later": "scheduled",
        "child": "depends", "next": "waiting", "aside": "throttled",
    }  # fmt: skip
    assert do(lambda: do.client.jobs["done"]).queue_name == ""


def test_a_completed_job_has_no_queue_no_failure_and_no_worker(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    job = do(do.client.queues["mail"].pop)
    do(job.complete)
    done = do(lambda: do.client.jobs["j"])
    assert (done.queue_name, done.failure, done.worker_name) == ("", {}, "")
    assert done.queue != "mail"


def test_a_popped_job_tells_its_lease(do):
    do.client.worker_name = "box-7"
    do(lambda: do.client.queues["mail"].put("K"))
    job = do(do.client.queues["mail"].pop)
    assert (job.worker_name, job.state) == ("box-7", "running")
    assert job.token > 0
    assert 0 < job.ttl <= 31
    assert job.expires_at == pytest.approx(time.time() + 30, abs=30)


def test_a_popped_job_of_an_ordinary_life_came_with_its_history(do):
    do(lambda: do.client.queues["mail"].put("K"))
    job = do(do.client.queues["mail"].pop)
    assert job.history == do(lambda: do.client.jobs[job.jid]).history
    assert [entry["what"] for entry in job.history] == ["put", "popped"]
    assert job.initially_put_at == job.created_at


def popped_with_a_past(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", jid="j"))
    do(lambda: do.client.track("j"))
    do(lambda: queue.put("K", depends=["j"], jid="child"))
    first = do(queue.pop)
    do(lambda: first.report(0.5, "half", ["a line"]))
    do(first.retry)
    return do(queue.pop)


def test_a_popped_job_tells_what_it_came_without(do):
    job = popped_with_a_past(do)
    assert (job.tracked, job.retries_left, job.attempts) == (True, 4, 2)
    if isinstance(do, Async):
        assert do(job.load) is job
    assert [entry["what"] for entry in job.history] == ["put", "popped", "retried", "popped"]
    assert (job.dependents, job.progress_fraction, job.progress_note) == (["child"], 0.5, "half")
    assert job.log_lines == ["a line"]


def test_a_popped_job_of_an_async_client_says_that_it_has_to_be_loaded(do):
    job = popped_with_a_past(do)
    if isinstance(do, Async):
        for name in ("history", "dependents", "progress_fraction", "log_lines"):
            with pytest.raises(UsageError, match=r"await job\.load"):
                getattr(job, name)


def test_no_attribute_reads_the_store_again(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    do(lambda: do.client.jobs.cancel("j"))
    assert (job.state, job.history[0]["what"]) == ("waiting", "put")
    assert do(lambda: do.client.jobs["j"]) is None


def test_what_is_settable_here_stays_here(do):
    do(lambda: do.client.queues["mail"].put("K", {"a": 1}, jid="j", tags=["red"]))
    job = do(lambda: do.client.jobs["j"])
    job.tags, job.throttles, job.dependencies = ["x"], ["y"], ["z"]
    job.klass_name, job.queue_name, job.expires_at = "L", "post", 5.0
    job.failure, job.sandbox, job.data = {"group": "g"}, "/tmp/box", {"a": 2}
    assert (job.tags, job.throttles, job.dependencies) == (["x"], ["y"], ["z"])
    assert (job.klass_name, job.queue_name, job.queue, job.expires_at) == ("L", "post", "post", 5.0)
    assert (job.failure, job.sandbox, job.data) == ({"group": "g"}, "/tmp/box", '{"a":2}')
    assert job.ttl == pytest.approx(5.0 - time.time(), abs=25)
    again = do(lambda: do.client.jobs["j"])
    assert (again.tags, again.klass_name, again.queue_name, again.data) == (["red"], "K", "mail", '{"a":1}')
    job.jid = "other"
    assert (job.jid, repr(job)) == ("other", "<L other>")
    with pytest.raises(JobNotFound):
        do(job.track)


def test_the_queue_of_a_job_cannot_be_assigned(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    with pytest.raises(AttributeError):
        job.queue = "post"
    assert job.queue is job.queue


def test_a_list_of_a_job_that_is_changed_in_place_stays_changed(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j", tags=["red"]))
    job = do(lambda: do.client.jobs["j"])
    job.tags.append("blue")
    assert job.tags == ["red", "blue"]
    assert do(lambda: job.tag("green")) == job.tags == ["red", "green"]
    assert do(lambda: job.untag("red")) == job.tags == ["green"]


def test_the_klass_is_imported_at_the_first_look_and_kept(do, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "lazily_found.py").write_text("class Job:\n    class Inner: pass\n")
    queue = do.client.queues["mail"]
    do(lambda: queue.put("lazily_found.Job", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    monkeypatch.delitem(sys.modules, "lazily_found", raising=False)
    assert "lazily_found" not in sys.modules
    assert job.klass.__name__ == "Job"
    assert job.klass is job.klass
    job.klass_name = "lazily_found.Job.Inner"
    assert job.klass.__qualname__ == "Job.Inner"
    job.klass_name = "nowhere_at_all.Job"
    with pytest.raises(ModuleNotFoundError):
        _ = job.klass


def test_assigning_a_klass_changes_its_name_here_alone(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    job.klass = Greeter
    assert (job.klass, job.klass_name) == (Greeter, f"{__name__}.Greeter")
    assert do(lambda: do.client.jobs["j"]).klass_name == "K"


def test_priority_is_written_at_once_and_sorts_a_waiting_job_anew(do):
    queue = do.client.queues["mail"]
    first, second = do(lambda: queue.put("K")), do(lambda: queue.put("K"))
    job = do(lambda: do.client.jobs[second])
    if isinstance(do, Async):
        with pytest.raises(TypeError, match="set_priority"):
            job.priority = 10
        assert do(lambda: job.set_priority(10)) == 10
    else:
        job.priority = 10
    assert (job.priority, do(lambda: do.client.jobs[second]).priority) == (10, 10)
    assert [one.jid for one in do(lambda: queue.pop(2))] == [second, first]


def test_a_job_is_described_and_written_shortly(do):
    do(lambda: do.client.queues["mail"].put("app.Welcome", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    assert repr(job) == "<app.Welcome j>"
    assert job.description == "app.Welcome (j / mail / waiting)"


def test_jobs_are_equal_by_class_jid_and_client(do, kind):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    job, again = do(lambda: do.client.jobs["j"]), do(lambda: do.client.jobs["j"])
    assert job == again
    assert hash(job) == hash(again)
    assert len({job, again}) == 1
    assert job != type(job)(do.client, jid="k", klass="K")
    assert job != type(job)(None, jid="j", klass="K")
    assert job != type("Other", (type(job),), {})(do.client, jid="j", klass="K")
    assert job != "j"


@pytest.mark.parametrize(("kind", "held"), [(Job, HeldJob), (AsyncJob, HeldAsyncJob)], ids=["sync", "async"])
def test_the_job_that_a_worker_holds_equals_the_one_that_is_looked_up(kind, held):
    facts, client = JobFacts("j", "K", "mail"), object()
    assert held.held(facts, client, lambda: None) == kind.of(facts, client)
    assert kind.of(facts, client) == held.held(facts, client, lambda: None)


def test_an_unknown_attribute_is_an_attribute_error_everywhere(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    do(lambda: do.client.queues["mail"].recur("K", interval=60, jid="r"))
    client = do.client
    for thing in (client, client.queues, client.workers, client.config, client.queues["mail"],
                  do(lambda: client.jobs["j"]), do(lambda: client.jobs["r"])):  # fmt: skip
        with pytest.raises(AttributeError):
            _ = thing.no_such_thing


def test_the_seeds_compare_a_queue_with_its_name(do):
    do(lambda: do.client.queues["profit"].put("K", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    assert job.queue == "profit"
    assert job.queue in {"profit"}
    assert job.queue.name == job.queue_name == "profit"


def test_a_history_is_told_with_moments(kind):
    history = [
        {"what": "put", "when": 30.0, "queue": "q"}, {"what": "popped", "when": 40, "attempt": 1, "token": 9},
        {"what": "put"}, {"what": "put", "when": 20}, {"what": "seen", "when": 50.5, "until": 60},
    ]  # fmt: skip
    job = kind(None, jid="j", klass="K", history=history)
    assert job.raw_queue_history == job.history == history
    told = job.queue_history
    assert told[0] == {"what": "put", "when": datetime(1970, 1, 1, 0, 0, 30, tzinfo=UTC), "queue": "q"}
    assert (told[1]["attempt"], told[1]["token"]) == (1, 9)
    assert told[4]["until"].timestamp() == 60
    assert job.initially_put_at == datetime.fromtimestamp(20, UTC)
    assert kind(None, jid="j", klass="K").initially_put_at is None


def test_a_job_knows_the_recurring_job_that_put_it(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.recur("K", interval=60, jid="r"))
    job = do(queue.pop)
    assert (job.jid, job.spawned_from_jid) == ("r-1", "r")
    template = do(lambda: job.spawned_from)
    assert (template.jid, template.count) == ("r", 1)
    do(template.cancel)
    assert do(lambda: job.spawned_from) is None
    do(lambda: queue.put("K"))
    plain = do(queue.pop)
    assert plain.spawned_from_jid is None
    assert do(lambda: plain.spawned_from) is None


def test_a_job_hands_out_its_throttles_as_objects(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j", throttles=["gpu"]))
    first, own = do(lambda: do.client.jobs["j"]).throttle_objects
    assert (first.name, own.name) == ("gpu", "ql:q:mail")
    do(lambda: first.set_maximum(3))
    assert do(lambda: do.client.throttles["gpu"].facts()).maximum == 3


def test_a_job_as_a_mapping_and_as_options(kind):
    job = kind(None, **PARTS)
    shown = job.to_hash()
    assert sorted(shown) == sorted([
        "jid", "spawned_from_jid", "expires_at", "state", "queue_name", "history", "worker_name", "failure", "klass_name",
        "tracked", "dependencies", "dependents", "original_retries", "retries_left", "data", "priority", "tags",
        "throttles"])  # fmt: skip
    assert (shown["jid"], shown["retries_left"], shown["data"]) == ("j1", 2, '{"id": 7}')
    assert job.enqueue_opts() == {
        "retries": 4, "priority": 3, "depends": ["p"], "tags": ["red"], "throttles": ["gpu", "ql:q:mail"],
        "data": '{"id": 7}',
    }  # fmt: skip


def test_the_options_of_a_job_make_its_like(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", {"a": 1}, jid="j", tags=["red"], throttles=["gpu"], priority=4, retries=2))
    job = do(lambda: do.client.jobs["j"])
    options = job.enqueue_opts()
    twin = do(lambda: do.client.queues["post"].put(job.klass_name, options.pop("data"), **options))
    other = do(lambda: do.client.jobs[twin])
    assert (other.data, other.tags, other.priority, other.original_retries) == ('{"a":1}', ["red"], 4, 2)
    assert "gpu" in other.throttles


def test_options_become_the_words_of_the_older_core(kind):
    assert kind.build_opts_array({}) == [
        "{}", 0, "priority", 0, "tags", "[]", "retries", 5, "depends", "[]", "throttles", "[]",
    ]  # fmt: skip
    given = {
        "data": {"a": [1]},
        "delay": 3,
        "tags": ["x", "y"],
        "retries": 0,
        "depends": ["p"],
        "priority": -1,
    }
    words = kind.build_opts_array(given)
    assert words[:6] == ['{"a":[1]}', 3, "priority", -1, "tags", '["x","y"]']
    assert words[6:] == ["retries", 0, "depends", '["p"]', "throttles", "[]"]
    with pytest.raises(UsageError, match="did you mean 'retries'"):
        kind.build_opts_array({"retrys": 1})


def test_a_job_can_be_told_to_connect_anew(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    job = do(lambda: do.client.jobs["j"])
    do(job.reconnect_to_redis)
    assert do(lambda: job.tag("a")) == ["a"]


def test_a_job_is_built_without_a_store(kind):
    before = time.time()
    job = kind.build(object(), Greeter)
    assert (job.spawned_from_jid, job.data, job.klass_name) == (None, "{}", f"{__name__}.Greeter")
    assert (job.priority, job.tags, job.worker_name, job.state) == (0, [], "mock_worker", "running")
    assert (job.tracked, job.queue_name, job.original_retries, job.retries_left) == (
        False,
        "mock_queue",
        5,
        5,
    )
    assert (job.failure, job.history, job.dependencies, job.dependents) == ({}, [], [], [])
    assert (job.throttles, len(job.jid), job.klass) == ([], 32, Greeter)
    assert job.expires_at == pytest.approx(before + 3600, abs=10)
    assert kind.build(None, Greeter).jid != job.jid


def test_a_job_is_built_with_what_it_is_given(kind):
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    job = kind.build(
        None, Greeter, data={1: moment}, jid="j", tags=["a"], retries=2, queue="mail", state="failed"
    )
    assert json.loads(job.data) == {"1": "2026-01-02T03:04:05Z"}
    assert job["1"] == "2026-01-02T03:04:05Z"
    assert (job.jid, job.tags, job.retries_left, job.queue_name, job.state) == (
        "j",
        ["a"],
        2,
        "mail",
        "failed",
    )
    with pytest.raises(UsageError, match="did you mean 'worker'"):
        kind.build(None, Greeter, workr="w")


def test_the_snippet_of_a_job_that_is_built():
    client = object()
    job = holdfast.Job.build(client, Greeter, data={"who": "Ann"})
    Greeter.process(job)
    assert json.loads(job.data) == {"who": "Ann", "greeted": True}


def test_data_is_text_and_its_items_read_and_write_it(do):
    queue = do.client.queues["mail"]
    do(lambda: queue.put("K", '{"id": 7}', jid="text"))
    do(lambda: queue.put("K", {"id": 7, "list": [1]}, jid="value"))
    text, value = do(lambda: do.client.jobs.get("text", "value"))
    assert (text.data, value.data) == ('{"id": 7}', '{"id":7,"list":[1]}')
    assert text["id"] == value["id"] == 7
    assert ("id" in text, "nothing" in text) == (True, False)
    value["id"] = 8
    assert json.loads(value.data) == {"id": 8, "list": [1]}
    value.data = '{"id": 9}'
    assert value["id"] == 9
    with pytest.raises(KeyError):
        _ = value["nothing"]
    with pytest.raises(UsageError, match="not JSON"):
        do(lambda: queue.put("K", "hello"))
    value.data = [1, 2]
    with pytest.raises(UsageError, match="not a mapping"):
        _ = value["id"]
