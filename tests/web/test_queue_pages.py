"""The overview, the list of queues and one queue: what they show as HTML and JSON, and what is done to queues."""

import csv
import io
import json
import re
import time
from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest
import redis
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.cli.main import run
from holdfast.commands.leases import Pop
from holdfast.console.handles import Console
from holdfast.console.page_paths import segment
from holdfast.web.pages.queues import TABS
from waiting import until

Browse = Callable[..., TestClient]
HOSTILE = (
    "<script>alert(1)</script>",
    "a/b",
    "..",
    "🐙 octopus",
    "{{7*7}}",
    'it\'s "quoted"',
    "a//b/",
    "x\u202ey",
)
HTML = {"Accept": "text/html"}


def page(web: TestClient, path: str) -> str:
    found = web.get(path, headers=HTML)
    assert found.status_code == 200, found.text
    assert "{{" not in found.text.replace("{{7*7}}", "").replace("%7B%7B7", "")
    return found.text


def shown(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))


def twin(web: TestClient, path: str) -> dict:  # type: ignore[type-arg]
    found = web.get("/api/v1" + ("/overview" if path == "/" else path))
    assert found.status_code == 200, found.text
    return found.json()  # type: ignore[no-any-return]


@pytest.fixture
def mail(client: Client) -> str:
    """A queue with jobs in every state; returns the jid of the failed one."""
    queue = client.queues["mail"]
    client.throttles["api"].maximum = 1
    failed = queue.put("jobs.fail", {"password": "hunter2"})
    queue.pop().fail("mail-ValueError", "Traceback\nValueError: card 4111111111111111")  # type: ignore[union-attr]
    queue.put("jobs.done", {})
    queue.pop().complete()  # type: ignore[union-attr]
    for _ in range(2):
        queue.put("jobs.call", {}, throttles=["api"])
    queue.pop(2)
    parent = queue.put("jobs.wait", {}, tags=["vip"])
    queue.put("jobs.child", {}, depends=[parent])
    queue.put("jobs.later", {}, delay=600)
    queue.recur("jobs.often", {"password": "hunter2"}, interval=600)
    return failed


# What they show.


@pytest.mark.full
@pytest.mark.parametrize("path", ["/", "/queues"])
def test_an_empty_store_says_what_would_be_here(web: TestClient, path: str) -> None:
    text = shown(page(web, path))
    assert "No queues" in text
    assert "holdfast put NAME --queue QUEUE" in text


@pytest.mark.full
def test_the_overview_shows_numbers_queues_groups_and_workers(
    web: TestClient, client: Client, mail: str
) -> None:
    client.job(client.queues["mail"].put("jobs.tracked", {})).track()
    html = page(web, "/")
    text = shown(html)
    assert 'data-live="t.failed"' in html
    assert 'data-live="q.mail.waiting"' in html
    assert "mail-ValueError" in text
    assert "jobs.tracked" in text
    assert 'href="/tracked?tab=waiting"' in web.get("/").text
    found = twin(web, "/")
    assert found["overview"]["totals"]["failed"] == 1
    assert [row["counts"]["name"] for row in found["queues"]] == ["mail"]
    assert found["tracked"]["states"] == [["waiting", 1]]
    assert sum(found["throughput"]["values"]["completed"]) >= 0


def test_one_job_is_no_jobs(web: TestClient, client: Client) -> None:
    client.queues["mail"].put("jobs.done", {})
    client.queues["mail"].pop().complete()  # type: ignore[union-attr]
    assert re.search(r"median [^<]* · 1 job<", page(web, "/"))
    assert "1 jobs" not in shown(page(web, "/") + page(web, "/jobs") + page(web, "/queues"))


@pytest.mark.full
def test_the_overview_offers_what_helps(web: TestClient, client: Client, mail: str) -> None:
    Console(client, actor="ada").pause("mail", why="upgrade")
    html = page(web, "/")
    assert "upgrade" in shown(html)
    assert re.search("Queue mail: paused [^.]+ by ada: upgrade; 1 job waits. 1 more finding", shown(html))
    remedies = [one["remedy"] for one in twin(web, "/")["findings"]]
    assert {"noun": "queues", "verb": "resume", "fields": {"name": "mail"}, "button": "Resume"} in remedies
    assert "/act/queues/resume" in html


@pytest.mark.full
def test_the_overview_reads_as_much_for_many_jobs_as_for_few(
    web: TestClient, client: Client, url: str, mail: str
) -> None:
    def commands() -> int:
        before = _calls(url)
        page(web, "/")
        return _calls(url) - before

    more = [("jobs.more", {}) for _ in range(1000)]
    client.queues["mail"].put_many(more[:100])
    page(web, "/")
    few = commands()
    client.queues["mail"].put_many(more)
    assert abs(commands() - few) <= 8, few  # what runs in the background reads too
    assert few < 150


def _calls(url: str) -> int:
    stats = redis.Redis.from_url(url).info("commandstats")
    return sum(found["calls"] for name, found in stats.items() if name.startswith("cmdstat_fcall"))


@pytest.mark.full
def test_the_list_of_queues_filters_sorts_and_pages(web: TestClient, client: Client) -> None:
    for name, count in (("mail-a", 1), ("mail-b", 3), ("other", 2)):
        client.queues[name].put_many([("jobs.send", {}) for _ in range(count)])
    names = [row["counts"]["name"] for row in twin(web, "/queues?filter=mail&sort=-waiting")["queues"]]
    assert names == ["mail-b", "mail-a"]
    first = twin(web, "/queues?limit=2")
    assert (first["total"], first["next"]) == (3, "mail-b")
    assert [row["counts"]["name"] for row in twin(web, "/queues?limit=2&after=mail-b")["queues"]] == ["other"]
    html = page(web, "/queues?limit=2&sort=-waiting")
    assert 'aria-sort="descending"' in html
    assert 'rel="next"' in html
    assert "No queue matches" in shown(page(web, "/queues?filter=nothing"))


@pytest.mark.full
@pytest.mark.parametrize("tab", TABS)
def test_each_tab_of_a_queue_has_its_rows(web: TestClient, mail: str, tab: str) -> None:
    html = page(web, f"/queues/mail?tab={tab}")
    found = twin(web, f"/queues/mail?tab={tab}")
    assert found["tab"] == tab
    counts = found["detail"]["counts"]
    if tab in ("stats", "settings"):
        assert found["stats" if tab == "stats" else "limits"] is not None
        return
    rows = found["recurring"]["rows"] if tab == "recurring" else found["jobs"]["jobs"]["rows"]
    assert len(rows) == counts[tab] == {"stalled": 0, "failed": 1}.get(tab, len(rows))
    for row in rows:
        assert row["jid"] in html


def test_a_backlog_that_nobody_noted_is_no_number(web: TestClient, mail: str, client: Client) -> None:
    begin = time.time() - 7 * 86_400
    path = f"/queues/mail?tab=stats&range={begin:.0f}-{begin + 600:.0f}"
    assert "The number of waiting jobs was not recorded in this period." in page(web, path)
    assert set(twin(web, path)["stats"]["backlog"]) == {None}
    waiting = twin(web, "/queues/mail")["detail"]["counts"]["waiting"]
    assert waiting > 0
    assert twin(web, "/queues/mail?tab=stats")["stats"]["backlog"][-1] == waiting
    assert f"jobs waiting, now {waiting}" in unescape(page(web, "/queues/mail?tab=stats"))


def test_an_unknown_tab_shows_the_statistics(web: TestClient, mail: str) -> None:
    assert twin(web, "/queues/mail?tab=nonsense")["tab"] == "stats"


@pytest.mark.full
def test_statistics_are_those_of_the_day_that_is_asked_for(web: TestClient, mail: str) -> None:
    today = twin(web, "/queues/mail")["stats"]
    assert (today["failures"], today["wait"]["count"], today["date_after"]) == (1, 3, "")
    assert twin(web, "/queues/mail?scale=protocol")["stats"]["wait"]["per_minute"][0][1] == 180
    before = twin(web, f"/queues/mail?date={today['date_before']}")["stats"]
    assert (before["wait"]["count"], before["date_after"]) == (0, today["date"])
    assert 'type="date"' in page(web, f"/queues/mail?date={today['date_before']}")
    page(web, "/queues/mail?scale=protocol&range=7d")


@pytest.mark.full
def test_data_and_messages_are_masked(browse: Browse, mail: str) -> None:
    web = browse(redact=["*.password", r"re:\b\d{16}\b"])
    for tab in ("recurring", "failed"):
        for text in (page(web, f"/queues/mail?tab={tab}"), web.get(f"/api/v1/queues/mail?tab={tab}").text):
            assert "hunter2" not in text
            assert "4111111111111111" not in text


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_any_characters_are_text_and_links(web: TestClient, client: Client, name: str) -> None:
    queue = client.queues[name]
    queue.put("<b>klass</b>", {}, tags=[name])
    queue.put("{{7*7}}", {}, delay=60)
    Console(client, actor=name).pause(name, why=name)
    path = "/queues/" + segment(name)
    for url in ("/", "/queues", *(f"{path}?tab={tab}" for tab in TABS)):
        html = page(web, url)
        assert "<script>alert" not in html
        assert "<b>klass" not in html
        assert "\u202e" not in shown(html)
    assert f'href="{path}' in page(web, "/queues").replace("&amp;", "&")
    assert twin(web, path)["name"] == name


def test_what_is_not_known_is_not_found(web: TestClient, mail: str) -> None:
    found = web.get("/queues/nothing", headers=HTML)
    assert found.status_code == 404
    assert "nothing" in found.text
    assert web.get("/api/v1/queues/nothing").status_code == 404


@pytest.mark.full
@pytest.mark.parametrize(
    "path",
    [
        "/?range=1y",
        "/queues?sort=colour",
        "/queues?limit=many",
        "/queues?limit=0",
        "/queues?sort=waiting&after=x",
        "/queues/mail?date=yesterday",
        "/queues/mail?scale=other",
        "/queues/mail?range=1y",
        "/queues/mail?tab=waiting&after=x",
        "/queues/mail?tab=recurring&after=x",
        "/queues/mail?tab=waiting&limit=100000",
    ],
)
def test_a_query_that_cannot_be_read_is_refused(web: TestClient, mail: str, path: str) -> None:
    found = web.get(path, headers=HTML)
    assert found.status_code == 400, found.text[:500]


@pytest.mark.full
def test_regions_are_served_alone(web: TestClient, mail: str) -> None:
    for path, regions in (
        ("/", ("attention", "tiles", "queues", "groups", "tracked", "workers")),
        ("/queues", ("rows",)),
        ("/queues/mail", ("top", "tab")),
    ):
        for region in regions:
            html = page(web, f"{path}?fragment={region}")
            assert f'id="{region}"' in html
            assert "<html" not in html


# What is done to queues.


def by_form(web: TestClient, verb: str, **fields: object) -> tuple[int, str]:
    found = web.post(f"/act/queues/{verb}", data={"back": "/queues", **fields}, follow_redirects=False)
    return found.status_code, found.headers.get("location", "")


def by_json(web: TestClient, verb: str, **fields: object) -> dict:  # type: ignore[type-arg]
    found = web.post(f"/api/v1/queues/{verb}", json=fields)
    return {"status": found.status_code, **found.json()}


def test_queues_are_paused_with_a_reason_and_resumed(web: TestClient, client: Client, mail: str) -> None:
    assert by_form(web, "pause", name="mail", reason="upgrade", seconds="900") == (303, "/queues")
    counts = client.queues["mail"].counts
    assert counts["paused"]
    assert counts["paused_why"] == "upgrade"
    assert counts["paused_until"]
    assert by_json(web, "resume", name=["mail"])["changed"] == 1
    assert not client.queues["mail"].counts["paused"]
    done = by_json(web, "pause", name=["mail"])
    assert done["undo"]["verb"] == "resume"
    assert by_form(web, "resume", name="mail")[0] == 303


def test_a_pause_may_end_the_leases_of_running_jobs(web: TestClient, client: Client, mail: str) -> None:
    assert client.queues["mail"].counts["running"] == 1
    assert by_json(web, "pause", name=["mail"], expire=True)["status"] == 200
    assert "leases" in by_json(web, "pause", name=["mail"], expire=True)["text"]


def test_nothing_is_paused_if_one_queue_is_not_known(web: TestClient, client: Client, mail: str) -> None:
    assert by_json(web, "pause", name=["mail", "nothing"])["status"] == 404
    assert not client.queues["mail"].counts["paused"]
    assert by_json(web, "pause", name=7)["status"] == 400
    assert by_json(web, "pause", name=[])["status"] == 400


def test_jobs_are_put_by_the_name_of_their_code(web: TestClient, client: Client) -> None:
    status, place = by_form(
        web,
        "put",
        queue="mail",
        code="shop.welcome",
        data='{"user": 7}',
        priority="5",
        delay="",
        tags="vip, eu",
        retries="2",
    )
    assert status == 303
    assert place.startswith("/jobs/")
    job = client.job(place.removeprefix("/jobs/"))
    assert (job.klass_name, job.priority, job.retries_left, sorted(job.tags)) == (
        "shop.welcome",
        5,
        2,
        ["eu", "vip"],
    )
    done = by_json(
        web, "put", queue="mail", code="shop.Order", kind="class", data="[1]", tag=["a,b"], delay=60
    )
    job = client.job(done["result"]["jid"])
    assert (job.state, list(job.tags), job.retries_left) == ("scheduled", ["a,b"], 5)


@pytest.mark.parametrize(
    "fields",
    [
        {"queue": "mail", "code": ""},
        {"queue": "", "code": "a.b"},
        {"queue": "mail", "code": "a.b", "data": "{"},
        {"queue": "mail", "code": "a.b", "data": "7"},
        {"queue": "mail", "code": "a.b", "priority": "high"},
        {"queue": "mail", "code": "a.b", "retries": -1},
        {"queue": "mail", "code": "a.b", "kind": "module"},
        {"code": "a.b"},
    ],
)
def test_a_put_that_cannot_be_is_refused(web: TestClient, client: Client, fields: dict[str, object]) -> None:
    found = by_json(web, "put", **fields)
    assert found["status"] == 400
    assert found["title"]
    assert client.queues.counts == []


def test_limits_are_set_and_removed(web: TestClient, client: Client, mail: str) -> None:
    for option, text in (("max-waiting", "500"), ("max-losses", "2"), ("heartbeat", "45"), ("throttle", "7")):
        assert by_form(web, "set", name="mail", option=option, value=text)[0] == 303
    limits = twin(web, "/queues/mail?tab=settings")["limits"]
    assert limits == {
        "max_waiting": "500",
        "max_losses": "2",
        "heartbeat": "45",
        "throttle": "7",
        "lease": 45.0,
    }
    for option in ("max-waiting", "max-losses", "heartbeat", "throttle"):
        assert by_json(web, "set", name="mail", option=option, value="")["status"] == 200
    limits = twin(web, "/queues/mail?tab=settings")["limits"]
    assert [limits[name] for name in ("max_waiting", "max_losses", "heartbeat", "throttle")] == [""] * 4


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max-waiting", "0"),
        ("max-waiting", "many"),
        ("max-losses", 300),
        ("heartbeat", "-1"),
        ("throttle", "x"),
        ("colour", 1),
    ],
)
def test_limits_that_cannot_be_are_refused(web: TestClient, mail: str, option: str, value: object) -> None:
    assert by_json(web, "set", name="mail", option=option, value=value)["status"] == 400
    assert by_json(web, "set", name="nothing", option="throttle", value=1)["status"] == 404


def test_a_purge_counts_before_it_cancels(web: TestClient, client: Client, mail: str) -> None:
    before = client.queues["mail"].counts
    dry = by_json(web, "purge", name="mail", states="scheduled,failed", dry_run=True)
    assert (dry["changed"], dry["result"]["matched"]) == (0, 2)
    assert client.queues["mail"].counts == before
    asked = web.post("/act/queues/purge", data={"name": "mail", "states": "scheduled"})
    assert asked.status_code == 200
    assert "1 scheduled" in asked.text
    assert by_json(web, "purge", name="mail", states="scheduled")["status"] == 200
    assert by_json(web, "purge", name="mail", states="sleeping")["status"] == 400
    assert by_json(web, "purge", name="nothing")["status"] == 404


def test_only_empty_queues_are_forgotten(web: TestClient, client: Client, mail: str) -> None:
    assert by_json(web, "forget", name=["mail"])["status"] == 409
    jid = client.queues["empty"].put("jobs.send", {})
    client.job(jid).cancel()
    asked = web.post("/act/queues/forget", data={"name": "empty"})
    assert "Forget queue empty?" in asked.text
    assert by_form(web, "forget", name="empty", confirm="yes") == (303, "/queues")
    assert by_json(web, "forget", name=["empty"])["status"] == 404


@pytest.mark.full
def test_readers_see_no_buttons_and_change_nothing(browse: Browse, client: Client, mail: str) -> None:
    web = browse(read_only=True)
    for path in ("/", "/queues", *(f"/queues/mail?tab={tab}" for tab in TABS)):
        assert "/act/" not in page(web, path), path
    for verb in ("pause", "resume", "put", "set", "purge", "forget"):
        assert by_json(web, verb, name=["mail"])["status"] == 403


# What the tabs offer.


def test_a_job_waits_no_longer_for_the_jobs_of_its_row(web: TestClient, client: Client) -> None:
    parents = [client.queues["mail"].put("jobs.wait", {}) for _ in range(2)]
    jid = client.queues["mail"].put("jobs.child", {}, depends=parents)
    assert "Remove all 2 dependencies" in page(web, "/queues/mail?tab=depends")
    done = web.post("/act/jobs/undepend", data={"jid": jid, "parent": parents[:1]}, follow_redirects=False)
    assert done.status_code == 303
    assert "Remove dependency" in page(web, "/queues/mail?tab=depends")
    assert web.post("/api/v1/jobs/undepend", json={"jid": jid}).status_code == 200
    assert client.job(jid).state == "waiting"
    assert web.post("/api/v1/jobs/undepend", json={"jid": jid}).status_code == 409


def test_recurring_jobs_are_run_paused_resumed_and_deleted_from_their_tab(
    web: TestClient, client: Client
) -> None:
    client.queues["mail"].recur("jobs.often", {}, interval=600, jid="often")
    html = page(web, "/queues/mail?tab=recurring")
    for verb in ("run", "pause", "delete"):
        assert f"/act/recurring/{verb}" in html
    web.post("/act/recurring/pause", data={"jid": "often", "back": "/queues/mail?tab=recurring"})
    assert "/act/recurring/resume" in page(web, "/queues/mail?tab=recurring")


def test_a_stalled_job_is_failed_in_a_group_of_its_own(web: TestClient, client: Client) -> None:
    client.config.set("mail-heartbeat", 0.01)
    jid = client.queues["mail"].put("jobs.lost", {})
    assert client.queues["mail"].pop()
    until(lambda: client.queues["mail"].counts["stalled"], "its lease has ended")
    assert "/act/jobs/fail" in page(web, "/queues/mail?tab=stalled")
    assert "/act/jobs/fail" in page(web, f"/jobs/{jid}")
    web.post("/act/jobs/fail", data={"jid": jid})
    [group] = Console(client).failures()
    assert (group.name, group.count) == ("mail-Lost", 1)
    assert "failed by" in client.job(jid).failure["message"]


@pytest.mark.full
def test_a_tab_is_exported_and_cells_that_spreadsheets_take_for_formulas_are_text(
    web: TestClient, client: Client
) -> None:
    client.queues["mail"].put("=1+1", {"n": 1}, tags=["@sum", "vip"])
    html = unescape(page(web, "/queues/mail?tab=waiting"))
    [link] = re.findall(r'href="(/jobs\?q=[^"]*export=csv)"', html)
    rows = list(csv.DictReader(io.StringIO(web.get(link).text)))
    assert [(row["klass"], row["tags"]) for row in rows] == [("'=1+1", "'@sum, vip")]


def test_a_page_whose_thing_is_gone_says_so_where_it_updates_itself(web: TestClient, client: Client) -> None:
    client.queues["mail"].put("jobs.fail", {})
    client.queues["mail"].pop().fail("mail-ValueError", "no")  # type: ignore[union-attr]
    Console(client).act("retry", *[row.jid for row in Console(client).jobs("state:failed").jobs])
    assert web.get("/failed/mail-ValueError").status_code == 404
    found = web.get("/failed/mail-ValueError?fragment=whole")
    assert found.status_code == 200
    assert 'id="whole"' in found.text
    assert 'there is no failure group "mail-ValueError"' in unescape(found.text)


@pytest.mark.full
def test_the_page_after_an_action_offers_to_undo_it(web: TestClient, client: Client, mail: str) -> None:
    answer = web.post("/act/queues/pause", data={"name": "mail", "back": "/about"})
    assert "Queue mail paused." in shown(answer.text)
    assert "/act/queues/resume" in answer.text
    assert "/act/queues/resume" not in web.get("/about").text  # shown once


@pytest.mark.full
def test_an_undo_that_nobody_signed_is_not_offered(web: TestClient) -> None:
    forged = ["Paused.", "done", {"noun": "queues", "verb": "forget", "fields": {"name": "mail"}}, "x" * 64]
    web.cookies.set("holdfast-flash", quote(json.dumps(forged)), path="/")
    html = web.get("/about").text
    assert "Paused." in shown(html)
    assert "/act/queues/forget" not in html


def test_queues_that_share_a_prefix_stand_together(web: TestClient, client: Client) -> None:
    for name in ("a.one", "b", "mail.x", "mail.y", "mail/z", "z:1", "z:2"):
        client.queues[name].put("jobs.Send", {})
    page = web.get("/queues").text
    assert re.findall(r'data-fold="([^"]*)"', page) == ["mail.", "z:"]
    assert "data-fold" not in web.get("/queues?sort=-waiting").text
    assert web.get("/api/v1/queues").json()["total"] == 7


@pytest.mark.full
def test_lists_pages_and_the_command_agree_about_a_job_whose_lease_has_ended(
    web: TestClient, client: Client, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Core: running until a worker takes it again; a queue counts it as stalled from the end of its lease."""
    client.config["grace-period"] = 3_600
    jid = client.queues["lost"].put("K", jid="it")
    client.queues["lost"].put("K", jid="after", depends=[jid])
    client.run(Pop("somebody", ["lost"], 1, 1))
    until(lambda: client.queues["lost"].counts["stalled"], "its lease has ended")
    place = ["--url", url, "--namespace", client.settings.namespace]
    assert run(["jobs", "show", jid, *place]) == 0
    assert "state       stalled" in capsys.readouterr().out
    assert run(["jobs", "show", jid, "--json", *place]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["facts"]["state"] == "stalled"
    console = Console(client)
    assert [row.state for row in console.jobs("jid:it").jobs] == ["stalled"]
    assert [row.state for row in console.jobs("queue:lost state:stalled").jobs] == ["stalled"]
    assert [row.state for row in console.job("after").dependencies] == ["stalled"]
    of_page = twin(web, f"/jobs/{jid}")
    assert of_page["detail"]["facts"]["state"] == "stalled"
    assert {"expire", "fail"} <= set(of_page["actions"])
    assert "data" not in of_page["actions"]
    assert twin(web, "/queues/lost?tab=stalled")["jobs"]["grace"] == 3_600
    # The time that is left of the grace, not the moment after it in another unit.
    assert re.search(r"\b(59 m \d+ s|1 h)\b", shown(page(web, "/queues/lost?tab=stalled")))


def test_a_job_that_was_timed_out_waits_in_lists_and_on_its_page(client: Client) -> None:
    jid = client.queues["lost"].put("K")
    client.queues["lost"].pop()
    client.job(jid).timeout()
    console = Console(client)
    assert [row.state for row in console.jobs("queue:lost").jobs] == ["waiting"]
    assert console.job(jid).facts.state == "waiting"
    assert [row.state for row in console.jobs(f"jid:{jid}").jobs] == ["waiting"]
