"""The signature header of what is posted, checked as a receiver would; and files of secrets."""

import hashlib
import hmac
import os
import time
from pathlib import Path

import pytest

from holdfast.client.signature import read_secret, signature
from holdfast.errors import UsageError


def test_a_receiver_computes_the_same_from_secret_time_and_body() -> None:
    body = '{"text":"é"}'.encode()
    expected = hmac.new(b"s3", b"1764000000." + body, hashlib.sha256).hexdigest()
    assert signature(b"s3", body, 1764000000) == f"t=1764000000,v1={expected}"
    assert signature(b"s3", body + b" ", 1764000000) != signature(b"s3", body, 1764000000)
    assert signature(b"s4", body, 1764000000) != signature(b"s3", body, 1764000000)


def test_it_carries_the_present_time() -> None:
    before = int(time.time())
    moment = int(signature(b"s", b"").split(",")[0].removeprefix("t="))
    assert before <= moment <= time.time()


def test_the_line_end_of_a_file_is_no_part_of_its_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b" a b \r\n")
    file.chmod(0o600)
    assert read_secret(file) == b" a b "


@pytest.mark.parametrize(
    ("content", "mode"), [(b"", 0o600), (b"\n", 0o600), (b"x" * 4097, 0o600), (b"ok", 0o604)]
)
def test_a_file_without_a_secret_or_open_to_everybody_is_refused(
    tmp_path: Path, content: bytes, mode: int
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(UsageError, match="secret"):
        read_secret(file)


def test_a_secret_may_come_from_a_pipe(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.write(writes, b"piped\n")
    os.close(writes)
    try:
        assert read_secret(Path(f"/dev/fd/{reads}")) == b"piped"
    finally:
        os.close(reads)
