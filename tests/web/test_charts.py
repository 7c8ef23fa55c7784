"""Small drawings: what they show, and that names cannot break out of them."""

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import pytest

from holdfast.web import charts


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


@pytest.mark.full
def test_a_sparkline_goes_from_zero_to_the_largest_value() -> None:
    svg = parsed(charts.sparkline([0, 5, 10], "failed"))
    assert svg.get("class") == "spark c-failed"
    assert [path.get("d") for path in svg.iter("path")][1] == "M0 22L46 12L92 2"


@pytest.mark.full
@pytest.mark.parametrize("values", [[], [3], [0, 0, 0]])
def test_a_sparkline_of_nothing_is_a_flat_line(values: list[float]) -> None:
    assert 'class="flat"' in charts.sparkline(values)


def test_a_histogram_has_a_bar_for_each_range_with_its_count() -> None:
    svg = parsed(charts.histogram([(0.0015, 5), (0.3, 20), (0.4, 1)], 0.3, 0.4, label="Wait"))
    titles = [title.text for title in svg.iter("title")]
    assert titles == ["1 ms to 2 ms: 5", "200 ms to 500 ms: 21"]
    assert svg.get("aria-label") == "Wait: 26 jobs, median 300\u202fms, 95th percentile 400\u202fms"
    heights = [float(bar.get("height", 0)) for bar in svg.iter("rect")]
    assert max(heights) == heights[1]
    assert all(0 <= float(line.get("x1", "").rstrip("%") or 0) <= 100 for line in svg.iter("line"))


def test_a_histogram_shows_another_day_as_outlines_on_the_same_scale() -> None:
    svg = parsed(charts.histogram([(0.3, 10)], earlier=[(0.3, 20)]))
    past, now = svg.iter("rect")
    assert (past.get("class"), now.get("class")) == ("past", "bar")
    assert float(past.get("height", 0)) == 2 * float(now.get("height", 0))


@pytest.mark.full
def test_a_histogram_of_nothing_says_so() -> None:
    assert "No measurements" in charts.histogram([])


def test_durations_beyond_the_scale_are_in_the_last_bar() -> None:
    assert "over 7 d: 1" in charts.histogram([(1e9, 1)], 1e9)
    assert "up to 1 ms: 1" in charts.histogram([(0.0, 1)])


def test_a_strip_shows_what_is_in_its_time_only() -> None:
    assert charts.strip([-1, 0, 50, 100, 101], 0, 100).count("<circle") == 3


@pytest.mark.full
def test_a_share_is_divided_as_its_numbers() -> None:
    svg = parsed(charts.share([("waiting", 3), ("failed", 1)]))
    assert [rect.get("width") for rect in svg.iter("rect")] == ["75.00%", "25.00%"]
    assert svg.get("aria-label") == "3 waiting, 1 failed"
    assert "none" in charts.share([])


def test_layers_put_each_job_right_of_what_it_waits_for() -> None:
    edges = [("a", "c"), ("b", "c"), ("c", "d"), ("a", "d")]
    assert charts.layers(["a", "b", "c", "d"], edges) == [["a", "b"], ["c"], ["d"]]


def test_layers_of_a_circle_and_of_unknown_jobs_end() -> None:
    found = charts.layers(["a", "b"], [("a", "b"), ("b", "a"), ("a", "gone"), ("a", "a")])
    assert sorted(name for layer in found for name in layer) == ["a", "b"]


@pytest.mark.full
def test_a_chain_of_fifty_has_fifty_layers() -> None:
    names = [str(index) for index in range(50)]
    assert len(charts.layers(names, list(pairwise(names)))) == 50


@pytest.mark.full
def test_a_graph_shows_twelve_of_a_layer_and_how_many_more() -> None:
    nodes = [
        charts.GraphNode("own", "A", "running", "/a"),
        *(charts.GraphNode(str(at), "B", "depends") for at in range(300)),
    ]
    svg = charts.graph(nodes, [("own", str(at), "") for at in range(300)], "own")
    assert "and 288 more" in svg
    assert svg.count("<rect") == 13
    assert parsed(svg).get("width") == "436"


def test_names_cannot_break_out_of_a_drawing() -> None:
    svg = charts.graph([charts.GraphNode("own", '"><script>x</script>\u202e', "failed", '/a"b')], [])
    assert "<script" not in svg
    assert "\u202e" not in svg
    assert re.search(r'href="/a&#34;b"', svg)
    parsed(svg)


def test_the_edges_of_a_graph_look_like_their_policies_and_nodes_of_several_jobs_have_a_bar() -> None:
    both = (("complete", 3), ("failed", 1))
    nodes = [
        charts.GraphNode("a", "count × 4", "failed", "", "1 failed, 3 complete", "all of it", both),
        *(charts.GraphNode(name, "B", "depends") for name in "bcd"),
    ]
    svg = parsed(charts.graph(nodes, [("a", "b", "fail"), ("a", "c", "run"), ("a", "d", "wait")]))
    assert [path.get("class") for path in svg.iter("path")] == ["edge", "edge run", "edge wait"]
    bars = [(bar.get("class"), bar.get("width")) for bar in svg.iter("rect") if bar.get("height") == "3"]
    assert bars == [("part c-complete", "129.0"), ("part c-failed", "43.0")]
    assert next(title.text for title in svg.iter("title")) == "all of it"


def test_a_span_has_the_time_that_a_job_waited_and_the_time_that_it_ran() -> None:
    def parts(*times: int) -> list[tuple[str | None, ...]]:
        svg = parsed(charts.span(*times, 1000, 2000, "failed"))
        return [tuple(bar.get(name) for name in ("class", "x", "width")) for bar in svg.iter("rect")]

    assert parts(1000, 1250, 1500) == [("wait", "0.00%", "25.00%"), ("c-failed", "25.00%", "25.00%")]
    assert parts(1500, 0, 2000) == [("wait", "50.00%", "50.00%")]
    assert parts(0, 0, 1500) == [("c-failed", "50.00%", "0.40%")]
    assert parts(0, 0, 0) == []
    for _, x, width in parts(5, 900, 9000):  # outside of the line
        assert 0 <= float(str(x).rstrip("%")) + float(str(width).rstrip("%")) <= 100
