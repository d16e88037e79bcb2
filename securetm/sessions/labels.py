"""The labels of the protocols: one for each purpose for which something is signed, sealed, hashed or derived.

A label stands before the fields, so that nothing that was made for one purpose is accepted for another.
"""

from __future__ import annotations

from enum import Enum

PROTOCOL = b"securetm sessions 3"  # comes before every label
VERSION = 3  # the first byte of every message; 2 had another framing in each sum and signed ledger heads under the masked sum


class Label(Enum):
    """The purpose of a signature, a hash or a key. The text is in the bytes, and in the refusal."""

    # names of sessions and rounds
    ROSTER = "roster"
    ROUND = "round"
    # the set-up of a masked sum
    NONCE = "nonce"
    COMMITMENT = "commitment"
    COMMITS = "commits"
    REVEAL = "reveal"
    SEED = "seed"
    SEEDS = "seeds"
    POLICY = "policy"
    SETUP = "setup"
    GRAPH = "graph"
    SHARE = "share"
    SHARE_SEAL = "sealed shares"
    SHARES = "shares"
    SHARES_HELD = "shares of one holder"
    EPOCH = "epoch"
    RECEIPT = "receipt"
    # a round of a masked sum
    QUESTION = "question"
    VECTOR = "masked vector"
    OWN_MASK = "self mask"
    PAIR_MASK = "pair mask"
    SURVIVORS = "survivors"
    CONSENT = "list of survivors"
    UNMASK = "unmask"
    UNMASKED = "unmasked shares"
    # the key of an encrypted sum
    KEY_HELLO = "key of a set-up"
    SUM_KEY_SEAL = "sealed sum key"
    SUM_KEY_NAME = "name of a sum key"
    # ledgers, under every aggregation
    LEDGER_HEAD = "head of a ledger"
    LEDGER_SEEN = "head of another's ledger"
