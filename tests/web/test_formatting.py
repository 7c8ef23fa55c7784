"""How values are written on pages."""

import pytest
from markupsafe import escape

from holdfast.web.formatting import (  # fmt: skip
    diff_rows,
    empty_columns,
    json_html,
    number,
    percent,
    short_jid,
    shown,
    thousands,
    trace_html,
    verbatim,
)


def spaced(text: str) -> str:
    return text.replace("\u202f", " ").replace("\u00a0", " ")


@pytest.mark.full
@pytest.mark.parametrize(("value", "text"), [(0, "0"), (62_013, "62 013"), (-1_234_567, "−1 234 567"), (2.0, "2"), (1.2345, "1.23"), (1234.6, "1 235"), (float("inf"), "–")])  # fmt: skip
def test_numbers_are_whole_with_thin_spaces(value: float, text: str) -> None:
    assert spaced(number(value)) == text


@pytest.mark.full
def test_a_share_is_in_percent() -> None:
    assert [spaced(percent(share)) for share in (0, 0.004, 0.88)] == ["0 %", "0.4 %", "88 %"]


@pytest.mark.full
def test_a_jid_of_ours_is_short_and_others_are_cut() -> None:
    assert short_jid("0193a1b2c3d47e5f8a9b0c1d2e3f4a5b") == "0193a1b2…4a5b"
    assert short_jid("my-job") == "my-job"
    assert short_jid("x" * 100) == "x" * 100


@pytest.mark.full
def test_a_column_is_empty_if_all_its_cells_are_blank_or_zero_and_nothing_in_them_can_be_used() -> None:
    rows = """
<tr><th scope="rowgroup" colspan="7">a group</th></tr>
<tr id="1"><td class="tick"><input type="checkbox"></td><td><a>mail</a></td><td> <span class="num n0">0</span></td><td>–</td><td></td><td>0</td><td><svg></svg></td></tr>
<tr id="2"><td class="tick"><input type="checkbox"></td><td><a>sms</a></td><td><a>0</a></td><td><span class="dim">–</span></td><td> </td><td>10</td><td></td></tr>
"""
    assert empty_columns(rows) == [3, 4, 5]
    assert empty_columns('<tr><td class="none" colspan="5">Nothing.</td></tr>') == []


def test_text_cannot_disguise_itself() -> None:
    assert shown("a\u202eb\x00\x1b[31m\ttab\nline") == "a\\u202eb\\u0000\\u001b[31m    tab\nline"
    assert shown("\ud800") == "\\ud800"
    assert "\ud800" not in verbatim("\ud800")
    assert verbatim('"<\u202e') == escape('"<\u202e')


def test_json_is_escaped_and_folded() -> None:
    html = json_html({"<b>": ["</script>", 1.5, None, True, {}, "\u202e"]})
    assert "<b>" not in html
    assert "</script>" not in html
    assert "\\u202e" in html
    assert html.count("<details") == 2
    assert json_html([]) == "<div>[]</div>"


@pytest.mark.full
def test_json_that_is_too_large_or_too_deep_is_cut_and_says_so() -> None:
    assert "more than 2000 parts" in json_html(list(range(5000)))
    assert json_html(list(range(1900))).count('class="jn"') == 1900
    deep: object = 1
    for _ in range(60):
        deep = [deep]
    assert "too deep to show" in json_html(deep)


def test_a_masked_value_is_shown_as_masked() -> None:
    assert 'title="masked"' in json_html({"token": "••••"})


def test_a_traceback_dims_libraries_and_marks_its_last_line() -> None:
    html = trace_html(
        'Traceback:\n  File "/app/a.py", line 1\n    x()\n  File "/v/site-packages/b.py", line 2\n    y("<")\nE: no'
    )
    assert html.count('class="lib"') == 2
    assert '<span class="err">E: no</span>' in html
    assert "&lt;" in html


def test_a_diff_sets_lines_side_by_side() -> None:
    assert diff_rows("a\nb\nc", "a\nx\nc\nd") == [
        (False, "a", "a"),
        (True, "b", "x"),
        (False, "c", "c"),
        (True, None, "d"),
    ]
    assert diff_rows({"a": 1}, {"a": 1}) == [(False, line, line) for line in ("{", '  "a": 1', "}")]


def test_numbers_in_a_sentence_have_thin_spaces_and_names_stay_as_they_are() -> None:
    assert (
        thousands("12,345 of 1,234,567 jobs (1,000).")
        == "12\u202f345 of 1\u202f234\u202f567 jobs (1\u202f000)."
    )
    for text in ("priority:1,200", "queue a1,234", "jids 1, 234", "1,23 and 12,3456"):
        assert thousands(text) == text
