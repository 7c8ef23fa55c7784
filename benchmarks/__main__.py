"""`python -m benchmarks [NAME…] [--quick]`: measures, prints a table of each, and writes `benchmarks/results.md`."""

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.report import Row, as_text, machine, page, progress
from holdfast.testing.store import ScratchStore, find_engine

NAMES = (
    "core_cpu",
    "prices",
    "features",
    "topics",
    "push",
    "storms",
    "reads",
    "memory",
    "imports",
    "client",
    "worker",
    "workers",
    "many_queues",
    "console",
    "web",
    "gateway",
    "redelivery",
    "wakeup",
    "fsync",
    "reqless_door",
)
RESULTS = Path(__file__).with_name("results.md")


def engines() -> str:
    """The servers that are measured, with their versions."""
    found = []
    for engine in ("valkey", "redis"):
        if find_engine(engine) is not None:
            with ScratchStore(engine) as store:
                said = dict(
                    line.split(":", 1) for line in store.ask("INFO", "memory").splitlines() if ":" in line
                )
                found.append(f"{engine} {store.version} ({said['mem_allocator'].strip()})")
    return "servers: " + ", ".join(found)


def measure(name: str, quick: bool) -> tuple[str, str, list[Row]]:
    """One benchmark: its name, the question, and its rows."""
    module = importlib.import_module(f"benchmarks.{name}")
    say = progress(name)
    begun = time.monotonic()
    rows: list[Row] = module.run(quick, say)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    question = " ".join(str(module.__doc__).split())
    print(f"\n{name} ({time.monotonic() - begun:.0f} s): {question}\n{as_text(rows)}", flush=True)
    return name, question, rows


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which ones [default: all]: {', '.join(NAMES)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a first look in under a minute; writes no results"
    )
    asked = parser.parse_args(words)
    unknown = [name for name in asked.names if name not in NAMES]
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]}; there are {', '.join(NAMES)}")
    head = [*machine(), engines()]
    print("\n".join(head))
    parts = [measure(name, asked.quick) for name in asked.names or NAMES]
    missed = [row for _, _, rows in parts for row in rows if row.met is False]
    print(
        f"\n{len(missed)} figures missed"
        + "".join(f"\n  {row.what}: {row.reached}, {row.asked}" for row in missed)
    )
    if not asked.names and not asked.quick:
        RESULTS.write_text(page(head, parts))
        print(f"written to {RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
