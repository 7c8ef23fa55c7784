"""Who is connected to a server, besides its warden."""

import time

from holdfast.store import talk


class Visitors:
    """Tells how long nobody but the warden has been connected to a server."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self._line: talk.Line | None = None
        self._connections = -1
        self._last_seen = time.monotonic()

    def absent_for(self) -> float:
        """In seconds. A server that does not answer has somebody who keeps it busy."""
        try:
            if self._line is None:
                self._line = talk.Line(self._socket, timeout=2.0)
                self._connections = -1
            facts = self._line.facts("clients", "stats")
        except (OSError, talk.Refusal):
            self.close()
            self._last_seen = time.monotonic()
            return 0.0
        # The total also shows who came and went since we last looked.
        connections = int(facts["total_connections_received"])
        if int(facts["connected_clients"]) > 1 or connections != self._connections:
            self._last_seen = time.monotonic()
        self._connections = connections
        return time.monotonic() - self._last_seen

    def close(self) -> None:
        if self._line:
            self._line.close()
            self._line = None
