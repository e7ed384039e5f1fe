"""The checks that a request passes before its page sees it, and the headers of each response. Pure."""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Final

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
"""The methods that change nothing."""

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""The content security policy: no inline code, and no request to another host."""

HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with no-referrer, browsers send forms with the Origin null
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
"""The headers of every response."""

KEPT: Final = "private, max-age=31536000, immutable"
UNKEPT: Final = "no-store"
"""The caching of static files whose URL has their version, and of everything else."""

LOCAL_NAMES: Final = frozenset({"localhost"})


def caching(path: str, query: bytes) -> str:
    """Returns the caching of a response."""
    return KEPT if path.startswith("/static/") and query.startswith(b"v=") else UNKEPT


def host_fault(host: str, names: Collection[str]) -> str | None:
    """Returns why a Host header is rejected; None if it may pass. A page of another site reaches this server under its
    own name if that name's address changes to this server's (DNS rebinding), so only addresses, localhost and the names
    of the command line pass."""
    name = host_name(host)
    if not name:
        return "the request has no valid Host header"
    if name in LOCAL_NAMES or name in names or _is_address(name):
        return None
    return f"this console is not called {name}: start it with --name {name} if browsers reach it by that name"


def host_name(host: str) -> str:
    """Returns the name or address in a Host header, in lower case; empty if the header is malformed."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        is_port = bool(bracket) and (not port or (port[0] == ":" and port[1:].isdecimal()))
        return name.lower() if is_port else ""
    name, colon, port = host.partition(":")
    if colon and not (port.isascii() and port.isdecimal()):
        return ""
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def origin_fault(method: str, headers: Mapping[str, str]) -> str | None:
    """Returns why a request that changes something is rejected as another site's; None if it may pass. A browser sends
    Origin or Sec-Fetch-Site with it. A client without both is no browser, and has no cookie of one."""
    if method in SAFE_METHODS:
        return None
    site = headers.get("sec-fetch-site")
    if site not in (None, "same-origin", "none"):
        return f"the request comes from another site (Sec-Fetch-Site: {site})"
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != headers.get("host", ""):
        return f"the request comes from another site ({origin})"
    return None


def is_same(given: str, expected: str) -> bool:
    """True if two secrets are equal; takes the same time for every wrong secret."""
    return hmac.compare_digest(given.encode(), expected.encode())


def local_path(target: str) -> str:
    """Returns a path of this server to continue at; "/" for anything that a browser could read as another host."""
    is_local = target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable()
    return target if is_local else "/"
