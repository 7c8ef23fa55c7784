"""Where a store may live, and which data it opens."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import store as embedded
from holdfast.errors import StoreUnsupported, UsageError
from holdfast.store import paths, resp
from holdfast.testing.store import find_engine
from waiting import until


def mark(home: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((home / "holdfast.json").read_text())
    return content


def set_mark(home: Path, **changes: object) -> None:
    (home / "holdfast.json").write_text(json.dumps(mark(home) | changes))


@pytest.fixture
def written(home: Path) -> Path:
    """A directory that a store has written to."""
    address = embedded.ensure(home)
    resp.call(address.url.removeprefix("unix://"), "SET", "kept", "yes")
    embedded.stop(home)
    return home


def kept(address: embedded.StoreAddress) -> str:
    return resp.call(address.url.removeprefix("unix://"), "GET", "kept")


def test_a_file_in_the_way_is_named(home: Path) -> None:
    home.write_text("mine")
    with pytest.raises(UsageError, match="is a file: use a directory only for the store"):
        embedded.ensure(home)
    assert home.read_text() == "mine"


def test_a_file_further_up_the_way_is_an_error_of_ours_too(home: Path) -> None:
    home.write_text("mine")
    with pytest.raises(UsageError, match="cannot hold a store"):
        embedded.ensure(home / "below")


def test_a_path_longer_than_the_system_takes_is_an_error_of_ours_too(home: Path) -> None:
    with pytest.raises(UsageError, match="cannot hold a store"):
        embedded.ensure(home / ("x" * 300))


def test_a_directory_of_somebody_else_is_refused(home: Path) -> None:
    directory = Path("/usr")
    if os.geteuid() == 0:
        home.mkdir()
        os.chown(home, 65534, 65534)
        directory = home
    with pytest.raises(UsageError, match="belongs to user"):
        embedded.ensure(directory)
    assert not (directory / "lock").exists()


@pytest.mark.full
def test_a_directory_with_other_content_is_refused_and_left_as_it_is(home: Path) -> None:
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    (home / "thesis.tex").touch()
    with pytest.raises(UsageError, match=r"contains other files \(thesis\.tex\)"):
        embedded.ensure(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
    assert [path.name for path in home.iterdir()] == ["thesis.tex"]


@pytest.mark.full
def test_an_empty_directory_that_others_could_read_is_closed_to_them(home: Path) -> None:
    home.mkdir()
    home.chmod(0o755)
    embedded.ensure(home)
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.full
def test_a_directory_in_the_place_of_the_lock_is_an_error_of_ours(home: Path) -> None:
    (home / "lock").mkdir(parents=True)
    with pytest.raises(UsageError, match="cannot hold a store"):
        embedded.ensure(home)


@pytest.mark.full
def test_the_directory_says_what_it_is(written: Path) -> None:
    assert (
        mark(written) == {"format": 1, "engine": "valkey", "version": [9, 1, 2]}
        or mark(written)["format"] == 1
    )
    assert mark(written)["engine"] == "valkey"


@pytest.mark.full
def test_a_newer_server_opens_what_an_older_one_wrote(home: Path) -> None:
    older = find_engine("redis")
    if older is None:
        pytest.skip("redis-server is not installed: no older server to write with")
    address = embedded.ensure(home, program=older)
    resp.call(address.url.removeprefix("unix://"), "SET", "kept", "yes")
    embedded.stop(home)
    assert mark(home)["engine"] == "redis"
    # The two share their history up to 7.2, so its files are those of an old Valkey.
    set_mark(home, engine="valkey", version=[7, 2, 0])
    address = embedded.ensure(home)
    assert kept(address) == "yes"
    assert address.version == ".".join(map(str, mark(home)["version"]))  # type: ignore[call-overload]


@pytest.mark.full
def test_an_older_server_does_not_open_what_a_newer_one_wrote(written: Path) -> None:
    set_mark(written, version=[99, 0, 0])
    with pytest.raises(StoreUnsupported, match=r"was written by valkey 99\.0\.0, and .* is older"):
        embedded.ensure(written)
    assert embedded.status(written).state == "stopped"
    assert mark(written)["version"] == [99, 0, 0]


@pytest.mark.full
def test_a_difference_in_the_last_number_of_the_version_is_no_downgrade(written: Path) -> None:
    major, minor, patch = mark(written)["version"]  # type: ignore[misc]
    set_mark(written, version=[major, minor, patch + 1])
    assert kept(embedded.ensure(written)) == "yes"
    assert mark(written)["version"] == [major, minor, patch + 1]


@pytest.mark.full
def test_a_directory_of_a_later_holdfast_is_refused(written: Path) -> None:
    set_mark(written, format=2)
    with pytest.raises(StoreUnsupported, match="upgrade holdfast"):
        embedded.ensure(written)


@pytest.mark.full
def test_a_directory_of_another_engine_is_refused(written: Path) -> None:
    set_mark(written, engine="redis")
    with pytest.raises(StoreUnsupported, match="belongs to redis, not to valkey"):
        embedded.ensure(written)


@pytest.mark.full
@pytest.mark.parametrize("program", ["/bin/true", "/nowhere/valkey-server"])
def test_a_program_that_is_no_server_is_refused(home: Path, program: str) -> None:
    with pytest.raises(StoreUnsupported):
        embedded.ensure(home, program=Path(program))


MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 22 0:40 / /home rw - nfs4 server:/home rw
32 31 0:41 / /home/ann/local rw - xfs /dev/sdb rw
33 22 0:42 / /srv/with\\040space rw - cifs //server/share rw
34 22 0:43 / /ctr rw - overlay overlay rw
"""


@pytest.mark.parametrize(
    ("directory", "kind"),
    [
        ("/var/lib", "ext4"),
        ("/home/ann/store", "nfs4"),
        ("/home/ann/local/store", "xfs"),
        ("/homes/ann", "ext4"),
        ("/srv/with space/store", "cifs"),
    ],
)
def test_the_file_system_of_a_directory_is_the_nearest_mount_above_it(directory: str, kind: str) -> None:
    assert paths.kind_in_mountinfo(MOUNTS, Path(directory)) == kind


def test_the_list_of_mounts_of_other_systems_is_read_too() -> None:
    text = "/dev/disk3s1 on / (apfs, sealed)\n//ann@server/x on /Volumes/x (smbfs, nodev)\n"
    assert paths.kind_in_mount_list(text, Path("/Volumes/x/store")) == "smbfs"
    assert paths.kind_in_mount_list(text, Path("/Users/ann")) == "apfs"


@pytest.mark.full
@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "ceph"])
def test_a_network_file_system_is_refused(home: Path, kind: str) -> None:
    with pytest.raises(StoreUnsupported, match="network file system"):
        paths.judge_file_system(home, kind)


def test_a_containers_own_layer_is_warned_about(home: Path) -> None:
    assert "mount a volume there" in paths.judge_file_system(home, "overlay")


@pytest.mark.full
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "apfs", "tmpfs", "zfs", ""])
def test_a_local_file_system_is_fine(home: Path, kind: str) -> None:
    assert paths.judge_file_system(home, kind) == ""


@pytest.mark.full
def test_the_file_system_of_this_machine_can_be_told(tmp_path: Path) -> None:
    assert paths.file_system(tmp_path.resolve())


@pytest.mark.full
def test_the_default_directory_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HOLDFAST_DIR", raising=False)
    assert embedded.default_directory().parts[-2:] == ("holdfast", "store")
    monkeypatch.setenv("HOLDFAST_DIR", str(tmp_path / "mine"))
    assert embedded.default_directory() == tmp_path / "mine"


@pytest.mark.full
@pytest.mark.parametrize("mode", [0o777, 0o770, 0o1777])
def test_what_others_could_have_planted_is_not_trusted(home: Path, mode: int) -> None:
    home.mkdir()
    (home / "server.json").write_text('{"state": "running", "socket": "/tmp/of-somebody-else"}')
    home.chmod(mode)
    with pytest.raises(UsageError, match="other users may write in"):
        embedded.ensure(home)
    assert stat.S_IMODE(home.stat().st_mode) == mode
    (home / "server.json").unlink()
    embedded.ensure(home)  # an empty one is made ours
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@pytest.mark.full
@pytest.mark.parametrize("name", ["server.log", "warden.log", "server.json", "lock", "linger"])
def test_a_link_in_the_place_of_a_file_is_not_followed(home: Path, tmp_path: Path, name: str) -> None:
    home.mkdir(mode=0o700)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (home / name).symlink_to(precious)
    with pytest.raises(UsageError, match=f"contains a link \\({name}\\)"):
        embedded.ensure(home)
    assert precious.read_text() == "mine"
    (home / name).unlink()


def test_directories_above_a_store_that_are_missing_are_made_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0o000)
    try:
        paths.prepare(tmp_path / "a" / "b" / "store")
    finally:
        os.umask(before)
    for part in ("a", "a/b", "a/b/store"):
        assert stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o700


@pytest.mark.full
def test_a_warden_is_not_given_the_secrets_of_the_program_that_starts_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PROGRAM", "password")
    address = embedded.ensure(home)
    for pid in (address.warden_pid, address.pid):
        assert b"SECRET_OF_THE_PROGRAM" not in Path(f"/proc/{pid}/environ").read_bytes()


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_server_of_another_user_is_not_talked_to(home: Path) -> None:
    home.mkdir()
    home.chmod(0o777)
    home.parent.chmod(0o711)
    place, ready = home / "socket", home / "ready"
    program = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
        "s.bind(sys.argv[1]); s.listen(); open(sys.argv[2], 'w').close(); c, _ = s.accept(); c.sendall(b'+PONG\\r\\n'); c.recv(1)"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", program, str(place), str(ready)]) as stranger:
        until(ready.exists, "it listens")
        with pytest.raises(OSError, match="user 65534 listens"):
            resp.call(str(place), "PING")
        stranger.kill()
    home.chmod(0o700)


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_a_directory_on_a_read_only_disk_is_refused_in_one_sentence(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=1m", "none", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("this machine allows no mounts")
    try:
        words = [sys.executable, "-m", "holdfast.cli.main", "store", "start", "--dir", str(disk / "store")]
        found = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (found.returncode, found.stderr.count("\n")) == (2, 1)
        assert f"{disk}/store cannot hold a store: Read-only file system" in found.stderr
    finally:
        subprocess.run(["umount", disk], check=True)
