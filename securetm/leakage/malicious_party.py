"""Parties that lie, in an otherwise real run: their own code, and one mechanism that sends something else. It judges nothing.

A lying party keeps to the protocol in all but the numbers: nobody could tell, and where sums are sealed nobody ever sees them.
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
    """Who does not keep to the protocol in an otherwise real run: parties (`Lies`), or the coordinator."""

    def named(self) -> Mapping[str, Any]:
        """What sets such a run apart from others."""
        ...

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """Who takes part in the run in place of those who keep to their word."""
        ...


@dataclass(frozen=True)
class MaliciousParties:
    """How many parties lie, the first ones, and what they send; the name is that of the attack that has them lie."""

    liars: int = 0
    name: str = ""
    lie: Callable[[Array, Terms], Array] | None = None

    def named(self) -> Mapping[str, Any]:
        """What sets a run with these lies apart from others."""
        return {"liars": self.liars, "lie": self.name}

    def roles(self, folder: RunFolder) -> Mapping[str, Any]:
        """Who takes part in the run in place of those who keep to their word."""
        return {"parties": parties_of(folder, self)} if self.liars else {}


@dataclass(frozen=True)
class _SubstituteVector(Mechanism):
    """The last mechanism of a party that lies: after its own clipping, rounding and noise, and before the sum is sealed."""

    lie: Callable[[Array, Terms], Array]

    def on_vector(self, vector: Array, terms: Terms, context: RoundContext) -> Array:
        """Something else of the same form, in a type that travels."""
        del context
        return self.lie(vector, terms).astype(vector.dtype)


def parties_of(folder: RunFolder, malicious: MaliciousParties) -> InProcess:
    """All parties of a run, of which the first ones lie. The others, and the coordinator, are told nothing."""
    parties = {name: make_party(folder, name) for name in folder.members}
    for name in folder.members[: malicious.liars]:
        parties[name] = _with_substitute(parties[name], malicious)
    return InProcess(parties)


def _with_substitute(party: Party, malicious: MaliciousParties) -> Party:
    """The profile keeps its digest: what a party says it keeps to is all that others know of it."""
    if malicious.lie is None:
        raise BrokenAttack(malicious.name, "a lie")
    agreement = party.agreement
    mechanisms = (*agreement.profile.mechanisms, _SubstituteVector(malicious.lie))
    return replace(party, agreement=replace(agreement, profile=replace(agreement.profile, mechanisms=mechanisms)))
