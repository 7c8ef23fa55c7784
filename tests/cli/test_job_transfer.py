"""`holdfast jobs export` and `import`, through the command itself."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import holdfast
from holdfast import Client, group
from holdfast.code.put_options import OPTIONS
from holdfast.commands.jobs import Put
from holdfast.console.transfer import INFORMATION, JobLine
from terminal import Terminal

EVIL = "\x9b31m\u202e\u2028漢"


@pytest.fixture
def place(url: str, namespace: str) -> tuple[str, ...]:
    return ("--url", url, "--namespace", namespace)


@pytest.fixture
def other(url: str, namespace: str) -> Client:
    """A client of a namespace that nobody has used."""
    return Client(url, namespace=f"{namespace}-b")


def at(client: Client) -> tuple[str, ...]:
    return ("--url", client.settings.url, "--namespace", client.settings.namespace)


@pytest.mark.full
def test_more_jobs_than_one_page_are_exported_by_the_same_filter(
    client: Client, place: tuple[str, ...]
) -> None:
    for number in range(600):
        client.queues["a"].put("K", {"text": 'a "quoted" (text)'}, jid=f"j{number}")
    client.queues["b"].put("K")
    said = holdfast("jobs", "export", "queue:a", *place)
    assert (said.returncode, said.stderr) == (0, "600 jobs exported\n")
    assert {json.loads(line)["jid"] for line in said.stdout.splitlines()} == {
        f"j{number}" for number in range(600)
    }


@pytest.mark.full
def test_jobs_are_put_again_with_everything_that_they_had(
    client: Client, other: Client, place: tuple[str, ...], tmp_path: Path
) -> None:
    first = client.queues["b"].put("K", {"text": EVIL})
    options = {
        "priority": 3, "tags": ["vip"], "retries": 2, "max_losses": 4, "throttles": ["api"], "timeout": 5.0,
        "result_keep": 60.0, "backoff": {"kind": "fixed", "first": 2.0, "longest": 2.0, "jitter": 0.5}, "expires": 3600,
    }  # fmt: skip
    second = client.queues["a"].put("K", [1, 2.5, None], depends=[first], **options)
    late = client.queues["a"].put("K", delay=1000)
    said = holdfast("jobs", "export", *place)
    assert (said.returncode, said.stderr) == (0, "3 jobs exported\n")
    assert said.stdout.count("\n") == 3
    with Terminal("jobs", "export", "queue:b", *place, columns=200) as screen:
        screen.shows("\\u009b31m", "\\u202e", "\\u2028", "1 job exported")
    (tmp_path / "jobs").write_text(said.stdout, encoding="utf-8")
    again = holdfast("jobs", "import", f"{tmp_path}/jobs", "--keep-jids", *at(other))
    assert (again.returncode, again.stdout) == (0, "3 jobs put, 0 refused\n")
    for jid in (first, second, late):
        before, now = client.job(jid), other.job(jid)
        for name in (
            "queue_name",
            "klass_name",
            "data",
            "priority",
            "tags",
            "throttles",
            "dependencies",
            "state",
        ):
            assert getattr(before, name) == getattr(now, name), name
    exported = {line["jid"]: line for line in map(json.loads, said.stdout.split("\n")[:-1])}
    imported = holdfast("jobs", "export", *at(other)).stdout
    for line in map(json.loads, imported.split("\n")[:-1]):
        for name, value in exported[line["jid"]].items():
            if name in ("due", "expires"):
                assert abs(line[name] - value) < 60
            elif name != "created":
                assert line[name] == value, name


def test_new_jids_keep_dependencies_and_order_does_not_matter(
    client: Client, place: tuple[str, ...], tmp_path: Path
) -> None:
    lines = [{"jid": "x3", "depends": ["x2"]}, {"jid": "x2", "depends": ["x1"]}, {"jid": "x1"}]
    text = "".join(json.dumps({"queue": f"q-{line['jid']}", "klass": "K", **line}) + "\n" for line in lines)
    (tmp_path / "jobs").write_text(text)
    client.queues["q"].put("K")
    assert holdfast("jobs", "import", f"{tmp_path}/jobs", *place).returncode == 0
    [first] = client.queues["q-x1"].pop(1)
    assert first.jid != "x1"
    first.complete()
    [second] = client.queues["q-x2"].pop(1)
    assert client.queues["q-x3"].counts["depends"] == 1
    second.complete()
    assert client.queues["q-x3"].counts["waiting"] == 1


@pytest.mark.full
def test_lines_that_are_refused_are_named_and_the_others_put(
    client: Client, place: tuple[str, ...], tmp_path: Path
) -> None:
    client.queues["a"].put("Other", jid="taken")
    lines = (
        '{"queue": "a", "klass": "K"}', "", '{"queue": "a"}', "no json", '{"queue": "a", "klass": "K", "nope": 1}',
        '{"queue": "a", "klass": "K", "priority": 5000}', '{"queue": "a", "klass": "K", "expires": 5}',
        '{"queue": "a", "klass": "K", "jid": "taken"}',
    )  # fmt: skip
    (tmp_path / "jobs").write_text("\n".join(lines))
    said = holdfast("jobs", "import", f"{tmp_path}/jobs", "--keep-jids", *place)
    assert (said.returncode, said.stdout) == (1, "1 job put, 6 refused\n")
    starts = [line.split(": ")[1] for line in said.stderr.splitlines()]
    assert starts == ["line 3", "line 4", "line 5", "line 6", "line 7", "line 8"]
    said = holdfast("jobs", "import", f"{tmp_path}/jobs", "--keep-jids", "--json", *place)
    found = json.loads(said.stdout)
    assert (found["put"], found["refused_count"], found["refused"][0]["line"]) == (1, 6, 3)
    said = holdfast("jobs", "import", f"{tmp_path}/nope", *place)
    assert (said.returncode, said.stdout) == (2, "")


def test_the_help_of_an_export_names_the_fields_that_an_import_uses_and_the_others() -> None:
    used, _, others = holdfast("jobs", "export", "--help").stdout.partition("for information")
    fields = set(JobLine.__struct_fields__)
    assert fields - set(INFORMATION) == fields & {*OPTIONS, "queue", "klass", "data", "due"}
    assert set(re.findall(r"`(\w+)`", used)) == fields - set(INFORMATION)
    assert set(re.findall(r"`(\w+)`", others)) == set(INFORMATION)


def test_a_circle_of_dependencies_is_refused(client: Client, place: tuple[str, ...], tmp_path: Path) -> None:
    client.queues["q"].put("K")
    lines = [{"jid": "x1", "depends": ["x2"]}, {"jid": "x2", "depends": ["x1"]}]
    (tmp_path / "jobs").write_text(
        "".join(json.dumps({"queue": "q", "klass": "K", **line}) + "\n" for line in lines)
    )
    said = holdfast("jobs", "import", f"{tmp_path}/jobs", "--keep-jids", *place)
    assert (said.returncode, "in a cycle" in said.stderr) == (1, True)


@pytest.mark.full
def test_data_that_is_no_json_is_not_exported(client: Client, place: tuple[str, ...]) -> None:
    client.queues["q"].put("K")
    client.run(Put("q", "K", b"{broken", "other-program"))
    said = holdfast("jobs", "export", *place)
    assert (said.returncode, said.stdout.count("\n")) == (1, 1)
    assert "holdfast: other-program: the data is not JSON" in said.stderr
    assert "{broken" in holdfast("jobs", "show", "other-program", *place).stdout


@pytest.mark.full
def test_an_export_is_limited_and_ends_quietly_when_its_reader_leaves(
    client: Client, place: tuple[str, ...]
) -> None:
    for _ in range(4):
        client.queues["q"].put("K", {"text": "x" * 100_000})
    assert holdfast("jobs", "export", "--limit", "2", *place).stdout.count("\n") == 2
    words = [sys.executable, "-m", "holdfast.cli.main", "jobs", "export", *place]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.read(10)
        program.stdout.close()
        assert b"Traceback" not in program.stderr.read()
    assert program.returncode == 1


def test_an_import_reads_standard_input(client: Client, place: tuple[str, ...]) -> None:
    client.queues["q"].put("K")
    with Terminal("jobs", "import", "-", *place) as screen:
        screen.press('{"queue": "in", "klass": "K"}\n\x04')
        screen.shows("1 job put, 0 refused")
        assert screen.code() == 0
    assert client.queues["in"].counts["waiting"] == 1


def test_jobs_that_wait_in_a_flow_are_not_exported(client: Client, place: tuple[str, ...]) -> None:
    @client.job(name="transfer.double", queue="q")
    def double(number: int) -> int:
        return number

    client.put(double.call(1).then(double), jid="passes")
    client.put(double.call(2).after(double.call(1)), jid="orders")
    client.put(group(double.call(number) for number in range(513)), jid="large")
    client.queues["q"].put("K", jid="waits", depends=["passes-0"])
    said = holdfast("jobs", "export", "state:depends", *place)
    assert said.returncode == 1
    assert [json.loads(line)["jid"] for line in said.stdout.splitlines()] == ["waits"]
    assert "3 jobs wait for other jobs of a flow and cannot be exported" in said.stderr
    for jid in ("passes-1", "orders-1", "large-0"):
        assert jid in said.stderr
    said = holdfast("jobs", "export", "jid:passes-0", *place)
    assert (said.returncode, len(said.stdout.splitlines())) == (0, 1)
