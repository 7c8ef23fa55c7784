"""The reference model: what is set for queues and for the whole root."""

from model import Model
from model_parts import Queue
from model_putting import No


class SettingModel(Model):
    def pause(self, on: bool, length: int, queues: tuple[str, ...]) -> int:
        """`length` in ms, 0 until somebody ends it."""
        changed = 0
        for name in queues:
            line = self.hidden_queue(name)
            changed += line.is_paused(self.now) != on
            line.paused, line.paused_until = on, self.now + length if on and length else 0
        return changed

    def queue_forget(self, queues: tuple[str, ...]) -> int:
        """Queues without jobs only; what is forgotten keeps its heartbeat, which is configuration."""
        if any(self.is_used(name) for name in queues):
            raise No("HF_QUEUE_NOT_EMPTY")
        known = 0
        for name in dict.fromkeys(queues):
            known += self.first_used.pop(name, None) is not None
            self.queues[name] = Queue(name, heartbeat=self.hidden_queue(name).heartbeat)
            self.days = {key: day for key, day in self.days.items() if key[0] != name}
        return known

    def is_used(self, name: str) -> bool:
        return any(job.queue == name and job.state != "complete" for job in self.jobs.values())

    def config_set(self, key: str, value: str) -> int:
        self.settings[key] = value
        if key.endswith("-heartbeat"):
            self.hidden_queue(key.removesuffix("-heartbeat")).heartbeat = int(value) * 1000
        return 1

    def sweep(self) -> int:
        self.drop_marks()
        dropped = self.sweep_age()
        return dropped + self.forget(max(len(self.completed) - max(self.keep_count, 0), 0))
