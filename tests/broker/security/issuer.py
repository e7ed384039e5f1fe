"""A small issuer of tokens: its keys, the tokens that it signs, and its keys over HTTP, as OpenID providers serve
them."""

from __future__ import annotations

import base64
import http.server
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

HOUR_S = 3600
ALLOWED = jwt.PyJWS()


@cache
def rsa_key(bits: int = 2048, _name: str = "") -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


@cache
def ec_key(_name: str = "") -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def jwk(key: Key, kid: str | None, **more: object) -> dict[str, object]:
    """Returns the public part of a key, in the form of a JWKS."""
    if isinstance(key, rsa.RSAPrivateKey):
        public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        public = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        public = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
    public.pop("key_ops", None)
    return {**public, **({} if kid is None else {"kid": kid}), **more}


def jwks(*keys: Mapping[str, object]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def claims(**changes: object) -> dict[str, object]:
    """Returns the claims of alice's token for an hour; a change to None removes a claim."""
    now = int(time.time())
    usual = {"sub": "alice", "iat": now, "exp": now + HOUR_S, "scope": "kafka", **changes}
    return {name: value for name, value in usual.items() if value is not None}


def token(
    key: Key, kid: str | None = "one", algorithm: str = "ES256", header: Mapping[str, object] | None = None,
    **changes: object,
) -> str:  # fmt: skip
    """Returns a token signed with the key."""
    headers = {**({} if kid is None else {"kid": kid}), **(header or {})}
    return ALLOWED.encode(json.dumps(claims(**changes)).encode(), key, algorithm, headers)


def part(value: object) -> str:
    """Returns one part of a hand-made token."""
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(header: object = None, **changes: object) -> str:
    """Returns a token without a signature."""
    return f"{part({'alg': 'none'} if header is None else header)}.{part(claims(**changes))}."


def bearer(of: str, *extensions: str, authzid: str = "") -> bytes:
    """Returns the client's first message."""
    first = f"n,a={authzid}," if authzid else "n,,"
    return "\x01".join((first, f"auth=Bearer {of}", *extensions, "", "")).encode()


class Issuer:
    """Serves keys over HTTP. A test can change the keys, and make it fail."""

    def __init__(self, *keys: Mapping[str, object]) -> None:
        self.keys = keys
        self.requests = 0
        self.fails = False
        self.url = ""


@contextmanager
def serving(issuer: Issuer) -> Iterator[Issuer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.requests += 1
            body = jwks(*issuer.keys)
            self.send_response(503 if issuer.fails else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    issuer.url = f"http://127.0.0.1:{server.server_port}/keys"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
