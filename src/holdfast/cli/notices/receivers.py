"""The options of `holdfast notify` that name where notices are sent, and with which limit."""

from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

import click

from holdfast.cli.notices.delivery import Delivery, Limit, parse_limit
from holdfast.cli.notices.mail import PASSWORD, Mail, mail_server
from holdfast.cli.notices.sinks import Desktop, Lines, Sink
from holdfast.cli.notices.webhook import Chat, Webhook
from holdfast.client.signature import HEADER, check_secret, read_secret
from holdfast.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOR_PEOPLE: Final = Limit(30, 60.0)
_OPTIONS: Final = (
    click.option(
        "--webhook",
        "webhooks",
        multiple=True,
        help="URL to post each notice to as JSON; may be repeated [default: none].",
    ),
    click.option(
        "--secret-file",
        type=_FILE,
        help=f"File with a secret: posts to webhooks are signed with it, in the header {HEADER} [default: unsigned].",
    ),
    click.option(
        "--chat",
        "chats",
        multiple=True,
        help='URL of a chat that takes {"text": …}, such as Slack or Mattermost; may be repeated [default: none].',
    ),
    click.option(
        "--mail-to",
        "mail_to",
        multiple=True,
        help="Address to send mails to; may be repeated [default: none].",
    ),
    click.option("--mail-from", help="Address of the sender of mails; needed for --mail-to."),
    click.option(
        "--smtp",
        metavar="SERVER",
        help="Server for mails: HOST, HOST:PORT, smtp://USER@HOST:PORT (with STARTTLS, port 587), or smtps://USER@HOST (port 465).",
    ),
    click.option(
        "--smtp-password-file", type=_FILE, help=f"File with the password of USER [default: {PASSWORD}]."
    ),
    click.option(
        "--smtp-plain",
        is_flag=True,
        help="Send mails without encryption (port 25), such as to a server on this machine [default: off].",
    ),
    click.option(
        "--desktop", is_flag=True, help="Show notices on the desktop with notify-send [default: off]."
    ),
    click.option(
        "--stdout", is_flag=True, help="Print notices too [default: only if they are sent nowhere else]."
    ),
    click.option(
        "--limit",
        metavar="N/UNIT",
        help="Messages to each receiver, as N/s, N/min or N/h, or none: what is above is sent as a digest [default: 30/min; none for webhooks].",
    ),
)


class Receivers(NamedTuple):
    """Where notices are sent, by the options of the command line."""

    webhooks: Sequence[str]
    secret_file: Path | None
    chats: Sequence[str]
    mail_to: Sequence[str]
    mail_from: str | None
    smtp: str | None
    smtp_password_file: Path | None
    smtp_plain: bool
    desktop: bool
    stdout: bool
    limit: str | None

    def deliveries(self, as_json: bool) -> list[Callable[[], Delivery]]:
        """Return what starts a delivery for each receiver; standard output has no limit. Raises UsageError, OSError."""
        limit = None if self.limit is None else parse_limit(self.limit)
        for_people = _FOR_PEOPLE if self.limit is None else limit
        people: list[Sink] = [*map(Chat, self.chats), *self._mails(), *([Desktop()] if self.desktop else [])]
        pairs: list[tuple[Sink, Limit | None]] = [(sink, limit) for sink in self._webhooks()]
        pairs += [(sink, for_people) for sink in people]
        if self.stdout or as_json or not pairs:
            pairs.append((Lines(as_json), None))
        return [partial(Delivery, sink, limit) for sink, limit in pairs]

    def _webhooks(self) -> list[Sink]:
        if self.secret_file is None:
            return [Webhook(url) for url in self.webhooks]
        if not self.webhooks:
            raise UsageError("--secret-file signs what is posted to --webhook, which is not given")
        secret = read_secret(self.secret_file)
        check_secret(secret)
        return [Webhook(url, secret) for url in self.webhooks]

    def _mails(self) -> list[Sink]:
        others = (self.mail_from, self.smtp, self.smtp_password_file, self.smtp_plain or None)
        if not self.mail_to:
            if any(one is not None for one in others):
                raise UsageError("--smtp and --mail-from need --mail-to, the address to send mails to")
            return []
        if self.smtp is None or self.mail_from is None:
            raise UsageError("--mail-to needs --smtp, the server for mails, and --mail-from, their sender")
        server = mail_server(self.smtp, self.smtp_plain, self.smtp_password_file)
        return [Mail(server, self.mail_from, to) for to in dict.fromkeys(self.mail_to)]


def receiver_options(command: F) -> F:
    """Give a command the options of Receivers, passed on together as `receivers`."""

    @wraps(command)
    def with_receivers(*args: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in Receivers._fields}
        return command(*args, receivers=Receivers(**given), **options)

    for option in reversed(_OPTIONS):
        with_receivers = option(with_receivers)
    return cast("F", with_receivers)
