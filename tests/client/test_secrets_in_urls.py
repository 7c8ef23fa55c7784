"""Passwords in URLs appear in no error, no log line and no repr, however the URL is spoiled (review B6)."""

import pytest

from command_line import holdfast
from holdfast import Client
from holdfast.errors import HoldfastError
from holdfast.settings import Settings, shown_url
from holdfast.worker.store_choice import StoreChoice

SECRET = "sEcrEt"
SPOILED = [
    "redis://u:sEcrEt@127.0.0.1:1/0", "redis://:sEcrEt@127.0.0.1:1", "redis://sEcrEt@127.0.0.1:1/0",
    "rediss://u:sEcrEt@:1/0", "redis://127.0.0.1:1/0?password=sEcrEt", "redis://127.0.0.1:1?db=0&password=sEcrEt&x=1",
    "unix:///nowhere?password=sEcrEt", "unix://u:sEcrEt@/nowhere", "redis://u:a b@127.0.0.1:sEcrEt/0",
    "u:sEcrEt@host:6379", "redis:sEcrEt@host", "sEcrEt", "http://u:sEcrEt@host/", "redis://[::1:sEcrEt@x",
    "redis://127.0.0.1:1/sEcrEt", "redis://u:p/sEcrEt@h:1/0", "redis://u:p@sEcrEt@h:1/x", "redis://u:a#sEcrEt@h:1/0",
    "redis://u:a?sEcrEt@h:1/0", "redis://127.0.0.1:1/0?username=u&password=sEcrEt#x", "redis://h:sEcrEt", "unix://?sEcrEt",
]  # fmt: skip


@pytest.mark.parametrize("url", SPOILED)
def test_a_url_is_shown_without_its_secrets(url: str) -> None:
    assert SECRET not in shown_url(url)
    assert SECRET not in repr(Settings(url))
    assert SECRET not in repr(StoreChoice(url, {"password": SECRET}))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://bob:x@box:6379/3", "redis://bob:…@box:6379/3"),
        ("rediss://[::1]:6380", "rediss://[::1]:6380"),
        ("unix:///run/store.sock?db=2&password=x", "unix:///run/store.sock?db=2"),
        ("redis://box", "redis://box"),
    ],
)
def test_what_is_not_secret_is_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize("url", SPOILED)
def test_no_error_of_a_client_shows_a_secret(url: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        look(url)
    assert SECRET not in f"{caught.value}{caught.value!r}{caught.value.__cause__}"


def look(url: str) -> None:
    with Client(url, deadline=0.0, timeout=0.1) as client:
        assert SECRET not in repr(client) + repr(client.settings)
        _ = client.queues["q"].counts


@pytest.mark.full
@pytest.mark.parametrize(
    "words", [("worker", "-q", "q", "--url"), ("workers", "list", "--url"), ("notify", "--webhook")]
)
@pytest.mark.parametrize("url", ["u:sEcrEt@host:6379", "redis://h:sEcrEt", "redis://127.0.0.1:1/sEcrEt"])
def test_no_command_shows_a_secret(url: str, words: tuple[str, ...]) -> None:
    said = holdfast(*words, url)
    assert said.returncode == 2
    assert SECRET not in said.stdout + said.stderr
