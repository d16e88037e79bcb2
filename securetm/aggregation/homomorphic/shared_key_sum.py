"""What encrypted sums under one shared key have in common: who opens them, what they claim, and their sessions.

It knows neither BFV nor CKKS; each brings its code and the fit of its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from securetm.aggregation.homomorphic.encrypted_sessions import EncryptedCoordinatorSession, EncryptedPartySession
from securetm.aggregation.homomorphic.key_setup import LEAST
from securetm.aggregation.homomorphic.parameters import DIGITS, MODULI, Fit, fit_whole
from securetm.aggregation.homomorphic.seal_library import Code
from securetm.aggregation.homomorphic.sum_key import BOX, HELLO_SIZE, KEY_ID
from securetm.contracts import Aggregation, Claim, Cohort, Domain, Entropy, Needs, Roster, Store, Terms
from securetm.errors import NeedsIntegers, NeedsSum
from securetm.sessions.framing import HASH
from securetm.sessions.identities import COORDINATOR, PinnedRoster, identity_of


@dataclass(frozen=True)
class SharedKeySum(Aggregation):
    """The parties encrypt and open; the coordinator adds ciphertexts."""

    opened_by: ClassVar[str] = "parties"
    code: ClassVar[Code]

    def fit(self, terms: Terms, cohort: Cohort) -> tuple[Terms, Fit]:
        """The admitted terms, and the parameters that every role derives from them."""
        if terms.needs is not Needs.SUM or terms.ragged:
            raise NeedsSum(self.code.name)
        parties = len(cohort.members)
        return self.fit_real(terms, parties) if terms.domain is Domain.REAL else fit_whole(self.code.name, terms, parties)

    def fit_real(self, terms: Terms, parties: int) -> tuple[Terms, Fit]:
        """The same for real numbers. Refused, unless a sum says how it carries them."""
        raise NeedsIntegers(self.code.name)

    def error(self, terms: Terms, cohort: Cohort) -> float:
        """No error: whole numbers are added exactly."""
        return 0.0

    def claims(self, cohort: Cohort) -> frozenset[Claim]:
        """Against the coordinator alone: with the help of one party, who holds the key, it reads everything."""
        return frozenset({Claim("sees only sums", COORDINATOR, colluding=0)})

    def admit(self, terms: Terms, cohort: Cohort) -> Terms:
        """Sums whose total fits the ciphertexts."""
        return self.fit(terms, cohort)[0]

    def remaining(self, cohort: Cohort, joined: int) -> int:
        """The number of parties in a sum that a party requires before it opens it."""
        return max(LEAST, cohort.fewest)

    def longest(self, parties: int, rounds: int, terms: Terms | None) -> tuple[int, int]:
        """Of a set-up, the sealed keys and the bundle of hellos; of a round, fresh ciphertexts and both halves of their sum."""
        named = 4 + HASH + KEY_ID + 2 + 2 * parties  # more than any message begins with
        if terms is None:
            return max(named + parties * BOX, HELLO_SIZE), named + parties * HELLO_SIZE + BOX
        most = Fit(MODULI[-1], parties, 1, digits=DIGITS[-1])  # the widest that any fit has
        return named + most.fresh_bytes(terms.size), named + most.sum_bytes(terms.size)

    def party(self, me: str, roster: Roster, entropy: Entropy, store: Store) -> EncryptedPartySession:
        """A party's session: it holds the key and opens sums."""
        return EncryptedPartySession(identity_of(me, roster, store), entropy, store, self.code, self.fit)

    def coordinator(self, roster: Roster, store: Store) -> EncryptedCoordinatorSession:
        """The coordinator's session: it adds ciphertexts."""
        return EncryptedCoordinatorSession(PinnedRoster(roster), store, self.code, self.fit)
