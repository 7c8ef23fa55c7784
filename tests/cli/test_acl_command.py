"""`holdfast acl`, through the command itself; tests/store/test_access_rules.py applies what it prints to real stores."""

import json
import subprocess
import sys
from hashlib import sha256

import pytest

from command_line import holdfast
from holdfast.commands import COMMANDS
from holdfast.console.access import ROLES
from holdfast.store import resp
from holdfast.testing.store import Engine, ScratchStore, find_engine


def piped(text: bytes, *words: str) -> "subprocess.CompletedProcess[bytes]":
    command = [sys.executable, "-m", "holdfast.cli.main", "acl", *words]
    return subprocess.run(command, input=text, capture_output=True, timeout=60, check=False)


@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
def test_the_rules_are_one_command_that_gives_no_access_to_other_namespaces(role: str) -> None:
    printed = holdfast("acl", role, "--namespace", "shop", "--user", "mail.7")
    words = printed.stdout.split()
    assert (printed.returncode, printed.stderr, printed.stdout.count("\n")) == (0, "", 1)
    assert words[:3] == ["ACL", "SETUSER", "mail.7"]
    assert [word for word in words if word[0] in "~&%"] == ["~hf:{shop}:*", "&hf:{shop}:*"]
    assert not {"nopass", "+@all", "allkeys", "allchannels"} & set(words)
    assert json.loads(holdfast("acl", role, "--namespace", "shop", "--json").stdout)["rules"] == words[3:]


@pytest.mark.full
@pytest.mark.parametrize("role", ROLES)
def test_the_functions_of_a_role_exist(role: str) -> None:
    assert set(ROLES[role].functions or ()) <= set(COMMANDS)


def test_a_password_is_read_from_standard_input_and_printed_only_as_a_digest() -> None:
    printed = piped("pässword one\nmore\n".encode(), "worker", "--password-stdin")
    digest = sha256("pässword one".encode()).hexdigest()
    assert (printed.returncode, printed.stderr) == (0, b"")
    assert f" resetpass #{digest} ".encode() in printed.stdout
    assert b"one" not in printed.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "text", "why"),
    [
        (("--password-stdin",), b"\n", "the password is empty"),
        (("--password-stdin",), b"x" * 5000, "longer than 4096 bytes"),
        (("--namespace", "a*b"), b"", "treat as patterns"),
        (("--namespace", 'a"b'), b"", "quotes"),
        (("--namespace", "a b"), b"", "must be one word"),
        (("--user", "a b"), b"", "user 'a b' must be letters"),
        (("--user", "a\x1b]0;b"), b"", "user"),
    ],
)
def test_what_a_rule_cannot_hold_is_refused_with_a_sentence(
    words: tuple[str, ...], text: bytes, why: str
) -> None:
    refused = piped(text, "viewer", *words)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert why in refused.stderr.decode()
    assert b"\x1b" not in refused.stderr


def test_an_unknown_role_is_refused_with_those_that_there_are() -> None:
    refused = holdfast("acl", "root")
    assert refused.returncode == 2
    assert all(role in refused.stderr for role in ROLES)


@pytest.mark.full
@pytest.mark.parametrize("engine", ["valkey", "redis"])
def test_rules_without_a_password_keep_the_passwords_of_a_user_and_replace_its_rights(engine: Engine) -> None:
    if find_engine(engine) is None:
        pytest.skip(f"{engine}-server is not installed")
    with ScratchStore(engine) as store:
        rules = rights(store, "ACL", "SETUSER", "w", "on", ">secret", "~*", "&*", "+@all", "(+get ~x)")
        assert "~*" in rules
        rules = rights(store, *holdfast("acl", "viewer", "--user", "w").stdout.split())
        assert "#" + sha256(b"secret").hexdigest() in rules
        assert not {"~*", "&*", "+@all", "(+get", "(~x"} & set(rules)
        assert "~hf:{default}:*" in rules
        rules = rights(store, *holdfast("acl", "viewer", "--user", "fresh").stdout.split())
        assert not [word for word in rules if word == "nopass" or word.startswith("#")]


def rights(store: ScratchStore, *command: str) -> list[str]:
    """Run an ACL SETUSER, and return what the store lists of the user afterwards."""
    resp.call(str(store.socket_path), *command, timeout=30.0)
    lines = str(resp.call(str(store.socket_path), "ACL", "LIST", timeout=30.0)).split("user ")
    [found] = [line for line in lines if line.startswith(f"{command[2]} ")]
    return found.replace("'", " ").split()
