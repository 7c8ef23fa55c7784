"""`holdfast web` as a process: in the background, shown, stopped; ports, options, links, signals."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from holdfast import Client
from holdfast.cli import web_samples
from holdfast.testing.store import ScratchStore
from holdfast.web.credentials import hash_password
from holdfast.web.serving import Folder, bound

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def web(tmp_path: Path, store: ScratchStore, namespace: str) -> Iterator[Run]:
    """Run `holdfast web` for a directory and store of this test."""
    place = ["--app-dir", str(tmp_path / "web"), "--url", store.url, "--namespace", namespace]
    env = {name: value for name, value in os.environ.items() if name != "DISPLAY"}

    def run(*words: str, input: str = "") -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "holdfast.cli.main", "web", *place, *words]
        return subprocess.run(
            command, input=input, capture_output=True, text=True, timeout=90, env=env, check=False
        )

    yield run
    Folder(tmp_path / "web").stop()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def link_in(text: str) -> str:
    found = re.search(r"http://\S+", text)
    assert found is not None, text
    return found[0]


@pytest.mark.full
def test_it_goes_to_the_background_is_shown_and_stopped(web: Run, tmp_path: Path) -> None:
    started = web("-L")
    assert started.returncode == 0, started.stderr
    with httpx.Client() as browser:
        assert browser.get(link_in(started.stdout), follow_redirects=True).status_code == 200
    again = web("-L")
    assert (again.returncode, "runs already" in again.stderr) == (1, True)
    shown = json.loads(web("-S", "--json").stdout)
    assert shown["pid"] == int(re.findall(r"pid (\d+)", started.stdout)[0])
    with httpx.Client() as browser:  # each time a new link
        assert browser.get(shown["url"], follow_redirects=True).status_code == 200
    assert web("-K").stdout.startswith("stopped, pid ")
    assert (web("-S").returncode, web("-K").stdout) == (1, "the web UI does not run\n")
    assert not (tmp_path / "web" / "web.json").exists()
    assert [path.stat().st_mode & 0o077 for path in (tmp_path / "web").iterdir()] == [0] * 4


@pytest.mark.full
def test_a_taken_port_is_an_error_if_it_was_asked_for_else_the_next_is_tried(web: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = web("-L", "--port", port)
        assert (refused.returncode, f"port {port} of 127.0.0.1 is taken" in refused.stderr) == (1, True)
    first, second = socket.socket(), web("-L", "--auth", "none")
    first.close()
    assert second.returncode == 0, second.stderr
    assert httpx.get(link_in(second.stdout)).status_code == 200


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_foreground_it_ends_by_a_signal_within_seconds_although_a_stream_is_open(
    store: ScratchStore, namespace: str, tmp_path: Path, number: signal.Signals
) -> None:
    port = free_port()
    words = ["web", "-F", "-L", "--auth", "none", "--port", str(port), "--app-dir", str(tmp_path / "w")]
    words += ["--url", store.url, "--namespace", namespace, "--prefix", "/jobs"]
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 60
        while Folder(tmp_path / "w").running() is None and time.monotonic() < until:
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.05)
        assert process.stdout
        assert process.stdout.readline() == f"http://127.0.0.1:{port}/jobs/\n"
        with httpx.stream("GET", f"http://127.0.0.1:{port}/jobs/live", timeout=30) as stream:
            assert next(stream.iter_lines()) == "event: tick"
            assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 404
            process.send_signal(number)
            began = time.monotonic()
            assert process.wait(30) == 0
            assert time.monotonic() - began < 30
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    assert not (tmp_path / "w" / "web.json").exists()


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--bind", "0.0.0.0"], "choose --auth basic, bearer or proxy"),
        (["--bind", "0.0.0.0", "--auth", "none"], "choose --auth basic, bearer or proxy"),
        (["--auth", "basic"], "requires --users FILE"),
        (["--auth", "proxy"], "requires --proxy ADDRESS"),
        (["--prefix", "jobs"], "expected a path such as /jobs"),
        (["--auth", "sso"], "is not one of"),
        (["--port", "70000"], "70000"),
        (["--url", "redis://a..b"], "a..b"),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_starts(
    web: Run, words: list[str], sentence: str
) -> None:
    found = web("-L", *words)
    assert (found.returncode, sentence in found.stderr, "Traceback" in found.stderr) == (2, True, False), (
        found.stderr
    )


@pytest.mark.full
def test_passwords_of_a_users_file_and_a_read_only_start(web: Run, client: Client, tmp_path: Path) -> None:
    client.queues["q"].put("K", {})
    secret = web("--hash-password", input="pa55\n").stdout.strip()
    assert secret.startswith("scrypt$")
    assert secret != hash_password("pa55")
    users = tmp_path / "users"
    users.write_text(f"ada:admin:{secret}\n")
    users.chmod(0o600)
    started = web("-L", "--auth", "basic", "--users", str(users), "--read-only")
    assert started.returncode == 0, started.stderr
    url = link_in(started.stdout)
    with httpx.Client(auth=("ada", "pa55"), headers={"Sec-Fetch-Site": "same-origin"}) as browser:
        assert browser.get(url).status_code == 200
        assert browser.post(f"{url}act/queues/pause", data={"name": "q"}).status_code == 403
    assert httpx.get(url).status_code == 401


def test_the_body_of_a_response_is_not_delayed_until_its_headers_are_acknowledged() -> None:
    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            made = writer.get_extra_info("socket")
            found.set_result(made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = bound("127.0.0.1", free_port())
        async with await asyncio.start_server(connected, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            writer.close()
            return await asyncio.wait_for(found, 30)

    assert asyncio.run(accepted()) == 1


def test_a_folder_of_somebody_else_or_open_to_others_is_refused(tmp_path: Path) -> None:
    from holdfast import UsageError

    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UsageError, match="writable by you only"):
        Folder(tmp_path / "open").secret()
    link = tmp_path / "mine"
    link.mkdir(mode=0o700)
    (link / "web.secret").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        Folder(link).secret()


@pytest.mark.full
def test_samples_give_every_page_something_to_show(client: Client) -> None:
    web_samples.fill(client, seed=1)
    counts = client.queues.counts
    total = {
        state: sum(row[state] for row in counts)
        for state in ("waiting", "running", "failed", "depends", "scheduled")
    }
    assert (total["failed"], total["running"], total["depends"]) == (100, 20, 4)
    assert total["waiting"] + total["scheduled"] == 101
    assert len(client.jobs.failed()) == 3


@pytest.mark.full
def test_behind_a_server_in_front_its_own_address_and_the_scheme_that_it_names_count(
    web: Run, client: Client, tmp_path: Path
) -> None:
    client.queues["q"].put("K", {})
    refused = web("-L", "--auth", "proxy", "--proxy", "127.0.0.1")
    assert (refused.returncode, "--proxy-secret-file" in refused.stderr) == (2, True)
    file = tmp_path / "proxy.secret"
    file.write_text("a secret of nginx")
    file.chmod(0o600)
    words = ["-L", "--auth", "proxy", "--proxy", "127.0.0.1", "--proxy-secret-file", str(file)]
    assert "without spaces" in web(*words).stderr
    file.write_text("secret-of-the-reverse-proxy\n")
    started = web(*words)
    assert started.returncode == 0, started.stderr
    url = link_in(started.stdout)
    host = url.removeprefix("http://").rstrip("/")
    forwarded = {
        "X-Forwarded-For": "203.0.113.9",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-User": "ada",
        "X-Forwarded-Role": "operator",
    }
    assert httpx.get(f"{url}api/v1/queues", headers=forwarded).status_code == 401
    forwarded["X-Holdfast-Secret"] = "secret-of-the-reverse-proxy"
    assert httpx.get(f"{url}api/v1/queues", headers=forwarded).status_code == 200
    for origin, status in ((f"https://{host}", 200), (f"http://{host}", 403)):
        headers = {**forwarded, "Origin": origin}
        found = httpx.post(f"{url}api/v1/queues/pause", json={"name": ["q"]}, headers=headers)
        assert found.status_code == status, found.text
