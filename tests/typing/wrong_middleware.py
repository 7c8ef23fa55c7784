"""What type checkers must find wrong about job classes and their middleware: each line marked so, and no other."""

import holdfast
from holdfast.middleware import RequeueExceptions, RetryExceptions, SupportsMiddleware, Timeout


class Fetch(RetryExceptions, RequeueExceptions, SupportsMiddleware):
    @staticmethod
    @holdfast.retry(KeyError)
    def process(job: holdfast.Job) -> str:
        return "done"


Fetch.retry_on("ConnectionError")  # wrong: a name where an exception belongs
Fetch.retry_on(KeyError, delay="soon")  # wrong: no seconds
Fetch.retry_on(KeyError, after=3)  # wrong: an option that does not exist
Fetch.requeue_on(KeyError, delay_range=(1, 2))  # wrong: one of two required options
Fetch.requeue_on(KeyError, delay_range=5, max_attempts=3)  # wrong: no range
Timeout("60")  # wrong: no seconds
holdfast.retry(KeyboardInterrupt)  # wrong: what is no error is never caught


def by_hand(job: holdfast.Job) -> None:
    Fetch.process(7)  # wrong: a number where the job belongs
    length: int = Fetch.process(job)  # wrong: it returns text
    print(length)
