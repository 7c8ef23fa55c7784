"""`holdfast web`: the web UI and its JSON API, in the background or in the foreground."""

import contextlib
import logging
import os
import secrets
import subprocess
import sys
import time
import webbrowser
from pathlib import Path
from typing import Any, Final

import click

from holdfast.cli import web_samples
from holdfast.cli.connection import StorePlace, store_options
from holdfast.cli.examples import examples
from holdfast.cli.options import HOST, HOSTS, PREFIX, PROXY, PROXY_SECRET, USERS
from holdfast.cli.output import echo_text, json_option, print_json
from holdfast.cli.program import ProgramCommand
from holdfast.client.signature import LEAST_SECRET, read_secret
from holdfast.client.sync import Client
from holdfast.errors import HoldfastError, UsageError, missing_extra

_PATIENCE: Final = 30.0
_MODES: Final = ("token", "none", "basic", "bearer", "proxy")
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_PARTS: Final = ("pages", "api", "gateway", "topics")
_TOPICS_PORT: Final = 7171


@examples(
    "holdfast web",
    "holdfast web -S",
    "holdfast web -F --bind 0.0.0.0 --auth basic --users users.txt",
    "holdfast web --read-only --port 8000",
    "holdfast web -F --only gateway --bind 0.0.0.0 --auth bearer --users users.txt",
    "holdfast web -K",
)
@click.command(cls=ProgramCommand, path=("web",), secret=("url",), by_lines=("redact",))
@click.option("-F", "--foreground", is_flag=True, help="Stay in the foreground.")
@click.option(
    "-S",
    "--status",
    "show",
    is_flag=True,
    help="Print the URL and pid of the running server; exit code 1 if none runs.",
)
@click.option("-K", "--kill", "stop", is_flag=True, help="Stop the running server.")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    help="Port [default: 5678, or the next free one; 7171 for the topic endpoints alone].",
)
@HOST
@click.option(
    "--auth",
    type=click.Choice(_MODES),
    default="token",
    show_default=True,
    help="How users authenticate. token: a printed link, on this machine only; none: everybody on this machine; basic: "
    "names and passwords of --users; bearer: tokens of --users; proxy: a reverse proxy, see --proxy.",
)
@USERS
@click.option(
    "--hash-password",
    is_flag=True,
    help="Read a password from standard input, print the secret for --users, and exit.",
)
@PROXY
@PROXY_SECRET
@click.option(
    "--only",
    "parts",
    multiple=True,
    type=click.Choice(_PARTS),
    help="Part to serve; may be repeated [default: all]. pages: HTML; api: the JSON API of the pages; gateway: the verbs for "
    "programs, POST /v1/VERB; topics: the topic endpoints.",
)
@click.option("--read-only", is_flag=True, help="Allow no changes.")
@click.option(
    "--redact",
    multiple=True,
    metavar="RULE",
    help="Mask a path (*.password) or, after re:, a pattern in the data of jobs; may be repeated.",
)
@PREFIX
@HOSTS
@click.option(
    "--environment", default="", metavar="NAME", help="Name of the environment to show, such as production."
)
@click.option(
    "--live",
    type=click.Choice(("stream", "poll", "off")),
    default="stream",
    show_default=True,
    help="How pages are updated.",
)
@click.option(
    "--seed-data", is_flag=True, help="Fill a separate namespace with sample jobs first; implies -F."
)
@click.option("-L", "--no-launch", is_flag=True, help="Do not open a browser.")
@click.option("--in-background", is_flag=True, hidden=True)
@click.option(
    "--app-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory of the pid, secret and log [default: holdfast/web in your state directory].",
)
@store_options
@json_option
def web(
    place: StorePlace,
    foreground: bool,
    show: bool,
    stop: bool,
    hash_password: bool,
    app_dir: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Serve the web UI and its JSON API.

    It runs in the background, and prints its URL and pid. Without --auth, the URL contains a token that works once and
    opens a session. It listens on this machine only, unless --bind and --auth allow more.
    """
    serving = _serving()
    folder = serving.Folder(app_dir)
    if hash_password:
        _print_hash()
    elif show:
        _show(folder, as_json)
    elif stop:
        _stop(folder, as_json)
    elif foreground or options["seed_data"]:
        _serve(place, folder, options)
    else:
        _start(place, folder, options, as_json)


def _serving() -> Any:
    try:
        from holdfast.web import serving
    except ImportError as error:
        raise UsageError(missing_extra("the web UI", "web", error)) from None
    return serving


def _print_hash() -> None:
    from holdfast.web.credentials import hash_password

    password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise UsageError("expected a password on standard input")
    click.echo(hash_password(password))


# Show, stop, start.


def _show(folder: Any, as_json: bool) -> None:
    found = folder.running()
    if as_json:
        print_json(
            {
                "running": found is not None,
                "pid": found and found.pid,
                "url": found and _link(folder, found.url, found.server),
            }
        )
    else:
        echo_text(
            "the web UI does not run"
            if found is None
            else f"{_link(folder, found.url, found.server)}  pid {found.pid}"
        )
    sys.exit(0 if found else 1)


def _link(folder: Any, url: str, server: str) -> str:
    """Return the URL to open: with a new token for this server, if it works with tokens."""
    uses_tokens = (folder.path / "web.token").exists()
    return f"{url}login?token={folder.sessions(server).link_token()}" if uses_tokens else url


def _stop(folder: Any, as_json: bool) -> None:
    found = folder.stop()
    if as_json:
        print_json({"stopped": found is not None, "pid": found and found.pid})
        return
    echo_text("the web UI does not run" if found is None else f"stopped, pid {found.pid}")


def _start(place: StorePlace, folder: Any, options: dict[str, Any], as_json: bool) -> None:
    running = folder.running()
    if running is not None:
        raise HoldfastError(
            f"the web UI runs already, pid {running.pid}: {running.url}; holdfast web -K stops it"
        )
    _check(place, options)
    folder.make()
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    with os.fdopen(log, "wb") as file:
        words = [sys.executable, "-m", "holdfast.cli.main", *sys.argv[1:], "--foreground", "--in-background"]
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    until = time.monotonic() + _PATIENCE
    while (found := folder.running()) is None or found.pid != process.pid:
        if process.poll() is not None or time.monotonic() > until:
            tail = folder.log.read_text(errors="replace").strip().splitlines()[-1:] or ["nothing was logged"]
            raise HoldfastError(f"the web UI did not start: {tail[0].removeprefix('holdfast: ')}")
        time.sleep(0.05)
    _announce(_link(folder, found.url, found.server), found.pid, as_json, launch=not options["no_launch"])


def _announce(url: str, pid: int, as_json: bool, *, launch: bool) -> None:
    if as_json:
        print_json({"url": url, "pid": pid})
        return
    click.echo(
        f"{url}\nThe web UI runs in the background, pid {pid}. holdfast web -S prints a new link, -K stops it."
    )
    if launch and sys.stdout.isatty() and (os.environ.get("DISPLAY") or sys.platform == "darwin"):
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(url)


# Serve.


def _check(place: StorePlace, options: dict[str, Any]) -> Any:
    """Return the way to know users. Raises UsageError for options that do not go together."""
    mode, host = options["auth"], options["host"]
    if mode in ("token", "none") and host not in _LOOPBACK:
        raise UsageError(
            f"--bind {host} with --auth {mode} would give other machines access: choose --auth basic, bearer or proxy"
        )
    if mode in ("basic", "bearer") and options["users"] is None:
        raise UsageError(f"--auth {mode} requires --users FILE, with lines of name:role:secret")
    if mode == "token" and options["parts"] and "pages" not in options["parts"]:
        raise UsageError(
            "--auth token is for browsers; for programs choose --auth bearer, or none for this machine only"
        )
    if mode == "proxy" and not options["proxy"]:
        raise UsageError("--auth proxy requires --proxy ADDRESS, the address of the reverse proxy")
    if options["proxy_secret_file"] is not None and mode != "proxy":
        raise UsageError(f"--proxy-secret-file requires --auth proxy, not --auth {mode}")
    if mode == "proxy":
        _proxy_secret(options)
    prefix = options["prefix"]
    if prefix and (not prefix.startswith("/") or prefix.endswith("/") or "//" in prefix):
        raise UsageError(f"--prefix: expected a path such as /jobs, got {prefix!r:.80}")
    with place.unchecked():
        return mode


def _authentication(mode: str, folder: Any, server: str, options: dict[str, Any]) -> Any:
    from holdfast.web import auth
    from holdfast.web.credentials import Credentials, read_users

    sessions = folder.sessions(server)
    if mode == "basic":
        return auth.Passwords(Credentials(read_users(options["users"]), options["users"]))
    if mode == "bearer":
        return auth.Tokens(Credentials(read_users(options["users"]), options["users"]), sessions)
    if mode == "proxy":
        return auth.Proxy(options["proxy"], secret=_proxy_secret(options))
    return auth.LoopbackOnly() if mode == "none" else auth.TokenLink(sessions)


def _proxy_secret(options: dict[str, Any]) -> str:
    """Return the secret that the reverse proxy sends, "" for none. Raises UsageError."""
    from holdfast.web.auth import is_of_this_machine

    path: Path | None = options["proxy_secret_file"]
    if path is not None:
        found = read_secret(path).decode("latin-1")
        if not found.isascii() or not found.isprintable() or len(found) < LEAST_SECRET or " " in found:
            raise UsageError(
                f"--proxy-secret-file {path}: expected {LEAST_SECRET} or more ASCII characters without spaces"
            )
        return found
    for address in options["proxy"]:
        if is_of_this_machine(address):
            raise UsageError(
                f"--auth proxy with --proxy {address} would believe every program of this machine: add --proxy-secret-file "
                "FILE, and let the reverse proxy send its content in the header X-Holdfast-Secret"
            )
    return ""


def _fill(client: Client) -> None:
    """Put sample jobs, without a line of the log for each that fails."""
    log = logging.getLogger("holdfast")
    log.setLevel(logging.ERROR)
    web_samples.fill(client)
    log.setLevel(logging.NOTSET)


def _serve(place: StorePlace, folder: Any, options: dict[str, Any]) -> None:
    from holdfast.web import connections, create_app, serving

    if options["seed_data"]:
        place = place._replace(namespace=web_samples.NAMESPACE)
    mode, server = _check(place, options), secrets.token_hex(8)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    with place.unchecked() as client:
        if options["seed_data"]:
            _fill(client)
        app: Any = create_app(
            client,
            auth=_authentication(mode, folder, server, options),
            read_only=options["read_only"],
            redact=options["redact"],
            environment=options["environment"],
            live=options["live"],
            hosts=options["hosts"],
            trusted_proxies=options["proxy"],
            parts=options["parts"] or _PARTS,
        )
    for handler in logging.getLogger().handlers:
        handler.addFilter(connections.Thinned())
    most = connections.most_connections()
    app.share_connections(most)
    prefix = options["prefix"]
    port = options["port"] or (_TOPICS_PORT if options["parts"] == ("topics",) else None)
    listening = serving.bound(options["host"], port)
    url = serving.url_of(listening, prefix)
    mark = folder.path / "web.token"
    with folder.claimed(url, server):
        mark.touch(mode=0o600) if mode == "token" else mark.unlink(missing_ok=True)
        if not options["in_background"]:  # whose output is a log, no place for a link that logs in
            click.echo(f"{_link(folder, url, server)}\nCtrl-C stops it.")
        serving.serve(serving.Below(app, prefix) if prefix else app, listening, app.end_waits, most)
