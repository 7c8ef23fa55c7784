"""The examples of docs/examples say what the program understands, and what stops a service lets its jobs finish."""

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from holdfast import Client
from holdfast.cli.web import web
from holdfast.cli.worker import worker
from holdfast.cli.worker_start import settings_of
from holdfast.cli.workers import workers
from holdfast.worker.settings import WorkerSettings
from waiting import until

HERE = Path(__file__).parents[2] / "docs" / "examples"


def service() -> dict[str, str]:
    parser = ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(HERE / "holdfast-worker.service")
    return dict(parser["Service"])


DOCKERFILE = (HERE / "Dockerfile").read_text()


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, WorkerSettings]:
    """The settings of the worker in the container and in the unit."""
    [check, entry, command] = map(
        json.loads, re.findall(r"(?:CMD|ENTRYPOINT) (\[.*\])$", DOCKERFILE, re.MULTILINE)
    )
    assert (check, [*entry, *command]) == (["holdfast", "workers", "check"], ["holdfast", "worker"])
    words = shlex.split(service()["ExecStart"])
    assert (Path(words[0]).name, words[1]) == ("holdfast", "worker")
    monkeypatch.chdir(tmp_path)
    found = {"service": settings_of(worker.make_context("worker", words[2:]).params, str(tmp_path))}
    for name, value in re.findall(r"(HOLDFAST_\w+)=(\S+)", DOCKERFILE):
        monkeypatch.setenv(name, value)
    found["container"] = settings_of(worker.make_context("worker", command[1:]).params, str(tmp_path))
    return found


@pytest.mark.full
@pytest.mark.parametrize("kind", ["container", "service"])
def test_the_commands_of_the_examples_are_understood(kinds: dict[str, WorkerSettings], kind: str) -> None:
    assert (kinds[kind].queues, kinds[kind].imports) == (("mail",), ("jobs",))


@pytest.mark.full
def test_the_programs_of_the_compose_file_are_understood(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    services = yaml.safe_load((HERE / "compose.yaml").read_text())["services"]
    assert set(services) == {"store", "worker", "web", "gateway"}
    monkeypatch.chdir(tmp_path)
    for name in ("web", "gateway"):
        with monkeypatch.context() as patch:
            for variable, value in services[name]["environment"].items():
                patch.setenv(variable, value.replace("/run/secrets", str(tmp_path)))
            for file in ("users", "tokens"):
                (tmp_path / file).touch()
            words = services[name]["command"]
            found = web.make_context(words[0], words[1:]).params
        assert (found["foreground"], found["host"]) == (True, "0.0.0.0")
        assert found["auth"] == {"web": "basic", "gateway": "bearer"}[name]
        assert services[name]["ports"] == [f"127.0.0.1:{found['port']}:{found['port']}"]


def test_jobs_have_less_time_to_finish_than_passes_before_the_kill(
    kinds: dict[str, WorkerSettings],
) -> None:
    assert kinds["service"].shutdown_timeout + 4 < float(service()["TimeoutStopSec"])
    assert kinds["container"].shutdown_timeout + kinds["container"].term_timeout < 10
    compose, pods = (HERE / "compose.yaml").read_text(), (HERE / "kubernetes.yaml").read_text()
    [given], [kill] = (
        re.findall(r"TIMEOUT: (\d+)", compose),
        re.findall(r"stop_grace_period: (\d+)s", compose),
    )
    assert int(given) + 4 < int(kill)
    [given], [kill] = re.findall(r'TIMEOUT, value: "(\d+)"', pods), re.findall(r"PeriodSeconds: (\d+)", pods)
    assert int(given) + 4 < int(kill)


def test_what_the_container_asks_for_its_health_exists() -> None:
    assert "check" in workers.commands


@pytest.mark.full
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_knows_every_word_of_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "holdfast-worker.service"
    text = (HERE / unit.name).read_text()
    unit.write_text(text.replace("/srv/app/.venv/bin/holdfast", "/bin/true").replace("User=app", "User=root"))
    said = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert unit.name not in said.stderr, said.stderr


@pytest.mark.full
def test_stopping_the_service_lets_the_job_under_way_finish(
    client: Client, url: str, namespace: str, tmp_path: Path
) -> None:
    code = """
        import pathlib, time

        class Slow:
            @staticmethod
            def perform(job):
                pathlib.Path(job["at"], "begun").touch()
                while not pathlib.Path(job["at"], "gate").exists():
                    time.sleep(0.01)
                job.complete()
    """
    (tmp_path / "jobs.py").write_text(textwrap.dedent(code))
    jid = client.queues["mail"].put("jobs.Slow", {"at": str(tmp_path)})
    words = [sys.executable, "-m", "holdfast.cli.main", *shlex.split(service()["ExecStart"])[1:]]
    place = ["--workdir", str(tmp_path), "--url", url, "--namespace", namespace, "-w", "1"]
    main = subprocess.Popen([*words, *place], cwd=tmp_path, stderr=subprocess.DEVNULL)
    try:
        until(lambda: (tmp_path / "begun").exists(), "the job is under way")
        # What systemd does by itself: TERM to the main process, KILL to all after TimeoutStopSec.
        assert "ExecStop" not in service()
        main.send_signal(signal.SIGTERM)
        (tmp_path / "gate").touch()
        assert main.wait(30) == 0
        job = client.jobs[jid]
        assert job is not None
        assert job.state == "complete"
    finally:
        if main.poll() is None:
            main.send_signal(signal.SIGTERM)
            main.wait(30)
