"""Asserting what was put, whoever put it and whatever became of it."""

from datetime import datetime

import pytest

from holdfast import UsageError
from holdfast.testing import all_put, assert_not_put, assert_put


class Parcel:
    """A class job that is never performed here."""

    @staticmethod
    def perform(job):
        pass


def test_a_function_job_is_found_by_its_arguments_defaults_included(crew):
    @crew.client.job(queue="mail", priority=10, name="puts.welcome19")
    def welcome(user: int, lang: str = "en"):
        pass

    crew(lambda: welcome.put(7))
    crew(lambda: welcome.put(8, lang="de"))
    assert assert_put(crew.client, welcome, 7).priority == 10
    assert_put(crew.client, welcome, user=7, lang="en")
    assert_put(crew.client, welcome, 8, "de")
    assert_put(crew.client, welcome)
    assert_not_put(crew.client, welcome, 9)
    assert_not_put(crew.client, welcome, 7, "de")


def test_arguments_are_compared_as_the_function_gets_them(crew):
    @crew.client.job(queue="mail", name="puts.remind34")
    def remind(at: datetime, who: tuple[str, ...]):
        pass

    moment = datetime(2026, 5, 1, 12, 30)
    crew(lambda: remind.put(moment, ("ann", "bob")))
    assert_put(crew.client, remind, moment, ("ann", "bob"))
    assert_not_put(crew.client, remind, moment, ("ann",))


def test_a_class_job_is_found_by_its_data_or_items_of_it(crew):
    crew(lambda: crew.client.queues["post"].put(Parcel, {"to": "ann", "weight": 2}, tags=["heavy"]))
    assert assert_put(crew.client, Parcel, {"to": "ann", "weight": 2}).tags == ["heavy"]
    assert_put(crew.client, Parcel, to="ann")
    assert_put(crew.client, "test_puts.Parcel", weight=2)
    assert_not_put(crew.client, Parcel, {"to": "ann"})
    assert_not_put(crew.client, Parcel, to="bob")


def test_a_job_is_found_whatever_became_of_it(crew):
    queue = crew.client.queues["post"]
    crew(lambda: queue.put(Parcel, jid="done"))
    crew(lambda: crew.worker.drain())
    crew(lambda: queue.put("builtins.nothing", jid="failed"))
    crew(lambda: crew.worker.drain(raises=False))
    crew(lambda: queue.put(Parcel, jid="running"))
    crew(lambda: queue.pop())
    crew(lambda: queue.put(Parcel, jid="later", delay=60))
    crew(lambda: queue.put(Parcel, jid="after", depends=["later"]))
    states = {job.jid: job.state for job in all_put(crew.client)}
    assert states == {
        "done": "complete",
        "failed": "failed",
        "running": "running",
        "later": "scheduled",
        "after": "depends",
    }


def test_what_was_put_instead_is_listed(crew):
    with pytest.raises(AssertionError, match="Nothing was put"):
        assert_put(crew.client, Parcel)
    crew(lambda: crew.client.queues["post"].put(Parcel, {"to": "ann"}))
    with pytest.raises(AssertionError) as caught:
        assert_put(crew.client, Parcel, to="bob")
    assert str(caught.value).splitlines() == [
        "test_puts.Parcel(to='bob') was not put. These jobs were put:",
        '  test_puts.Parcel {"to":"ann"} (waiting)',
    ]
    with pytest.raises(AssertionError, match=r"Parcel was put\. These jobs were put:"):
        assert_not_put(crew.client, Parcel)


def test_many_jobs_are_found_and_few_are_shown(crew):
    items = [(Parcel, {"number": n}) for n in range(1100)]
    crew(lambda: crew.client.queues["post"].put_many(items))
    assert len(all_put(crew.client)) == 1100
    assert_put(crew.client, Parcel, number=1099)
    with pytest.raises(AssertionError, match="and 1080 more"):
        assert_put(crew.client, Parcel, number=-1)


def test_arguments_that_cannot_be_are_named(crew):
    @crew.client.job(queue="mail", name="puts.welcome97")
    def welcome(user: int):
        pass

    with pytest.raises(UsageError, match="user"):
        assert_put(crew.client, welcome, "seven")
    with pytest.raises(UsageError, match="one value as its data"):
        assert_put(crew.client, Parcel, 1, 2)


def test_a_job_put_under_another_signature_is_no_match_and_no_error(crew):
    @crew.client.job(queue="mail", name="puts.welcome108")
    def welcome(user: int):
        pass

    name = welcome.registered.name
    crew(lambda: crew.client.queues["mail"].put(name, {"kwargs": {"old_name": 7}}))
    assert_not_put(crew.client, welcome, 7)
    assert_put(crew.client, welcome)
