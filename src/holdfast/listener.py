"""Listening to channels of the store, for programs that want more than the events of tracked jobs."""

from holdfast.client.events.listening import AsyncListener, Listener, Message
from holdfast.client.events.subscriber import AsyncSubscriber, Subscriber

__all__ = ["AsyncListener", "AsyncSubscriber", "Listener", "Message", "Subscriber"]
