"""`holdfast topics` for consumers, each command as a process on a real store."""

import json
import time
from typing import Any

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.console.handles import Console


@pytest.fixture
def run(url: str, namespace: str) -> Any:
    """Runs a command of `holdfast topics`, and returns its exit code and output."""

    def runs(*words: str) -> tuple[int, str]:
        done = holdfast("topics", *words, "--url", url, "--namespace", namespace)
        return done.returncode, done.stdout + done.stderr

    return runs


@pytest.fixture
def mail(client: Client) -> Any:
    topic = client.topics["mail"]
    topic.put_many([("one", "1"), ("two", "2"), ("three", "3")])
    topic.put("later", "4", delay=600)
    return topic


@pytest.mark.full
def test_reserved_messages_are_done_or_given_back_by_id_and_deadline(run: Any, mail: Any) -> None:
    code, text = run("reserve", "mail", "--limit", "2", "--ttr", "5m", "--json")
    one, two = json.loads(text)
    assert (code, one["id"], one["body"], two["id"]) == (0, "one", "1", "three")
    assert 250 < one["deadline"] - time.time() < 350
    wrong, right = str(one["deadline"] + 1), str(one["deadline"])
    assert run("done", "mail", "one", "--deadline", wrong) == (
        1,
        'holdfast: message "one" of topic mail is not reserved until then\n',
    )
    assert run("done", "mail", "one", "--deadline", right) == (0, "deleted one\n")
    assert json.loads(run("done", "mail", "one", "two", "--json")[1]) == {"one": False, "two": False}
    assert run("give-back", "mail", "three", "--delay", "10m") == (0, "queued three again\n")
    assert mail.get("three").ready > time.time() + 500
    assert run("give-back", "mail", "three")[0] == 1
    assert mail.counts.queued == 3


@pytest.mark.full
def test_a_release_deletes_or_with_a_time_queues_again(run: Any, mail: Any) -> None:
    assert run("reserve", "mail")[1].startswith("one\t")
    assert run("release", "mail", "one", "--delay", "1h") == (0, "queued one again\n")
    assert run("release", "mail", "one") == (1, 'holdfast: message "one" of topic mail is not reserved\n')
    assert run("reserve", "mail")[1].startswith("three\t")
    assert run("release", "mail", "three", "--at", "1", "--json") == (0, '{"three": true}\n')
    assert run("reserve", "mail")[1].startswith("three\t")
    assert run("release", "mail", "three") == (0, "deleted three\n")
    assert run("release", "mail", "two", "--at", "1", "--delay", "1s")[0] == 2


@pytest.mark.full
def test_a_message_whose_reservation_has_ended_is_queued_again_and_counted(run: Any, mail: Any) -> None:
    assert run("ready", "mail") == (0, "3\n")
    assert run("reserve", "mail", "--ttr", "1ms")[0] == 0
    assert run("requeue", "mail") == (0, "queued 1 message of mail again\n")
    assert json.loads(run("requeue", "mail", "--json")[1]) == {"requeued": 0}
    counts = {"topic": "mail", "ready": 3, "queued": 4, "reserved": 0}
    assert json.loads(run("ready", "mail", "--json")[1]) == counts


@pytest.mark.full
def test_one_message_is_shown_by_its_id(run: Any, mail: Any) -> None:
    code, text = run("get", "mail", "later")
    assert (code, text.splitlines()[:2]) == (0, ["id     later", "state  queued"])
    found = json.loads(run("get", "mail", "later", "--json")[1])
    assert (found["state"], found["body"]) == ("queued", "4")
    assert run("get", "mail", "nobody") == (1, 'holdfast: topic mail has no message "nobody"\n')


@pytest.mark.full
def test_what_consumers_do_is_not_audited(run: Any, mail: Any, client: Client) -> None:
    for words in (("reserve", "mail"), ("done", "mail", "one"), ("requeue", "mail"), ("pull", "mail")):
        assert run(*words)[0] == 0
    assert Console(client).audit().rows == ()


@pytest.mark.parametrize(
    "words",
    [
        ("reserve", "mail", "--ttr", "soon"),
        ("reserve", "mail", "--limit", "513"),
        ("reserve", "a\nb"),
        ("done", "mail"),
        ("done", "mail", "x" * 201),
        ("done", "mail", "x", "--deadline", "nan"),
        ("give-back", "mail", "x", "--delay", "1s", "--at", "2"),
        ("requeue", "mail", "--limit", "0"),
        ("ready", ""),
    ],
)
def test_bad_words_are_usage_errors_and_change_nothing(run: Any, mail: Any, words: tuple[str, ...]) -> None:
    code, text = run(*words)
    assert (code, "Traceback" in text) == (2, False), text
    assert (mail.counts.queued, mail.counts.reserved) == (4, 0)


@pytest.mark.full
def test_an_empty_topic_has_nothing_to_take(run: Any, client: Client) -> None:
    client.queues["q"].put("K")
    for command in ("reserve", "pull"):
        assert run(command, "nothing") == (1, "holdfast: no message of nothing is ready\n")
        assert run(command, "nothing", "--json") == (1, "[]\n")
    assert run("ready", "nothing") == (0, "0\n")
