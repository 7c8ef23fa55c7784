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

    @app.job(queue="mail", retries=20)
    def welcome(user: int, lang: str = "en") -> str:
        sent.append(user)
        return f"{lang}-{user}"

    @loop.job(queue="sums")
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


@pytest.fixture
def project(tmp_path):
    """A project with an app; `run(tests)` runs pytest there as its users do, with the plugin found by its entry point."""
    (tmp_path / "shop.py").write_text(dedent(APP))
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    metadata = tmp_path / "site" / "holdfast-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: holdfast\nVersion: 0\n")
    points = "\n".join(f"{name} = {module}" for name, module in POINT.items())
    (metadata / "entry_points.txt").write_text(f"[pytest11]\n{points}\n")

    def run(tests, *args):
        (tmp_path / "test_shop.py").write_text(dedent(tests))
        source = Path(holdfast.__file__).parents[1]
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST")},
            "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(source)]),
            "REDIS_URL": "redis://127.0.0.1:1/0",
            "HOLDFAST_URL": "redis://127.0.0.1:1/0",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *args]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )

    return run


def test_a_first_test_of_an_untouched_program(project):
    ended = project(
        """
        from holdfast.testing import assert_not_put, assert_put
        from shop import Report, sent, sign_up, welcome

        def test_a_welcome_is_sent(holdfast_client, holdfast_worker):
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
            assert [each.klass for each in performed] == ["shop.welcome", "shop.Report"]
            assert holdfast_clock.now == before + 3600

        def test_the_clock_may_be_moved_by_hand(holdfast_clock, holdfast_worker):
            sign_up(7)
            holdfast_clock.advance(hours=1)
            assert len(holdfast_worker.drain()) == 2

        def test_inline(holdfast_worker):
            with holdfast_worker.inline():
                assert welcome.put(3, lang="de").result(0) == "de-3"
        """
    )
    assert "5 passed" in ended.stdout, ended.stdout + ended.stderr


def test_async_tests_on_a_loop_of_their_own(project):
    ended = project(
        """
        import asyncio
        from holdfast.testing import assert_put
        from shop import add, loop

        def test_drained(holdfast_async_client, holdfast_async_worker):
            async def story():
                handle = await add.put(1, 2)
                assert_put(holdfast_async_client, add, 1, 2)
                await holdfast_async_worker.drain()
                return await handle.result(5)

            assert asyncio.run(story()) == 3

        def test_inline(holdfast_async_worker):
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
        """
    )
    assert "5 passed" in ended.stdout, ended.stdout + ended.stderr


def test_a_failing_job_shows_its_own_traceback(project):
    ended = project(
        """
        from shop import app

        @app.job(queue="mail")
        def broken():
            raise LookupError("no such letter")

        def test_it(holdfast_worker):
            broken.put()
            holdfast_worker.drain()
        """
    )
    assert "1 failed" in ended.stdout
    assert 'raise LookupError("no such letter")' in ended.stdout
    assert "JobFailed" in ended.stdout


def test_a_project_says_once_what_its_workers_are_told(project):
    ended = project(
        """
        import pytest
        from shop import app, sign_up

        @pytest.fixture
        def holdfast_options():
            return {"queues": ["reports"]}

        def test_it(holdfast_worker, holdfast_clock):
            sign_up(7)
            assert [each.queue for each in holdfast_worker.run_for(days=1)] == ["reports"]
        """
    )
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_store_is_started_once_and_only_if_it_is_wanted(project):
    ended = project(
        """
        import sys

        def test_nothing_is_loaded_before(request):
            loaded = [name for name in sys.modules if name.startswith(("holdfast", "redis", "msgspec"))]
            assert set(loaded) <= set(BARE), loaded

        def test_a(holdfast_store):
            test_a.pid = holdfast_store.pid

        def test_b(holdfast_client, holdfast_store):
            assert holdfast_store.pid == test_a.pid
        """.replace("BARE", repr(BARE))
    )
    assert "3 passed" in ended.stdout, ended.stdout + ended.stderr


BARE = [
    "holdfast",
    "holdfast.testing",
    "holdfast.testing.plugin",
    "holdfast.errors",
    "holdfast.ids",
    "holdfast.logs",
]


def test_a_clock_asked_for_too_late_says_so(project):
    ended = project(
        """
        def test_it(holdfast_client, request):
            request.getfixturevalue("holdfast_clock")
        """
    )
    assert "name holdfast_clock among the arguments" in ended.stdout


def test_tests_side_by_side_do_not_meet(project):
    ended = project(
        """
        import pytest
        from shop import welcome

        @pytest.mark.parametrize("number", range(8))
        def test_it(holdfast_worker, number):
            welcome.put(number)
            assert len(holdfast_worker.drain()) == 1
        """,
        "-n",
        "2",
    )
    assert "8 passed" in ended.stdout, ended.stdout + ended.stderr


def test_the_guide_about_testing_is_a_test_file(project):
    page = (ROOT / "docs" / "guide" / "testing.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    ended = project("\n".join(blocks))
    assert "6 passed" in ended.stdout, ended.stdout + ended.stderr
