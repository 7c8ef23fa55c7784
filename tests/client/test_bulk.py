"""The commands behind `put_many`, without a store."""

import pytest

from holdfast.client.bulk import note_results, steps_of
from holdfast.commands.jobs import Put, PutMany
from holdfast.errors import JobExists, UsageError
from holdfast.settings import Settings

SETTINGS = Settings("redis://nowhere")


class Welcome:
    pass


def steps(items, **shared):
    return list(steps_of(SETTINGS, "mail", items, shared))


def test_pairs_that_stand_together_share_a_command():
    [[command]] = steps([("A", 1), ("B", 2), ("A", 3)], priority=7, retries=2, delay=1.5)
    assert isinstance(command, PutMany)
    assert command.jobs[1::3] == ["A", "B", "A"]
    assert command.jobs[2::3] == [b"1", b"2", b"3"]
    assert (command.priority, command.retries, command.delay_ms, command.mode) == (7, 2, 1500, "new")


def test_a_step_has_512_jobs():
    assert [len(step[0].jobs) // 3 for step in steps(("A", n) for n in range(1100))] == [512, 512, 76]


def test_a_step_ends_when_it_is_longer_than_a_mebibyte():
    assert [len(step[0].jobs) // 3 for step in steps([("A", ["x" * 600_000])] * 5)] == [2, 2, 1]


def test_items_with_options_of_their_own_keep_their_place():
    [step] = steps([("A", 1), {"klass": "B", "priority": 3}, (Welcome, 2), ("C", 3), ("D", 4)])
    assert [type(command) for command in step] == [PutMany, Put, Put, PutMany]
    assert [step[1].klass, step[1].priority, step[2].klass] == ["B", 3, f"{__name__}.Welcome"]
    assert step[3].jobs[1::3] == ["C", "D"]


def test_a_jid_for_all_is_a_put_of_each():
    [step] = steps([("A", 1), ("A", 2)], jid="mine")
    assert [(put.jid, put.mode) for put in step] == [("mine", "move"), ("mine", "move")]


def test_options_are_checked_even_when_there_are_no_items():
    with pytest.raises(UsageError, match="priority"):
        steps([], priority=5000)


@pytest.mark.parametrize("item", [("A",), ("A", 1, 2), ("", 1), ("a\nb", 1), "A", ("A", {1, 2}.__iter__)])
def test_an_item_that_is_none_is_refused(item):
    with pytest.raises(UsageError):
        steps([("A", 1), item])


def test_answers_are_noted_in_the_order_of_the_items():
    [step] = steps([("A", 1), ("A", 2), {"klass": "B", "jid": "mine"}])
    jids, refused = [], []
    second, third = JobExists("two", "HF_JOB_EXISTS"), JobExists("three", "HF_JOB_EXISTS")
    note_results(step, [["one", second], third], jids, refused)
    assert jids == [*step[0].jobs[::3], "mine"]
    assert refused == [second, third]
