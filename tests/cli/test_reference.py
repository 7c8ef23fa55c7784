"""The written reference says what the program says."""

from pathlib import Path

import pytest

from holdfast.cli import reference

WRITTEN = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", reference.pages())
def test_a_page_of_the_reference_is_up_to_date(name: str) -> None:
    assert (WRITTEN / name).read_text(encoding="utf-8") == reference.pages()[name], "run `make docs`"


def test_every_verb_is_in_the_reference() -> None:
    text = reference.verbs()
    for verb in reference.COMMANDS:
        assert f"\n## {verb}\n" in text
