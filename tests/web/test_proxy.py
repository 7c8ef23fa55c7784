"""nginx in front of the web UI, as the guide on security sets it up."""

import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast import Client, UsageError
from holdfast.testing.store import ScratchStore
from holdfast.web.auth import Proxy
from waiting import until
from web_process import free_port, serving

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "security.md"
SECRET = "secret-of-the-reverse-proxy"
MAIN = """
pid {folder}/pid; error_log {folder}/error.log; daemon off; master_process off;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/f;
  uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    set $remote_user_of_test "ada"; set $role_of_test "operator";
    {location}
  }}
}}
"""


@contextmanager
def nginx(folder: Path, location: str) -> Iterator[str]:
    """Serve a location of nginx while the block runs, which gets its address."""
    folder.mkdir()
    port = free_port()
    (folder / "conf").write_text(MAIN.format(folder=folder, port=port, location=location))
    process = subprocess.Popen(["nginx", "-c", str(folder / "conf"), "-e", str(folder / "error.log")])
    try:

        def answers() -> bool:
            assert process.poll() is None, (folder / "error.log").read_text()
            try:
                httpx.get(f"http://127.0.0.1:{port}/nowhere", timeout=30)
            except httpx.TransportError:
                return False
            return True

        until(answers, "nginx listens", 60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def of_guide(port: int) -> str:
    """The location of the guide, for a server at a port, with a user that nginx would have logged in."""
    [found] = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    found = found.replace("127.0.0.1:5678", f"127.0.0.1:{port}").replace(
        "the-content-of-proxy.secret", SECRET
    )
    return found.replace("$remote_user", "$remote_user_of_test").replace('"operator"', "$role_of_test")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_behind_nginx_its_user_is_known_and_no_program_of_this_machine_is_that_user(
    store: ScratchStore, client: Client, namespace: str, tmp_path: Path
) -> None:
    client.queues["q"].put("K", {})
    secret = tmp_path / "proxy.secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    words = ["--auth", "proxy", "--proxy", "127.0.0.1", "--proxy-secret-file", str(secret)]
    forged = {"X-Forwarded-User": "eve", "X-Forwarded-Role": "admin", "X-Holdfast-Secret": "guess"}
    with serving(store.url, namespace, tmp_path / "web", *words) as (address, _):
        with nginx(tmp_path / "nginx", of_guide(int(address.rpartition(":")[2]))) as front:
            headers = {**forged, "Origin": front}
            found = httpx.post(f"{front}/api/v1/queues/pause", json={"name": ["q"]}, headers=headers)
            assert found.status_code == 200, found.text
            [line] = client.audit.newest(1)
            assert line.who == "ada"
        assert httpx.get(f"{address}/api/v1/queues", headers=forged).status_code == 401
        assert httpx.get(f"{address}/api/v1/queues", headers={"X-Forwarded-User": "eve"}).status_code == 401


@pytest.mark.full
@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_without_authentication_nothing_is_served_through_nginx(
    store: ScratchStore, namespace: str, tmp_path: Path
) -> None:
    with serving(store.url, namespace, tmp_path / "web", "--auth", "none") as (address, _):
        assert httpx.get(f"{address}/api/v1/queues").status_code == 200
        location = of_guide(int(address.rpartition(":")[2]))
        with nginx(tmp_path / "nginx", location) as front:
            assert httpx.get(f"{front}/api/v1/queues").status_code == 403


@pytest.mark.parametrize("address", ["unix", "127.1", "127.0.0.1/32", "front.example"])
def test_the_address_of_a_server_in_front_is_one_that_requests_come_from(address: str) -> None:
    with pytest.raises(UsageError, match="expected an IP address"):
        Proxy([address], secret="s" * 32)


@pytest.mark.full
@pytest.mark.parametrize("address", ["0.0.0.0", "::", "::ffff:127.0.0.1", "127.0.0.2"])
def test_without_a_secret_no_address_of_this_machine_is_trusted(address: str) -> None:
    with pytest.raises(UsageError, match="give secret="):
        Proxy([address])


def test_an_address_of_an_interface_of_this_machine_needs_a_secret_too() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing, but chooses the interface
        except OSError:
            pytest.skip("this machine has no other interface")
        own = probe.getsockname()[0]
    with pytest.raises(UsageError, match="give secret="):
        Proxy([own])
    assert Proxy(["192.0.2.77"])
