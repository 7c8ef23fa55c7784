"""The pytest plugin, in fresh projects that know nothing of this repository."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

import holdfast

ROOT = Path(__file__).parents[2]
POINT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["pytest11"]

APP = """
    import holdfast

    app = holdfast.Client("redis://127.0.0.1:1/0", namespace="shop", timeout=0.1, deadline=0)
    loop = holdfast.AsyncClient("redis://127.0.0.1:1/0", namespace="shop", timeout=0.1, deadline=0)
    sent = []

    @app.job(queue="mail", retries=20, name="plugin.welcome24")
    def welcome(user: int, lang: str = "en") -> str:
        sent.append(user)
        return f"{lang}-{user}"

    @loop.job(queue="sums", name="plugin.add29")
    async def add(a: int, b: int) -> int:
        return a + b

    class Report:
        @staticmethod
        def perform(job):
            sent.append(job["name"])

    def sign_up(user):
        welcome.put(user)
        app.queues["reports"].put(Report, {"name": "daily"}, delay=3600)
    """


UNUSED = """
    import sys

    def test_nothing_is_loaded_before_a_fixture_is_named():
        barred = ("redis", "msgspec", "holdfast.client", "holdfast.worker", "holdfast.wire", "holdfast.store")
        assert [name for name in sys.modules if name.startswith(barred)] == []
        assert "holdfast.testing.plugin" in sys.modules
    """
USUAL = """
    from holdfast.testing import assert_not_put, assert_put
    from shop import Report, app, sent, sign_up, welcome

    def test_a_welcome_is_sent(holdfast_client, holdfast_worker):
        sent.clear()
        sign_up(7)
        assert_put(holdfast_client, welcome, 7).priority == 0
        assert_not_put(holdfast_client, welcome, 8)
        holdfast_worker.drain()
        assert sent == [7]

    def test_each_test_has_a_namespace_of_its_own(holdfast_client, holdfast_worker):
        assert_not_put(holdfast_client, welcome)
        assert holdfast_worker.run_one() is None
        assert holdfast_client.settings.namespace.startswith("test-")

    def test_time_passes_on_demand(holdfast_worker, holdfast_clock):
        sign_up(7)
        before = holdfast_clock.now
        performed = holdfast_worker.run_for(hours=1)
        assert [each.klass for each in performed] == ["plugin.welcome24", "shop.Report"]
        assert holdfast_clock.now == before + 3600

    def test_the_clock_may_be_moved_by_hand(holdfast_clock, holdfast_worker):
        sign_up(7)
        holdfast_clock.advance(hours=1)
        assert len(holdfast_worker.drain()) == 2

    def test_the_clock_starts_now_and_is_set_to_a_moment(holdfast_clock, holdfast_worker):
        from datetime import UTC, datetime, timedelta
        assert abs(holdfast_clock.moment - datetime.now(UTC)) < timedelta(minutes=5)
        welcome.put_at(datetime.now(UTC) + timedelta(hours=2), 9)
        assert holdfast_worker.run_for(hours=1) == []
        assert len(holdfast_worker.run_for(hours=2)) == 1
        holdfast_clock.set(datetime(2027, 3, 28, tzinfo=UTC))
        assert repr(holdfast_clock) == "<StoppedClock at 2027-03-28T00:00:00.000+00:00>"

    def test_inline(holdfast_worker):
        with holdfast_worker.inline():
            assert welcome.put(3, lang="de").result(0) == "de-3"

    def test_the_store_is_there(holdfast_store):
        test_the_store_is_there.pid = holdfast_store.pid

    def test_the_store_is_still_the_same(holdfast_client, holdfast_store):
        assert holdfast_store.pid == test_the_store_is_there.pid

    def test_the_program_has_its_client_back():
        assert app.settings.namespace == "shop"
    """
ASYNC = """
    import asyncio
    from holdfast.testing import assert_put
    from shop import add, loop, sent, welcome

    def test_drained(holdfast_async_client, holdfast_async_worker):
        async def story():
            handle = await add.put(1, 2)
            assert_put(holdfast_async_client, add, 1, 2)
            await holdfast_async_worker.drain()
            return await handle.result(30)

        assert asyncio.run(story()) == 3

    def test_inline_async(holdfast_async_worker):
        async def story():
            async with holdfast_async_worker.inline():
                return await (await add.put(3, 4)).result(0)

        assert asyncio.run(story()) == 7

    def test_time(holdfast_async_worker, holdfast_clock):
        async def story():
            await add.options(delay=86_400).put(1, 1)
            return await holdfast_async_worker.run_for(days=1)

        assert len(asyncio.run(story())) == 1

    def test_a_blocking_worker_performs_them_too(holdfast_worker):
        async def put():
            return await add.put(5, 6)

        asyncio.run(put())
        [performed] = holdfast_worker.drain()
        assert performed.state == "complete"

    def test_a_blocking_worker_inside_a_loop_says_which_to_use(holdfast_worker):
        async def story():
            await add.put(5, 6)
            [performed] = holdfast_worker.drain(raises=False)
            assert "the fixture holdfast_async_worker" in performed.message

        asyncio.run(story())

    def test_a_program_of_both_colours_is_inline_as_a_whole(holdfast_async_worker):
        async def story():
            async with holdfast_async_worker.inline():
                await asyncio.to_thread(welcome.put, 9)

        asyncio.run(story())
        assert sent[-1] == 9
    """
TOLD = """
    import pytest
    from shop import app, sign_up

    @pytest.fixture
    def holdfast_options():
        return {"queues": ["reports"]}

    def test_a_project_says_once_what_its_workers_are_told(holdfast_worker, holdfast_clock):
        sign_up(7)
        assert [each.queue for each in holdfast_worker.run_for(days=1)] == ["reports"]
    """
FAILING = """
    from shop import app

    @app.job(queue="mail", name="plugin.broken161")
    def broken():
        raise LookupError("no such letter")

    def test_a_broken_job(holdfast_worker):
        broken.put()
        holdfast_worker.drain()

    def test_a_late_wish(holdfast_client, request):
        request.getfixturevalue("holdfast_clock")
    """
SIDE_BY_SIDE = """
    import pytest
    from shop import welcome

    @pytest.mark.parametrize("number", range(8))
    def test_it(holdfast_worker, number):
        welcome.put(number)
        assert len(holdfast_worker.drain()) == 1
    """


def pytest_in(folder, files, *args):
    """Run pytest in a fresh project as its users do, with the plugin found by its entry point; answers what it said."""
    (folder / "shop.py").write_text(dedent(APP))
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    metadata = folder / "site" / "holdfast-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: holdfast\nVersion: 0\n")
    points = "\n".join(f"{name} = {module}" for name, module in POINT.items())
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{points}\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(dedent(text))
    source = Path(holdfast.__file__).parents[1]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
        "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(source)]),
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "HOLDFAST_URL": "redis://127.0.0.1:1/0",
        "COLUMNS": "300",
    }
    command = [sys.executable, "-m", "pytest", "-rA", "-W", "error", "-p", "no:cacheprovider", *args]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What one run over all stories said."""
    files = {"async": ASYNC, "failing": FAILING, "told": TOLD, "usual": USUAL}
    return pytest_in(tmp_path_factory.mktemp("project"), files)


@pytest.mark.parametrize(
    "story",
    [
        f"test_{name}.py::{story}"
        for name, text in {"usual": USUAL, "async": ASYNC, "told": TOLD}.items()
        for story in re.findall(r"def (test_\w+)", text)
    ],
)
def test_a_test_of_an_untouched_program_passes(said, story):
    assert f"PASSED {story}\n" in said, said


@pytest.mark.full
def test_the_plugin_loads_nothing_until_it_is_wanted(tmp_path):
    ended = pytest_in(tmp_path, {"unused": UNUSED})
    assert "1 passed" in ended, ended


def test_a_failing_job_shows_its_own_traceback(said):
    assert (
        "FAILED test_failing.py::test_a_broken_job - holdfast.errors.JobFailed: mail-LookupError" in said
    ), said
    assert 'raise LookupError("no such letter")' in said


def test_a_clock_asked_for_too_late_says_so(said):
    assert "FAILED test_failing.py::test_a_late_wish" in said
    assert "add holdfast_clock to the arguments" in said


@pytest.mark.full
def test_tests_side_by_side_do_not_meet(tmp_path):
    ended = pytest_in(tmp_path, {"it": SIDE_BY_SIDE}, "-n", "2")
    assert "8 passed" in ended, ended


def test_what_the_package_offers_is_this():
    import holdfast.testing

    assert [name for name in holdfast.testing.__all__ if not hasattr(holdfast.testing, name)] == []
    assert set(holdfast.testing.__all__) == {
        "AsyncLocalWorker", "LocalWorker", "Performed", "RealWorker", "ScratchStore", "StandIn", "StoppedClock", "all_put",
        "assert_not_put", "assert_put", "drain_worker_queues", "run_jobs", "run_worker_concurrently_with",
        "stop_worker_after",
    }  # fmt: skip
