"""Seeds that nobody but the judge can foresee: HMACs of a secret that never leaves it."""

import hashlib
import hmac
import random
import secrets


class Seeds:
    """A secret of its own unless one is given, which only a test has reason to do."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def of(self, *labels: object) -> int:
        """A 63-bit seed for one purpose."""
        message = "/".join(map(str, labels)).encode()
        return int.from_bytes(hmac.digest(self._secret, message, hashlib.sha256)[:8]) >> 1

    def random(self, *labels: object) -> random.Random:
        return random.Random(self.of(*labels))
