"""Lists: words out and pages in, without a store."""

import pytest

from holdfast import Client, UsageError
from holdfast.commands.views import ListSet


def test_a_list_says_its_set_whose_it_is_and_where_it_goes_on():
    assert ListSet("waiting", "mail").words() == ("waiting", "mail", "", "", 100, "")
    assert ListSet("group", "G", ("17.5", "j1"), 5, "up").words() == ("group", "G", "17.5", "j1", 5, "up")


def test_a_full_page_says_where_the_next_begins_and_a_short_one_does_not():
    page = ListSet("waiting", "mail", None, 2).read([b"j1", b"-5", b"j2", b"17"])
    assert (page.names, page.next) == (["j1", "j2"], ("17", "j2"))
    assert ListSet("waiting", "mail", None, 3).read([b"j1", b"-5", b"j2", b"17"]).next is None
    assert ListSet("waiting", "mail", None, 0).read([]).next is None


def test_wrong_lists_are_found_before_anything_is_sent():
    jobs = Client("redis://nowhere.invalid").jobs
    for words in [("jobs",), ("waiting",), ("waiting", "q", None, 0), ("waiting", "q", None, 513)]:
        with pytest.raises(UsageError):
            jobs.listing(*words)
    with pytest.raises(UsageError, match="direction"):
        jobs.listing("waiting", "q", direction="left")
