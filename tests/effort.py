"""How much of a processor something takes: seconds of work, of which a busy machine makes no more. It tests nothing itself.

Bounds are ten times or more what is needed, and far below what the fault beside each of them takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def worked(action: Callable[[], object]) -> float:
    """Seconds of processor time that this process spends on it, in all its threads."""
    begun = time.process_time()
    action()
    return time.process_time() - begun
