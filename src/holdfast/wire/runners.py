"""Runners pass the steps of a plan to a link, and the replies back to the plan; one blocks, one is awaited.

What workers use of a client (an async client: awaited where it sends):

    client.root                      the namespace's root, `hf:{<namespace>}:`
    client.settings                  the frozen Settings
    client.shard                     `.info` (CoreInfo: heartbeat, grace) once met; `.bell_key(queue)`,
                                     `.result_channel(jid)`, `.worker_channel(worker)`
    client.run(command)              one command; async: gathered with the other calls of this loop iteration
    client.run_all([command, …])     one pipeline; the result or the HoldfastError of each, in order
    client.runner.run(plan)          any plan; `exchange(client.shard, command)` is the plan of one command
    client.link.wake_up()            a WakeUp: `wait(keys, timeout) -> key | None`; sync also `send(keys, timeout)`,
                                     `fileno()` for a selector, `receive()`, and `interrupt()`
    client.link.listener()           a Listener: `subscribe(*channels)`, `receive(timeout) -> (channel, bytes) | None`

A wake-up or listener is a connection of its own. They raise ConnectionLost and connect again at the next use. Links,
request ids and jids may be used after a fork: a child opens its own connections and makes new ids.
"""

from typing import Protocol, TypeVar, cast

from holdfast.wire.plans import LinkError, Plan, Replies, Step

R = TypeVar("R")


class SyncSender(Protocol):
    """The part of a link that a Runner uses."""

    def send(self, step: Step) -> Replies: ...


class AsyncSender(Protocol):
    """The part of a link that an AsyncRunner uses."""

    async def send(self, step: Step) -> Replies: ...


class Runner:
    """Run plans in blocking code."""

    def __init__(self, link: SyncSender) -> None:
        self.link = link

    def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and return its result."""
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
    """Run plans on an event loop."""

    def __init__(self, link: AsyncSender) -> None:
        self.link = link

    async def run(self, plan: Plan[R]) -> R:
        """Run a plan to its end and return its result."""
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
