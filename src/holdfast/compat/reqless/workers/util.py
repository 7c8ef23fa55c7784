"""Functions of workers for programs that use them: sandboxes, process titles, and dividing jobs among children."""

from holdfast.worker.performing.sandboxes import clean, create_sandbox
from holdfast.worker.process_state import get_title, set_title
from holdfast.worker.supervisor.presence import divide

__all__ = ["clean", "create_sandbox", "divide", "get_title", "set_title"]
