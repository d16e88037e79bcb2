"""The types that models, mechanisms and aggregations share. This file re-exports them, and decides nothing.

Every federated topic model learns from sums over documents. A mechanism changes what can be learned from a sum. An aggregation
changes who sees the sum.
"""

from securetm.contracts.aggregation import Aggregation, Exchange, Parcel, Session
from securetm.contracts.blocks import BLOCK_DOCUMENTS, IN_MEMORY, ON_DISK, BlockedDocuments, DocumentBlock, Keeping
from securetm.contracts.engine import Engine
from securetm.contracts.mechanism import CountNoise, Entropy, Mechanism, NamingThreshold, NoiseBy, RoundContext, Sampling, Store
from securetm.contracts.model import (
    MOST_TOPICS,
    ClippedSum,
    Documents,
    Losses,
    NamingQuery,
    Perturbed,
    Public,
    Query,
    Reads,
    TopicModel,
)
from securetm.contracts.requirements import Adversary, Budget, Profile, Requirement, ThreatModel
from securetm.contracts.terms import (
    INF,
    PART,
    Answer,
    Array,
    Block,
    Claim,
    Cohort,
    Domain,
    Memory,
    Needs,
    Noised,
    Roster,
    Rows,
    State,
    Terms,
    Unit,
)

__all__ = [
    "BLOCK_DOCUMENTS",
    "INF",
    "IN_MEMORY",
    "MOST_TOPICS",
    "ON_DISK",
    "PART",
    "Adversary",
    "Aggregation",
    "Answer",
    "Array",
    "Block",
    "BlockedDocuments",
    "Budget",
    "Claim",
    "ClippedSum",
    "Cohort",
    "CountNoise",
    "DocumentBlock",
    "Documents",
    "Domain",
    "Engine",
    "Entropy",
    "Exchange",
    "Keeping",
    "Losses",
    "Mechanism",
    "Memory",
    "NamingQuery",
    "NamingThreshold",
    "Needs",
    "NoiseBy",
    "Noised",
    "Parcel",
    "Perturbed",
    "Profile",
    "Public",
    "Query",
    "Reads",
    "Requirement",
    "Roster",
    "RoundContext",
    "Rows",
    "Sampling",
    "Session",
    "State",
    "Store",
    "Terms",
    "ThreatModel",
    "TopicModel",
    "Unit",
]
