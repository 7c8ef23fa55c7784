"""The example that connects an MQTT broker to a topic, run with a stand-in of the broker's library that records its calls."""

import json
import os
import sys
from pathlib import Path

import programs
from holdfast import Client

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLE = DOCS / "examples" / "mqtt_reminders.py"
STAND_IN = '''
"""Delivers three messages, and ends when one was published twice: the broker does not confirm the first."""
import json, os, time
from types import SimpleNamespace

class CallbackAPIVersion:
    VERSION2 = 2

class Client:
    def __init__(self, version):
        self.calls, self.on_message, self.on_connect = [["Client", version]], None, None

    def connect(self, *words):
        self.calls.append(["connect", *words])

    def subscribe(self, topic, qos):
        self.calls.append(["subscribe", topic, qos])

    def publish(self, topic, payload, qos):
        self.calls.append(["publish", topic, payload, qos])
        count = sum(call[0] == "publish" for call in self.calls)
        return SimpleNamespace(wait_for_publish=lambda seconds: None, is_published=lambda: count > 1)

    def loop_forever(self):
        self.on_connect(self, None, {}, 0, None)
        for topic in ("remind/a/0.1", "remind/b/soon", "remind/c/-1"):
            self.on_message(self, None, SimpleNamespace(topic=topic, payload="né".encode()))
        until = time.monotonic() + 60
        while sum(call[0] == "publish" for call in self.calls) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        open(os.environ["CALLS"], "w").write(json.dumps(self.calls))
'''


def test_messages_of_a_broker_are_put_and_published_until_it_confirms_them(
    client: Client, url: str, namespace: str, tmp_path: Path
) -> None:
    package = tmp_path / "paho" / "mqtt"
    package.mkdir(parents=True)
    (package / "client.py").write_text(STAND_IN)
    program = tmp_path / "example.py"
    program.write_text(
        EXAMPLE.read_text().replace("Client().topics", "Scheduler(holdfast.Client(), ttr=0.5)")
    )
    env = {
        **os.environ,
        "HOLDFAST_URL": url,
        "HOLDFAST_NAMESPACE": namespace,
        "CALLS": str(tmp_path / "calls"),
        "PYTHONPATH": str(tmp_path),
    }
    done = programs.run([sys.executable, str(program)], env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "remind/b/soon: could not convert string" in done.stdout
    assert "remind/c/-1: delay must be from 0" in done.stdout
    calls = json.loads((tmp_path / "calls").read_text())
    assert calls[:3] == [["Client", 2], ["connect", "localhost"], ["subscribe", "remind/+/+", 1]]
    assert calls[3:] == [["publish", "due/a", "né", 1]] * 2


def test_the_guide_shows_the_example() -> None:
    code = EXAMPLE.read_text().split('"""\n', 1)[1].strip()
    assert code in (DOCS / "guide" / "topics.md").read_text()
