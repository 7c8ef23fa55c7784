"""Jobs that mean harm, or come from somebody careless: 800 of them, each with how it ends.

They are put by raw calls of the native door, because our own client refuses most of what is in them. The code that they
name is in `hostile_code`.
"""

from typing import NamedTuple

HOWS = (
    "key", "exit", "interrupt", "generator", "cancelled", "deep", "memory", "stop", "astop", "odd", "name", "value",
    "unicode", "os", "usage", "codec", "none",
)  # fmt: skip
"""What HOSTILE knows to raise."""

MODULES = {f"broken_{how}": f"import hostile\nhostile.throw({how!r})\n" for how in HOWS} | {
    "broken_deep_down": "import hostile\nraise hostile.ODD['text raises exit']()\n",
    "broken_crowd": "import hostile\nraise hostile.ODD['a crowd']()\n",
    "broken_syntax": "def :\n",
    "broken_bytes": "x = '\\xff'\n\0",
    "broken_import": "import broken_syntax\n",
    "broken_name": "class X: perform = nobody\n",
}
"""Modules that jobs name, and that cannot be imported."""

BAD = "ArgumentError|InvalidData"


class Job(NamedTuple):
    """A job, and the groups in which it may fail, without the queue's name: "A|B"; "" if it is complete."""

    name: str
    klass: str
    data: bytes
    groups: str = ""
    essential: bool = False


def deep(depth: int, inner: bytes = b"") -> bytes:
    return b"[" * depth + inner + b"]" * depth


VALUES = {
    "a byte": b'"\xff"', "half a letter": b'"\xc3"', "a surrogate in bytes": b'"\xed\xa0\x80"', "overlong": b'"\xc0\xaf"',
    "a surrogate": b'"\\ud800"', "two the wrong way": b'"\\udc00\\ud800"', "an odd escape": b'"\\x"', "a zero byte": b'"\0"',
    "a zero": b'"\\u0000"', "a tab": b'"\t"', "1e999": b"1e999", "-1e999": b"-1e999", "5,000 digits": b"9" * 5000,
    "5,000 decimals": b"0." + b"9" * 5000, "minus": b"-", "01": b"01", "hexadecimal": b"0x10", "NaN": b"NaN", "Infinity": b"Infinity", "beyond 64 bits": b"18446744073709551616",
    "1,000 deep": deep(1000), "100,000 deep": deep(100_000), "1,000 objects deep": b'{"a":' * 1000 + b"1" + b"}" * 1000,
    "a list": b"[1]", "a list of lists": b'[["a"],[1e999]]', "an object": b"{}", "an object of itself": b'{"args":[]}', "null": b"null", "true": b"true", "text": b'"x"', "a number in text": b'"1"',
    "long text": b'"' + b"x" * 900_000 + b'"', "a long key": b'{"' + b"k" * 500_000 + b'":1}', "10,000 numbers": b"[" + b"1," * 9999 + b"1]", "a key twice": b'{"a":1,"a":"x"}', "a key of a byte": b'{"\xff":1}',
    "no end": b'"x', "two": b"1 2", "nothing": b"", "a comma": b",",
}  # fmt: skip
"""JSON of one argument, much of which is none."""

WHOLES = {
    "nothing": b"", "a byte": b"\xff", "blanks": b"  ", "a list": b"[1]", "text": b'"x"', "null": b"null", "a number": b"1e999", "no end": b'{"args":[1', "a mark before": b'\xef\xbb\xbf{"args":[1]}',
    "UTF-16": '{"args":[1]}'.encode("utf-16"), "MessagePack": b"\x81\xa4args\x91\x01", "pickle": b"\x80\x04K\x05.", "args twice": b'{"args":["x"],"args":[[]]}', "args an object": b'{"args":{}}', "kwargs a list": b'{"kwargs":[]}',
    "a name of a byte": b'{"kwargs":{"\xff":1}}', "a name twice": b'{"kwargs":{"a":1,"a":[]}}', "a strange name": b'{"kwargs":{"__class__":1}}', "more behind": b'{"args":[1]}x', "zeros": b"\0" * 9, "10,000 args": b'{"args":[' + b"1," * 9999 + b"1]}",
    "deep": deep(100_000), "quotes": b'"' * 9, "NUL behind": b'{"args":[]}\0', "1 MB of blanks": b" " * (1 << 20),
}  # fmt: skip
"""Whole data of a job."""

EASY = ("of_any", "of_int", "of_many", "of_text", "of_lists")
ODDS = (
    *(f"text raises {how}" for how in HOWS), *(f"notes raise {how}" for how in HOWS),
    *(f"{name} raises" for name in ("__class__", "__cause__", "__context__", "__traceback__", "__suppress_context__", "__dict__", "args", "code", "name", "obj")),
    "endless __cause__", "endless __context__", "circle of __cause__", "circle of __context__", "chain of __cause__", "chain of __context__", "circle of itself", "text is no text",
    "text is odd", "text of 100 MB", "text of 10 M words", "text of 1 M lines", "text of faces", "text of half characters", "text of controls", "text of a huge number", "nameless", "notes are a number",
    "notes are odd", "notes are text", "notes hold what is odd", "notes of 50 MB", "100,000 notes", "a crowd", "a deep crowd", "a wide crowd", "a base crowd", "no name", "a long name",
    "a name of two lines", "an odd module", "a module of half characters", "an odd qualname", "an exit with what is odd", "an exit", "an odd one", "a generator's", "an iterator's", "an async iterator's",
    "a cancellation", "from a file that has no end", "from a directory", "from nowhere", "from a loader that raises", "200 frames", "an import", "a name that is near", "an attribute of what is odd",
    "syntax of what is odd", "syntax of 50 MB", "syntax beyond", "does nothing", "text that logs",
)  # fmt: skip
RESULTS = (
    *(f"dump raises {how}" for how in HOWS), "an object", "not a number", "nested deep", "itself", "2 MB", "half a character", "bytes", "a generator", "what is odd",
    "attributes that raise", "odd text", "a huge number", "odd keys", "a class", "of that class", "a function", "a retry after what is odd", "a retry for ever", "a group of two lines",
    "a group of what is odd", "an odd message", "a message of 100 MB", "moved nowhere", "moved to what is odd", "moved late",
)  # fmt: skip
KLASSES = (
    "a", ".", "..", "hostile", "hostile.", ".hostile", "hostile..Ignores", "hostile.Missing", "hostile.CONSTANT", "hostile.CONSTANT.real", "hostile.Ignores.perform", "hostile.Ignores.__class__", "hostile.Everything",
    "hostile.__builtins__", "hostile.os.system", "os.system", "builtins.exec", "sys.exit", "hostile.Model.model_validate", "hostile.app", "hostile.log", "hostile Ignores", "hostile.ignores", "hostile:Ignores",
    "x" * 200, "x." * 99, "日本.語", "\U0001f600", "%s%d%n", "{0.__class__}", "../../etc/passwd", "/bin/sh", "-", " ", "a'b\"c`$(x)", "__main__.x", "hostile.RAISED", "hostile.of_int.registered.function",
    *(f"hostile.attribute_{how}.X" for how in ("key", "exit", "interrupt", "odd", "cancelled")), *(f"{module}.X" for module in MODULES),
)  # fmt: skip
"""Names of what is not there, is nobody's business, or cannot be had."""


def made() -> list[Job]:
    """All of them, the same ones each time."""
    jobs = [
        Job(
            f"{function}({how})",
            f"hostile.{function}",
            b'{"args":[%s]}' % value,
            f"|{BAD}",
            how == "1,000 deep",
        )
        for how, value in VALUES.items()
        for function in EASY
    ]
    jobs += [Job(f"of_nothing: {how}", "hostile.of_nothing", data, f"|{BAD}") for how, data in WHOLES.items()]
    jobs += [Job(f"of_any: {how}", "hostile.of_any", data, f"|{BAD}") for how, data in WHOLES.items()]
    for how in HOWS:
        of_how = b'{"args":[{"how":"%s"}]}' % how.encode()
        jobs += [
            Job(f"{kind}({how})", f"hostile.{kind}", of_how, BAD, essential=kind == "of_model")
            for kind in ("of_model", "of_late", "of_point", "of_shape")
        ]
        word = b'{"args":["%s"]}' % how.encode()
        jobs += [Job(f"{kind}({how})", f"hostile.{kind}", word, BAD) for kind in ("of_way", "of_colour")]
    for klass in ("Ignores", "Settles", "Writes"):
        jobs += [Job(f"{klass}: {how}", f"hostile.{klass}", data) for how, data in WHOLES.items()]
    for how, data in WHOLES.items():
        jobs.append(Job(f"ReadsText: {how}", "hostile.ReadsText", data, "|CodecError", how == "a byte"))
        jobs.append(Job(f"ReadsItem: {how}", "hostile.ReadsItem", data, "CodecError|UsageError|KeyError"))
    for number, how in enumerate(ODDS):
        data = b'{"args":["%s"]}' % how.encode()
        raiser = ("raises", "araises", "raises")[number % 3]
        jobs.append(Job(f"{raiser}({how})", f"hostile.{raiser}", data, "*", number % 4 == 1))
        jobs.append(Job(f"Throws({how})", "hostile.Throws", b'{"how":"%s"}' % how.encode(), "*"))
        if how.startswith(("text", "notes")) and "interrupt" not in how:  # that is one, and no failure
            jobs.append(Job(f"logs({how})", "hostile.logs", data, "|*"))
    for number, how in enumerate(RESULTS):
        data, returner = b'{"args":["%s"]}' % how.encode(), ("returns", "areturns")[number % 2]
        jobs.append(Job(f"{returner}({how})", f"hostile.{returner}", data, "|*", number % 6 == 1))
    for number, klass in enumerate(KLASSES):
        jobs.append(Job(f"klass {klass}", klass, b"{}", "*", number % 8 == 0))
    return jobs
