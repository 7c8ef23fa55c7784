"""Programs of the stories about operations: one runs an operation, one works jobs off. They are killed at any moment."""

import sys

from holdfast import Client
from holdfast.console.handles import Console
from holdfast.console.operations.spec import Spec
from holdfast.errors import HoldfastError, WrongState


def run(console: Console, arg: str) -> None:
    """Start an operation (`action filter value rate`), or take over one by its id once that is possible."""
    words = arg.split("|")
    if len(words) > 1:
        action, filter, value, rate = words
        spec = Spec(action=action, filter=filter, value=value, rate=float(rate))  # type: ignore[arg-type]
        console.run_operation(console.start_operation(spec))
        return
    console.run_operation(console.resume_operation(arg))


def undo(console: Console, arg: str) -> None:
    console.run_operation(console.undo_operation(arg))


def work(client: Client) -> None:
    """Complete jobs until killed."""
    while True:
        for job in client.queues["q"].pop(20):
            job.complete()


def main() -> None:
    what, url, namespace, arg = sys.argv[1:]
    with Client(url, namespace=namespace) as client:
        console = Console(client, "ann")
        try:
            if what == "work":
                work(client)
            elif what == "undo":
                undo(console, arg)
            else:
                run(console, arg)
        except (HoldfastError, WrongState) as error:
            print(error, flush=True)
            sys.exit(3)
    sys.exit(0)


if __name__ == "__main__":
    main()
