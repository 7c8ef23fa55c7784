"""Seeded mistakes: lines of the core as a wrong core would have them.

One that no longer fits its file fails its test, so that none of them can rot unseen.
"""

import pkgutil
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from holdfast import core
from holdfast.core import sources


@dataclass(frozen=True)
class WrongLine:
    name: str
    module: str
    right: str
    wrong: str

    def fits(self) -> bool:
        return self.right in self.path_in(sources.LUA).read_text()

    def path_in(self, folder: Path) -> Path:
        return folder / (self.module.replace(".", "/") + ".lua")

    @contextmanager
    def made(self, folder: Path) -> Iterator[None]:
        """The core as it would be, had this mistake been made."""
        usual = sources.LUA
        shutil.copytree(usual, folder, dirs_exist_ok=True)
        path = self.path_in(folder)
        text = path.read_text()
        assert self.right in text, f"no longer in {self.module}: {self.right}"
        path.write_text(text.replace(self.right, self.wrong))
        try:
            _read_from(folder)
            yield
        finally:
            _read_from(usual)


def _read_from(folder: Path) -> None:
    """Whatever the assembler keeps is forgotten."""
    sources.LUA = folder
    for found in pkgutil.walk_packages(core.__path__, "holdfast.core."):
        for value in vars(import_module(found.name)).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


WRONG_LINES = [
    WrongLine("a failure is told to its follower first", "nouns.job.ending",
              "  if ctx.events.failed then ctx.events.failed(ctx, jid, group, message, worker) end\n"
              '  if ctx.events.tracked then ctx.events.tracked(ctx, "failed", jid, r) end\n',
              '  if ctx.events.tracked then ctx.events.tracked(ctx, "failed", jid, r) end\n'
              "  if ctx.events.failed then ctx.events.failed(ctx, jid, group, message, worker) end\n"),
    WrongLine("the history keeps one line fewer by default", "nouns.setting.config",
              '["max-job-history"] = "100"', '["max-job-history"] = "99"'),
    WrongLine("a message has its keys in another order", "nouns.event.event_log",
              """',"event":"put","queue":' .. encode(queue) .. "}")""",
              """',"queue":' .. encode(queue) .. ',"event":"put"}')"""),
    WrongLine("the former holder is not told of a lost lock", "nouns.event.event_log",
              "  call(\"PUBLISH\", ctx.keys.worker_channel .. worker, text)\n  log(ctx, text)", "  log(ctx, text)"),
    WrongLine("a put has four retries by default", "verbs.put_one", "local retries = target.retries or RETRIES",
              "local retries = target.retries or RETRIES - 1"),
    WrongLine("a lost lock is not counted", "nouns.lease.loss", '  stats.count(ctx, queue, "retries")\n', ""),
    WrongLine("a lost lock has no grace", "nouns.lease.loss", "NOTICED) and grace > 0 then", "NOTICED) and grace > 10000 then"),
    WrongLine("a completed job keeps its failure", "nouns.job.ending", "  failure.clear(ctx, jid, r)\n", ""),
    WrongLine("a release lets one too many go", "nouns.throttle.throttle_reqless", '  return most - call("ZCARD", ctx.keys.holders .. id)',
              '  return most + 1 - call("ZCARD", ctx.keys.holders .. id)'),
]  # fmt: skip
