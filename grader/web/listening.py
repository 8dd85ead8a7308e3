"""Where pages are served, and when that is refused: beyond this machine only with TLS or a named proxy."""

import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from grader.domain.errors import UsageError

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Listening:
    """How pages are reached: the console's, or the students'.

    Attributes:
        host: The address of this machine at which it listens.
        port: 0: any that is free.
        names: The host names by which browsers reach it, with a port where it is not the usual one; on
            loopback, those of loopback are added.
        certificate, key: The files for TLS; None: without.
        proxies: The addresses of the proxies that may connect; with any, nobody else may.
        user_header: The header in which the proxies say who it is; empty: people come with links.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    names: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    user_header: str = ""

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def is_encrypted(self) -> bool:
        """Whether browsers reach it by https: by its own certificate, or through a proxy under a name."""
        return self.certificate is not None or bool(self.proxies)

    def require_safe(self) -> None:
        """Check that nothing is sent in the clear or believed from anybody.

        Raises:
            UsageError: It would be.
        """
        if (self.certificate is None) != (self.key is None):
            raise UsageError("TLS needs two files: give both --tls-cert and --tls-key.")
        for proxy in self.proxies:
            try:
                ip_address(proxy)
            except ValueError:
                raise UsageError(
                    f"'{proxy}' is not the address of a machine: give --proxy as 10.0.0.5."
                ) from None
        if self.user_header and not self.proxies:
            raise UsageError(
                "A header that says who somebody is can be believed from a named proxy only: add --proxy."
            )
        if not self.is_local and not self.is_encrypted:
            raise UsageError(
                f"Pages are served beyond this machine ({self.host}) only with --tls-cert and --tls-key, or "
                "behind a named proxy (--proxy ADDRESS)."
            )
        if (self.proxies or not self.is_local) and not self.names:
            raise UsageError(
                "Give the host name by which browsers reach the pages: --name marks.example.org."
            )

    def hosts(self, port: int) -> frozenset[str]:
        """The values of the `Host` header that are answered.

        Args:
            port: At which it really listens.
        """
        named = {name.lower() for name in self.names}
        if self.is_local and not self.proxies:
            named |= {f"{_bracketed(name)}:{port}" for name in _LOOPBACK}
        return frozenset(named)

    def origins(self, port: int) -> frozenset[str]:
        """The origins of the pages' own addresses.

        Args:
            port: At which it really listens.
        """
        return frozenset(f"{self._scheme}://{host}" for host in self.hosts(port))

    @property
    def _scheme(self) -> str:
        return "https" if self.is_encrypted else "http"

    def address(self, port: int) -> str:
        """The address to open, without a path."""
        return f"{self._scheme}://{self.names[0] if self.names else f'{_bracketed(self.host)}:{port}'}"

    def socket(self) -> socket.socket:
        """A listening socket.

        Raises:
            UsageError: The address or port cannot be used.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((self.host, self.port))
            made.listen(128)  # so that a browser that follows the link at once waits, and is not refused
        except OSError as error:
            made.close()
            raise UsageError(
                f"{self.host}:{self.port} cannot be listened at ({error.strerror}). Choose another --port."
            ) from None
        return made

    def require_readable_certificate(self) -> None:
        """Check the files for TLS.

        Raises:
            UsageError: They are not a certificate and its key.
        """
        if self.certificate is None or self.key is None:
            return
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"{self.certificate} and {self.key} cannot be used for TLS ({error}). "
                "Give a certificate in PEM and its key."
            ) from None


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
