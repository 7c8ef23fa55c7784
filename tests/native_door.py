"""The native door without a command in between: words in, raw replies out, for stories about the core."""

from collections.abc import Sequence
from typing import Any

from holdfast.client.sync import Client
from holdfast.models import JobFacts
from holdfast.wire.plans import ErrorReply, Step

Word = str | bytes | int


class StoreMessage(Exception):
    """What the core refused, as its sentence."""

    @property
    def code(self) -> str:
        return str(self).partition(" ")[0]


class Door:
    """Calls functions of the core on one root. Text in replies stays bytes, but where a method says otherwise."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.root = client.root

    def ask(self, *words: Word) -> Any:
        """One plain command of the store."""
        [reply] = self._client.link.send(Step([words]))
        if isinstance(reply, ErrorReply):
            raise StoreMessage(reply.text)
        return reply

    def __call__(self, verb: str, *words: Word) -> Any:
        """Call a verb. Raises Said for a refusal."""
        return self.ask("FCALL", f"hf1_{verb}", 1, self.root, *words)

    def look(self, verb: str, *words: Word) -> Any:
        """Call a verb that must not write."""
        return self.ask("FCALL_RO", f"hf1_{verb}", 1, self.root, *words)

    def put(
        self, queue: str, *jids: str, mode: str = "new", priority: int = 0, retries: int = 5, delay: int = 0
    ) -> Any:
        """Put jobs of klass `k` whose data are `{}`."""
        words = [word for jid in jids for word in (jid, "k", "{}")]
        return self("put", "", 0, mode, queue, priority, retries, delay, *words)

    def put_waiting(
        self, jid: str, *parents: str, queue: str = "q", mode: str = "new", delay: int = 0, retries: int = 5
    ) -> Any:
        """Put a job that waits for `parents`."""
        options = [word for parent in parents for word in ("depends", parent)]
        words = ("", 0, mode, queue, 0, retries, delay, jid, "k", "{}", len(parents), *options)
        return self("put_x", *words)

    def pop(self, worker: str, *queues: str, n: int = 1, lease: int = 0, mode: int = 0) -> list[JobFacts]:
        """Pop without a request number."""
        pairs = [word for queue in queues for word in (queue, mode)]
        return rows(self("pop", worker, "", 0, n, lease, *pairs), worker)

    def job(self, jid: str) -> JobFacts | None:
        [row] = self.look("job_get", jid)
        return JobFacts.from_job_row(row) if row else None

    def state(self, jid: str) -> str:
        job = self.job(jid)
        return job.state if job else "absent"

    def key(self, tail: str) -> str:
        return self.root + tail

    def names(self) -> set[str]:
        """The keys of this root, without the root's own name."""
        found: set[str] = set()
        cursor: Any = b"0"
        while True:
            cursor, page = self.ask(
                "SCAN", cursor, "MATCH", self.root.replace("{", "[{]") + "*", "COUNT", 1000
            )
            found |= {name.decode().removeprefix(self.root) for name in page}
            if cursor == b"0":
                return found

    def dump(self) -> dict[str, bytes]:
        """The whole of this root: every key and what it holds."""
        return {name: self.ask("DUMP", self.root + name) for name in sorted(self.names())}


def rows(reply: Sequence[Any], worker: str = "w", at: int = 0) -> list[JobFacts]:
    """The jobs of a pop's reply, whose due time stands at `at`."""
    return [JobFacts.from_row(reply[i : i + 4], worker) for i in range(at + 1, len(reply), 4)]
