"""The reference model behind request numbers: a numbered call that comes again is answered as before."""

from typing import Any

from model_putting import No
from model_scans import ScannedModel


class NumberedModel(ScannedModel):
    """Verbs that carry a line and a number go through `once` and `pop_once`."""

    def __init__(self, now: int) -> None:
        super().__init__(now)
        self.lines: dict[str, tuple[int, Any]] = {}

    def kept(self, line: str, number: int) -> tuple[bool, Any]:
        """Whether this number was answered before, and what was kept of the answer."""
        last, answer = self.lines.get(line, (-1, None))
        if number < last:
            raise No("HF_STALE_NUMBER")
        return number == last, answer

    def once(self, line: str, number: int, verb: str, *args: Any) -> Any:
        known, answer = self.kept(line, number)
        if not known:
            answer = getattr(self, verb)(*args)
            self.lines[line] = number, answer
        return answer

    def pop_once(self, line: str, number: int, worker: str, *args: Any) -> list[Any]:
        known, grants = self.kept(line, number)
        if known:
            held = [self.held(worker, jid, token) for jid, token in grants]
            return [self.row(job) for job in held if job is not None]
        rows = self.pop(worker, *args)
        if rows or args[0] == 0:
            self.lines[line] = number, [(row[0], row[4]) for row in rows]
        return rows

    def complete_pop_once(
        self,
        line: str,
        number: int,
        worker: str,
        n: int,
        lease: int,
        queues: tuple[str, ...],
        done: tuple[Any, ...],
    ) -> Any:
        self.kept(line, number)
        _, codes = self.complete(worker, done)
        return codes, self.pop_once(line, number, worker, n, lease, queues)
