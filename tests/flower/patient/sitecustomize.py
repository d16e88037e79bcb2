"""Gives a ClientApp ten minutes to begin. Flower 1.41 gives it 30 seconds, which a busy machine exceeds; then its node hangs.

Python imports it in every process of Flower that a test starts. It holds no tests.
"""

import flwr.common.constant

flwr.common.constant.HEARTBEAT_DEFAULT_INTERVAL = 600
