"""What a job may have spoilt in the process it was performed in, and what is done about it."""

import os
from typing import Final

_STANDARD: Final = (0, 1, 2)


def keep_standard() -> bool:
    """Fill standard input, output and error where a job closed them. Answers whether it did.

    The next connection to the store would be opened under their numbers, and logs and prints be written into it.
    """
    closed = False
    for descriptor in _STANDARD:
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free number is given, and those before it are taken.
            os.open(os.devnull, os.O_RDWR)
            closed = True
    return closed
