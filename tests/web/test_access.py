"""Who may use the application: hosts, other sites, roles, links, passwords, tokens, a reverse proxy."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.testclient import TestClient

from holdfast import Client, UsageError
from holdfast.testing.store import ScratchStore
from holdfast.web import User, auth, create_app
from holdfast.web.credentials import (
    TRIES,
    Credentials,
    TooMany,
    hash_password,
    hash_token,
    parsed_users,
    read_users,
)
from holdfast.web.gate import is_cross_site
from holdfast.web.sessions import Sessions
from web_process import serving

Browse = Callable[..., TestClient]
PAUSE = "/api/v1/queues/pause"


@pytest.fixture(autouse=True)
def _a_queue(client: Client) -> None:
    client.queues["q"].put("K", {})


def as_user(role: str) -> Callable[[HTTPConnection], User]:
    return lambda _: User("ada", role)  # type: ignore[arg-type]


# Other sites.


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "", "Origin": "http://testserver"},
    ],
)
def test_a_change_from_a_page_of_another_site_is_refused(web: TestClient, headers: dict[str, str]) -> None:
    found = web.post(PAUSE, json={"name": ["q"]}, headers=headers)
    assert (found.status_code, "another site" in found.text) == (403, True)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://testserver", 200),
        ("https://testserver", 403),
        ("http://testserver:81", 403),
        ("http://evil.example", 403),
        ("null", 403),
        (None, 403),
    ],
)
def test_without_fetch_metadata_the_origin_has_to_be_that_of_the_request(
    client: Client, origin: str | None, status: int
) -> None:
    with TestClient(create_app(client)) as browser:
        headers = {} if origin is None else {"Origin": origin}
        assert browser.post(PAUSE, json={"name": ["q"]}, headers=headers).status_code == status


@pytest.mark.full
def test_a_bearer_token_needs_no_origin(client: Client) -> None:
    users = Credentials(parsed_users(f"robot:operator:{hash_token('t0ken')}", "users"))
    app = create_app(client, auth=auth.Tokens(users, Sessions(b"s" * 32)))
    with TestClient(app) as program:
        headers = {"Authorization": "Bearer t0ken"}
        assert program.post(PAUSE, json={"name": ["q"]}, headers=headers).status_code == 200
        with_cookie = {**headers, "Cookie": "a=b"}
        assert program.post(PAUSE, json={"name": ["q"]}, headers=with_cookie).status_code == 200


# Hosts.


def test_without_authentication_a_foreign_name_of_this_machine_is_refused(web: TestClient) -> None:
    assert web.get("/api/v1/queues").status_code == 200
    found = web.get("/api/v1/queues", headers={"Host": "evil.example:5678"})
    assert (found.status_code, found.json()["status"]) == (403, 403)


def test_other_hosts_than_the_allowed_ones_are_refused(browse: Browse) -> None:
    browser = browse(hosts=["jobs.example"], auth=as_user("viewer"))
    assert browser.get("/api/v1/queues", headers={"Host": "jobs.example:8080"}).status_code == 200
    assert browser.get("/api/v1/queues", headers={"Host": "other.example"}).status_code == 403


@pytest.mark.full
def test_every_response_has_the_headers_of_security(web: TestClient) -> None:
    for path in ("/api/v1/queues", "/nope", "/static/x/nope.js", "/act/queues/nope"):
        found = web.get(path)
        policy = found.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "require-trusted-types-for 'script'" in policy
        assert found.headers["x-frame-options"] == "DENY"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "cross-origin-opener-policy" not in found.headers  # browsers want TLS or this machine for it
        local = web.get(path, headers={"Host": "localhost"})
        assert local.headers["cross-origin-opener-policy"] == "same-origin"


# Roles.


@pytest.mark.full
def test_every_action_is_refused_to_a_viewer_and_in_a_read_only_application(
    browse: Browse, client: Client
) -> None:
    from holdfast.web.pages import TABLE

    for browser in (browse(auth=as_user("viewer")), browse(read_only=True)):
        for noun, verb in TABLE.actions:
            for path in (f"/act/{noun}/{verb}", f"/api/v1/{noun}/{verb}"):
                found = browser.post(path, **({"data": {}} if path.startswith("/act") else {"json": {}}))
                assert found.status_code == 403, path
    assert client.queues["q"].counts["waiting"] == 1


def test_an_operator_may_not_do_what_needs_an_administrator(browse: Browse) -> None:
    from holdfast.web.pages import TABLE

    browser = browse(auth=as_user("operator"))
    for action in TABLE.actions.values():
        found = browser.post(f"/api/v1/{action.noun}/{action.verb}", json={})
        assert (found.status_code == 403) == (action.role == "admin"), (action.noun, action.verb)


def test_who_asks_is_what_the_audit_log_says(browse: Browse, client: Client) -> None:
    assert (
        browse(auth=as_user("operator")).post(PAUSE, json={"name": ["q"], "reason": "deploy"}).status_code
        == 200
    )
    [line] = client.audit.newest(1)
    assert (line.who, line.what, line.target) == ("ada", "pause", "q")


# Links.


def test_a_link_logs_in_once_and_gives_a_session(client: Client) -> None:
    sessions = Sessions(b"s" * 32)
    with TestClient(create_app(client, auth=auth.TokenLink(sessions))) as browser:
        assert browser.get("/api/v1/queues").status_code == 401
        link = f"/login?token={sessions.link_token()}"
        assert browser.get(link, follow_redirects=False).status_code == 303
        assert browser.get("/api/v1/queues").status_code == 200
        browser.cookies.clear()
        assert browser.get(link, follow_redirects=False).status_code == 401
        assert browser.get("/api/v1/queues").status_code == 401


def test_a_session_of_another_secret_or_a_changed_one_is_none(client: Client) -> None:
    sessions = Sessions(b"s" * 32)
    with TestClient(create_app(client, auth=auth.TokenLink(sessions))) as browser:
        browser.get(f"/login?token={sessions.link_token()}", follow_redirects=False)
        [(name, value)] = browser.cookies.items()
        for forged in ("0" + value[1:], value[:-1] + "0", "", "a.b.c.d", "a.b.c.d.e"):
            browser.cookies.clear()
            browser.cookies.set(name, forged)
            assert browser.get("/api/v1/queues").status_code == 401, forged


def test_a_link_that_is_too_old_or_of_another_server_is_refused() -> None:
    sessions = Sessions(b"s" * 32, "first")
    assert not sessions.take_link(sessions.link_token(-1))
    assert not Sessions(b"t" * 32, "first").take_link(sessions.link_token())
    assert not Sessions(b"s" * 32, "restarted").take_link(sessions.link_token())
    assert Sessions(b"s" * 32, "first").take_link(sessions.link_token())


# Sessions.


def with_tokens(client: Client, lines: str, ended: Path | None = None) -> TestClient:
    sessions = Sessions(b"s" * 32, ended=ended)
    way = auth.Tokens(Credentials(parsed_users(lines, "users")), sessions)
    return TestClient(create_app(client, auth=way), headers={"Sec-Fetch-Site": "same-origin"})


def logged_in(browser: TestClient, token: str) -> str:
    """Log in, and return the cookies of the session."""
    assert browser.post("/login", data={"token": token}, follow_redirects=False).status_code == 303
    return "; ".join(f"{name}={value}" for name, value in browser.cookies.items())


@pytest.mark.full
def test_the_user_of_a_session_is_looked_up_at_each_request(client: Client) -> None:
    line = f"ada:operator:{hash_token('first')}"
    with with_tokens(client, line) as browser:
        session = {"Cookie": logged_in(browser, "first")}
    past, ahead = "2020-01-01", "2999-01-01"
    for lines, read, pause in (
        (f"{line}:{ahead}", 200, 200),
        (line.replace("operator", "viewer"), 200, 403),
        (line.replace("operator", "worker"), 401, 401),
        (f"ada:operator:{hash_token('second')}", 401, 401),
        (f"{line}:{past}", 401, 401),
        (f"eve:operator:{hash_token('first')}", 401, 401),
        (f"{line}::queues=mail", 401, 401),
    ):
        with with_tokens(client, lines) as browser:
            assert browser.get("/api/v1/queues", headers=session).status_code == read, lines
            assert browser.post(PAUSE, json={"name": ["q"]}, headers=session).status_code == pause, lines


@pytest.mark.full
def test_a_session_of_a_token_is_none_where_links_log_in_and_the_other_way_round(client: Client) -> None:
    line = f"local:admin:{hash_token('first')}"
    with with_tokens(client, line) as browser:
        of_token = {"Cookie": logged_in(browser, "first")}
    sessions = Sessions(b"s" * 32)
    with TestClient(create_app(client, auth=auth.TokenLink(sessions))) as browser:
        assert browser.get("/api/v1/queues", headers=of_token).status_code == 401
        browser.get(f"/login?token={sessions.link_token()}", follow_redirects=False)
        of_link = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items())}
        assert browser.get("/api/v1/queues").status_code == 200
    with with_tokens(client, line) as browser:
        assert browser.get("/api/v1/queues", headers=of_link).status_code == 401


@pytest.mark.full
def test_who_logs_out_is_logged_out_also_where_the_cookie_was_copied_to_and_after_a_restart(
    client: Client, tmp_path: Path
) -> None:
    line, ended = f"ada:viewer:{hash_token('first')}", tmp_path / "web.ended"
    with with_tokens(client, line, ended) as browser:
        copied = {"Cookie": logged_in(browser, "first")}
        assert browser.post("/logout", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
        assert browser.get("/logout").status_code in (404, 405)
        assert browser.get("/api/v1/queues").status_code == 200
        found = browser.post("/logout", headers={"Accept": "application/json"})
        assert (found.json(), dict(browser.cookies)) == ({"logged_out": True}, {})
        assert browser.get("/api/v1/queues", headers=copied).status_code == 401
        other = {"Cookie": logged_in(browser, "first")}
        assert browser.get("/api/v1/queues", headers=other).status_code == 200
        browser.cookies.clear()
    with with_tokens(client, line, ended) as browser:
        assert browser.get("/api/v1/queues", headers=copied).status_code == 401
        assert browser.get("/api/v1/queues", headers=other).status_code == 200
    assert ended.stat().st_mode & 0o077 == 0


@pytest.mark.full
def test_a_live_stream_ends_when_its_user_logs_out_or_is_removed(
    store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    users, line = tmp_path / "users", "{0}:viewer:{1}".format
    lines = [line(name, hash_token(name)) for name in ("ada", "robot", "stays")]
    users.write_text("\n".join(lines))
    users.chmod(0o600)
    words = ["--auth", "bearer", "--users", str(users)]
    with (
        serving(store.url, namespace, tmp_path / "web", *words) as (address, _),
        httpx.Client(base_url=address, headers={"Sec-Fetch-Site": "same-origin"}, timeout=60) as browser,
    ):
        assert browser.post("/login", data={"token": "ada"}).status_code == 303
        with (
            browser.stream("GET", "/live") as of_session,
            browser.stream("GET", "/live", headers={"Authorization": "Bearer robot"}) as of_robot,
            browser.stream("GET", "/live", headers={"Authorization": "Bearer stays"}) as other,
        ):
            read = [(one, one.iter_lines()) for one in (of_session, of_robot, other)]
            assert [next(part) for _, part in read] == ["event: tick"] * 3
            began = time.monotonic()
            assert browser.post("/logout").status_code == 303
            assert "event: bye" in list(read[0][1])
            users.write_text("\n".join(lines[::2]))
            assert "event: bye" in list(read[1][1])
            assert time.monotonic() - began < 30
            # That of another user lasts: it is alive after both have ended.
            assert next(part for part in read[2][1] if part.startswith(":")) == ": still here"


@pytest.mark.full
def test_pages_have_a_button_to_log_out_where_there_is_a_session(browse: Browse, client: Client) -> None:
    assert "Log out" not in browse().get("/queues").text
    sessions = Sessions(b"s" * 32)
    browser = browse(auth=auth.TokenLink(sessions))
    browser.get(f"/login?token={sessions.link_token()}")
    assert 'action="/logout"' in browser.get("/queues").text
    found = browser.post("/logout", follow_redirects=False)
    assert (found.status_code, "logged out" in found.text) == (200, True)
    assert browser.get("/api/v1/queues").status_code == 401
    with with_tokens(client, f"ada:viewer:{hash_token('first')}") as browser:
        logged_in(browser, "first")
        assert 'action="/logout"' in browser.get("/queues").text
        found = browser.post("/logout", follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, "/login")


# Passwords and tokens.

USERS = f"""
# who may do what
ada:admin:{hash_password("correct horse")}
robot:viewer:{hash_token("t0ken")}
gone:viewer:{hash_token("0ld")}:2020-01-01
eva:viewer:{hash_password("battery staple")}
"""


@pytest.mark.full
def test_a_password_is_asked_for_and_checked(client: Client) -> None:
    app = create_app(client, auth=auth.Passwords(Credentials(parsed_users(USERS, "users"))))
    with TestClient(app) as browser:
        asked = browser.get("/api/v1/queues")
        assert (asked.status_code, asked.headers["www-authenticate"][:5]) == (401, "Basic")
        assert browser.get("/api/v1/queues", auth=("ada", "correct horse")).status_code == 200
        assert browser.get("/api/v1/queues", auth=("ada", "wrong")).status_code == 401
        assert browser.get("/api/v1/queues", auth=("eve", "correct horse")).status_code == 401


@pytest.mark.full
def test_after_some_wrong_passwords_a_name_has_to_wait_at_that_address_alone(client: Client) -> None:
    way = auth.Passwords(Credentials(parsed_users(USERS, "users")))
    app = create_app(client, auth=way, trusted_proxies=["testclient"])

    def status(name: str, password: str, *forwarded: str) -> httpx.Response:
        headers = [("X-Forwarded-For", one) for one in forwarded]
        return browser.get("/api/v1/queues", auth=(name, password), headers=headers)

    with TestClient(app) as browser:
        assert status("eva", "battery staple").status_code == 200
        found = [status("ada", str(n)).status_code for n in range(TRIES)]
        assert found == [*[401] * (TRIES - 1), 429]
        barred = status("ada", "correct horse")
        assert (barred.status_code, barred.headers["retry-after"]) == (429, "60")
        for n in range(TRIES):
            status("eva", str(n))
        assert status("eva", "battery staple").status_code == 200  # it was right a moment ago
        assert browser.get("/api/v1/queues", headers={"Authorization": "Bearer t0ken"}).status_code == 200
        assert status("ada", "correct horse", "203.0.113.9").status_code == 200
        found = [status("ada", str(n), f"203.0.113.{n}", "198.51.100.7").status_code for n in range(TRIES)]
        assert (
            found[-1] == 429
        )  # what a client writes before the address that the reverse proxy saw changes nothing
        found = [status("ada", str(n), f"2001:db8::{n}").status_code for n in range(TRIES)]
        assert found[-1] == 429  # a network is one customer
        assert status("ada", "a", "2001:db8:0:1::1").status_code == 401


@pytest.mark.full
def test_many_passwords_at_once_do_not_delay_others_and_leave_room_for_other_addresses() -> None:
    credentials = Credentials(parsed_users(USERS, "users"))

    async def tried(number: int, address: str) -> str:
        try:
            return str(await credentials.with_password(f"user-{number}", "wrong", address))
        except TooMany as error:
            return f"after {error.seconds:g}"

    async def story() -> None:
        flood = [asyncio.create_task(tried(number, "a")) for number in range(200)]
        await asyncio.sleep(0)
        refused = {task for task in flood if task.done()}
        assert {task.result() for task in refused} == {"after 1"}
        assert len(flood) - len(refused) < 60
        turns = 0
        right = asyncio.create_task(credentials.with_password("ada", "correct horse", "b"))
        while not right.done():
            await asyncio.sleep(0.001)  # the loop is free meanwhile
            turns += 1
        assert right.result() == User("ada", "admin")
        assert turns > 20
        assert {task.result() for task in flood if task.done()} >= {"after 1"}
        same = [credentials.with_password("eva", "battery staple", "c") for _ in range(20)]
        assert await asyncio.gather(*same) == [User("eva", "viewer")] * 20  # of a browser that loads a page
        for task in flood:
            task.cancel()

    asyncio.run(story())


def test_a_token_that_has_ended_is_refused(client: Client) -> None:
    app = create_app(client, auth=auth.Tokens(Credentials(parsed_users(USERS, "users")), Sessions(b"s" * 32)))
    with TestClient(app) as program:
        for token, status in (("t0ken", 200), ("0ld", 401), ("", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            assert program.get("/api/v1/queues", headers=headers).status_code == status


@pytest.mark.full
def test_a_browser_trades_a_token_for_a_session(client: Client) -> None:
    app = create_app(client, auth=auth.Tokens(Credentials(parsed_users(USERS, "users")), Sessions(b"s" * 32)))
    with TestClient(app, headers={"Sec-Fetch-Site": "same-origin"}) as browser:
        found = browser.get("/queues", follow_redirects=False)
        assert (found.status_code, found.headers["location"]) == (303, "/login")
        assert browser.post("/login", data={"token": "<b>"}).status_code == 401
        assert browser.post("/login", data={"token": "t0ken"}, follow_redirects=False).status_code == 303
        assert browser.get("/api/v1/queues").status_code == 200


@pytest.mark.parametrize(
    "line",
    [
        "ada",
        "ada:king:scrypt$a$b",
        "ada:admin:plain",
        ":admin:scrypt$a$b",
        "ada:admin:scrypt$a$b:tomorrow",
        "",
    ],
)
def test_a_line_that_is_no_user_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(UsageError, match=r"users: (line 2: expected|has no users)"):
        parsed_users(f"# a comment\n{line}", "users")


def test_a_users_file_that_all_may_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(USERS)
    path.chmod(0o604)
    with pytest.raises(UsageError, match="chmod 600"):
        read_users(path)
    path.chmod(0o600)
    assert set(read_users(path)) == {"ada", "robot", "gone", "eva"}
    path.chmod(0o640)
    assert len(read_users(path)) == 4
    path.chmod(0o660)
    with pytest.raises(UsageError, match="its group may write it"):
        read_users(path)


# A reverse proxy.


def test_headers_of_a_server_in_front_count_only_from_its_address_and_with_its_secret(client: Client) -> None:
    user, secret = ("X-Forwarded-User", "ada"), ("X-Holdfast-Secret", "s")
    here = auth.Proxy(["testclient"], secret="s")
    ways: list[tuple[Any, list[tuple[str, str]], int]] = [
        (auth.Proxy(["10.0.0.1"]), [user], 401),
        (here, [secret], 401),
        (here, [user], 401),
        (here, [user, ("X-Holdfast-Secret", "t")], 401),
        (here, [user, secret], 200),
        (here, [("X-Forwarded-User", "eve"), user, secret], 401),
        (here, [user, ("X-Holdfast-Secret", "t"), secret], 401),
    ]
    for way, headers, status in ways:
        with TestClient(create_app(client, auth=way)) as browser:
            assert browser.get("/api/v1/queues", headers=headers).status_code == status, headers


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "localhost"])
def test_a_server_in_front_on_this_machine_needs_a_secret(address: str) -> None:
    with pytest.raises(UsageError, match="give secret="):
        auth.Proxy(["10.0.0.1", address])
    assert auth.Proxy([address], secret="s") is not None


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "Via"]
)
def test_what_a_server_in_front_passes_on_is_not_of_this_machine(browse: Browse, header: str) -> None:
    found = browse().get("/api/v1/queues", headers={header: "127.0.0.1"})
    assert (found.status_code, "reverse proxy" in found.text) == (403, True)
    sessions = Sessions(b"s" * 32)
    link = f"/login?token={sessions.link_token()}"
    browser = browse(auth=auth.TokenLink(sessions))
    assert browser.get(link, headers={header: "127.0.0.1"}, follow_redirects=False).status_code == 401
    assert browser.get(link, follow_redirects=False).status_code == 303


@pytest.mark.full
@pytest.mark.parametrize(
    "host", ["[::1].evil.example", "[::1", "[::1]x:80", "127.0.0.1:80:80", "localhost]", "[]"]
)
def test_a_host_that_only_begins_like_a_name_of_this_machine_is_refused(web: TestClient, host: str) -> None:
    assert web.get("/api/v1/queues", headers={"Host": host}).status_code == 403
    assert web.get("/api/v1/queues", headers={"Host": "[::1]:5678"}).status_code == 200


def test_a_server_in_front_gives_no_role_that_does_not_exist(client: Client) -> None:
    with TestClient(create_app(client, auth=auth.Proxy(["testclient"], secret="s"))) as browser:
        headers = {"X-Forwarded-User": "ada", "X-Forwarded-Role": "root", "Sec-Fetch-Site": "same-origin"}
        headers["X-Holdfast-Secret"] = "s"
        assert browser.post(PAUSE, json={"name": ["q"]}, headers=headers).status_code == 403
        headers["X-Forwarded-Role"] = "operator"
        assert browser.post(PAUSE, json={"name": ["q"]}, headers=headers).status_code == 200


@pytest.mark.full
@pytest.mark.parametrize(
    ("trusted", "prefix", "link"),
    [
        ("testclient", "/ops/jobs/", "/ops/jobs/queues"),
        ("10.0.0.1", "/ops/jobs", "/queues"),
        ("testclient", "//evil.example", "/queues"),
        ("testclient", "/a b", "/queues"),
    ],
)
def test_a_prefix_that_a_trusted_server_in_front_removed_comes_before_every_link(
    browse: Browse, trusted: str, prefix: str, link: str
) -> None:
    browser = browse(trusted_proxies=[trusted], auth=as_user("operator"))
    headers = {"X-Forwarded-Prefix": prefix}
    page = browser.get("/queues/q", headers=headers)
    assert (page.status_code, f'href="{link}"' in page.text) == (200, True)
    done = browser.post(
        "/act/queues/pause",
        data={"name": "q", "back": f"{link}/q?tab=waiting"},
        headers=headers,
        follow_redirects=False,
    )
    assert done.headers["location"] == f"{link}/q?tab=waiting"


# What is too large, or no JSON.


@pytest.mark.full
@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"x" * (1 << 21), "application/json", 413),
        (b"{", "application/json", 400),
        (b'{"name": 3}', "application/json", 400),
        (b"name=q", "text/plain", 415),
        (b"[" * 100_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "application/json", 400),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "application/json", 400),
        (b'{"name": "\\ud800"}', "application/json", 400),
        (b'{"name": ["a\\u0000b"], "until": 1e999}', "application/json", 400),
        (b'{"name": ["a"], "name": 1e308}', "application/json", 400),
        (b'{"name": ' + b"9" * 400_000 + b"}", "application/json", 400),
    ],
)
def test_a_body_that_cannot_be_read_gets_a_problem_document(
    web: TestClient, body: bytes, kind: str, status: int
) -> None:
    found = web.post(PAUSE, content=body, headers={"Content-Type": kind})
    assert (found.status_code, found.json()["status"]) == (status, status)


def test_a_long_query_is_refused(web: TestClient) -> None:
    assert web.get("/api/v1/jobs", params={"q": "x" * 9000}).status_code == 414


def test_unknown_options_and_values_of_the_wrong_type_are_usage_errors(client: Client) -> None:
    for options in ({"readonly": True}, {"live": "often"}, {"redact": 5}, {"auth": 5}, {"redact": ["re:("]}):
        with pytest.raises(UsageError):
            create_app(client, **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        create_app(5)


def test_a_session_ends(monkeypatch: pytest.MonkeyPatch, client: Client) -> None:
    sessions = Sessions(b"s" * 32)
    with TestClient(create_app(client, auth=auth.TokenLink(sessions))) as browser:
        browser.get(f"/login?token={sessions.link_token()}", follow_redirects=False)
        assert browser.get("/api/v1/queues").status_code == 200
        later = time.time() + 13 * 3600
        monkeypatch.setattr("holdfast.web.sessions.time.time", lambda: later)
        assert browser.get("/api/v1/queues").status_code == 401


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({}, False),
        ({"origin": "http://evil.test"}, True),
        ({"origin": "null"}, True),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"cookie": "hf=x"}, True),
        ({"cookie": "hf=x", "content-type": "text/plain"}, True),
        ({"cookie": "hf=x", "content-type": "application/json; charset=utf-8"}, False),
        ({"cookie": "hf=x", "content-type": "application/json", "origin": "http://evil.test"}, True),
        ({"cookie": "hf=x", "content-type": "application/json", "sec-fetch-site": "same-site"}, True),
        ({"sec-fetch-mode": "cors"}, False),  # what fetch of Node sends
    ],
)
def test_a_program_without_a_browser_may_use_the_gateway_and_a_page_of_another_site_may_not(
    headers: dict[str, str], is_refused: bool
) -> None:
    assert is_cross_site("POST", "http", Headers(headers), is_for_programs=True) is is_refused
    assert is_cross_site("POST", "http", Headers(headers)) is True


@pytest.mark.full
def test_a_change_of_the_users_file_is_taken_for_tokens_passwords_and_sessions(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("holdfast.web.credentials._LOOK", 0.0)
    file = tmp_path / "users"

    def write(*lines: str) -> None:
        file.write_text("\n".join(lines))
        file.chmod(0o600)

    robot, ada = f"robot:operator:{hash_token('t0ken')}", f"ada:viewer:{hash_token('other')}"
    write(robot, ada)
    way = auth.Tokens(Credentials(read_users(file), file), Sessions(b"s" * 32))
    app = create_app(client, auth=way)
    with TestClient(app, base_url="http://localhost") as browser:
        headers = {"Authorization": "Bearer t0ken"}
        assert browser.get("/api/v1/overview", headers=headers).status_code == 200
        browser.post("/login", data={"token": "t0ken"}, headers={"Origin": "http://localhost"})
        assert browser.get("/api/v1/overview").status_code == 200
        write(ada)
        assert browser.get("/api/v1/overview", headers=headers).status_code == 401
        assert browser.get("/api/v1/overview").status_code == 401
        write("no line")
        assert browser.get("/api/v1/overview", headers={"Authorization": "Bearer other"}).status_code == 200
        assert "the users stay as they were" in caplog.text


@pytest.mark.full
def test_an_old_password_is_not_right_any_more_when_the_file_has_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.web.credentials._LOOK", 0.0)
    file = tmp_path / "users"

    def write(password: str) -> None:
        file.write_text(f"ada:admin:{hash_password(password)}")
        file.chmod(0o600)

    async def story() -> None:
        write("first")
        users = Credentials(read_users(file), file)
        assert await users.with_password("ada", "first", "10.0.0.1")
        write("second")
        assert await users.with_password("ada", "first", "10.0.0.1") is None
        assert await users.with_password("ada", "second", "10.0.0.1")

    asyncio.run(story())
