"""The code of the guide, run from top to bottom as its reader would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_and_what_it_says_is_so(page: Path, tmp_path: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    kept = {name: value for name, value in os.environ.items() if name not in ("HOLDFAST_URL", "REDIS_URL")}
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env=kept | {"HOLDFAST_DIR": str(tmp_path / "store")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert blocks
    assert ended.returncode == 0, ended.stderr


def test_there_is_a_page_about_jobs() -> None:
    assert "jobs" in [page.stem for page in PAGES]
