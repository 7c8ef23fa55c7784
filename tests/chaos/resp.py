"""As much of the store's wire format as a relay needs: where a value ends, and what a request is called."""


def value_end(buffer: bytes | bytearray, at: int = 0) -> int:
    """The index behind the value that starts at `at`, -1 if it is not all there."""
    values = 1
    while values:
        line = buffer.find(b"\r\n", at)
        if line < 0:
            return -1
        kind = buffer[at : at + 1]
        end = line + 2
        if kind in (b"*", b"~", b">"):
            values += max(int(buffer[at + 1 : line]), 0)
        elif kind == b"%":
            values += 2 * int(buffer[at + 1 : line])
        elif kind == b"$" and buffer[at + 1 : line] != b"-1":
            end += int(buffer[at + 1 : line]) + 2
            if len(buffer) < end:
                return -1
        at = end
        values -= 1
    return at


def words_of(request: bytes, most: int = 2) -> list[str]:
    """The first words of a whole request."""
    line = request.find(b"\r\n")
    count, at = min(int(request[1:line]), most), line + 2
    words: list[str] = []
    for _ in range(count):
        line = request.find(b"\r\n", at)
        size = int(request[at + 1 : line])
        words.append(request[line + 2 : line + 2 + size].decode("utf-8", "replace"))
        at = line + 4 + size
    return words


def name_of(request: bytes) -> str:
    """What the request asks for: `hf1_pop` for a function call, else the command."""
    words = words_of(request)
    command = words[0].upper() if words else ""
    return words[1] if command in ("FCALL", "FCALL_RO") and len(words) > 1 else command
