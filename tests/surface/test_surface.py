"""What users can rely on changes only where a commit shows it: names, OpenAPI documents, sentences of refused input."""

from collections.abc import Iterator
from difflib import unified_diff

import pytest

import surface
from holdfast import Client
from holdfast.testing.store import ScratchStore

pytestmark = pytest.mark.filterwarnings("ignore::Warning")


@pytest.fixture(scope="module")
def found() -> Iterator[dict[str, list[str]]]:
    with ScratchStore("valkey") as store, Client(store.url, namespace="test-surface", hostname="w") as client:
        yield surface.files(client)


@pytest.mark.parametrize("name", surface.FILES)
def test_the_public_surface_is_the_one_on_record(found: dict[str, list[str]], name: str) -> None:
    recorded = (surface.HERE / name).read_text().splitlines()
    changes = [
        line[:300]
        for line in unified_diff(recorded, found[name], "recorded", "now", lineterm="", n=0)
        if line[:1] in "+-"
    ]
    assert changes == [], "if these changes are meant: python tests/surface/surface.py write"


def test_a_changed_sentence_would_be_found(found: dict[str, list[str]]) -> None:
    """The files have the lines that they are for."""
    assert any(
        line.startswith("put(priority=…) 10^30: UsageError") for line in found["sentences-options.txt"]
    )
    assert any("hf1_put word" in line and "HF_BAD_ARGUMENT" in line for line in found["sentences-core.txt"])
    assert any(line.startswith("POST /v1/put retries") for line in found["sentences-gateway.txt"])
    assert any("'--priority': 'x'" in line for line in found["sentences-shell.txt"])
    assert any(
        "holdfast.Client.queues" in line or "holdfast.Queue.put(" in line for line in found["names.txt"]
    )
    assert any("paths /put post" in line for line in found["openapi.txt"])
