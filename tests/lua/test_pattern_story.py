"""Patterns of queues, and the settings that are no configuration keys."""

import pytest

from holdfast.commands.admin import (
    ConfigGet,
    IdentifiersSet,
    Patterns,
    PrioritiesSet,
    SettingSet,
    SettingsGet,
)
from native_door import Door, StoreMessage

ANY = {"default": '["*"]'}
LAST = '{"fairly": false, "pattern": ["default"]}'


def test_a_fresh_root_has_the_protocol_s_patterns(core):
    found = core(Patterns())
    assert (found.identifiers, found.priorities) == (ANY, (LAST,))


def test_identifiers_are_replaced_as_a_whole_and_empty_ones_left_out(core, door: Door):
    core(IdentifiersSet({"mail": '["m*", "!mx"]', "old": '["o"]'}))
    assert core(Patterns()).identifiers == {**ANY, "mail": '["m*", "!mx"]', "old": '["o"]'}
    core(IdentifiersSet({"mail": '[ "n" ]', "none": "[]", "default": '["a", "b"]'}))
    assert core(Patterns()).identifiers == {"default": '["a", "b"]', "mail": '[ "n" ]'}
    core(IdentifiersSet({"default": " []"}))
    assert core(Patterns()).identifiers == ANY
    core(IdentifiersSet({}))
    assert core(Patterns()).identifiers == ANY
    assert door.ask("HGETALL", door.key("qi")) == [b"default", b'["*"]']


def test_the_rules_of_priority_keep_their_order_and_end_with_the_default(core, door: Door):
    first, second = '{"pattern":["a","b"],"fairly":true}', '{"pattern":["c"]}'
    core(PrioritiesSet([first, second]))
    assert core(Patterns()).priorities == (first, second, LAST)
    default = '{"fairly":true,"pattern":["default"]}'
    core(PrioritiesSet([default, second]))
    assert core(Patterns()).priorities == (default, second)
    core(PrioritiesSet([]))
    assert core(Patterns()).priorities == (LAST,)
    assert "qp" not in door.names()


@pytest.mark.parametrize(
    "words",
    [
        ("identifiers_set", "a"), ("identifiers_set", "a", "[1]"), ("identifiers_set", "a", "{}"),
        ("identifiers_set", "good", "[]", "a", "no"), ("identifiers_set", "", "[]"), ("identifiers_set", "a", '"x"'),
        ("identifiers_set", "a", "[" * 2000), ("identifiers_set", "a", '["' + "x" * 65536 + '"]'),
        ("priorities_set", "[]"), ("priorities_set", "{}"), ("priorities_set", LAST, '{"pattern":"a"}'),
        ("priorities_set", "null"), ("priorities_set", '{"pattern":[1]}'),
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused_before_anything_changes(words, core, door: Door):
    core(IdentifiersSet({"mail": '["m"]'}))
    before = door.dump()
    with pytest.raises(StoreMessage, match="HF_BAD_ARGUMENT"):
        door(*words)
    assert door.dump() == before


def test_settings_of_ours_are_no_configuration_keys(core):
    assert core(SettingsGet()) == {
        "keep-data": 0,
        "max-data": 1048576,
        "max-history-bytes": 262144,
        "max-queues": 1000000,
        "stats-days": 400,
        "unknown-for": 600,
    }
    core(SettingSet("stats-days", 30))
    core(SettingSet("keep-data", 1))
    assert core(SettingsGet()) == {
        "keep-data": 1,
        "max-data": 1048576,
        "max-history-bytes": 262144,
        "max-queues": 1000000,
        "stats-days": 30,
        "unknown-for": 600,
    }
    assert len(core(ConfigGet())) == 8
    core(SettingSet("stats-days", None))
    assert core(SettingsGet())["stats-days"] == 400
