"""The page about HTTP: its commands work as they stand, and it names every verb."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from holdfast.testing.store import ScratchStore
from holdfast.web.gateway.exceptions import LEFT_OUT
from holdfast.web.gateway.verbs import verbs
from web_process import serving

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "http.md").read_text()


def test_the_page_names_every_verb_and_no_other() -> None:
    listed = PAGE.partition("as the [protocol]")[2].partition("Left out")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(verbs())


@pytest.mark.full
def test_the_commands_of_the_page_do_what_it_says(
    store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("LOUD SKIP: curl is not installed, so the commands of the page were not run")
    [start] = re.findall(r"holdfast web -F -L (.*?) --port 5678", PAGE)
    commands = re.findall(r"^curl --json '.*?' http\S+$", PAGE, re.MULTILINE | re.DOTALL)
    token, results = "", list[object]()
    with serving(store.url, namespace, tmp_path / "web", *start.split()) as (url, _):
        for command in commands:
            words = re.sub(r"1795743633076", token, command).replace("http://localhost:5678", url)
            done = subprocess.run(
                ["sh", "-c", words + " -sS"], capture_output=True, text=True, timeout=60, check=True
            )
            results.append(json.loads(done.stdout)["result"])
            token = (
                re.sub(r'.*"token":(\d+).*', r"\1", done.stdout, flags=re.DOTALL)
                if "token" in done.stdout
                else token
            )
    put, [job], complete, many, flow = results
    assert (put, job["jid"], job["data"], complete) == ("welcome-7", "welcome-7", {"user": 7}, "complete")  # type: ignore[index,call-overload]
    assert len(many) == 2  # type: ignore[arg-type]
    assert json.dumps(flow, separators=(",", ":")) in PAGE


@pytest.mark.full
def test_the_page_names_every_verb_of_the_core_that_is_left_out() -> None:
    left_out = PAGE.partition("Left out: ")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", left_out)) >= set(LEFT_OUT)
