"""The files of others that are shipped, and the budget of our own."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

import holdfast.web
from holdfast.web.site import Files

STATIC = Path(holdfast.web.__file__).parent / "static"
VENDOR = STATIC / "vendor"


def test_vendored_files_are_those_of_the_manifest_and_each_has_a_licence() -> None:
    lines = (VENDOR / "MANIFEST").read_text().splitlines()
    sums = dict(reversed(line.split()) for line in lines if not line.startswith("#"))
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "MANIFEST"
    }
    assert found == sums
    assert {f"{name.split('.')[0]}.LICENSE" for name in found} <= set(found)


@pytest.mark.full
@pytest.mark.parametrize(("name", "most"), [("app.css", 9700), ("app.js", 9500), ("chart.js", 2200), ("live-worker.js", 1500), ("boot.js", 1000)])  # fmt: skip
def test_own_files_stay_within_their_budget(name: str, most: int) -> None:
    assert len(gzip.compress(Files().content_of(name), 9)) <= most


def test_own_files_are_sent_without_comments_and_mean_the_same() -> None:
    sent = Files().content_of("app.js").decode()
    assert not re.search(r"^\s|^//|/\*", sent, re.MULTILINE)
    # Indentation means nothing as long as no text goes over several lines.
    for path in STATIC.glob("*.js"):
        assert all(line.count("`") % 2 == 0 for line in path.read_text().splitlines()), path.name
    vendored = (VENDOR / "uplot.min.css").read_bytes()
    assert Files().content_of("vendor/uplot.min.css") == vendored


@pytest.mark.full
def test_no_template_has_inline_style_or_script_or_marks_text_as_safe() -> None:
    for path in (STATIC.parent / "templates").rglob("*.html"):
        text = path.read_text()
        for banned in (" style=", "onclick", "hx-on", "hx-vals", "js:", "|safe", "<style", "javascript:"):
            assert banned not in text, f"{path.name}: {banned}"
        assert "<script>" not in text, path.name
