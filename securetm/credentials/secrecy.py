"""What keeps secrets of a process out of files that others may get: no core dumps, and no look into the memory of the process.

It protects from no administrator of the machine, and from no swap: encrypt the swap, or have none.
"""

from __future__ import annotations

import ctypes
import resource
import sys
from contextlib import suppress

_PR_SET_DUMPABLE = 4  # <linux/prctl.h>


def keep_out_of_core_dumps() -> None:
    """Lets this process, and those it starts, write no core dump; on Linux no other process of the user can trace it either.

    A role calls it before it opens its keys. Where the system does not know one of both, the other still holds.
    """
    with suppress(ValueError, OSError):  # a limit that is lower already stays
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
