"""Bad input is an error of our tree, naming the argument, before anything is sent."""

import pytest

from holdfast import AsyncClient, Client, DataTooLarge, UsageError

BAD_PUTS = [
    ({"data": float("nan")}, "NaN"),
    ({"data": object()}, "JSON"),
    ({"data": "x" * 5}, "not JSON"),
    ({"data": {"a": "x" * (1 << 20)}}, "more than"),
    ({"priority": 4096}, "priority"),
    ({"priority": 1.5}, "priority"),
    ({"retries": -1}, "retries"),
    ({"retries": 1001}, "retries"),
    ({"delay": -1}, "delay"),
    ({"delay": float("inf")}, "delay"),
    ({"delay": 10**400}, "delay"),
    ({"jid": ""}, "jid"),
    ({"jid": "a\nb"}, "jid"),
    ({"prioritty": 3}, "did you mean 'priority'"),
]


@pytest.mark.parametrize(("options", "why"), BAD_PUTS, ids=[str(index) for index in range(len(BAD_PUTS))])
def test_a_bad_argument_is_a_usage_error_before_anything_is_sent(do, options, why):
    data = options.get("data", {})
    options = {name: value for name, value in options.items() if name != "data"}
    with pytest.raises(UsageError, match=why):
        do(lambda: do.client.queues["mail"].put("K", data, **options))
    assert not do.client.shard.met


NOT_NAMES = ["abc", b"abc", 7, {"a": 1}, [[]], [None], ["a\nb"]]


@pytest.mark.parametrize("given", NOT_NAMES, ids=repr)
@pytest.mark.parametrize("option", ["tags", "throttles", "depends"])
def test_a_list_of_names_is_neither_text_nor_anything_else(do, option, given):
    with pytest.raises(UsageError, match=option):
        do(lambda: do.client.queues["mail"].put("K", **{option: given}))
    if option != "depends":
        with pytest.raises(UsageError, match=option):
            do(lambda: do.client.queues["mail"].recur("K", interval=60, **{option: given}))
    assert not do.client.shard.met


def test_what_a_job_is_completed_with_is_checked_before_anything_is_sent(do):
    do(lambda: do.client.queues["mail"].put("K", jid="j"))
    job = do(lambda: do.client.queues["mail"].pop())
    for follow in ("abc", 7, {"queue": "q", "klass": "K"}, [7], ["ab"], [{"queue": "q"}]):
        with pytest.raises(UsageError, match="follow"):
            do(lambda follow=follow: job.complete(follow=follow))
    for depends in (*NOT_NAMES, [f"p{number}" for number in range(1001)]):
        with pytest.raises(UsageError, match="depends"):
            do(lambda depends=depends: job.complete("next", depends=depends))
    with pytest.raises(UsageError, match="lines"):
        do(lambda: job.report(0.5, lines="one line"))
    assert do(lambda: job.complete()) == "complete"


def test_every_argument_of_another_kind_is_a_usage_error_that_names_it(do):
    client, queue = do.client, do.client.queues["mail"]
    do(lambda: queue.recur("K", interval=60, offset=60, jid="r"))
    template = do(lambda: client.recurring.get("r"))[0]
    do(lambda: queue.put("K", jid="j"))
    job = do(queue.pop)
    asked = {
        "queue": lambda: client.queues[[]],
        "jid": lambda: client.jobs.get({}),
        "throttle": lambda: client.throttles[[]],
        "klass": lambda: queue.put(7, {}),
        "only_new": lambda: queue.put("K", only_new="yes"),
        "stop_jobs": lambda: queue.pause("yes"),
        "dependents": lambda: client.jobs.cancel("j", dependents="no"),
        "all": lambda: job.undepend(all=1),
        "start": lambda: client.jobs.failed("g", -1),
        "limit": lambda: client.jobs.failed("g", 0, "many"),
        "before_fail": lambda: job.before_fail("say"),
        "opts": lambda: job.build_opts_array(7),
        "next_queue": lambda: job.complete(7),
        "queue ": lambda: job.move(None),
        "queue  ": lambda: job.requeue(b"mail"),
        "queue   ": lambda: template.move(["mail"]),
        "queue    ": lambda: client.stats.get(7),
        "on_error": lambda: client.topics.subscribe("t", print, on_error="say"),
        "register": lambda: client.events("say"),
        "expiration ": lambda: client.topics.put("t", "i", "b", None),
        "body": lambda: client.topics["t"].put("i", object()),
        "klass ": lambda: template.set_klass(None),
        "who": lambda: queue.pause(who="a\nb"),
        "who ": lambda: client.audit.add("what", who=True),
        "target": lambda: client.audit.add("what", 7),
        "before": lambda: client.audit.newest(5, 7),
        "throttles": lambda: template.update(throttles="abc"),
        "expiration": lambda: client.throttles["t"].set_maximum(1, "soon"),
        "cursor": lambda: client.throttles.names(None),
        "after": lambda: client.jobs.listing("waiting", "q", 5),
        "after ": lambda: client.jobs.listing("waiting", "q", ("1", 7)),
        "set": lambda: client.jobs.listing([]),
        "identifiers": lambda: client.queue_patterns.set_queue_identifier_patterns(["a"]),
        "patterns": lambda: client.queue_patterns.set_queue_identifier_patterns({"a": 7}),
        "rules": lambda: client.queue_patterns.set_queue_priority_patterns([{"patterns": ["a"]}]),
        "jobs": lambda: queue.put_many(7),
        "option": lambda: queue.set_bound([], 5),
        "timeout": lambda: client.wait_for("j", "soon"),
        "date": lambda: queue.stats(-1),
        "offset": lambda: queue.peek(2**53, 5),
    }
    for name, ask in asked.items():
        with pytest.raises(UsageError, match=name.strip()):
            do(ask)
    assert do(lambda: client.jobs["j"]).state == "running"
    assert do(lambda: client.topics.names()) == []


@pytest.mark.parametrize("item", ["K", ("K",), {"data": 1}, {"klass": "K", "dalay": 1}, 7])
def test_a_bad_item_of_many_is_a_usage_error(do, item):
    with pytest.raises(UsageError, match="put_many"):
        do(lambda: do.client.queues["mail"].put_many([item]))


def test_bad_names_are_usage_errors(do):
    for ask in (
        lambda: do.client.queues[""],
        lambda: do.client.queues["a\tb"],
        lambda: do.client.queues["mail"].put("x" * 201),
        lambda: do.client.jobs[""],
    ):
        with pytest.raises(UsageError):
            ask()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"namespace": "a:b"}, "namespace"),
        ({"namespace": "ql"}, "reqless"),
        ({"durability": "fsycn"}, "did you mean 'fsync'"),
        ({"timeout": -1}, "timeout"),
        ({"max_data": 1 << 30}, "max_data"),
        ({"hostname": "a\nb"}, "hostname"),
        ({"namespce": "a"}, "did you mean 'namespace'"),
    ],
)
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_bad_option_of_a_client_is_a_usage_error(kind, options, why):
    with pytest.raises(UsageError, match=why):
        kind("redis://localhost", **options)


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost", "", "unix:/tmp/x"])
def test_a_url_that_is_none_is_a_usage_error_with_examples(url):
    with pytest.raises(UsageError, match=r"redis://host:port/db"):
        Client(url)


@pytest.mark.parametrize("url", ["redis://localhost:1/jobs", "rediss://:secret@localhost:1/0/1?timeout=1"])
def test_a_url_with_a_database_that_is_no_number_is_a_usage_error_without_its_password(url):
    with pytest.raises(UsageError, match="a database number") as caught:
        Client(url)
    assert "secret" not in str(caught.value)


def test_a_lambda_is_no_job(do):
    with pytest.raises(UsageError, match="lambda"):
        do(lambda: do.client.queues["mail"].put(lambda job: None))


def test_a_limit_on_data_is_the_clients_to_choose(url, namespace):
    small = Client(url, namespace=namespace, max_data=10)
    with pytest.raises(UsageError, match="10 allowed"):
        small.queues["q"].put("K", {"a": "long enough"})
    large = Client(url, namespace=namespace, max_data=4 << 20)
    with pytest.raises(DataTooLarge, match="max-data allows 1048576"):
        large.queues["q"].put("K", {"a": "x" * (3 << 20)})
    large.config.set("max-data", 4 << 20)
    jid = large.queues["q"].put("K", {"a": "x" * (3 << 20)})
    assert len(large.jobs[jid]["a"]) == 3 << 20
    large.close()


@pytest.mark.parametrize("page", [(-1, 5), (0, -1), (0, 10_001), (1.5, 2)])
def test_a_page_that_cannot_be_is_a_usage_error(do, page):
    with pytest.raises(UsageError, match=r"offset|count"):
        do(lambda: do.client.queues["q"].peek(*page))
    with pytest.raises(UsageError, match=r"offset|count"):
        do(lambda: do.client.jobs.complete(*page))


@pytest.mark.parametrize("count", [-1, 513, 2.0, "3"])
def test_a_pop_takes_at_most_512(do, count):
    with pytest.raises(UsageError, match="count"):
        do(lambda: do.client.queues["q"].pop(count))


def test_cancelling_takes_at_least_one_jid(do):
    with pytest.raises(UsageError, match="at least one"):
        do(lambda: do.client.jobs.cancel())
    with pytest.raises(UsageError):
        do(lambda: do.client.jobs.cancel("j", "", dependents=True))


def test_a_failure_message_that_is_no_text_is_a_usage_error_and_half_characters_are_spelled_out(do):
    do(lambda: do.client.queues["mail"].put("K", {}, jid="odd"))
    job = do(lambda: do.client.queues["mail"].pop())
    with pytest.raises(UsageError, match="message must be text"):
        do(lambda: job.fail("group", ValueError("no text")))
    do(lambda: job.fail("group", "no file \udcff"))
    assert do(lambda: do.client.jobs.get("odd"))[0].failure["message"] == "no file \\udcff"
