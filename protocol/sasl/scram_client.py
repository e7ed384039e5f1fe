"""The client's side of SCRAM: proves the password, and checks that the broker knows the user's keys."""

from __future__ import annotations

import base64
import hashlib
import hmac
from functools import lru_cache

from protocol.sasl.exchange import SaslError
from protocol.sasl.scram import DIGESTS, MAX_ITERATIONS, MIN_ITERATIONS, SERVER_FINAL, SERVER_FIRST, escaped, xor


class ScramClient:
    """An exchange: call `first`, then `final` with the broker's answer, then `check` with the next answer."""

    def __init__(self, mechanism: str, name: str, password: str, nonce: str) -> None:
        """`nonce` is random, and new for each exchange."""
        self._digest = DIGESTS[mechanism]
        self._password = password
        self._nonce = nonce
        self._bare = f"n={escaped(name)},r={nonce}"
        self._verifier = b""

    def first(self) -> bytes:
        """Returns the first message."""
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        """Returns the message that proves the password. Raises SaslError for an invalid answer, or one with too many or
        too few iterations."""
        text = answer.decode("utf-8", "replace")
        match = SERVER_FIRST.fullmatch(text)
        if match is None or not match["nonce"].startswith(self._nonce) or match["nonce"] == self._nonce:
            raise SaslError("the broker's first message does not answer this client's")
        iterations = int(match["iterations"])
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise SaslError(f"the broker asks for {iterations} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS}")
        salted = salted_password(self._digest, self._password, base64.b64decode(match["salt"]), iterations)
        client_key = hmac.digest(salted, b"Client Key", self._digest)
        stored_key = hashlib.new(self._digest, client_key).digest()
        without_proof = f"c=biws,r={match['nonce']}"
        exchanged = f"{self._bare},{text},{without_proof}".encode()
        proof = xor(client_key, hmac.digest(stored_key, exchanged, self._digest))
        self._verifier = hmac.digest(hmac.digest(salted, b"Server Key", self._digest), exchanged, self._digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, answer: bytes) -> None:
        """Raises SaslError if the broker does not prove that it knows the user's keys."""
        match = SERVER_FINAL.fullmatch(answer.decode("utf-8", "replace"))
        signature = b"" if match is None or match["signature"] is None else base64.b64decode(match["signature"])
        if not self._verifier or not hmac.compare_digest(signature, self._verifier):
            raise SaslError("the broker does not prove that it knows the user")


@lru_cache(maxsize=64)
def salted_password(digest: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Returns the salted password. Cached, because it takes milliseconds, and clients connect again."""
    return hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
