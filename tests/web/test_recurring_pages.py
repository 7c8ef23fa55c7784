"""Pages of recurring jobs: the form with its preview, the moments to come, those that are over, and lists."""

import re
from html import unescape
from itertools import pairwise
from typing import Any

import pytest
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.commands.recurring import CalendarFacts, Recur
from holdfast.console.handles import Console
from holdfast.testing.clock import StoppedClock


def act(web: TestClient, what: str, **body: object) -> Any:
    """Call an action of the API, and return its response."""
    response = web.post(f"/api/v1/{what}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


# The form.


def test_a_preview_has_the_next_moments_in_the_zone_of_the_calendar_and_in_that_of_the_viewer(
    web: TestClient, client: Client
) -> None:
    found = act(web, "recurring/preview", cron="30 2 * * *", zone="Europe/Berlin", start="2027-03-27T00:00", viewer="America/New_York")  # fmt: skip
    first, second = found["result"]["moments"][:2]
    assert len(found["result"]["moments"]) == 5
    assert (first["local"], first["viewer"]) == (
        "Sat 27 Mar 2027, 02:30 UTC+1",
        "Fri 26 Mar 2027, 21:30 UTC-4",
    )
    assert (second["local"], second["clock"]) == (
        "Sun 28 Mar 2027, 03:00 UTC+2",
        "clock set forward by 1 h",
    )
    hourly = act(web, "recurring/preview", interval=3600, offset=60)["result"]
    times = [one["when"] for one in hourly["moments"]]
    assert [later - one for one, later in pairwise(times)] == [3600] * 4
    client.queues["q"].recur("k.K", {}, 600, jid="r", offset=600)
    due = Console(client).recurring_job("r").next_ms
    changed = act(web, "recurring/preview", interval=660, jid="r", changes=True)["result"]
    assert changed["moments"][0]["when"] == due / 1000 + 60


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"cron": "0 3 * * *", "zone": "Europe/Berlni"}, "zone: there is no time zone 'Europe/Berlni'; did you mean 'Europe/Berlin'?"),
        ({"cron": "0 3 * *"}, "cron: expected five fields"),
        ({"cron": "0 0 31 2 *"}, "in '0 0 31 2 *'"),
        ({"cron": "0 3 * * *", "start": "soon"}, "start: expected a time such as 2027-03-01T08:00, got 'soon'"),
        ({"cron": "0 3 * * *", "start": "2030-01-01T00:00", "end": "2029-01-01T00:00"}, "end must be later than start"),
        ({"cron": "* * * * *", "jitter": 60}, "jitter: expected less than the 60 s between two moments, got 60 s"),
        ({"cron": "0 3 * * *", "missed": "some"}, "missed: expected 'once', 'skip', 'all' or a number, got 'some'"),
        ({"cron": "0 3 * * *", "interval": 60}, "interval cannot be given with cron="),
        ({"interval": 60, "zone": "UTC", "by": ""}, "zone needs cron="),
    ],
)  # fmt: skip
def test_a_calendar_that_makes_no_sense_is_refused_in_one_sentence_by_the_preview_and_when_it_is_added(
    web: TestClient, client: Client, body: dict[str, object], sentence: str
) -> None:
    for verb in ("preview", "add"):
        found = web.post(f"/api/v1/recurring/{verb}", json={"queue": "q", "klass": "k.K", **body})
        assert found.status_code == 400
        assert sentence in found.json()["title"]
    assert Console(client).recurring().rows == ()


def test_a_calendar_is_added_from_the_form_which_without_script_keeps_what_was_typed_when_it_is_refused(
    web: TestClient, client: Client
) -> None:
    typed = {"by": "cron", "queue": "q", "klass": "k.<b>", "interval": "3600", "offset": "0", "backlog": "1", "cron": "0 3 * * *", "zone": "Europe/Berlni",
             "missed": "2", "overlap": "skip", "jitter": "30", "start": "2030-01-01T00:00", "end": "", "data": "[7]", "tags": "a", "jid": "nightly", "back": "/recurring?new=1"}  # fmt: skip
    refused = web.post("/act/recurring/add", data=typed)
    assert refused.status_code == 400
    html = unescape(refused.text)
    assert html.count("there is no time zone 'Europe/Berlni'; did you mean 'Europe/Berlin'?") == 2
    for name in ("cron", "zone", "jitter", "start", "tags", "jid"):
        assert f'name="{name}" value="{typed[name]}"' in html
    assert 'value="cron" checked' in html
    assert '<option value="2" selected>' in html
    assert ">[7]</textarea>" in html
    assert 'value="k.&lt;b&gt;"' in refused.text
    assert Console(client).recurring().rows == ()
    shown = web.post("/act/recurring/preview", data=typed | {"zone": "Europe/Berlin"})
    assert shown.status_code == 200
    assert "Tue 01 Jan 2030, 03:00 UTC+1" in shown.text
    assert ">[7]</textarea>" in unescape(shown.text)
    part = web.post(
        "/act/recurring/preview", data={"by": "cron", "cron": "x"}, headers={"HX-Request": "true"}
    )
    assert part.status_code == 200  # the console of the browser stays silent while somebody types
    assert "expected five fields" in part.text
    assert "<html" not in part.text
    assert Console(client).recurring().rows == ()
    added = web.post("/act/recurring/add", data=typed | {"zone": "Europe/Berlin"}, follow_redirects=False)
    assert added.status_code == 303
    facts = Console(client).recurring_job("nightly").calendar
    assert facts is not None
    assert (facts.cron, facts.zone, facts.missed, facts.overlap) == (
        "0 3 * * *",
        "Europe/Berlin",
        "2",
        "skip",
    )
    assert (facts.jitter_ms, facts.start_ms) == (30_000, 1_893_452_400_000)


def test_a_change_that_is_refused_without_script_shows_what_was_typed(
    web: TestClient, client: Client
) -> None:
    client.queues["q"].recur("k.K", {}, 600, jid="r")
    refused = web.post("/act/recurring/edit", data={"jid": "r", "changes": "true", "interval": "-7", "klass": "k.Other", "queue": "q", "back": "/recurring/r"})  # fmt: skip
    assert refused.status_code == 400
    assert 'name="klass" value="k.Other"' in refused.text
    assert 'name="interval" value="-7"' in refused.text
    assert Console(client).recurring_job("r").klass == "k.K"


def test_a_calendar_is_changed_by_the_form_of_its_page_which_shows_what_it_is_now(
    web: TestClient, client: Client
) -> None:
    client.queues["q"].recur("k.K", {}, cron="0 3 * * *", zone="Europe/Berlin", jid="r", missed=7, start=1_893_452_400, overlap="skip")  # fmt: skip
    html = unescape(web.get("/recurring/r").text)
    for name, value in (
        ("by", "cron"),
        ("cron", "0 3 * * *"),
        ("zone", "Europe/Berlin"),
        ("start", "2030-01-01T00:00"),
    ):
        assert f'name="{name}" value="{value}"' in html
    assert '<option value="7" selected>' in html
    assert "Tue 01 Jan 2030, 03:00 UTC+1" in html
    form = {"jid": "r", "changes": "true", "by": "cron", "klass": "k.K", "queue": "q", "priority": "0", "retries": "5", "tags": "", "data": "", "cron": "0 3 * * *",
            "zone": "Europe/Berlin", "missed": "7", "overlap": "skip", "jitter": "0.0", "start": "2030-01-01T00:00", "end": "", "back": "/recurring/r"}  # fmt: skip
    assert web.post("/act/recurring/edit", data=form, follow_redirects=False).status_code == 303
    before = client.recurring["r"].facts.calendar
    assert before is not None
    assert (before.cron, before.missed, before.start_ms) == ("0 3 * * *", "7", 1_893_452_400_000)
    refused = web.post("/act/recurring/edit", data=form | {"cron": "0 3 * *"})
    assert refused.status_code == 400
    assert 'name="cron" value="0 3 * *"' in refused.text
    changed = form | {
        "cron": "30 4 * * *",
        "zone": "Asia/Tokyo",
        "missed": "2",
        "overlap": "allow",
        "start": "",
    }
    assert web.post("/act/recurring/edit", data=changed, follow_redirects=False).status_code == 303
    after = client.recurring["r"].facts.calendar
    assert after is not None
    assert (after.cron, after.zone, after.missed, after.overlap, after.start_ms) == (
        "30 4 * * *",
        "Asia/Tokyo",
        "2",
        "allow",
        0,
    )
    assert act(web, "recurring/edit", jid="r", cron="30 4 * * *")["text"] == "Nothing to change."


# One recurring job.


NIGHTS_MS = 1_805_760_000_000
"""23 March 2027, five days before the clock of Berlin is set forward."""


def test_the_page_shows_what_became_of_each_night_links_its_job_and_has_the_nights_to_come(
    web: TestClient, client: Client
) -> None:
    clock = StoppedClock(client, NIGHTS_MS)
    clock.start()
    queue = client.queues["reports"]
    queue.recur("Reports.nightly", {}, cron="30 2 * * *", zone="Europe/Berlin", jid="nightly")
    for night in range(6):
        clock.advance(days=1)
        if night in (1, 2):
            continue  # no worker
        job = queue.pop()
        assert job is not None
        if night == 0:
            job.fail("reports-ValueError", "ValueError: x")
        elif night == 3:
            client.jobs[job.jid].cancel()
        elif night == 4:
            job.complete()
    client.recurring["nightly"].run_now()
    found = web.get("/api/v1/recurring/nightly").json()
    assert [(one["local"], one["state"], one["jid"]) for one in found["turns"]] == [
        ("Tue 23 Mar 2027, 02:30 UTC+1", "failed", "nightly-1"),
        ("Wed 24 Mar 2027, 02:30 UTC+1", "unknown", ""),
        ("Thu 25 Mar 2027, 02:30 UTC+1", "unknown", ""),
        ("Fri 26 Mar 2027, 02:30 UTC+1", "unknown", ""),
        ("Sat 27 Mar 2027, 02:30 UTC+1", "complete", "nightly-3"),
        ("Sun 28 Mar 2027, 03:00 UTC+2", "running", "nightly-4"),
        ("Mon 29 Mar 2027, 02:00 UTC+2", "waiting", "nightly-5"),
    ]
    assert (found["last"]["jid"], found["last"]["state"]) == ("nightly-3", "complete")
    assert len(found["next"]) == 20
    assert found["next"][0]["local"] == "Mon 29 Mar 2027, 02:30 UTC+2"
    html = unescape(web.get("/recurring/nightly").text)
    assert 'href="/jobs/nightly-1" title="Tue 23 Mar 2027, 02:30 UTC+1: failed"' in html
    assert "Wed 24 Mar 2027, 02:30 UTC+1: job deleted, or left out" in html


def test_nights_without_a_job_are_left_out_and_the_change_of_the_clock_is_marked(
    web: TestClient, client: Client
) -> None:
    clock = StoppedClock(client, NIGHTS_MS)
    clock.start()
    queue = client.queues["reports"]
    queue.recur("Reports.nightly", {}, cron="30 2 * * *", zone="Europe/Berlin", jid="nightly")
    html = web.get("/recurring/nightly").text
    assert "No moment is over yet." in html
    assert "clock set forward by 1 h" in html
    for _ in range(2):
        clock.advance(days=2)
        job = queue.pop()
        assert job is not None
        job.complete()
    queue.recur("Reports.nightly", {}, cron="30 2 * * *", zone="Europe/Berlin", jid="nightly")  # at a deploy
    found = web.get("/api/v1/recurring/nightly").json()
    assert [one["state"] for one in found["turns"]] == ["complete", "left out", "complete"]
    assert [one["clock"] for one in found["next"] if one["clock"]] == ["clock set forward by 1 h"]
    queue.recur(
        "Reports.nightly", {}, cron="0 * * * *", jid="nightly"
    )  # the nights before are not of this one
    found = web.get("/api/v1/recurring/nightly").json()
    assert [one["state"] for one in found["turns"]] == ["complete", "complete"]


def test_the_page_of_an_interval_shows_who_paused_it_and_its_lines_of_the_audit_log(
    web: TestClient, client: Client
) -> None:
    clock = StoppedClock(client, NIGHTS_MS)
    clock.start()
    client.queues["q"].recur("k.K", {}, 3600, jid="often")
    client.queues["q"].recur("k.K", {}, 3600, jid="other")
    for _ in range(2):
        clock.advance(hours=1)
        client.queues["q"].pop(5)
    console = Console(client, "ada")
    console.pause_recurring("other", why="not this one")
    console.pause_recurring("often", why="the printer is broken")
    clock.advance(hours=3)
    found = web.get("/api/v1/recurring/often").json()
    assert [(one["who"], one["what"], one["detail"]) for one in found["audit"]] == [
        ("ada", "pause recurring", "the printer is broken")
    ]
    assert [one["state"] for one in found["turns"][-3:]] == ["left out"] * 3
    html = unescape(web.get("/recurring/often").text)
    assert "by ada: the printer is broken. 3 moments passed since" in " ".join(
        re.sub("<[^>]*>", "", html).split()
    ).replace("\u202f", " ")
    assert "not this one" not in html


def test_a_moment_whose_job_no_worker_has_put_yet_is_the_first_of_those_to_come(
    web: TestClient, client: Client
) -> None:
    clock = StoppedClock(client, NIGHTS_MS)
    clock.start()
    client.queues["q"].recur("k.K", {}, 3600, jid="often")
    client.queues["q"].recur("k.K", {}, cron="0 * * * *", jid="hourly")
    clock.advance(minutes=90)
    for jid, first in (("often", "00:00"), ("hourly", "01:00")):
        found = web.get(f"/api/v1/recurring/{jid}?count=2").json()["next"]
        assert [one["local"][-9:-4] for one in found] == [first, "02:00"]


def test_a_calendar_that_this_machine_cannot_read_leaves_its_pages_readable(
    web: TestClient, client: Client
) -> None:
    soon = 4_000_000_000_000
    calendar = CalendarFacts("0 3 * * *", "Mars/Base")
    client.run(Recur("q", "k.K", 3_600_000, jid="r", calendar=calendar, plan=[(soon, soon)]))
    for path in ("/recurring", "/recurring/r", "/api/v1/recurring/r"):
        assert web.get(path).status_code == 200
    assert "0 3 * * * Mars/Base" in web.get("/recurring").text


def test_a_pause_with_an_end_is_seen_on_the_page_and_in_the_list_with_the_last_run_and_what_was_missed(
    web: TestClient, client: Client
) -> None:
    clock = StoppedClock(client, NIGHTS_MS)
    clock.start()
    client.queues["q"].recur("k.K", {}, 3600, jid="often", overlap="skip")
    for _ in range(3):
        clock.advance(hours=1)
        client.queues["q"].pop(5)
    act(web, "recurring/pause", jid=["often"], reason="the printer is broken", seconds=7200)
    clock.advance(hours=1)
    found = web.get("/api/v1/recurring").json()["found"]["rows"][0]
    assert (found["last"]["jid"], found["last"]["state"]) == ("often-1", "stalled")
    assert (found["facts"]["left_out"], found["facts"]["paused_until"]) == (
        3,
        (NIGHTS_MS + 18_000_000) / 1000,
    )
    for path in ("/recurring", "/recurring/often"):
        text = re.sub("<[^>]*>", "", unescape(web.get(path).text)).replace("\u202f", " ")
        assert "the printer is broken" in text
        assert re.search("resume[sd] in 1 h", text)
    assert "3 left out so far" in re.sub("<[^>]*>", "", web.get("/recurring").text).replace("\u202f", " ")
    assert web.post("/api/v1/recurring/pause", json={"jid": ["often"], "seconds": -1}).status_code == 400
