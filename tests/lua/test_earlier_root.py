"""A root that release 0.1 made gets the defaults of this one, where nobody configured them."""

import struct

import pytest

from holdfast.commands.admin import ConfigGet, ConfigSet, ConfigUnset, Info
from holdfast.commands.leases import Pop
from native_door import Door

FORM = "<BBHIHIH8sddddddd"  # flags, schema, defaults, granted, latest, epoch, watched, heartbeat, grace …
DEFAULTS, HEARTBEAT, GRACE = 2, 9, 10


def made_by_the_earlier_release(door: Door, heartbeat: float = 60_000, grace: float = 10_000) -> None:
    """Write the root as release 0.1 wrote it."""
    fields = list(struct.unpack(FORM, door.ask("HGET", door.root, "h")))
    fields[DEFAULTS], fields[HEARTBEAT], fields[GRACE] = 0, heartbeat, grace
    door.ask("HSET", door.root, "h", struct.pack(FORM, *fields))


def packed(door: Door) -> tuple[int, float, float]:
    fields = struct.unpack(FORM, door.ask("HGET", door.root, "h"))
    return fields[DEFAULTS], fields[HEARTBEAT], fields[GRACE]


@pytest.mark.parametrize("first", ["put", "pop", "info", "config_get"])
def test_the_first_call_brings_what_was_never_configured_up_to_date(first: str, core, door: Door):
    made_by_the_earlier_release(door)
    words = {
        "put": ("", 0, "new", "q", 0, 5, 0, "a", "k", "{}"),
        "pop": ("w", "", 0, 1, 0, "q", 0),
        "info": ("", 0),
    }
    (door.look if first == "config_get" else door)(first, *words.get(first, ()))
    door.put("q", "j")
    assert core(Pop("w", ["q"]))[0].lease_ms == 30_000
    assert (core(Info()).heartbeat, core(Info()).grace) == (30_000, 5_000)
    assert core(ConfigGet(["heartbeat", "grace-period"])) == {"heartbeat": "30", "grace-period": "5"}
    assert packed(door) == (1, 30_000, 5_000)


def test_the_call_that_describes_the_root_says_the_new_defaults_at_once(core, door: Door):
    made_by_the_earlier_release(door)
    assert (core(Info()).heartbeat, core(Info()).grace) == (30_000, 5_000)


def test_what_was_configured_stays_also_if_it_is_the_earlier_default(core, door: Door):
    core(ConfigSet("heartbeat", "60"))
    core(ConfigSet("grace-period", "2"))
    made_by_the_earlier_release(door, 60_000, 2_000)
    door.put("q", "j")
    assert core(Pop("w", ["q"]))[0].lease_ms == 60_000
    assert packed(door) == (1, 60_000, 2_000)
    core(ConfigUnset("heartbeat"))
    assert packed(door) == (1, 30_000, 2_000)


def test_a_call_that_must_not_write_sees_the_new_defaults_and_writes_nothing(door: Door):
    made_by_the_earlier_release(door)
    found = door.look("config_get")
    assert dict(zip(found[::2], found[1::2], strict=True))[b"heartbeat"] == b"30"
    assert door.look("job_get", "nobody") == [None]
    assert packed(door) == (0, 60_000, 10_000)
