"""Make text from outside safe to show: it cannot move the cursor, change colours, or look like a log line of ours."""

import re
from typing import Final

_LINES: Final = "\n\t"


def printable(text: str, keep: str = _LINES) -> str:
    """Return `text` with "?" for each character that is not printable and not in `keep` (line ends and tabs)."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else "?" for letter in text)


def one_line(text: str) -> str:
    """Return `text` on one line, runs of white space as one blank, otherwise like `printable`."""
    return printable(" ".join(text.split()), keep="")


def indented(text: str) -> str:
    """Return `printable(text)` with all lines but the first indented, so that none looks like a separate log line."""
    return printable(text).replace("\n", "\n    ")


def printable_json(text: str) -> str:
    """Return a JSON text with each character that is not printable escaped; its value stays the same."""
    if text.isprintable():
        return text
    return re.sub(r"[^\n -~]", _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    if letter.isprintable():
        return letter
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
