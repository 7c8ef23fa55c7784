"""Jobs of functions that a worker does not know: they wait for one that does, and cost nothing meanwhile."""

import signal

import pytest
from worker_kit import until

from holdfast.commands.admin import SettingSet

GHOSTS = """
import chores
@chores.app.job(queue="q", name="ghosts.haunt")
def haunt(house):
    return f"boo {house}"
"""
CAUSES = {
    "ghosts.haunt": "ModuleNotFoundError: there is no module 'ghosts'",
    "chores.ghost": "AttributeError: module 'chores' has no attribute 'ghost'",
    "typo.haunt": "NameError: name 'no_such_name' is not defined",
    "haunt the house": "NotAllowed: haunt the house is not allowed here: it is not a dotted name",
}


def put(shop, name, count=1, retries=0):
    """Jobs of a function that only this program knows."""

    def haunt(house: int) -> str:
        return f"boo {house}"

    job = shop.client.job(queue="q", name=name, retries=retries)(haunt)
    return [job.put(number) for number in range(count)]


def returns(shop, handle):
    return [entry for entry in shop.job(handle.jid).history if entry["what"] == "unknown"]


@pytest.mark.full
@pytest.mark.parametrize("name", CAUSES)
def test_a_job_of_unknown_code_goes_back_at_no_cost_and_is_performed_where_it_is_known(shop, pool, name):
    (shop.here / "typo.py").write_text("no_such_name")
    [handle] = put(shop, name, retries=2)
    worker = shop.start(pool)
    until(lambda: len(returns(shop, handle)) >= 2, "it was given back twice")
    job = shop.job(handle.jid)
    assert CAUSES[name] in returns(shop, handle)[0]["reason"]
    assert (job.facts.remaining, job.facts.losses, job.failure) == (2, 0, {})
    (shop.here / "other").mkdir()
    (shop.here / "other" / "ghosts.py").write_text(GHOSTS.replace("ghosts.haunt", name))
    shop.start("process", "--path", str(shop.here / "other"), "--import", "ghosts")
    worker.process.terminate()
    assert worker.wait(30) == 0
    assert handle.result(30) == "boo 0"


@pytest.mark.full
def test_a_name_is_logged_once_and_not_for_each_of_its_jobs(shop, pool):
    handles = put(shop, "ghosts.haunt", 20)
    worker = shop.start(pool, workers=2)
    until(lambda: all(returns(shop, handle) for handle in handles), "all were given back")
    [line] = [line for line in worker.said().splitlines() if "is not known here" in line]
    assert "(ghosts.haunt, queue q)" in line
    assert "there is no module 'ghosts'" in line
    assert "fail in q-ModuleNotFoundError" in line


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("ghosts.haunt", "q-ModuleNotFoundError"),
        ("chores.ghost", "q-AttributeError"),
        ("typo.haunt", "q-NameError"),
    ],
)
def test_a_job_that_nobody_knew_for_long_enough_fails_in_the_group_of_its_error(shop, name, group):
    (shop.here / "typo.py").write_text("no_such_name")
    shop.client.run(SettingSet("unknown-for", 1))
    [handle] = put(shop, name)
    shop.start("process")
    until(lambda: shop.state(handle.jid) == "failed", "it has failed")
    assert shop.job(handle.jid).failure["group"] == group
    assert "no worker knew it" in shop.job(handle.jid).failure["message"]


def test_a_name_that_leads_to_installed_code_is_refused_at_once(shop):
    shop.start("process")
    for name in ("json.tool.main", "json.loads", "os.path.join"):
        [handle] = put(shop, name)
        until(lambda one=handle: shop.state(one.jid) == "failed", "it has failed")
        assert shop.job(handle.jid).failure["group"] == "q-NotAllowed"
        assert returns(shop, handle) == []
    # A module is no function in one: somebody else may know a function by that name.
    [handle] = put(shop, "json.tool")
    until(lambda: returns(shop, handle), "it was given back")


@pytest.mark.full
def test_jobs_of_unknown_classes_fail_at_once(shop, pool):
    jid = shop.q.put("ghosts.Ghost", {})
    worker = shop.start(pool)
    until(lambda: shop.state(jid) == "failed", "it has failed")
    assert shop.job(jid).failure["group"] == "q-ModuleNotFoundError"
    worker.signal(signal.SIGTERM)
    assert worker.wait(30) == 0


@pytest.mark.full
def test_with_drain_unknown_code_fails_at_once_and_the_command_ends_with_3(shop, pool):
    [handle] = put(shop, "ghosts.haunt", retries=2)
    worker = shop.start(pool, "--drain")
    assert worker.wait(30) == 3
    assert shop.job(handle.jid).failure["group"] == "q-ModuleNotFoundError"
    assert "exits with status 3" in worker.said()


@pytest.mark.full
def test_workers_of_tests_and_of_moved_programs_fail_unknown_code_at_once(shop):
    from holdfast.testing import real

    [handle] = put(shop, "ghosts.haunt")
    real.run_jobs(real.RealWorker(shop.client, ["q"], pool="process"), 1)
    assert shop.job(handle.jid).failure["group"] == "q-ModuleNotFoundError"
    [handle] = put(shop, "ghosts.haunt")
    shop.run_code("""
        import chores
        from holdfast.compat.reqless.workers import ForkingWorker
        ForkingWorker(["q"], chores.app, workers=1).run()
    """)
    until(lambda: shop.state(handle.jid) == "failed", "it has failed")
