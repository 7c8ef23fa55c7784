"""TLS as docs/guide/security.md describes it, with a real server and self-made certificates."""

import asyncio
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from certificates import make_certificates
from holdfast.testing.store import ScratchStore, find_engine

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "security.md").read_text(encoding="utf-8")
[CONFIGURATION] = re.findall(r"^```conf\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
[URL] = re.findall(r"^rediss://\S+$", PAGE, re.MULTILINE)
WHERE = "/etc/holdfast/tls"

JOBS = """
import holdfast
app = holdfast.Client()

@app.job(queue="mail")
def add(a: int, b: int = 1) -> int:
    return a + b
"""


class Secured:
    """A server as the page configures it, in `directory`; `url` is the page's, for its port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        text = CONFIGURATION.replace("6380", str(self.port)).replace(WHERE, str(directory))
        self.settings = dict(line.split(" ", 1) for line in text.splitlines())

    def url(self, host: str = "localhost", without: str = "") -> str:
        url = URL.replace("jobs.example:6380", f"{host}:{self.port}").replace(WHERE, str(self.directory))
        return re.sub(f"(?<=[?&])({without})=[^&]*&?", "", url).rstrip("?&") if without else url


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    if find_engine("redis") is None:
        pytest.skip("redis-server (with TLS) is not installed")
    made = Secured(tmp_path_factory.mktemp("tls"))
    make_certificates(made.directory, "server", "client")
    with ScratchStore("redis", settings=made.settings) as store:
        store.ask("ACL", "SETUSER", "worker", "on", ">PASSWORD", "~*", "&*", "+@all")
        store.ask("ACL", "SETUSER", "default", "off")
        yield made


@pytest.mark.full
def test_clients_of_both_kinds_put_and_wait(secured):
    async def story():
        async with holdfast.AsyncClient(secured.url(), namespace="async") as client:
            jid = await client.queues["q"].put("K")
            waiting = asyncio.ensure_future(client.wait_for(jid, 30))
            await (await client.queues["q"].pop()).complete()
            return (await waiting).status

    assert asyncio.run(story()) == "done"
    with holdfast.Client(secured.url()) as client:
        jid = client.queues["q"].put("K")
        client.queues["q"].pop().complete()
        assert client.wait_for(jid, 30).status == "done"


@pytest.mark.full
@pytest.mark.parametrize("pool", ["process", "asyncio"])
def test_a_worker_is_woken_up(secured, tmp_path, monkeypatch, pool):
    (tmp_path / "secure_jobs.py").write_text(JOBS)
    monkeypatch.setenv("HOLDFAST_URL", secured.url())
    monkeypatch.syspath_prepend(str(tmp_path))
    flags = ["-q", "mail", "--import", "secure_jobs", "-w", "1", "--pool", pool, "--interval", "600"]
    worker = subprocess.Popen([sys.executable, "-m", "holdfast.cli.main", "worker", *flags], cwd=tmp_path)
    jobs = __import__("secure_jobs")
    try:
        # Between two of them it is idle: each of the later ones is taken at a wake-up.
        assert [jobs.add.put(number).result(60) for number in range(5)] == [1, 2, 3, 4, 5]
        worker.terminate()
        assert worker.wait(60) == 0
    finally:
        jobs.app.close()
        del sys.modules["secure_jobs"]
        worker.kill()
        worker.wait()


@pytest.mark.full
@pytest.mark.parametrize(
    ("host", "without", "why"),
    [
        ("localhost", "ssl_ca_certs", r"cannot be verified.*ssl_ca_certs=FILE"),
        ("localhost", "ssl_certfile|ssl_keyfile", "(?i)ssl|certificate|reset|closed"),
        ("127.0.0.1", "", "(?i)cannot be verified.*IP address mismatch"),
    ],
    ids=["an unknown authority", "no certificate of the client", "another host"],
)
def test_a_connection_that_is_not_secure_is_refused(secured, host, without, why):
    with holdfast.Client(secured.url(host, without), deadline=0.5) as client:
        with pytest.raises((holdfast.ConnectionLost, holdfast.StoreUnsupported), match=why) as lost:
            client.queues["q"].put("K")
        assert not getattr(lost.value, "may_have_happened", False)
        assert "PASSWORD" not in str(lost.value)


@pytest.mark.full
def test_without_tls_nobody_gets_in(secured):
    plain = f"redis://worker:PASSWORD@localhost:{secured.port}/0"
    with holdfast.Client(plain, deadline=0.5) as client, pytest.raises(holdfast.ConnectionLost):
        client.queues["q"].put("K")


def test_checks_can_be_switched_off_in_the_url(secured):
    """What the page warns of does what it says."""
    for url in (
        secured.url("127.0.0.1") + "&ssl_check_hostname=false",
        secured.url(without="ssl_ca_certs") + "&ssl_cert_reqs=none&ssl_check_hostname=false",
    ):
        with holdfast.Client(url) as client:
            assert client.queues["q"].put("K")
