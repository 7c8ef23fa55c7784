"""The page about the web UI inside Django: its project works as it stands, under the servers that it names."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast import Client
from reader import blocks_of
from waiting import until
from web_process import free_port

PAGE = (Path(__file__).parents[2] / "docs" / "recipes" / "django-web-ui.md").read_text()
PEOPLE = """
from django.contrib.auth.models import User
User.objects.create_superuser("ada", "ada@example.org", "pa55")
User.objects.create_user("ben", password="pa55", is_staff=True)
User.objects.create_user("eve", password="pa55")
"""
SERVERS = [line for block in blocks_of(PAGE) if block.kind == "sh" for line in block.text.splitlines()]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the page, with an administrator, a member of the staff, and somebody who is neither."""
    folder = tmp_path_factory.mktemp("django")
    for block in blocks_of(PAGE):
        if block.kind == "console":
            for line in block.text.splitlines():
                run(folder, *shlex.split(line.removeprefix("$ ")))
        elif block.file:
            (folder / block.file).write_text(block.text)
    run(folder, "python", "manage.py", "shell", "-c", PEOPLE)
    return folder


def run(folder: Path, _: str, *words: str) -> None:
    """Run a command of the page that begins with `python`."""
    subprocess.run([sys.executable, *words], cwd=folder, check=True, timeout=120, capture_output=True)


@contextmanager
def serving(command: str, client: Client, folder: Path) -> Iterator[str]:
    """Run a server of the page on a free port while the block runs, which gets its address."""
    port = free_port()
    place = {
        "python": f"127.0.0.1:{port}",
        "gunicorn": f"--bind=127.0.0.1:{port}",
        "uvicorn": f"--port={port}",
    }
    first, *words = shlex.split(command)
    program = [sys.executable] if first == "python" else [sys.executable, "-m", first]
    env = {**os.environ, "HOLDFAST_URL": client.store_url, "HOLDFAST_NAMESPACE": client.settings.namespace}
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*program, *words, place[first]],
            cwd=folder,
            env=env,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        until(lambda: is_open(port) or process.poll() is not None, "the server listens", within=60)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # with the child of runserver, which reloads
        process.wait(30)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


def test_the_page_names_three_servers() -> None:
    assert [shlex.split(line)[0] for line in SERVERS] == ["python", "python", "gunicorn", "uvicorn"]


@pytest.mark.full
@pytest.mark.parametrize("command", SERVERS[1:])
def test_staff_logs_in_to_django_and_sees_and_changes_jobs(
    client: Client, project: Path, command: str
) -> None:
    client.queues["mail"].put("Mail.send", {})
    with serving(command, client, project) as base:
        with session(base) as http:
            assert http.get("/ops/jobs/api/v1/queues").json()["login_url"] == "/admin/login/"
            page = log_in(http, "ada", "/ops/jobs/queues?sort=name")
            assert (page.status_code, page.url.path) == (200, "/ops/jobs/queues"), page.text[:2000]
            assert "mail" in page.text
            for link in re.findall(r'(?:href|src)="(/ops/jobs/static/[^"]+)"', page.text):
                assert http.get(link).status_code == 200
            numbers_follow(http, page.text)
            done = http.post("/ops/jobs/act/queues/pause", data={"name": "mail"}, headers={"Origin": base})
            assert (done.status_code, client.queues["mail"].paused) == (200, True)
            assert "pause" in http.get("/ops/jobs/audit").text
            assert ">ada<" in http.get("/ops/jobs/audit").text
        with session(base) as http:
            assert log_in(http, "ben", "/ops/jobs/").status_code == 200
            forget = {"name": ["mail"], "confirm": "api"}
            refused = http.post("/ops/jobs/api/v1/queues/forget", json=forget, headers={"Origin": base})
            assert "operator" in refused.json()["title"]
        with session(base) as http:
            assert log_in(http, "eve", "/ops/jobs/", "/admin/").status_code == 200
            http.cookies.set("sessionid", cookie_of(project, "eve"))
            found = http.get("/ops/jobs/")
            assert (found.status_code, "Only staff may see the jobs." in found.text) == (403, True)
    assert "Traceback" not in (project / "log").read_text()


def session(base: str) -> httpx.Client:
    return httpx.Client(base_url=base, timeout=60, follow_redirects=True)


def log_in(http: httpx.Client, name: str, wanted: str, at: str = "") -> httpx.Response:
    """Open a page, log in where that leads to, and return the page that comes then."""
    form = http.get(wanted)
    assert form.url.path == "/admin/login/"
    [token] = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', form.text)
    [target] = re.findall(r'name="next" value="([^"]+)"', form.text)
    fields = {"username": name, "password": "pa55", "csrfmiddlewaretoken": token, "next": at or target}
    return http.post(str(form.url), data=fields, headers={"Referer": str(form.url)})


def cookie_of(folder: Path, name: str) -> str:
    """Begin a session as Django's own code does, for somebody whom the admin does not let in."""
    code = f"""
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
asked = HttpRequest()
asked.session = SessionStore()
login(asked, User.objects.get(username={name!r}))
asked.session.save()
print("session", asked.session.session_key)
"""
    words = [sys.executable, "manage.py", "shell", "-c", code]
    done = subprocess.run(words, cwd=folder, check=True, timeout=120, capture_output=True, text=True)
    return done.stdout.split()[-1]


def numbers_follow(http: httpx.Client, page: str) -> None:
    """Check that numbers come as the page asks for them: by one stream, or in turn."""
    if 'data-live="poll"' in page:
        assert http.get("/ops/jobs/live?once=1").json()["tick"]["q.mail.waiting"] == 1
        return
    assert 'data-live="stream"' in page
    with http.stream("GET", "/ops/jobs/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        assert next(lines) == "event: tick"
        assert '"q.mail.waiting":1' in next(lines)
