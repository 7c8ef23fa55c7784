"""What holds things by their names, and cannot be gone through."""

from typing import ClassVar


class Named:
    """Names its things in brackets, `client.queues["mail"]`, and has one for whatever name; so it is no collection.

    Said to Python because it would go through `[0]`, `[1]`, … otherwise, for `for` and `in` alike.
    """

    __iter__: ClassVar[None] = None
    __contains__: ClassVar[None] = None
