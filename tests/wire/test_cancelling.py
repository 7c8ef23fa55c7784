"""The order in which a family is cancelled, without a store."""

import random

from holdfast.client.cancelling import leaves_first


def test_leaves_come_before_what_they_wait_for():
    children = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": [], "e": []}
    order = leaves_first(["a", "e"], children)
    assert sorted(order) == ["a", "b", "c", "d", "e"]
    assert all(order.index(child) < order.index(jid) for jid in children for child in children[jid])


def test_a_chain_of_any_length_is_ordered_without_recursion():
    count = 20_000
    children = {f"c{n}": [f"c{n + 1}"] if n + 1 < count else [] for n in range(count)}
    assert leaves_first(["c0"], children) == [f"c{n}" for n in reversed(range(count))]


def test_any_family_is_ordered_from_any_of_its_members():
    chance = random.Random(7)
    for _ in range(50):
        names = [str(n) for n in range(30)]
        children = {
            jid: chance.sample(names[n + 1 :], min(len(names) - n - 1, 4)) for n, jid in enumerate(names)
        }
        order = leaves_first(chance.sample(names, 30), children)
        assert sorted(order) == sorted(names)
        assert all(order.index(child) < order.index(jid) for jid in names for child in children[jid])


def test_a_child_outside_the_family_is_left_out():
    assert leaves_first(["a"], {"a": ["stranger"]}) == ["a"]
