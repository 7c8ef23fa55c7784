"""What workers are made of, for programs that use it: sandboxes, titles, and dividing jobs among children."""

from holdfast.work.parent.resuming import divide
from holdfast.work.performing.directories import clean
from holdfast.work.performing.sandboxes import create_sandbox
from holdfast.work.performing.titles import get_title, set_title

__all__ = ["clean", "create_sandbox", "divide", "get_title", "set_title"]
