"""Malicious parties in an otherwise real run: one more mechanism replaces what they send.

A malicious party follows the protocol in all but the numbers. Nobody can tell, and in sealed sums nobody sees the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from securetm.contracts import Array, Mechanism, RoundContext, Terms
from securetm.federation.folder import RunFolder
from securetm.federation.parties import InProcess
from securetm.federation.party import Party
from securetm.federation.simulation import make_party
from securetm.leakage.leakage_errors import BrokenAttack


class Corruption(Protocol):
    """The roles of a run that do not follow the protocol: parties, or the coordinator."""

    def named(self) -> Mapping[str, Any]:
        """What tells such a run from others."""
        ...

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The roles that take the place of honest ones."""
        ...


@dataclass(frozen=True)
class MaliciousParties:
    """How many parties are malicious, the first ones, and what they send; `name` is the attack that says so."""

    liars: int = 0
    name: str = ""
    substitute: Callable[[Array, Terms], Array] | None = None

    def named(self) -> Mapping[str, Any]:
        """What tells such a run from others."""
        return {"liars": self.liars, "lie": self.name}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """The roles that take the place of honest ones."""
        return {"parties": parties_of(folder, self)} if self.liars else {}


@dataclass(frozen=True)
class _SubstituteVector(Mechanism):
    """The last mechanism of a malicious party, after clipping, rounding and noise, and before the sum is sealed."""

    substitute: Callable[[Array, Terms], Array]

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Another vector of the same shape and type."""
        del context
        return self.substitute(vector, terms).astype(vector.dtype)


def parties_of(folder: RunFolder, malicious: MaliciousParties) -> InProcess:
    """All parties of a run, the first ones malicious. The other roles do not know."""
    parties = {name: make_party(folder, name) for name in folder.members}
    for name in folder.members[: malicious.liars]:
        parties[name] = _with_substitute(parties[name], malicious)
    return InProcess(parties)


def _with_substitute(party: Party, malicious: MaliciousParties) -> Party:
    """The agreement keeps its digest, so other roles notice nothing."""
    if malicious.substitute is None:
        raise BrokenAttack(malicious.name, "a lie")
    agreement = party.agreement
    mechanisms = (*agreement.profile.mechanisms, _SubstituteVector(malicious.substitute))
    return replace(party, agreement=replace(agreement, profile=replace(agreement.profile, mechanisms=mechanisms)))
