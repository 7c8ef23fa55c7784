"""A store that is away: how often a process knocks, and how often it says so (fault F9)."""

from itertools import pairwise

import pytest

from holdfast import Client
from holdfast.errors import ConnectionLost, Refused
from holdfast.wire import outage as away_module
from holdfast.wire.outage import RECHECK, Outage, ReconnectGate, gate_of


class Hands:
    """A clock that is moved by hand."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr(away_module, "monotonic", lambda: self.now)


def test_a_whole_process_knocks_about_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, gate = Hands(monkeypatch), ReconnectGate()
    gate.failed(OSError("refused"))
    allowed: list[float] = []
    while clock.now < 1060.0:
        wait = gate.wait_time()
        assert 0 <= wait <= RECHECK
        if not wait:
            allowed.append(clock.now)
        clock.now += 0.005
    assert 40 <= len(allowed) <= 60
    # Soon at first: most stores are back at once. Whoever comes after its return finds it within two seconds.
    assert allowed[1] - allowed[0] < 0.1
    assert max(b - a for a, b in pairwise(allowed)) < 1.5


def test_after_an_answer_everybody_may_connect_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Hands(monkeypatch)
    gate = ReconnectGate()
    assert [gate.wait_time() for _ in range(3)] == [0, 0, 0]
    gate.failed(OSError("refused"))
    assert gate.wait_time() == 0
    assert gate.wait_time() > 0
    gate.failing = False
    assert [gate.wait_time() for _ in range(3)] == [0, 0, 0]


def test_clients_of_one_store_share_what_is_known_of_it() -> None:
    one, two, other = (Client(f"redis://localhost:{port}") for port in (1, 1, 2))
    assert one.link.address.gate is two.shard.gate is gate_of("redis://localhost:1")
    assert one.shard.gate is not other.shard.gate


def test_an_outage_is_said_once_by_all_who_notice(caplog: pytest.LogCaptureFixture) -> None:
    gate = ReconnectGate()
    users = [Outage(gate) for _ in range(3)]
    for user in users * 2:
        user.pause(ConnectionLost("gone"))
    for user in users:
        user.over()
    users[0].pause(ConnectionLost("gone again"))
    said = [record.getMessage().partition(",")[0] for record in caplog.records]
    assert said == [
        "the store is unavailable",
        "the store is available again",
        "the store is unavailable",
    ]


def test_a_refusal_is_not_taken_for_a_store_that_is_away(caplog: pytest.LogCaptureFixture) -> None:
    gate = ReconnectGate()
    full, other = Outage(gate), Outage(gate)
    full.pause(Refused("no room"))
    other.over()
    full.pause(Refused("no room"))
    assert not gate.is_reported
    full.over()
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
