"""Listeners for channels of the store, for programs that need more than the events of tracked jobs."""

from holdfast.client.events import AsyncSubscriber, Subscriber
from holdfast.client.listener import AsyncListener, Listener, Message

__all__ = ["AsyncListener", "AsyncSubscriber", "Listener", "Message", "Subscriber"]
