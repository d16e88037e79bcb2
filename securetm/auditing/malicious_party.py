"""Malicious parties in an otherwise real run: one more mechanism replaces the vectors that they send.

A malicious party follows the protocol except for its numbers. No other role can notice that, and in sealed sums no role sees
the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from securetm.auditing.leakage_errors import BrokenAttack
from securetm.contracts import Array, Mechanism, RoundContext, Terms
from securetm.federation.folder import RunFolder
from securetm.federation.party.party import Party
from securetm.federation.simulation.parties import InProcess
from securetm.federation.simulation.simulation import make_party


class Corruption(Protocol):
    """The roles of a run that do not follow the protocol: parties, or the coordinator."""

    def named(self) -> Mapping[str, Any]:
        """What distinguishes such a run from others; it is part of the run's name."""
        ...

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The roles that take the place of honest ones."""
        ...


@dataclass(frozen=True)
class MaliciousParties:
    """How many parties are malicious, the first ones, and what they send; `name` is the name of the attack."""

    liars: int = 0
    name: str = ""
    substitute: Callable[[Array, Terms], Array] | None = None

    def named(self) -> Mapping[str, Any]:
        """What distinguishes such a run from others."""
        return {"liars": self.liars, "lie": self.name}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The roles that take the place of honest ones."""
        if not self.liars:
            return {}
        parties = {name: make_party(folder, name) for name in folder.members}
        malicious = {name: self._corrupted(parties[name]) for name in folder.members[: self.liars]}
        return {"parties": InProcess({**parties, **malicious})}

    def _corrupted(self, party: Party) -> Party:
        """The party with one more mechanism. The agreement keeps its digest, so other roles notice nothing."""
        if self.substitute is None:
            raise BrokenAttack(self.name, "a malicious_vector for its parties")
        profile = party.agreement.profile
        corrupted = replace(profile, mechanisms=(*profile.mechanisms, _SubstituteVector(self.substitute)))
        return replace(party, agreement=replace(party.agreement, profile=corrupted))


@dataclass(frozen=True)
class _SubstituteVector(Mechanism):
    """The last mechanism of a malicious party, after clipping, rounding and noise, and before the sum is sealed."""

    substitute: Callable[[Array, Terms], Array]

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Another vector of the same shape and type."""
        del context
        return self.substitute(vector, terms).astype(vector.dtype)
