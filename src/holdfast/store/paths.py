"""Which directory an embedded store may use, and where its socket is."""

import hashlib
import os
import re
import stat
import subprocess
import tempfile
from pathlib import Path

from holdfast.errors import StoreUnsupported, UsageError
from holdfast.store.files import DATA, OURS
from holdfast.store.processes import ON_LINUX
from holdfast.store.server import LONGEST_SOCKET_PATH

_NETWORK = re.compile(
    "nfs4?|cifs|smb[23]?|smbfs|afpfs|webdav|davfs|afs|ceph|glusterfs|lustre|gpfs|beegfs|ocfs2|gfs2|orangefs|9p"
    "|vboxsf|prl_fs|vmhgfs|fuse\\.(sshfs|glusterfs|ceph|s3fs|gcsfuse|rclone)"
)
_OURS = re.compile(r"\.?(?:" + "|".join(re.escape(name) for name in OURS) + r")(?:\.\d+)?")
"""Our files, their drafts (``.server.json.<pid>``) and older logs (``server.log.1``)."""


def default_directory() -> Path:
    """``HOLDFAST_DIR``, or ``holdfast/store`` in the user's data directory."""
    chosen = os.environ.get("HOLDFAST_DIR")
    if chosen:
        return full_path(Path(chosen))
    import platformdirs

    return platformdirs.user_data_path("holdfast", appauthor=False) / "store"


def full_path(directory: Path) -> Path:
    """Return the absolute path of a directory, whose name may begin with `~`. Raises UsageError."""
    try:
        return directory.expanduser().resolve()
    except (RuntimeError, OSError) as error:  # no such user, or a loop of links
        raise UsageError(f"{directory} cannot be used as a directory: {error}") from None


def prepare(directory: Path) -> Path:
    """Make the directory if it is missing, check that it belongs to us alone, and return its full path.

    Raises UsageError for a file, a directory of another user, or one with other content.
    """
    directory = full_path(directory)
    try:
        _make(directory)
        facts = directory.stat()
    except FileExistsError:
        raise UsageError(f"{directory} is a file: use a directory only for the store") from None
    except OSError as error:
        raise UsageError(f"{directory} cannot hold a store: {error.strerror}") from error
    if facts.st_uid != os.geteuid():
        raise UsageError(
            f"{directory} belongs to user {facts.st_uid}, not to you ({os.geteuid()}): use another one"
        )
    mode = stat.S_IMODE(facts.st_mode)
    _check_content(directory, writable_by_others=bool(mode & 0o022))
    if mode & 0o077:
        directory.chmod(0o700)
        # Others could write there until now.
        _check_content(directory, writable_by_others=bool(mode & 0o022))
    return directory


def _make(directory: Path) -> None:
    """Make a directory and its missing parents, for this user alone."""
    if not directory.parent.exists():
        _make(directory.parent)
    directory.mkdir(mode=0o700, exist_ok=True)


def _check_content(directory: Path, writable_by_others: bool) -> None:
    """Raise UsageError for content that is not ours, or that others could have written."""
    names = [path.name for path in directory.iterdir()]
    if names and writable_by_others:
        raise UsageError(
            f"other users may write in {directory}, so its files cannot be trusted: empty it, or use another one"
        )
    links = sorted(path.name for path in directory.iterdir() if path.is_symlink() and path.name != DATA)
    if links:
        raise UsageError(
            f"{directory} contains a link ({links[0]}) in place of a file of the store: remove it"
        )
    foreign = sorted(name for name in names if not _OURS.fullmatch(name))
    if foreign and "holdfast.json" not in names:
        raise UsageError(
            f"{directory} contains other files ({foreign[0]}): use a directory only for the store"
        )


def check_file_system(directory: Path) -> str:
    """Return a warning about the file system, or ''.

    Raises StoreUnsupported for a network file system, where locks and flushes are not reliable.
    """
    return judge_file_system(directory, file_system(directory))


def judge_file_system(directory: Path, kind: str) -> str:
    """Return or raise what `check_file_system` does, for a kind of file system."""
    if _NETWORK.fullmatch(kind):
        raise StoreUnsupported(
            f"{directory} is on a network file system ({kind}), where locks and flushes are not reliable: "
            "use a local directory (HOLDFAST_DIR), or the URL of a server"
        )
    if kind in ("overlay", "aufs"):
        return f"{directory} is in a container's own layer ({kind}), and is lost with the container: mount a volume there"
    return ""


def file_system(directory: Path) -> str:
    """Return the kind of file system that holds this directory, '' if unknown."""
    try:
        if ON_LINUX:
            return kind_in_mountinfo(Path("/proc/self/mountinfo").read_text(), directory)
        mounts = subprocess.run(["mount"], capture_output=True, text=True, check=False, timeout=5).stdout
        return kind_in_mount_list(mounts, directory)
    except (OSError, subprocess.TimeoutExpired):
        return ""


def kind_in_mountinfo(text: str, directory: Path) -> str:
    """Return the kind of the mount of a directory, from Linux's list: the longest path, of equal ones the last."""
    mounts: list[tuple[str, str]] = []
    for line in text.splitlines():
        front, _, back = line.partition(" - ")
        place = front.split()[4].encode().decode("unicode_escape")
        mounts.append((place, back.split()[0]))
    return _longest(mounts, directory)


def kind_in_mount_list(text: str, directory: Path) -> str:
    """Return the same from the output of ``mount`` on other systems: ``server:/x on /x (nfs, …)``."""
    mounts: list[tuple[str, str]] = []
    for line in text.splitlines():
        front, _, options = line.rpartition(" (")
        mounts.append((front.partition(" on ")[2], options.split(",")[0].rstrip(")")))
    return _longest(mounts, directory)


def _longest(mounts: list[tuple[str, str]], directory: Path) -> str:
    best, kind = -1, ""
    for place, its_kind in mounts:
        if directory.is_relative_to(place) and len(place) >= best:
            best, kind = len(place), its_kind
    return kind


def socket_path(directory: Path) -> Path:
    """Return the path of the socket: in the directory, or in a shorter one if that path is too long for a socket."""
    near = directory / "socket"
    if len(os.fsencode(near)) <= LONGEST_SOCKET_PATH:
        return near
    name = hashlib.sha256(os.fsencode(directory)).hexdigest()[:16] + ".socket"
    for base in (
        os.environ.get("XDG_RUNTIME_DIR"),
        f"/run/user/{os.geteuid()}",
        tempfile.gettempdir(),
        "/tmp",
    ):
        if base and Path(base).is_dir() and os.access(base, os.W_OK):
            path = Path(base, f"holdfast-{os.geteuid()}", name)
            if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
                return _private(path)
    raise StoreUnsupported(f"no place is short enough for the socket of {directory}: use a shorter directory")


def _private(path: Path) -> Path:
    folder = path.parent
    folder.mkdir(mode=0o700, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        raise UsageError(
            f"{folder} is not a directory that only you can open: remove it, or use a shorter directory"
        )
    return path


def half_of_memory() -> int:
    """Return half of the memory of this machine or container, in bytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            total = min(total, int(Path(limit).read_text()))
        except (OSError, ValueError):
            continue
    return total // 2
