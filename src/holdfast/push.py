"""Deliver the messages of topics to web hooks from a program; `holdfast topics push` does it from a shell."""

from holdfast.client.topics.push import Push, PushCounts, Webhook

__all__ = ["Push", "PushCounts", "Webhook"]
