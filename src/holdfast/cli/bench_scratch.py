"""The namespace that a benchmark works in: bare commands, what the server says of itself, and removing all of it."""

from typing import Any

from holdfast.client.sync import Client
from holdfast.wire.exchange import final_error
from holdfast.wire.plans import ErrorReply, Plan
from holdfast.wire.repeat import Patience, patient


class Scratch:
    """One namespace of one store, which is the benchmark's own."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def ask(self, *call: Any) -> Any:
        """One bare command of the store."""
        return self.client.runner.run(self._asking(call))

    def _asking(self, call: tuple[Any, ...]) -> Plan[Any]:
        patience = Patience(self.client.settings.deadline, self.client.shard.clock)
        [reply] = yield from patient([call], patience)
        if isinstance(reply, ErrorReply):
            raise final_error(reply)
        return reply

    def info(self, section: str) -> dict[str, str]:
        """The facts of one section of INFO."""
        lines = self.ask("INFO", section).decode().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def server(self) -> str:
        """Name and version of the server."""
        facts = self.info("server")
        name = facts.get("server_name", "redis")
        return f"{name} {facts.get(f'{name}_version') or facts.get('redis_version', '')}"

    def cpu(self) -> float:
        """CPU seconds of the server's main thread, of all of it where the server does not tell them apart."""
        facts = self.info("cpu")
        user = facts.get("used_cpu_user_main_thread") or facts["used_cpu_user"]
        system = facts.get("used_cpu_sys_main_thread") or facts["used_cpu_sys"]
        return float(user) + float(system)

    def memory(self) -> int:
        """Bytes that the server's data takes."""
        return int(self.info("memory")["used_memory"])

    def clean(self) -> None:
        """Remove every key of the namespace."""
        cursor = b"0"
        while True:
            cursor, keys = self.ask("SCAN", cursor, "MATCH", self.client.root + "*", "COUNT", 1000)
            if keys:
                self.ask("UNLINK", *keys)
            if cursor == b"0":
                return
