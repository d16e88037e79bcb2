"""The types that models, mechanisms and aggregations share. This file re-exports them, and decides nothing.

Every federated topic model learns from sums over documents. A mechanism changes what can be learned from a sum. An aggregation
changes who sees the sum.
"""

from securetm.contracts.aggregation import Aggregation, Exchange, Parcel, Session
from securetm.contracts.mechanism import CountNoise, Entropy, Mechanism, NamingThreshold, NoiseBy, RoundContext, Sampling, Store
from securetm.contracts.model import MOST_TOPICS, ClippedSum, Documents, Losses, Perturbed, Public, Query, Reads, TopicModel
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
    "INF",
    "MOST_TOPICS",
    "PART",
    "Adversary",
    "Aggregation",
    "Answer",
    "Array",
    "Block",
    "Budget",
    "Claim",
    "ClippedSum",
    "Cohort",
    "CountNoise",
    "Documents",
    "Domain",
    "Entropy",
    "Exchange",
    "Losses",
    "Mechanism",
    "Memory",
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
