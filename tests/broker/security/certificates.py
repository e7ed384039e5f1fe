"""An authority and its certificates, made by the openssl command."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def openssl(*arguments: str) -> None:
    subprocess.run(("openssl", *arguments), check=True, capture_output=True, timeout=60)


class Authority:
    """Signs certificates. The keys are of elliptic curves, which take a millisecond to create."""

    def __init__(self, directory: Path, name: str = "ca") -> None:
        self.directory = directory
        self.certificate = directory / f"{name}.pem"
        self._key = directory / f"{name}.key"
        _key(self._key)
        openssl("req", "-x509", "-new", "-key", str(self._key), "-subj", f"/CN={name}", "-days", "3",
                "-out", str(self.certificate))  # fmt: skip

    def signed(self, name: str, directory: Path) -> Authority:
        """Returns an authority whose certificate is signed by this one."""
        made = Authority(directory, name)
        request, extensions = directory / f"{name}.csr", directory / f"{name}.ext"
        extensions.write_text("basicConstraints=critical,CA:TRUE\n")
        openssl("req", "-new", "-key", str(made._key), "-subj", f"/CN={name}", "-out", str(request))
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key),
                "-CAcreateserial", "-days", "3", "-extfile", str(extensions),
                "-out", str(made.certificate))  # fmt: skip
        return made

    def issue(self, name: str, subject: str = "/CN=localhost", days: int = 2) -> Path:
        """Returns a file with a private key and its certificate, for localhost."""
        key, request, certificate, extensions, both = (
            self.directory / f"{name}.{end}" for end in ("key", "csr", "crt", "ext", "pem")
        )
        _key(key)
        extensions.write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-new", "-utf8", "-key", str(key), "-subj", subject, "-out", str(request))
        openssl("x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self._key),
                "-CAcreateserial", "-days", str(days), "-extfile", str(extensions),
                "-out", str(certificate))  # fmt: skip
        both.touch(0o600)
        both.write_text(key.read_text() + certificate.read_text())
        return both


def _key(path: Path) -> None:
    path.touch(0o600)
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-out", str(path))


def client_context(authority: Authority, keystore: Path | None = None) -> ssl.SSLContext:
    """Returns the context of a client that trusts the authority, and shows a certificate if it has one."""
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if keystore is not None:
        context.load_cert_chain(keystore)
    return context
