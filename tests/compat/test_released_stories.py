"""What the released client's users see, the stand-in's users see: the same stories, told of both."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

REAL = Path(__file__).parents[1] / "reqless" / "real"
STORIES = [
    (path.stem, name)
    for path in sorted(REAL.glob("stories_*.py"))
    for name in re.findall(r"^def (story_\w+)", path.read_text(), re.MULTILINE)
]


@pytest.mark.parametrize(("module", "story"), STORIES, ids=[name for _, name in STORIES])
def test_a_story_of_the_released_client_is_true_of_the_stand_in(module: str, story: str, world: Any) -> None:
    getattr(importlib.import_module(module), story)(world)
