"""workers.md 1.1 and 1.2: worker classes of a program: made, subclassed, told, run and stopped."""

import gc
import io
import logging
import os
import signal
import threading
from contextlib import contextmanager
from itertools import islice

import pytest
from worker_kit import process_lives, until

import holdfast.workers
from holdfast import UsageError
from holdfast.queue_resolvers import TransformingQueueResolver
from holdfast.reservers import Ordered, RoundRobin
from holdfast.workers import (
    AsyncioWorker,
    BaseWorker,
    ForkingWorker,
    ForkPerJobWorker,
    GeventWorker,
    SerialWorker,
    ThreadWorker,
)

NAMES = {
    "AsyncioWorker", "BaseWorker", "ForkPerJobWorker", "ForkingWorker", "GeventWorker", "MainWorker", "SerialWorker",
    "ThreadWorker",
}  # fmt: skip
HERE = [SerialWorker, AsyncioWorker, ThreadWorker]
"""Those that can run in a thread of a test."""


@contextmanager
def running(worker):
    """Let a worker run in a thread beside the block, and stop it."""
    failed = []

    def run():
        try:
            worker.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        worker.stop()
        thread.join(30)
    assert not thread.is_alive()
    assert failed == []


@pytest.fixture
def shop(shop, monkeypatch):
    monkeypatch.chdir(shop.here)
    return shop


def test_the_public_names_of_workers_are_these():
    assert set(holdfast.workers.__all__) == NAMES


@pytest.mark.full
def test_names_queues_patterns_resolvers_and_reservers_say_which_queues_are_meant(client):
    a, b = client.queues["a"], client.queues["b"]
    worker = SerialWorker(["a", b], client)
    assert isinstance(worker.queue_resolver, TransformingQueueResolver)
    assert worker.queues == [a, b]
    mine = TransformingQueueResolver(["b"])
    assert SerialWorker(mine, client).queue_resolver is mine
    patterned = SerialWorker(["a*"], client)
    assert patterned.queues == []
    a.put("K", {})
    assert patterned.queues == [a]  # asked again at every use
    by_reserver = SerialWorker(RoundRobin([b, a]))
    assert by_reserver.client is client
    assert by_reserver.queues == [b, a]
    assert by_reserver.settings.queues == ("b", "a")


@pytest.mark.full
def test_what_is_not_given_is_as_the_page_says(client):
    worker = ForkingWorker(["q"], client)
    assert (worker.interval, worker.resume, worker.shutdown) == (5.0, [], False)
    assert worker.klass is SerialWorker
    assert (worker.settings.pool, worker.count, worker.sandboxes) == ("process", worker.settings.workers, {})
    assert ForkingWorker(["q"], client, workers=0).count == worker.count
    assert ForkingWorker(["q"], client, num_workers=None, workers=3).count == 3
    assert ForkPerJobWorker(["q"], client).settings.pool == "fork"
    assert [kind(["q"], client).settings.concurrency for kind in HERE] == [1, 100, 10]
    assert GeventWorker(["q"], client, greenlets=3).settings.concurrency == 3
    assert SerialWorker(["q"], client).jid is None


@pytest.mark.full
def test_a_worker_with_a_reserver_is_told_in_the_words_of_ruby(client):
    reserver = Ordered([client.queues["q"]])
    assert ForkingWorker(reserver).count == 1
    worker = ForkingWorker(
        reserver, num_workers=3, max_startup_interval=0.5, term_timeout=9, log_level="INFO"
    )
    told = worker.settings
    assert (told.workers, told.max_startup_interval, told.term_timeout) == (3, 0.5, 9)
    assert worker.log_level == logging.INFO
    assert ForkingWorker(reserver).log_level == logging.WARNING
    assert ForkingWorker(reserver, very_verbose=True).log_level == logging.DEBUG
    assert ForkingWorker(reserver, run_as_single_process=True).settings.pool == "serial"


@pytest.mark.full
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda client: SerialWorker(["q"]), "needs a client"),
        (lambda client: SerialWorker(Ordered(["q"])), "needs a client"),
        (lambda client: ForkingWorker(["q"], client, worker=2), "did you mean 'workers'"),
        (lambda client: ForkingWorker(["q"], client, workers=2, num_workers=2), "are the same"),
        (lambda client: ForkingWorker(["q"], client, klass="nonsense"), "no worker class, and no pool"),
        (lambda client: ForkingWorker(["q"], client, klass=ForkingWorker), "does not fork"),
        (lambda client: SerialWorker(["q"], client, log_level="LOUD"), "log_level"),
        (lambda client: SerialWorker("q", client), "queues must be a list"),
        (lambda client: SerialWorker(["q"], client, resume=True).settings, "resume requires a name"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(client, make, said):
    with pytest.raises(UsageError, match=said):
        make(client)


def test_what_the_base_does_not_know_it_says(client):
    worker = BaseWorker(["q"], client)
    with pytest.raises(NotImplementedError):
        worker.run()
    with pytest.raises(NotImplementedError):
        worker.halt_job_processing("j")


@pytest.mark.full
def test_a_worker_that_has_ended_leaves_no_descriptors_open(shop):
    def run_each():
        for kind in HERE:
            kind(["q"], shop.client, drain=True).run()
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    assert run_each() == run_each()


@pytest.mark.full
def test_a_job_of_a_process_of_its_own_may_stop_the_worker_that_forked_it(shop):
    worker = shop.run_code(
        """
        import chores
        from holdfast.workers import ForkPerJobWorker
        worker = ForkPerJobWorker(["q"], chores.app, workers=1)
        chores.worker = worker
        worker.run()
        """
    )
    before = shop.chores.who.put()
    before.result(30)
    (first,) = worker.children()
    assert shop.chores.stop_worker.put().result(30) is None
    until(lambda: not process_lives(first), "its worker has ended after it")
    assert shop.chores.add.put(1, 2).result(30) == 3


@pytest.mark.full
@pytest.mark.parametrize("kind", HERE)
def test_a_worker_performs_jobs_in_this_process_until_it_is_told_to_stop(shop, kind):
    worker = kind(["q"], shop.client, name="here")
    with running(worker) as thread:
        assert shop.chores.add.put(1, 2).result(30) == 3
        assert shop.chores.aadd.put(1, 2).result(30) == 3
        until(lambda: "here-0" in shop.client.workers, "it is listed")
        worker.shutdown = True
        thread.join(30)
        assert not thread.is_alive()  # also in the middle of an idle wait
    assert "here-0" not in shop.client.workers
    # A store of the run may have a thread of its own in this process.
    names = {other.name for other in threading.enumerate()} - {"holdfast-server-parent"}
    assert not [name for name in names if name.startswith("holdfast") and name != "holdfast-auth"]


@pytest.mark.full
def test_a_serial_worker_knows_the_job_under_way(shop):
    worker = SerialWorker(["q"], shop.client)
    with running(worker):
        handle = shop.chores.hog.put("a")
        until(lambda: worker.jid == handle.jid, "it is current")
        shop.open()
        handle.result(30)
        until(lambda: worker.jid is None, "nothing is current")


@pytest.mark.full
@pytest.mark.parametrize("kind", HERE)
def test_a_worker_whose_jobs_end_ends_and_performs_no_more_than_those(shop, kind):
    class Three(kind):
        def jobs(self):
            yield from islice(filter(None, super().jobs()), 3)

    for number in range(5):
        shop.chores.count.put(number)
    worker = Three(["q"], shop.client, interval=0.1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert sorted(shop.notes("count")) == ["count 0", "count 1", "count 2"]
    until(lambda: shop.q.counts["waiting"] == 2, "two are left")
    assert shop.q.counts["running"] == 0


@pytest.mark.full
def test_jobs_that_raise_are_begun_anew(shop, caplog):
    class Shaky(SerialWorker):
        tries = 0

        def jobs(self):
            self.tries += 1
            if self.tries == 1:
                raise OSError("not yet")
            yield from islice(filter(None, super().jobs()), 1)

    handle = shop.chores.add.put(1, 2)
    worker = Shaky(["q"], shop.client, interval=0.1)
    with running(worker) as thread:
        thread.join(30)
        assert not thread.is_alive()
    assert handle.result(0) == 3
    assert worker.tries == 2
    assert "the queues of this worker cannot be looked up" in caplog.text


@pytest.mark.full
@pytest.mark.parametrize("kind", HERE)
def test_a_reserver_with_a_way_of_its_own_is_used_as_it_is(shop, kind):
    class Evens:
        queues = (shop.q,)
        description = "even ones"
        prepared = 0

        def prep_for_work(self):
            self.prepared += 1

        def reserve(self):
            return self.queues[0].pop()

    reserver = Evens()
    with running(kind(reserver, interval=0.1)):
        assert shop.chores.add.put(1, 2).result(30) == 3
        assert shop.chores.add.put(3, 2).result(30) == 5
    assert reserver.prepared == 1


MENU = """
import chores

class Menu:
    @staticmethod
    def soup(job):
        chores.note("soup")
        job.complete()

    @staticmethod
    def process(job):
        chores.note("process")
        job.complete()
"""


@pytest.mark.full
def test_a_resolver_is_asked_on_every_pass_and_names_queues_only_if_it_says_so(shop):
    class Growing:
        names = ("q",)

        def resolve(self):
            return list(self.names)

    (shop.here / "menu.py").write_text(MENU)
    resolver = Growing()
    with running(SerialWorker(resolver, shop.client, interval=0.1)):
        assert shop.chores.add.put(1, 2).result(30) == 3
        shop.client.queues["soup"].put("menu.Menu", {})
        resolver.names = ("q", "soup")
        until(lambda: shop.notes() == ["process"], "the new queue is served")
    resolver.queue_identifiers = ["soup"]
    shop.client.queues["soup"].put("menu.Menu", {})
    with running(SerialWorker(resolver, shop.client, interval=0.1)):
        until(lambda: shop.notes() == ["process", "soup"], "the program has named it")


@pytest.mark.full
def test_greenlet_workers_are_children_too(shop):
    worker = shop.run_code(
        """
        from gevent import monkey; monkey.patch_all()
        import chores
        from holdfast.compat.reqless.workers import ForkingWorker
        from holdfast.compat.reqless.workers.gevent_worker import GeventWorker
        ForkingWorker(["q"], chores.app, interval=0.2, klass=GeventWorker, workers=1, greenlets=2).run()
        """
    )
    for name in "ab":
        shop.chores.hog.put(name)
    until(lambda: len(shop.notes("begin")) == 2, "two at once, in one child")
    shop.open()
    until(lambda: len(shop.notes("end")) == 2, "both ended")
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0


@pytest.mark.full
def test_a_worker_is_told_of_a_job_that_is_not_its_any_more(shop):
    class Told(SerialWorker):
        halted: list = []

        def halt_job_processing(self, jid):
            self.halted.append(jid)

    worker = Told(["q"], shop.client)
    with running(worker):
        handle = shop.chores.hog.put("a")
        until(lambda: worker.jid == handle.jid, "it is current")
        shop.job(handle.jid).cancel()
        until(lambda: worker.halted == [handle.jid], "it was told")
        shop.open()


@pytest.mark.full
def test_middleware_is_given_used_or_mixed_in(shop):
    order = []

    class Given:
        def __init__(self, name):
            self.name = name

        def around_perform(self, job, call_next):
            order.append(self.name)
            return call_next(job)

    class Mixin:
        def around_perform(self, job):
            order.append("mixed")
            return super().around_perform(job)

    class Mixed(Mixin, SerialWorker):
        pass

    worker = Mixed(["q"], shop.client, middleware=[Given("first")])
    worker.use(Given("second"))
    with running(worker):
        shop.chores.add.put(1, 2).result(30)
    assert order == ["mixed", "first", "second"]


@pytest.mark.full
def test_the_log_goes_where_the_options_say(shop):
    stream, own = io.StringIO(), logging.getLogger("own")
    heard = []
    own.handle = lambda record: heard.append(record.getMessage())
    own.setLevel(logging.INFO)
    before = list(logging.getLogger("holdfast").handlers)
    with running(
        SerialWorker(["q"], shop.client, output=stream, log_formatter=lambda *line: f"<{line[3]}>\n")
    ):
        until(lambda: shop.chores.hopeless.put() and "<" in stream.getvalue(), "a warning")
    assert "hopeless" in stream.getvalue()
    with running(SerialWorker(["q"], shop.client, logger=own)):
        until(lambda: shop.chores.hopeless.put() and heard, "a warning")
    assert logging.getLogger("holdfast").handlers == before


PROGRAM = """
import os, sys
import chores
from holdfast.workers import *

class Child({base}):
    def before_run(self):
        chores.note(f"before {{os.getpid() == PARENT}}")
    def jobs(self):
        chores.note(f"jobs {{os.getcwd()}}")
        for job in super().jobs():
            if job is not None and job.klass_name == "chores.add":
                self.shutdown = True
            yield job

PARENT = os.getpid()
class Parent(ForkingWorker):
    def spawn(self, **kwargs):
        chores.note(f"spawn {{sorted(kwargs)}}")
        return super().spawn(**kwargs)

worker = Parent(["q"], chores.app, interval=0.2, klass={klass}, workers=1, name="crew")
worker.run()
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("base", "klass"),
    [("SerialWorker", "Child"), ("AsyncioWorker", "Child"), ("ThreadWorker", "'__main__.Child'")],
)
def test_children_of_a_class_of_ones_own_are_spawned_and_do_what_it_says(shop, base, klass):
    worker = shop.run_code(PROGRAM.format(base=base, klass=klass))
    handle = shop.chores.who.put()
    assert handle.result(30)[:2] == [handle.jid, "crew-0"]
    assert "before False" in shop.notes()
    assert shop.notes("spawn") == ["spawn []", "spawn ['resume', 'sandbox']"]
    assert shop.notes("jobs") == [f"jobs {shop.here}"]
    first, *_ = worker.children()
    handle = shop.chores.add.put(1, 2)  # after it, the child has enough
    until(lambda: process_lives(first) is False, "a child that was told to stop in itself has ended")
    assert handle.result(30) == 3
    assert shop.chores.who.put().result(30)[1] == "crew-0"
    worker.signal(signal.SIGQUIT)
    assert worker.wait() == 0


GREENLETS = """
from gevent import monkey; monkey.patch_all()
import threading, gevent, chores
from holdfast.workers import GeventWorker

worker = GeventWorker(["q"], chores.app, greenlets=3, interval=0.2)
def watch():
    while len(worker.greenlets) < 2:
        gevent.sleep(0.01)
    chores.note(f"greenlets {sorted(worker.greenlets)}")
    worker.halt_job_processing("nobody")
    while worker.greenlets:
        gevent.sleep(0.01)
    worker.stop()
gevent.spawn(watch)
worker.run()
chores.note("over")
"""


@pytest.mark.full
def test_a_greenlet_worker_knows_its_greenlets_and_runs_by_itself(shop):
    handles = [shop.chores.hog.put(name) for name in "ab"]
    worker = shop.run_code(GREENLETS)
    jids = sorted(handle.jid for handle in handles)
    until(lambda: shop.notes("greenlets") == [f"greenlets {jids}"], "both are under way")
    shop.open()
    assert worker.wait() == 0
    assert shop.notes("over") == ["over"]


MAIN = """
import chores
from holdfast.workers import MainWorker
try:
    MainWorker(["q"], chores.app, interval=0.2).run()
except KeyboardInterrupt:
    chores.note("interrupted")
"""


@pytest.mark.full
def test_the_main_worker_is_interrupted_when_it_loses_its_job(shop):
    worker = shop.run_code(MAIN)
    handle = shop.chores.hog.put("a")
    until(lambda: shop.notes("begin a"), "it began")
    shop.job(handle.jid).cancel()
    assert worker.wait() == 0
    assert shop.notes("interrupted") == ["interrupted"]


@pytest.mark.full
def test_sandboxes_are_those_of_living_children(shop, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(shop.here))
    worker = shop.run_code(
        """
        import threading, chores
        from holdfast.workers import ForkingWorker, ForkPerJobWorker
        worker = ForkPerJobWorker(["q"], chores.app, workers=2)
        def watch():
            while len(worker.sandboxes) < 2:
                pass
            chores.note(f"sandboxes {sorted(worker.sandboxes.values())}")
            worker.shutdown = True
        threading.Thread(target=watch).start()
        worker.run()
        told_before = ForkingWorker(["q"], chores.app, workers=1)
        told_before.shutdown = True
        told_before.run()
        """
    )
    assert worker.wait() == 0  # and no signal has killed it
    base = f"{shop.here}/holdfast-workers-{os.geteuid()}/sandbox-"
    assert shop.notes("sandboxes") == [f"sandboxes {[base + '0', base + '1']}"]


@pytest.mark.full
def test_a_worker_of_ones_own_goes_on_with_jobs_it_is_given(shop):
    jid = shop.chores.add.put(1, 2).jid
    job = shop.q.pop()
    with running(SerialWorker(["other"], shop.client, resume=[job])):
        until(lambda: shop.state(jid) == "complete", "it was performed")
    assert shop.job(jid).attempts == 1
    other = shop.chores.add.put(1, 2)
    held = shop.q.pop()
    assert [found.jid for found in SerialWorker(["q"], shop.client).resumable()] == [held.jid]
    with holdfast.Client(shop.url, namespace=shop.namespace, hostname="crew") as crew:
        held.timeout()
        until(lambda: (job := crew.queues["q"].pop()) and job.jid == other.jid, "the client took it")
        with running(SerialWorker(["q"], crew, resume=True, interval=60)):
            assert other.result(30) == 3
    assert shop.job(other.jid).attempts == 2
