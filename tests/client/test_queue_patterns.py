"""python-api 10 and workers 8: patterns of queues, their order, and what resolves them."""

import pytest

from holdfast import AsyncClient, UsageError
from holdfast.queue_resolvers import (
    DynamicMappingQueueIdentifiersTransformer,
    DynamicPriorityQueueIdentifiersTransformer,
    QueuePriorityPattern,
    QueueResolver,
    TransformingQueueResolver,
)
from holdfast.worker.queues import routing as resolving

resolve = DynamicMappingQueueIdentifiersTransformer.resolve_queue_names
prioritize = DynamicPriorityQueueIdentifiersTransformer.prioritize_queues
KNOWN = ["one", "two", "three", "four"]


def rule(*patterns: str, fairly: bool = False) -> QueuePriorityPattern:
    return QueuePriorityPattern(list(patterns), fairly)


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["*"], KNOWN),
        (["t*"], ["two", "three"]),
        (["*e"], ["one", "three"]),
        (["*o*"], ["one", "two", "four"]),
        (["t*e"], ["three"]),
        (["three", "*"], ["three", "one", "two", "four"]),
        (["o", "ne"], ["o", "ne"]),
        (["new", "t*", "new"], ["new", "two", "three"]),
        (["*", "!t*"], ["one", "four"]),
        (["*", "!two"], ["one", "three", "four"]),
        (["!two", "*"], KNOWN),
        (["*", "!t*", "two"], ["one", "four", "two"]),
        (["one", "!four"], ["one"]),
        ([], []),
    ],
)  # fmt: skip
def test_patterns_are_applied_in_order_and_known_queues_come_in_theirs(patterns, found):
    assert resolve({}, KNOWN, patterns) == found


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["@short"], ["one", "two"]),
        (["four", "@short", "three"], ["four", "one", "two", "three"]),
        (["@no-t"], ["one", "four"]),
        (["*", "!@short"], ["three", "four"]),
        (["three", "!@no-t"], ["three", "two"]),
        (["@unknown", "one"], ["one"]),
        (["@", "one"], ["one"]),
        (["*", "!@unknown"], KNOWN),
    ],
)
def test_a_key_stands_for_its_patterns_where_it_is_and_a_negated_one_for_their_opposites(patterns, found):
    mapping = {"short": ["one", "two"], "no-t": ["*", "!t*"] if "three" not in patterns else ["one", "!two"]}
    assert resolve(mapping, KNOWN, patterns) == found


def test_only_the_star_is_special_and_the_whole_name_must_match():
    known = ["a.b", "axb", "a+", "aa", "(", "two\nlines"]
    assert resolve({}, known, ["a.*"]) == ["a.b"]
    assert resolve({}, known, ["*+"]) == ["a+"]
    assert resolve({}, known, ["(*"]) == ["("]
    assert resolve({}, known, ["two*"]) == ["two\nlines"]
    assert resolve({}, known, ["*x"]) == []


def test_many_stars_cost_no_more_than_few():
    known = ["a" * 199 + "b", "a" * 200]
    assert resolve({}, known, ["*a" * 90 + "*b"]) == known[:1]
    assert resolve({}, known, ["*a" * 99 + "*c"]) == []
    assert resolve({}, ["aXbYYbc", "abc", "ab"], ["a**b*b**c"]) == ["aXbYYbc"]
    assert resolve({}, ["ab", "aab", "aa", "a"], ["a*a"]) == ["aa"]


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ([], KNOWN),
        ([rule("default")], KNOWN),
        ([rule("three", "one")], ["three", "one", "two", "four"]),
        ([rule("default"), rule("one", "two")], ["three", "four", "one", "two"]),
        ([rule("four"), rule("default"), rule("o*")], ["four", "two", "three", "one"]),
        ([rule("t*"), rule("*"), rule("default")], ["two", "three", "one", "four"]),
        ([rule("*", "!t*"), rule("default")], ["one", "four", "two", "three"]),
        ([rule("*", "!t*"), rule("two"), rule("default")], ["one", "four", "two", "three"]),
        ([rule("!one"), rule("default")], KNOWN),
        ([rule("unknown"), rule("default"), rule("default")], KNOWN),
        ([rule("default"), rule("t*"), rule("default")], ["two", "three", "one", "four"]),
        ([rule("default", "one"), rule("default")], KNOWN),
    ],
)  # fmt: skip
def test_rules_take_what_is_left_and_the_default_stands_for_the_rest(rules, found):
    assert prioritize(KNOWN, rules) == found


def test_the_same_rule_twice_takes_its_queues_once():
    twice = rule("t*")
    assert prioritize([*KNOWN, "two"], [twice, twice]) == ["two", "three", "one", "four"]


def test_queues_of_a_fair_rule_take_turns_within_its_place():
    many = [f"q{n}" for n in range(40)]
    given = ["first", *many, "last"]
    rules = [rule("first"), rule("q*", fairly=True), rule("default")]
    orders = [prioritize(given, rules) for _ in range(3)]
    assert all((order[0], order[-1]) == ("first", "last") for order in orders)
    assert all(sorted(order[1:-1]) == sorted(many) for order in orders)
    assert len({tuple(order) for order in [many, *[order[1:-1] for order in orders]]}) == 4
    assert prioritize(many, [rule("default", fairly=True)]) != many


def test_a_rule_compares_by_both_and_shows_both():
    assert rule("a", fairly=True) == QueuePriorityPattern(["a"], should_distribute_fairly=True)
    assert rule("a") != rule("a", fairly=True)
    assert rule("a") != rule("b")
    assert rule("a").pattern == rule("a").patterns == ["a"]
    assert repr(rule("a")) == "QueuePriorityPattern(patterns=['a'], should_distribute_fairly=False)"


def test_setting_rules_replaces_them_and_keeps_one_for_the_rest(do):
    patterns = do.client.queue_patterns
    do(lambda: patterns.set_queue_priority_patterns([rule("default", fairly=True), rule("slow")]))
    assert do(patterns.get_queue_priority_patterns) == [rule("default", fairly=True), rule("slow")]
    do(lambda: patterns.set_queue_priority_patterns([]))
    assert do(patterns.get_queue_priority_patterns) == [rule("default")]


def test_setting_identifiers_replaces_them_and_keeps_a_default_that_was_given(do):
    patterns = do.client.queue_patterns
    do(lambda: patterns.set_queue_identifier_patterns({"default": ["m*"], "old": ["o"]}))
    do(lambda: patterns.set_queue_identifier_patterns({"default": ["n*"], "none": []}))
    assert do(patterns.get_queue_identifier_patterns) == {"default": ["n*"]}


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda patterns: patterns.set_queue_identifier_patterns([("a", ["b"])]), "identifiers"),
        (lambda patterns: patterns.set_queue_identifier_patterns({"a": "b"}), "patterns"),
        (lambda patterns: patterns.set_queue_identifier_patterns({"a": [7]}), "pattern"),
        (lambda patterns: patterns.set_queue_priority_patterns([["a"]]), "rules"),
        (lambda patterns: patterns.set_queue_priority_patterns([QueuePriorityPattern("abc")]), "patterns"),
        (
            lambda patterns: patterns.set_queue_priority_patterns([QueuePriorityPattern(["a"], 1)]),
            "should_distribute_fairly",
        ),
    ],
)
def test_what_is_no_pattern_is_named_before_anything_is_written(do, ask, named):
    patterns = do.client.queue_patterns
    with pytest.raises(UsageError, match=named):
        do(lambda: ask(patterns))
    assert do(patterns.get_queue_identifier_patterns) == {"default": ["*"]}


def test_a_resolver_without_transformers_answers_what_it_was_given(client):
    resolver: QueueResolver = TransformingQueueResolver(["b", client.queues["a"]])
    assert resolver.resolve() == ["b", "a"]
    assert repr(resolver) == "<TransformingQueueResolver ['b', 'a']>"


def test_transformers_are_applied_first_to_last():
    class Add:
        def __init__(self, end: str) -> None:
            self.end = end

        def transform(self, queue_identifiers: list[str]) -> list[str]:
            return [name + self.end for name in queue_identifiers]

    resolver = TransformingQueueResolver(("a", "b"), [Add("-1"), Add("-2")])
    assert resolver.resolve() == resolver.resolve() == ["a-1-2", "b-1-2"]


def test_a_resolver_over_the_store_s_patterns(client):
    for name in ("mail", "photos", "mail-slow"):
        client.queues[name].put("K")
    client.queue_patterns.set_queue_identifier_patterns({"post": ["mail*", "letters"]})
    client.queue_patterns.set_queue_priority_patterns([rule("default"), rule("*slow")])
    transformers = [
        DynamicMappingQueueIdentifiersTransformer(client),
        DynamicPriorityQueueIdentifiersTransformer(client),
    ]
    assert TransformingQueueResolver(["@post", "!mail"], transformers).resolve() == ["letters", "mail-slow"]
    assert TransformingQueueResolver(["plain", "plain"], transformers).resolve() == ["plain"]
    client.queues["mail-9"].put("K")
    assert TransformingQueueResolver(["mail-*"], transformers).resolve() == ["mail-9", "mail-slow"]


@pytest.mark.parametrize(("milliseconds", "seconds"), [(None, 300.0), (1500, 1.5)])
def test_patterns_are_read_again_after_their_time_and_not_before(client, monkeypatch, milliseconds, seconds):
    now = 1000.0
    monkeypatch.setattr(resolving, "monotonic", lambda: now)
    mapping = DynamicMappingQueueIdentifiersTransformer(client, milliseconds)
    order = DynamicPriorityQueueIdentifiersTransformer(client, milliseconds)
    ask = TransformingQueueResolver(["a", "@b", "c"], [mapping, order]).resolve
    assert ask() == ["a", "c"]
    client.queue_patterns.set_queue_identifier_patterns({"b": ["b"]})
    client.queue_patterns.set_queue_priority_patterns([rule("c")])
    now += seconds - 0.01
    assert ask() == ["a", "c"]
    now += 0.01
    assert ask() == ["c", "a", "b"]


def test_what_is_no_list_of_queues_no_time_and_no_blocking_client_is_named(client, url):
    with pytest.raises(UsageError, match="queue_identifiers"):
        TransformingQueueResolver("mail")
    with pytest.raises(UsageError, match="queue identifier"):
        TransformingQueueResolver([7])
    with pytest.raises(UsageError, match="transformers"):
        TransformingQueueResolver(["mail"], 7)
    with pytest.raises(UsageError, match="transform of each"):
        TransformingQueueResolver(["mail"], [str])
    with pytest.raises(UsageError, match="dynamic_queue_mapping_refresh_frequency_milliseconds"):
        DynamicMappingQueueIdentifiersTransformer(client, -1)
    with pytest.raises(UsageError, match="blocking"):
        DynamicPriorityQueueIdentifiersTransformer(AsyncClient(url))
