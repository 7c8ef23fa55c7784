"""workers.md 15: `holdfast config`, through the command line of this process."""

import json
from pathlib import Path
from typing import Any

import pytest

import command_line
from holdfast import Client
from holdfast.cli.main import run


class StoreMessage:
    """Runs `holdfast config …` on the test's namespace; keeps what it printed."""

    def __init__(self, url: str, namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._place = ("--url", url, "--namespace", namespace)
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *words: str) -> int:
        code = run(["config", *words, *self._place])
        self.out, self.err = self._capsys.readouterr()
        return code

    def json(self, *words: str) -> Any:
        assert self(*words) == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def config(url: str, namespace: str, capsys: pytest.CaptureFixture[str]) -> StoreMessage:
    return StoreMessage(url, namespace, capsys)


@pytest.mark.full
def test_dump_prints_all_settings_as_pretty_json(config: StoreMessage, client: Client) -> None:
    client.config["mine"] = "text"
    found = config.json("dump")
    assert (found["heartbeat"], found["mine"], found["application"]) == (30, "text", "holdfast")
    assert '\n  "heartbeat": 30' in config.out
    assert config.json("dump", "--json") == found
    assert config.out.count("\n") == 1


@pytest.mark.full
@pytest.mark.parametrize(
    "text", ["007", "1e3", "1.50", "inf", "nan", "true", "", "-3", "0.5", '{"a": 1}', "é\n"]
)
def test_what_was_dumped_and_loaded_is_what_it_was(
    config: StoreMessage, client: Client, tmp_path: Path, text: str
) -> None:
    client.config["odd"] = text
    before = client.config.all
    assert config("dump") == 0
    file = tmp_path / "settings.json"
    file.write_text(config.out)
    client.config["odd"] = "other"
    assert config("load", str(file)) == 0
    assert client.config.all == before


@pytest.mark.full
def test_load_sets_what_the_file_has_and_keeps_the_rest(
    config: StoreMessage, client: Client, tmp_path: Path
) -> None:
    client.config["mine"] = "kept"
    file = tmp_path / "settings.json"
    file.write_text('{"heartbeat": 30, "mail-heartbeat": "10"}')
    assert config("load", str(file)) == 0
    assert config.out == "set 2\n"
    assert (client.config["heartbeat"], client.config["mail-heartbeat"], client.config["mine"]) == (
        30,
        10,
        "kept",
    )


@pytest.mark.full
def test_load_with_clear_returns_the_rest_to_its_defaults(
    config: StoreMessage, client: Client, tmp_path: Path
) -> None:
    client.config.update({"mine": "gone", "grace-period": 99})
    file = tmp_path / "settings.json"
    file.write_text('{"heartbeat": 30}')
    assert config.json("load", str(file), "--clear", "--json") == {
        "set": ["heartbeat"],
        "cleared": ["grace-period", "mine"],
    }
    assert (client.config["heartbeat"], client.config["grace-period"], client.config["mine"]) == (
        30,
        5,
        None,
    )


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "object"),
        ('{"heartbeat": 30, "a": [1]}', "value of a"),
        ('{"heartbeat": 30, "a": null}', "value of a"),
        ('{"heartbeat": 30, "a": NaN}', "finite"),
        ('{"heartbeat": 30, "": 1}', "key"),
        ('{"heartbeat": 30, "a\\u0000": 1}', "key"),
        ("[" * 100_000, "not JSON"),
        ('"' + "x" * (1 << 20) + '"', "more than"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_whole(
    config: StoreMessage, client: Client, tmp_path: Path, text: str, word: str
) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)
    assert config("load", str(file), "--clear") == 2
    assert word in config.err
    assert client.config["heartbeat"] == 30


def test_a_file_that_is_missing_or_no_text_is_said(config: StoreMessage, tmp_path: Path) -> None:
    assert config("load", str(tmp_path / "missing")) == 2
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert config("load", str(tmp_path / "binary")) == 2
    assert "not text" in config.err


@pytest.mark.full
def test_one_setting_is_set_shown_and_unset(config: StoreMessage) -> None:
    assert config("get", "mine") == 1
    assert "mine is not set" in config.err
    assert config("set", "mine", "5") == 0
    assert config.json("get", "mine", "--json") == {"key": "mine", "value": 5}
    assert config("get", "mine") == 0
    assert config.out == "5\n"
    assert config.json("unset", "mine", "--json") == {"key": "mine", "was_set": True}
    assert config("unset", "mine") == 0
    assert config.out == "mine was not set\n"
    assert config("get", "heartbeat") == 0
    assert config.out == "30\n"


def test_a_negative_value_is_refused_with_its_limits_and_not_taken_for_an_option(
    config: StoreMessage,
) -> None:
    assert config("set", "heartbeat", "-1") == 2
    assert "No such option" not in config.err
    assert "heartbeat" in config.err


def test_older_programs_say_redis(url: str, namespace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "get", "heartbeat", "--redis", url, "--namespace", namespace]) == 0
    assert capsys.readouterr().out == "30\n"


def test_a_store_that_is_away_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "get", "heartbeat", "--url", "redis://h/notanumber"]) == 2
    assert "database number" in capsys.readouterr().err


@pytest.mark.full
def test_a_name_that_is_nearly_that_of_a_setting_is_kept_and_warned_of(url: str, namespace: str) -> None:
    done = command_line.holdfast("config", "set", "heartbaet", "3", "--url", url, "--namespace", namespace)
    assert (done.returncode, done.stdout) == (0, "heartbaet is 3\n")
    assert "did you mean 'heartbeat'?" in done.stderr


@pytest.mark.full
def test_a_setting_of_the_namespace_is_read_as_it_was_written(config: StoreMessage) -> None:
    assert config.json("get", "unknown-for", "--json")["value"] == 600
    assert config("set", "unknown-for", "300") == 0
    assert config.json("get", "unknown-for", "--json")["value"] == 300
