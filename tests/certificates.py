"""Certificates made by openssl. Python 3.13 and newer check them with VERIFY_X509_STRICT: an authority has to declare that it
signs certificates, and what it signed has to name its key."""

import shutil
import subprocess
from pathlib import Path

import pytest

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2")
SIGNS = ("-addext", "keyUsage=critical,digitalSignature,keyCertSign")
EXTENSIONS = """
subjectAltName=DNS:localhost
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
basicConstraints=CA:false
"""


def openssl(directory: Path, *words: str) -> None:
    """Run openssl in a directory; skips the test where it is not installed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True, timeout=60)


def make_certificates(directory: Path, *names: str) -> None:
    """Write an authority (`ca.pem`, `ca.key`), and for each name a certificate of `localhost` that it signed, with its key."""
    openssl(
        directory,
        "req",
        "-x509",
        *KEY,
        *SIGNS,
        "-subj",
        "/CN=authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    )
    (directory / "extensions").write_text(EXTENSIONS)
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "extensions")
    for name in names:
        openssl(
            directory, "req", *KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"
        )
        openssl(directory, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")


def make_self_signed(directory: Path) -> tuple[Path, Path]:
    """Write a certificate of this machine that signs itself; returns its file and that of its key."""
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    openssl(directory, "req", "-x509", *KEY, *SIGNS, *names, "-keyout", "own.key", "-out", "own.pem")
    return directory / "own.pem", directory / "own.key"
