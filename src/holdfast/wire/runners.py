"""Runners pass the steps of a plan to a link and its replies back; the two differ only in who waits.

What workers use of a client, in both colours (async: awaited where it talks):

    client.root                      the namespace's root, `hf:{<namespace>}:`
    client.settings                  the frozen Settings
    client.shard                     `.info` (CoreInfo: heartbeat, grace) once met; `.bell_key(queue)`,
                                     `.result_channel(jid)`, `.worker_channel(worker)`
    client.run(command)              one command; async: gathered with what else leaves in this loop turn
    client.run_all([command, …])     one pipeline; answers or the HoldfastError of each, in order
    client.runner.run(plan)          any plan; `exchange(client.shard, command)` is the plan of one command
    client.link.wake_up()            a WakeUp: `wait(keys, timeout) -> key | None`; sync also `send(keys, timeout)`,
                                     `fileno()` for a selector, `receive()`, and `interrupt()`
    client.link.listener()           a Listener: `subscribe(*channels)`, `receive(timeout) -> (channel, bytes) | None`

A wake-up or listener is one connection of its own. They raise ConnectionLost and open anew at the next use. Links,
lines and jids may be used after a fork: a child opens its own connections and draws new names.
"""

from typing import Protocol, TypeVar, cast

from holdfast.wire.plans import LinkError, Plan, Replies, Step

R = TypeVar("R")


class SyncSender(Protocol):
    """What a Runner needs of a link."""

    def send(self, step: Step) -> Replies: ...


class AsyncSender(Protocol):
    """What an AsyncRunner needs of a link."""

    async def send(self, step: Step) -> Replies: ...


class Runner:
    """Runs plans, blocking."""

    def __init__(self, link: SyncSender) -> None:
        self.link = link

    def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and answer what it returns."""
        send = self.link.send
        try:
            step = next(plan)
            while True:
                try:
                    replies = send(step)
                except LinkError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(replies)
        except StopIteration as done:
            return cast("R", done.value)


class AsyncRunner:
    """Runs plans on an event loop."""

    def __init__(self, link: AsyncSender) -> None:
        self.link = link

    async def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and answer what it returns."""
        send = self.link.send
        try:
            step = next(plan)
            while True:
                try:
                    replies = await send(step)
                except LinkError as error:
                    step = plan.throw(error)
                else:
                    step = plan.send(replies)
        except StopIteration as done:
            return cast("R", done.value)
