"""Settings of the commands that run for long: flags, variables, a file, defaults; `holdfast settings` shows them."""

import json
from pathlib import Path

import pytest

from holdfast.cli.main import run
from holdfast.cli.program import PROGRAMS, ProgramCommand, programs
from holdfast.cli.web import web
from holdfast.cli.worker import worker


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory of our own."""
    tmp_path.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, tuple[str, str]]:
    """What `holdfast settings` shows: value and origin by setting."""
    assert run(["settings", *words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["settings"]
    return {row["setting"]: (row["value"], row["origin"]) for row in rows}


def parsed(*words: str) -> dict[str, object]:
    """The flags of a worker as its command gets them."""
    return worker.make_context("worker", list(words)).params


def test_every_program_has_settings_and_no_two_share_a_variable() -> None:
    names = [program.variable(key) for program in programs() for key in program.settings()]
    assert len(names) == len(set(names)) > 100
    assert "HOLDFAST_WORKER_MAX_JOBS" in names
    assert "HOLDFAST_TOPICS_PUSH_TTR" in names
    assert "HOLDFAST_METRICS_PORT" in names


@pytest.mark.full
def test_a_flag_wins_over_a_variable_over_an_older_variable_over_the_file_over_the_default(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parsed("-q", "q")["interval"] is None
    (here / "holdfast.toml").write_text("[worker]\ninterval = 1.5\n")
    assert parsed("-q", "q")["interval"] == 1.5
    monkeypatch.setenv("INTERVAL", "2")
    assert parsed("-q", "q")["interval"] == 2.0
    monkeypatch.setenv("HOLDFAST_WORKER_INTERVAL", "3")
    assert parsed("-q", "q")["interval"] == 3.0
    assert parsed("-q", "q", "--interval", "4")["interval"] == 4.0


@pytest.mark.full
def test_older_variables_keep_their_meaning_and_empty_ones_count_as_not_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in {
        "QUEUES": "", "QUEUE": "a, b", "JOB_RESERVER": "ShuffledRoundRobin", "RUN_AS_SINGLE_PROCESS": "no", "INTERVAL": "",
        "HOLDFAST_SHUTDOWN_TIMEOUT": "8",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, text)
    found = parsed()
    assert (found["queues"], found["reserver"], found["pool"]) == (
        ("a", "b"),
        "shuffled-round-robin",
        "serial",
    )
    assert (found["interval"], found["shutdown_timeout"]) == (None, 8.0)


@pytest.mark.full
def test_lists_in_variables_and_names_of_queues_have_commas(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parsed("-q", "a,b", "-q", r"c\,d")["queues"] == ("a", "b", "c,d")
    monkeypatch.setenv("HOLDFAST_WORKER_QUEUE", r"a, b\,c")
    monkeypatch.setenv("HOLDFAST_WORKER_PATH", "x,y")
    assert (parsed()["queues"], parsed()["paths"]) == (("a", "b,c"), ("x", "y"))
    monkeypatch.delenv("HOLDFAST_WORKER_QUEUE")
    (here / "pyproject.toml").write_text('[tool.holdfast.worker]\nqueue = ["a", "b,c", "d,e"]\n')
    assert parsed()["queues"] == ("a", "b,c", "d,e")


def test_rules_of_redact_may_have_commas_and_stand_on_lines_in_a_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOLDFAST_WEB_REDACT", "re:\\d{13,16}\n*.password\n")
    assert web.make_context("web", []).params["redact"] == ("re:\\d{13,16}", "*.password")


def test_a_number_out_of_its_limits_is_refused_with_these(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_WEB_PORT", "70000")
    assert run(["settings", "web"]) == 2
    assert "HOLDFAST_WEB_PORT: 70000 is not in the range 1<=x<=65535" in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_file_may_be_named_by_a_variable(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "ops.toml").write_text("[worker]\ninterval = 7\n")
    monkeypatch.setenv("HOLDFAST_WORKER_CONFIG", str(here / "ops.toml"))
    assert parsed("-q", "q")["interval"] == 7.0


@pytest.mark.full
def test_the_file_sets_every_program_that_has_a_table_in_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = here / "ops.toml"
    file.write_text(
        '[worker]\nquiet = true\nmax-memory = "1G"\n[web]\nport = 8000\nredact = ["*.password"]\n[topics.push]\nttr = "30s"\n[metrics]\nport = 9000\n'
    )
    assert shown(capsys, "--config", str(file), "--set") == {
        "quiet": ("on", f"{file}, [worker] quiet"), "max-memory": ("1G", f"{file}, [worker] max-memory"), "port": ("9000", f"{file}, [metrics] port"),
        "redact": ("*.password", f"{file}, [web] redact"), "ttr": ("30s", f"{file}, [topics.push] ttr"),
    }  # fmt: skip
    assert parsed("-q", "q", "--config", str(file))["max_memory"] == 1 << 30
    assert shown(capsys, "worker", "--set") == {}


@pytest.mark.full
def test_store_and_namespace_of_all_programs_come_before_the_file_and_behind_their_own_variables(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOLDFAST_URL", "REDIS_URL", "HOLDFAST_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("REDIS_URL", "redis://last:1")
    assert shown(capsys, "web")["url"] == ("redis://last:1", "REDIS_URL")
    (here / "holdfast.toml").write_text('[web]\nurl = "redis://file:1"\nnamespace = "file"\n')
    assert shown(capsys, "web")["url"] == ("redis://file:1", "holdfast.toml, [web] url")
    monkeypatch.setenv("HOLDFAST_URL", "redis://all:1")
    monkeypatch.setenv("HOLDFAST_NAMESPACE", "all")
    found = shown(capsys, "web")
    assert (found["url"], found["namespace"]) == (
        ("redis://all:1", "HOLDFAST_URL"),
        ("all", "HOLDFAST_NAMESPACE"),
    )
    params = web.make_context("web", []).params
    assert (params["url"], params["namespace"]) == (None, "all")  # the client reads its variable itself
    monkeypatch.setenv("HOLDFAST_WEB_URL", "redis://own:1")
    assert web.make_context("web", []).params["url"] == "redis://own:1"
    assert web.make_context("web", ["--url", "redis://flag:1"]).params["url"] == "redis://flag:1"


@pytest.mark.full
def test_secrets_are_shown_as_set_and_urls_without_passwords(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_NOTIFY_CHAT", "https://chat.example.org/s3cret")
    monkeypatch.setenv("HOLDFAST_WORKER_URL", "redis://:s3cret@db:6379")
    assert shown(capsys, "notify")["chat"] == ("set", "HOLDFAST_NOTIFY_CHAT")
    assert shown(capsys, "worker")["url"] == ("redis://:…@db:6379", "HOLDFAST_WORKER_URL")


MISTAKES = {
    'queue = "a"': 'holdfast.toml, [worker] queue: expected a list of texts such as ["a", "b"], got \'a\'',
    'quue = ["a"]': "holdfast.toml, [worker] has no setting 'quue'; did you mean 'queue'?",
    'concurrency = "5"': "holdfast.toml, [worker] concurrency: expected a number, got '5'",
    'quiet = "yes"': "holdfast.toml, [worker] quiet: expected true or false, got 'yes'",
    'pool = "treads"': "holdfast.toml, [worker] pool: 'treads' is not one of",
    "pool = ['thread']": "holdfast.toml, [worker] pool: expected a text or a number, got ['thread']",
    'max-memory = "much"': "holdfast.toml, [worker] max-memory: expected a size such as 512M or 1G, got 'much'",
    "concurrency = 1.5": "holdfast.toml, [worker] concurrency: expected a whole number, got 1.5",
    "health-port = true": "holdfast.toml, [worker] health-port: expected a number, got True",
    "[topics]\nport = 1": "holdfast.toml, [topics] has no table 'port'; it knows serve, push",
    "[topics.server]\nport = 1": "holdfast.toml, [topics] has no table 'server'; did you mean 'serve'?",
    "[web]\nport = 0\n[workr]": "holdfast.toml has no table 'workr'",
    "[workr]": "holdfast.toml has no table 'workr'; did you mean 'worker'?",
    "[": "holdfast.toml: ",
    "= ": "holdfast.toml: ",
}


@pytest.mark.full
@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_the_file_is_one_sentence(
    here: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (here / "holdfast.toml").write_text(f"[worker]\n{text}\n")
    assert run(["worker", "-q", "q", "--drain"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert MISTAKES[text] in said
    assert "Traceback" not in said


@pytest.mark.full
def test_a_mistake_in_a_variable_names_it_and_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text, sentence in (
        ("HOLDFAST_WORKER_QUEU", "a", "no variable 'HOLDFAST_WORKER_QUEU'; did you mean 'HOLDFAST_WORKER_QUEUE'?"),
        ("HOLDFAST_WORKER_QUEUE", " ", "HOLDFAST_WORKER_QUEUE is empty: give it a value, or unset it"),
        ("HOLDFAST_WORKER_CONCURRENCY", "many", "HOLDFAST_WORKER_CONCURRENCY: expected a whole number, got 'many'"),
        ("INTERVAL", "soon", "INTERVAL: expected a number, got 'soon'"),
        ("JOB_RESERVER", "Best", "JOB_RESERVER: 'Best' is not one of"),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setenv(name, text)
            assert run(["worker", "-q", "q", "--drain"]) == 2
        assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.full
def test_two_files_and_one_that_others_may_write_are_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, project = here / "holdfast.toml", here / "pyproject.toml"
    ours.write_text("[worker]\nquiet = true\n")
    project.write_text("[tool.holdfast.worker]\nquiet = true\n")
    assert run(["worker", "-q", "q", "--drain"]) == 2
    assert "both holdfast.toml and pyproject.toml have settings" in capsys.readouterr().err
    project.write_text("[project]\nname = 'holdfast-shop'\n")
    assert parsed("-q", "q")["quiet"] is True
    ours.chmod(0o646)
    assert run(["worker", "-q", "q", "--drain"]) == 2
    assert "other users can write it (-rw-r--rw-)" in " ".join(capsys.readouterr().err.split())


@pytest.mark.full
@pytest.mark.parametrize("key", ["import", "setup", "middleware", "path", "allow"])
def test_a_file_in_a_directory_that_others_may_write_names_no_code(
    here: Path, capsys: pytest.CaptureFixture[str], key: str
) -> None:
    value = '"x:y"' if key == "setup" else '["x"]'
    (here / "holdfast.toml").write_text(f"[worker]\n{key} = {value}\n")
    assert parsed("-q", "q")
    here.chmod(0o777)
    assert run(["worker", "-q", "q", "--drain"]) == 2
    assert f"give --{key}" in " ".join(capsys.readouterr().err.split())


def test_a_program_is_made_for_each_command_that_runs_for_long() -> None:
    assert [type(program) for program in programs()] == [ProgramCommand] * len(PROGRAMS)


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [("metrics",), ("metrics", "serve"), ("metrics serve",), ("topics", "push"), ("topics push",)]
)
def test_a_command_is_named_as_it_is_typed_or_quoted_or_by_its_first_word(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["settings", *words, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["settings"]
    [name] = {row["command"] for row in rows}
    assert name.startswith(words[0].split()[0])


def test_a_command_that_has_no_settings_or_is_one_of_several_is_refused_with_their_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words, name in ((("wrker",), "worker"), (("topics",), "topics push")):
        assert run(["settings", *words]) == 2
        assert f"did you mean {name!r}?" in capsys.readouterr().err


@pytest.mark.full
@pytest.mark.parametrize(
    ("flags", "variable", "file", "origin"),
    [
        (("--health-port", "99999"), "", "", "--health-port"),
        ((), "99999", "", "HOLDFAST_WORKER_HEALTH_PORT"),
        ((), "", "99999", "holdfast.toml, [worker] health-port"),
    ],
)
def test_a_value_that_is_refused_when_the_program_starts_is_named_by_what_gave_it(
    here: Path,
    flags: tuple[str, ...],
    variable: str,
    file: str,
    origin: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if file:
        (here / "holdfast.toml").write_text(f"[worker]\nhealth-port = {file}\n")
    if variable:
        monkeypatch.setenv("HOLDFAST_WORKER_HEALTH_PORT", variable)
    assert run(["worker", "-q", "q", *flags]) == 2
    assert capsys.readouterr().err == f"holdfast: {origin} must be from 0 to 65535, not 99999\n"
