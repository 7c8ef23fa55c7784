"""Lists as people read them, in both colours."""


def test_a_list_is_read_page_by_page(do):
    queue, jobs = do.client.queues["mail"], do.client.jobs
    jids = do(lambda: queue.put_many([("K", n) for n in range(5)]))
    first = do(lambda: jobs.listing("waiting", "mail", count=2))
    assert first.names == jids[:2]
    second = do(lambda: jobs.listing("waiting", "mail", first.next, 3))
    assert second.names == jids[2:]
    assert do(lambda: jobs.listing("waiting", "mail", second.next, 3)).names == []
    assert do(lambda: jobs.listing("waiting", "mail", count=9, direction="down")).names == jids[::-1]
    assert do(lambda: jobs.listing("queues")).names == ["mail"]
