"""What only the blocking client has: assignments, mappings, lengths, batches, and a warning."""

import asyncio
import logging
import pickle
import sys

import pytest

import holdfast
from holdfast import Client, JobExists, UsageError


def test_assigning_tells_the_store(client):
    queue = client.queues["q"]
    job = client.jobs[queue.put("K")]
    job.priority = 9
    assert client.jobs[job.jid].priority == 9
    queue.heartbeat = 20
    assert queue.heartbeat == 20
    with pytest.raises(UsageError):
        job.priority = 5000


def test_a_queue_has_a_length_and_is_true_when_empty(client):
    queue = client.queues["q"]
    assert len(queue) == 0
    assert queue
    queue.put("K")
    assert len(queue) == 1


def test_a_queue_equals_its_name_and_its_twin(client):
    queue = client.queues["q"]
    assert queue == "q"
    assert queue == client.queues["q"]
    assert queue != client.queues["r"]
    assert {queue: 1}["q"] == 1
    assert str(queue) == "q"


def test_config_is_a_mapping(client):
    config = client.config
    assert config["heartbeat"] == 30
    config["heartbeat"] = 30
    config["mine"] = "some text"
    assert (config["heartbeat"], config["mine"], config["nothing"]) == (30, "some text", None)
    assert config.get("nothing", 7) == 7
    assert "mine" in config
    assert config.pop("mine") == "some text"
    assert "mine" not in config
    config.update({"a": 1}, b=2)
    assert config.all["a"] == "1"
    del config["heartbeat"]
    assert config["heartbeat"] == 30
    assert len(config) == len(config.all) == len(list(config))
    config.clear()
    assert "a" not in config
    with pytest.raises(UsageError):
        config["a"] = [1]


def test_untouched_there_are_eight_settings(client):
    assert len(client.config) == 8


def test_a_batch_leaves_as_one_and_answers_jids_at_once(client):
    queue = client.queues["q"]
    with client.batch():
        jids = [queue.put("K", n) for n in range(1200)]
        assert client.link is not None
    assert [job.jid for job in queue.pop(512)] == jids[:512]
    assert len(queue) == 1200


def test_a_batch_is_sent_before_another_call_of_its_thread(client):
    queue = client.queues["q"]
    with client.batch():
        queue.put("K")
        assert len(queue) == 1


def test_a_batch_raises_its_first_refusal_at_its_end(client):
    queue = client.queues["q"]
    queue.put("K", 1, jid="mine")
    jids = []

    def put_some():
        with client.batch():
            jids.append(queue.put("K", 2, jid="mine", only_new=True))
            jids.append(queue.put("K", 3))

    with pytest.raises(JobExists) as caught:
        put_some()
    assert jids[0] == "mine"
    assert "1 job of this batch" in caught.value.__notes__[0]
    assert client.jobs[jids[1]] is not None


def test_a_batch_sends_what_it_has_when_its_body_fails(client):
    queue = client.queues["q"]

    def put_and_fail():
        with client.batch():
            queue.put("K")
            raise KeyError

    with pytest.raises(KeyError):
        put_and_fail()
    assert len(queue) == 1


def test_batches_do_not_nest(client):
    with pytest.raises(UsageError), client.batch(), client.batch():
        pass


def test_a_blocking_client_in_a_loop_warns_once(client):
    async def story():
        with pytest.warns(RuntimeWarning, match="AsyncClient"):
            client.queues["q"].put("K")
        client.queues["q"].put("K")

    asyncio.run(story())


def test_a_blocking_client_in_a_loop_is_an_error_if_one_likes(url, namespace):
    client = Client(url, namespace=namespace, strict_loop=True)

    async def story():
        client.queues["q"].put("K")

    with pytest.raises(UsageError, match="AsyncClient"):
        asyncio.run(story())
    client.close()


def test_a_blocking_client_in_ipython_is_silent(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", object())

    async def story():
        client.queues["q"].put("K")

    asyncio.run(story())


def test_clients_of_one_place_are_equal(url, namespace):
    one, two = Client(url, namespace=namespace), Client(url, namespace=namespace)
    assert one == two
    assert hash(one) == hash(two)
    assert one != Client(url, namespace="test-other")
    assert namespace in repr(one)


def test_errors_can_be_pickled_to_another_process():
    error = holdfast.LeaseLost("j1 is waiting", "HF_LEASE_LOST")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, copy.detail) == (holdfast.LeaseLost, "HF_LEASE_LOST", "j1 is waiting")
    failed = pickle.loads(pickle.dumps(holdfast.JobFailed("group", "message")))
    assert (failed.group, failed.message) == ("group", "message")


def test_unknown_attributes_are_errors(client):
    for thing in (client, client.queues, client.config, client.queues["q"], holdfast):
        with pytest.raises(AttributeError):
            _ = thing.nonsense


def test_a_given_url_wins_over_the_environment(monkeypatch, url, caplog):
    monkeypatch.setenv("HOLDFAST_URL", "redis://nobody:secret@elsewhere")
    monkeypatch.setenv("REDIS_URL", "redis://third")
    with caplog.at_level(logging.INFO, "holdfast"):
        assert Client(url).settings.url == url
        assert Client().settings.url == "redis://nobody:secret@elsewhere"
        monkeypatch.delenv("HOLDFAST_URL")
        assert Client().settings.url == "redis://third"
    assert "HOLDFAST_URL: redis://nobody:…@elsewhere" in caplog.text
    assert "secret" not in caplog.text


def test_the_jid_of_a_job_may_be_drawn_beforehand(client):
    jid = holdfast.generate_jid()
    assert client.queues["q"].put("K", jid=jid) == jid
