"""Gives a ClientApp ten minutes to begin. Flower 1.41 gives it 30 seconds, which a busy machine exceeds; then its node hangs.

Python imports it in every process of Flower that a test starts. It holds no tests.
"""

import sys

if any(part.endswith(("flower-superlink", "flower-supernode")) for part in sys.orig_argv):
    import flwr.common.constant

    flwr.common.constant.HEARTBEAT_DEFAULT_INTERVAL = 600
