"""What a helper process runs: it encrypts or decrypts rows for its parent until the pipe closes. It keeps nothing."""

from __future__ import annotations

import os
import sys

from securetm.aggregation.homomorphic.bfv import BfvCode
from securetm.aggregation.homomorphic.ckks import CkksCode
from securetm.aggregation.homomorphic.helper_processes import put_work, take_work
from securetm.aggregation.homomorphic.seal_library import Code, decrypt_here, encrypt_here
from securetm.entropy import OperatingSystem

CODES: dict[str, Code] = {"bfv": BfvCode(), "ckks": CkksCode()}


def main() -> None:
    """Answers until the parent ends. Whatever libraries print goes to standard error."""
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while (asked := take_work(sys.stdin.buffer)) is not None:
        work, (secret, *arrays) = asked
        assert work is not None
        code = CODES[work.code]
        if work.do == "encrypt":
            put_work(replies, None, encrypt_here(code, work.fit, secret, arrays[0], OperatingSystem()))
        else:
            put_work(replies, None, [decrypt_here(code, work.fit, secret, arrays[0], arrays[1])])


if __name__ == "__main__":
    main()
