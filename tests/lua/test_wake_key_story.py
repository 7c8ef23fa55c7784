"""Waking up: the idle bit, the wake key, and the chain of workers that wake each other."""

from holdfast.commands.leases import WILL_WAIT, WOKEN, Complete, Lease, Pop
from holdfast.commands.outcomes import Expire
from holdfast.commands.queues import Pause, ThrottleSet
from native_door import Door

IDLE_BIT = 2**45


def wake_up(door: Door, queue: str = "q") -> int:
    """How many tokens lie in the list."""
    return door.ask("LLEN", door.key(f"n:{queue}"))


def idle(door: Door, queue: str = "q") -> bool:
    raw = int(door.ask("GET", door.key(f"s:{queue}")) or 0)
    return raw % (2 * IDLE_BIT) >= IDLE_BIT


def take_token(door: Door, queue: str = "q") -> None:
    assert door.ask("LPOP", door.key(f"n:{queue}")) == b""


def test_nobody_waits_so_nobody_is_rung(core, door: Door):
    core(Pop("w", ["q"]))
    door.put("q", "a", "b")
    assert (idle(door), wake_up(door)) == (False, 0)


def test_a_short_pop_that_will_wait_raises_the_bit_and_the_next_put_rings_once(core, door: Door):
    core(Pop("w", ["q"], mode=WILL_WAIT))
    assert (idle(door), wake_up(door)) == (True, 0)
    door.put("q", "a")
    assert (idle(door), wake_up(door)) == (True, 1)
    door.put("q", "b")  # a token that lies there means that nobody is blocked: the bit goes down
    assert (idle(door), wake_up(door)) == (False, 1)
    door.put("q", "c")
    assert (idle(door), wake_up(door)) == (False, 1)


def test_a_pop_that_got_all_it_wanted_does_not_raise_the_bit(core, door: Door):
    door.put("q", "a", "b")
    core(Pop("w", ["q"], limit=2, mode=WILL_WAIT))
    assert not idle(door)


def test_a_woken_worker_wakes_another_one_while_jobs_remain(core, door: Door):
    core(Pop("w", ["q"], mode=WILL_WAIT))
    door.put("q", "a", "b")
    take_token(door)
    assert len(core(Pop("w", ["q"], mode=WOKEN))) == 1
    assert (idle(door), wake_up(door)) == (True, 1)
    take_token(door)
    assert len(core(Pop("v", ["q"], mode=WOKEN))) == 1
    assert (idle(door), wake_up(door)) == (True, 0)


def test_a_worker_that_became_busy_passes_its_token_on(core, door: Door):
    core(Pop("w", ["q"], mode=WILL_WAIT))
    door.put("q", "a")
    take_token(door)
    assert core(Pop("w", ["q"], limit=0, mode=WOKEN)) == []
    assert (idle(door), wake_up(door)) == (True, 1)


def test_the_mode_is_said_for_each_queue(core, door: Door):
    core(Pop("w", ["one", "two"], mode=WILL_WAIT))
    door.put("two", "a", "b")
    take_token(door, "two")
    assert len(core(Pop("w", ["one", "two"], mode=[WILL_WAIT, WOKEN]))) == 1
    assert (wake_up(door, "one"), wake_up(door, "two")) == (0, 1)


def test_everything_that_makes_a_job_ready_rings_whoever_waits(core, clock, door: Door):
    acts = {
        "move": lambda: door("move", "", 0, "q", 0, "j", "", ""),
        "timeout": lambda: door("timeout", "", 0, "j"),
        "retry": lambda: door("retry", "w", 0, "", "", "j", door.job("j").token, ""),
        "advance": lambda: door("advance", "w", "q", 0, "j", door.job("j").token, ""),
        "earlier timer": lambda: door("retry", "w", 1000, "", "", "j", door.job("j").token, ""),
        "expire": lambda: core(Expire([Lease("j", door.job("j").token, "w")])),
    }
    door.put("q", "j")
    for name, act in acts.items():
        clock.advance(seconds=100)
        if door.job("j").state != "running":
            core(Pop("w", ["q"], ttl=3600))
        door.ask("UNLINK", door.key("n:q"))
        core(Pop("v", ["q"], mode=WILL_WAIT))
        assert (idle(door), wake_up(door)) == (True, 0), name
        act()
        assert wake_up(door) == 1, name
        take_token(door)


def test_a_new_timer_rings_only_if_it_is_the_earliest(core, door: Door):
    door.put("q", "a", delay=5_000)
    core(Pop("w", ["q"], mode=WILL_WAIT))
    door.put("q", "b", delay=9_000)
    assert wake_up(door) == 0
    door.put("q", "c", delay=1_000)
    assert wake_up(door) == 1


def test_going_on_and_a_higher_limit_and_a_free_slot_ring_without_a_bit(core, door: Door):
    core(Pause(["q"]))
    assert wake_up(door) == 0
    core(Pause(["q"], on=False))
    assert wake_up(door) == 1
    take_token(door)
    core(ThrottleSet("ql:q:q", 1))
    take_token(door)
    door.put("q", "a", "b")
    [a] = core(Pop("w", ["q"], limit=2))
    assert wake_up(door) == 0
    core(Complete("w", a))
    assert wake_up(door) == 1


def test_the_end_of_a_job_that_ran_before_the_limit_rings_too(core, door: Door):
    door.put("q", "a", "b")
    [a] = core(Pop("w", ["q"]))
    core(ThrottleSet("ql:q:q", 1))
    take_token(door)
    assert core(Pop("v", ["q"], mode=WOKEN)) == []
    core(Complete("w", a))
    assert wake_up(door) == 1


def test_a_blocked_worker_gets_the_token_at_once(core, door: Door, clock):
    core(Pop("w", ["q"], mode=WILL_WAIT))
    waiting = clock._client.link.wake_up()
    waiting.send([door.key("n:q")], 30.0)
    door.put("q", "a")
    assert waiting.receive() == door.key("n:q")
    waiting.close()
