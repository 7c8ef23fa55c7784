"""The title of this process, as `ps` shows it."""

from setproctitle import getproctitle, setproctitle

__all__ = ["getproctitle", "setproctitle"]
