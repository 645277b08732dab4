"""A server that speaks TLS in front of one that does not, with a certificate of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READ_BYTES = 65_536


@contextlib.contextmanager
def encrypted(port: int, folder: Path) -> Iterator[tuple[int, Path]]:
    """Yield the port of a proxy to `port`, and the certificate to trust."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made_of = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=proxy"
    name = "-addext subjectAltName=IP:127.0.0.1"
    command = ["openssl", "req", *made_of.split(), *name.split()]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with contextlib.ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = server.accept()
                    threading.Thread(target=join, args=(plain,), daemon=True).start()

        def join(plain: socket.socket) -> None:
            with contextlib.suppress(OSError):
                inside = context.wrap_socket(plain, server_side=True)
                outside = socket.create_connection(("127.0.0.1", port))
                threading.Thread(target=pass_on, args=(outside, inside), daemon=True).start()
                pass_on(inside, outside)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1], certificate
        server.shutdown(socket.SHUT_RDWR)


def pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until one side ends."""
    with contextlib.suppress(OSError), source, target:
        while received := source.recv(READ_BYTES):
            target.sendall(received)
