"""What is required of a profile, and what a profile is: plain records, read from TOML elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from securetm.contracts.aggregation import Aggregation
from securetm.contracts.mechanism import Mechanism
from securetm.contracts.terms import Claim, Unit


@dataclass(frozen=True)
class Adversary:
    name: str
    behaviour: str
    sees: tuple[str, ...]  # channels of the transcript
    colludes_with_parties: int = 0


@dataclass(frozen=True)
class Requirement:
    claim: Claim
    because: str


@dataclass(frozen=True)
class ThreatModel:
    """The adversaries, what each sees, what is required of a profile, and which leaks are accepted."""

    name: str
    title: str
    adversaries: tuple[Adversary, ...]
    requires: tuple[Requirement, ...]
    accepts: tuple[tuple[str, str], ...] = ()  # what, and the reason
    out_of_scope: tuple[str, ...] = ()

    def adversary(self, name: str) -> Adversary:
        """The adversary of that name."""
        return next(one for one in self.adversaries if one.name == name)


@dataclass(frozen=True)
class Budget:
    unit: Unit
    epsilon: float
    delta: float


@dataclass(frozen=True)
class Profile:
    """A named choice of mechanisms, aggregation, threat model and budget. Its digest is in every round id."""

    name: str
    title: str
    threat_model: str
    mechanisms: tuple[Mechanism, ...]
    aggregation: Aggregation
    vocabularies: tuple[str, ...]  # the sources of a vocabulary that this profile allows
    digest: bytes
    minimum_parties: int = 2
    minimum_documents: int = 1  # in any sum, or held by the parties where coins choose; each party enforces its share
    threshold: int = 1  # parties that must remain in a sum, and
    threshold_share: float = 0.0  # the share of the cohort that must; the larger counts
    colluding: int = 0
    budget: Budget | None = None
    hides_from_active: bool = False  # whether even a coordinator that breaks the rules must see nothing but sums
    danger: str = ""  # printed in red wherever the profile is shown
