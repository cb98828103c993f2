# Copyright: (c) 2026, baremetal.gpu_cluster contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A mirror of the site, for the nodes of the lab: signed packages, real metadata, and everything that goes wrong."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

#: This machine on the lab's management bridge.
ADDRESS = "198.18.10.1"
PORTAL = b"<!DOCTYPE html><html><head><title>Sign in to the network</title></head></html>"

SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: A package of the lab's mirror
License: GPL-3.0-or-later
{build_arch}
%description
A package of the lab's mirror.
%install
mkdir -p %{{buildroot}}/usr/share/{name}
echo "{name} {version}" > %{{buildroot}}/usr/share/{name}/version
%files
/usr/share/{name}
"""


class Keys:
    """Signing keys in a key ring of their own; the agent ends with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(mode=0o700)

    def gpg(self, *arguments: str, when: str = "") -> str:
        # Keys made in the past make an expired one. A year back is safe from clocks that differ.
        faked = ["--faked-system-time", when] if when else []
        return run("gpg", "--homedir", str(self.folder), "--batch", "--quiet", *faked, *arguments)

    def make(self, name: str, expires: str = "0", when: str = "") -> str:
        """A new key for signing; its fingerprint."""
        self.gpg(
            "--passphrase",
            "",
            "--quick-generate-key",
            f"{name} <{name}@example.com>",
            "rsa2048",
            "sign",
            expires,
            when=when,
        )
        return self.fingerprint(name)

    def fingerprint(self, name: str) -> str:
        lines = self.gpg("--list-keys", "--with-colons", f"<{name}@example.com>").splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr:"))

    def public(self, name: str) -> str:
        return self.gpg("--armor", "--export", f"<{name}@example.com>")

    def close(self) -> None:
        run("gpgconf", "--homedir", str(self.folder), "--kill", "all")


def run(*argv: str) -> str:
    """A command that must end well."""
    ended = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, f"{' '.join(argv)}: {ended.stderr}"
    return ended.stdout


def build(folder: Path, keys: Keys, signer: str, name: str, *, version: str = "1", arch: str = "noarch") -> Path:
    """A package with content, signed when there is a signer."""
    work = folder.parent / f"work-{folder.name}-{name}-{version}-{arch}"
    work.mkdir(parents=True)
    spec = work / f"{name}.spec"
    # Said in the file, another machine's architecture would be refused; asked for as target, it is not.
    build_arch = "BuildArch: noarch" if arch == "noarch" else ""
    spec.write_text(SPEC.format(name=name, version=version, build_arch=build_arch))
    defines = {
        "_topdir": work / "rpmbuild",
        "_rpmdir": folder,
        "_dbpath": work / "rpmdb",
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "_binary_payload": "w1.gzdio",
        "_source_payload": "w1.gzdio",
        "debug_package": "%{nil}",
        "__gpg": shutil.which("gpg") or "/usr/bin/gpg",
        "_gpg_path": keys.folder,
        "_gpg_name": f"{signer}@example.com",
    }
    words = [word for key, value in defines.items() for word in ("--define", f"{key} {value}")]
    run("rpmbuild", "-bb", "--quiet", "--target", f"{arch}-linux", *words, str(spec))
    package = folder / f"{name}-{version}-1.{arch}.rpm"
    if signer:
        run("rpmsign", "--addsign", *words, str(package))
    return package


def index(folder: Path) -> None:
    """Metadata of what is in a folder."""
    run("createrepo_c", "--quiet", "--no-database", str(folder))


class Mirror:
    """An HTTP server on the lab's bridge that serves a folder, and lists what it was asked for."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[str] = []
        mirror = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *arguments: object) -> None:
                super().__init__(*arguments, directory=str(folder))  # type: ignore[arg-type]

            def do_GET(self) -> None:
                mirror.requests.append(self.path)
                if self.path.startswith("/portal/"):
                    self.send_response(200)
                    self.send_header("Content-Type", "text/html")
                    self.end_headers()
                    self.wfile.write(PORTAL)
                else:
                    super().do_GET()

            def log_message(self, format: str, *arguments: object) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer((ADDRESS, 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

        self.scheme = "http"

    def secure(self, folder: Path) -> str:
        """Go on with TLS, with a certificate that no system knows; the certificate."""
        key, certificate = folder / "tls.key", folder / "tls.crt"
        run(
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=mirror"),
            *("-addext", f"subjectAltName=IP:{ADDRESS}", "-keyout", str(key), "-out", str(certificate)),
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "https"
        return certificate.read_text()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{ADDRESS}:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Proxy:
    """A proxy that passes requests on, and lists them."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                proxy.requests.append(self.path)
                parts = urlsplit(self.path)
                connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
                connection.request("GET", parts.path)
                answer = connection.getresponse()
                body = answer.read()
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                connection.close()

            def log_message(self, format: str, *arguments: object) -> None:
                """The list is enough."""

        self.server = ThreadingHTTPServer((ADDRESS, 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def silent_server() -> Iterator[str]:
    """A port that accepts connections and never says a word."""
    with socket.create_server((ADDRESS, 0), backlog=16) as listener:
        yield f"http://{ADDRESS}:{listener.getsockname()[1]}"


def closed_port() -> str:
    """A port on which nobody listens."""
    with socket.create_server((ADDRESS, 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://{ADDRESS}:{port}"


def tamper(package: Path) -> None:
    """Change one byte of a package's content, and leave its length."""
    size = os.path.getsize(package)
    with package.open("r+b") as stream:
        stream.seek(size - 20)
        byte = stream.read(1)
        stream.seek(size - 20)
        stream.write(bytes([byte[0] ^ 0xFF]))
