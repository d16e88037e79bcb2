"""Carries messages between organisations: frames, spools, TLS, the coordinator's hub and the party's dialer.

Importing it allows TLS 1.3 only: the one suite of TLS 1.2 that is left here needs an RSA key, and all keys are of P-256.
grpc reads the variable when it is used first, so that it is set before anything of this package imports grpc.
"""

import os

os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES256-GCM-SHA384"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it reports every stranger's handshake; events tell what matters
