"""`holdfast acl`: print the rules for a user of the store."""

import sys
from typing import Final

import click

from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.cli.place import namespace_option
from holdfast.console.access import ROLES, command_of, rules_of

_LONGEST: Final = 4096
_ROLES: Final = "\b\n" + "".join(f"{name:<9} {role.purpose}\n" for name, role in ROLES.items())


@click.command(
    help=f"""Print the command that gives a user of the store the rights of ROLE in a namespace.

{_ROLES}
Run the output as an administrator of the store: holdfast acl worker | redis-cli. The
output replaces the rights that the user had; this command itself sends nothing to the store. Without --password-stdin
the passwords of the user are kept; a new user has none, and cannot log in.

\b
Examples:
  holdfast acl viewer --namespace shop | redis-cli
  printf %s "$PASSWORD" | holdfast acl worker --password-stdin | redis-cli
"""
)
@click.argument("role", type=click.Choice(list(ROLES)))
@click.option("--user", default="", help="Name of the user [default: the name of the role].")
@click.option(
    "--password-stdin",
    "reads_password",
    is_flag=True,
    help="Read the password of the user from standard input; only its SHA-256 is printed [default: keep passwords].",
)
@namespace_option
@json_option
def acl(role: str, user: str, reads_password: bool, namespace: str, as_json: bool) -> None:
    user = user or role
    rules = rules_of(role, namespace, _password() if reads_password else None)
    command = command_of(user, rules)
    if as_json:
        print_json({"role": role, "user": user, "namespace": namespace, "rules": rules, "command": command})
    else:
        echo_text(command)


def _password() -> str:
    """Return the first line of standard input. Raises UsageError if it is too long."""
    line = sys.stdin.buffer.readline(_LONGEST + 1)
    if len(line) > _LONGEST:
        raise click.UsageError(f"the password is longer than {_LONGEST} bytes")
    return line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")
