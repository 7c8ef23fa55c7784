"""The example of spec/schedules.md 8.3 runs as written, and does what its comments say."""

from itertools import pairwise

import holdfast

EXAMPLE = """\
sched = holdfast.Scheduler(client, ttr=60, reserve_interval=0.5, requeue_interval=1.0)
mail = sched["mail"]

mail.put("help-42", "text", delay=3 * 86400)
mail.delete("help-42")
item = mail.reserve()
mail.done(item.id)
mail.pull()
mail.requeue(limit=1000)
mail.ready_count(); len(mail); mail.get("help-42"); "help-42" in mail
"""

# What each line of the example answers, after what has to be there for it.
READY = {"item = mail.reserve()": "now", "mail.pull()": "another"}


def test_the_example_runs_as_written(client):
    names = {"holdfast": holdfast, "client": client}
    answers = []
    for line in EXAMPLE.splitlines():
        if line in READY:
            client.topics["mail"].put(READY[line], "text")
        for statement in line.split("; "):
            if " = " in statement or not statement:
                exec(statement, names)
            else:
                answers.append(eval(statement, names))
    item = names["item"]
    assert (item.id, item.body, item.topic) == ("now", "text", "mail")
    put, deleted, done, pulled, requeued, ready, length, found, is_there = answers
    assert (put, deleted, done, pulled.id) == (True, True, True, "another")
    assert (requeued, ready, length, found, is_there) == (0, 0, 0, None, False)


def test_a_block_is_done_on_success_and_leaves_to_its_ttr_on_an_exception(client):
    mail = client.topics["mail"]
    mail.put("a", "x")
    with mail.reserve() as item:
        assert item.id == "a"
    assert len(mail) == 0


def test_the_scheduler_of_a_client_and_one_of_ones_own_share_their_topics(client):
    for first, second in pairwise([client.topics, holdfast.Scheduler(client), client.schedules]):
        assert first["t"].put("a", "x")
        assert second["t"].pull().id == "a"
