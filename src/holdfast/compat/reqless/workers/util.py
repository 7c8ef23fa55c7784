"""Functions of workers for programs that use them: sandboxes, process titles, and dividing jobs among children."""

from holdfast.work.parent.presence import divide
from holdfast.work.performing.sandboxes import clean, create_sandbox
from holdfast.work.process_state import get_title, set_title

__all__ = ["clean", "create_sandbox", "divide", "get_title", "set_title"]
