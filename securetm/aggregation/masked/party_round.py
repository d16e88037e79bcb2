"""A party's half of one masked round: it masks its vector, and answers once for one list of survivors.

It assumes that the coordinator lies. It sends nothing that opens more than the sum over enough parties.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from securetm.aggregation.masked.mask_stream import Mask, apply_masks
from securetm.aggregation.masked.masked_errors import (
    AlreadyUnmasked,
    CalledDropped,
    NotPrepared,
    OtherSurvivors,
    OutOfStep,
    RestoredState,
    RoundAbandoned,
    SetsIncomplete,
    SetsOverlap,
    TooFewSignatures,
    TooFewSurvivors,
)
from securetm.aggregation.masked.messages import (
    SALT,
    Header,
    Kind,
    Outcome,
    Place,
    read_header,
    read_outcome,
    read_place,
    vector_hash,
)
from securetm.aggregation.masked.prekeys import Prekeys
from securetm.aggregation.masked.shares import MASK_KEY, SEED, share_of
from securetm.aggregation.masked.stored_setups import Policy, Prepared
from securetm.contracts import Array, Entropy, Message, Parcel
from securetm.errors import NotInCohort, Refused
from securetm.sessions.exchanges import PartyExchange
from securetm.sessions.framing import Reader, derive, hashed, head, place_bytes
from securetm.sessions.identities import COORDINATOR, SIGNATURE, Identity
from securetm.sessions.labels import Label
from securetm.sessions.roomy import Roomy
from securetm.sessions.sealing import shared_secrets
from securetm.sessions.session_errors import UnexpectedMessage
from securetm.sessions.survivors import SurvivorList


def pair_seed(secret: bytes, at: Place, one: int, two: int) -> bytes:
    """The seed of the mask between two parties in one round: bound to set-up, round, prekey and ordered pair."""
    return derive(secret, at.epoch, Label.PAIR_MASK, at.body(), place_bytes(*sorted((one, two))))


def self_seed(secret: bytes, at: Place, owner: int, salt: bytes) -> bytes:
    """The seed of a party's own mask in one round; the salt is that of the message it masks."""
    return derive(secret, at.epoch, Label.OWN_MASK, at.body(), place_bytes(owner), salt)


def consent_body(place: int, outcome: Outcome) -> bytes:
    """What a party signs if it agrees that these are the survivors."""
    return head(Kind.CONSENT, place) + hashed(Label.SURVIVORS, outcome.body(Kind.SURVIVORS))


@dataclass(frozen=True)
class Ring:
    """A copy of the vector in the ring, to which the masks are added where it lies, and the buffer around it."""

    room: Roomy
    vector: Array


Surplus = Callable[[int], bytes]  # reveals the parts of this party's noise that a sum over so many survivors does not need


@dataclass(frozen=True)
class Quorum:
    """Who takes part in a round, and how many of them must survive."""

    active: tuple[int, ...]  # who is in the set-up and in the cohort
    need: int
    only: SurvivorList  # the one list of survivors over which this question is opened


def check_outcome(outcome: Outcome, identity: Identity, quorum: Quorum) -> None:
    """Refuses lists that overlap, leave somebody out, name a stranger, call this party dropped, or are too short."""
    register, survivors, dropped = identity.register, set(outcome.survivors), set(outcome.dropped)
    for place in sorted(survivors & dropped):
        raise SetsOverlap(register.name(place))
    for place in sorted((survivors | dropped) - set(quorum.active)):
        raise NotInCohort(register.name(place))
    for place in sorted(set(quorum.active) - survivors - dropped):
        raise SetsIncomplete(register.name(place))
    if identity.place not in survivors:
        raise CalledDropped(identity.me)
    if len(survivors) < quorum.need:
        raise TooFewSurvivors(len(survivors), quorum.need)


class MaskedPartyRound(PartyExchange):
    """Run by a party. Afterwards it knows who survived, and nothing of the sum."""

    def __init__(
        self,
        identity: Identity,
        policy: Policy,
        entropy: Entropy,
        prekeys: Prekeys,
        quorum: Quorum,
        tag: bytes,
        ring: Callable[[], Ring],
        surplus: Surplus,
    ) -> None:
        super().__init__()
        self._identity, self._policy, self._entropy, self._quorum = identity, policy, entropy, quorum
        self._prekeys, self._prepared = prekeys, prekeys.prepared()
        self._tag, self._surplus = tag, surplus
        self._ring: Callable[[], Ring] | None = ring  # until the vector is masked: afterwards no role here holds it
        self._begun = False
        self._index: int | None = None  # the prekey it used
        self.answers = {Kind.ADVANCE: self._advance, Kind.UNMASK: self._unmask}
        if policy.consistency:
            self.answers[Kind.SURVIVORS] = self._agree

    def begin(self) -> Sequence[Parcel]:
        """The masked vector, once; after a restart, before anything is masked, a question whether this memory is the latest."""
        self._prekeys.check_current(self._tag, self._prepared)
        if not self._begun:
            self._begun = True
            self._index = self._prekeys.used.get(self._tag)
            if signed := self._prekeys.sent(self._tag):
                self._first = self._again(signed)
            else:
                self._first = self._hello() if self._prekeys.restarted else self._masked()
        return super().begin()

    def receive(self, sender: str, message: Message) -> Sequence[Parcel]:
        """Answers a request of the coordinator, or refuses it. After a newer session object or set-up it refuses all."""
        self._prekeys.check_current(self._tag, self._prepared)
        if not self._begun:
            raise UnexpectedMessage(sender)
        return super().receive(sender, message)

    # ---- masking -----------------------------------------------------------------------------------------------------

    def _at(self, index: int) -> Place:
        return Place(self._prepared.epoch, self._tag, index)

    def _masked(self) -> Message:
        prekeys, me = self._prekeys, self._identity.place
        if not prekeys.left:
            raise NotPrepared()
        begun = Header(me, self._at(prekeys.next), self._entropy.bytes(SALT))
        room = self._under(begun)
        header = replace(begun, vector=vector_hash(room.content))
        signed = self._identity.sign(Label.VECTOR, header.body())
        prekeys.use(header.at.index, self._tag, signed)
        self._index = header.at.index
        return room.enclose(signed)

    def _again(self, signed: bytes) -> Message:
        """The message that was begun before: the same vector under the same prekey and salt, or none."""
        header = read_header(signed, self._identity.me)
        room = self._under(header)
        if vector_hash(room.content) != header.vector:
            raise RoundAbandoned(self._tag.hex()[:16])
        return room.enclose(signed)

    def _under(self, header: Header) -> Roomy:
        """The masked vector as it travels."""
        if self._ring is None:
            raise UnexpectedMessage(COORDINATOR)
        made, self._ring = self._ring, None
        ring = made()
        apply_masks(ring.vector, self._masks(header, self._prepared))
        if sys.byteorder == "big":
            ring.vector.byteswap(inplace=True)
        return ring.room

    def _masks(self, header: Header, prepared: Prepared) -> list[Mask]:
        """One mask of its own, and one with each neighbour."""
        register, me, index = self._identity.register, header.sender, header.at.index
        masks = [(self_seed(prepared.seeds[index], header.at, me, header.salt), True)]
        peers = [peer for peer in prepared.peers if peer in self._quorum.active]
        public = {register.name(peer): prepared.peers[peer][index] for peer in peers}
        for peer, secret in zip(peers, shared_secrets(prepared.mask_keys[index], public), strict=True):
            masks.append((pair_seed(secret, header.at, me, peer), me < peer))  # both must agree: the smaller place adds
        return masks

    # ---- after a restart, or after missing a round ---------------------------------------------------------------------

    def _hello(self) -> bytes:
        body = head(Kind.HELLO, self._identity.place) + self._at(self._prekeys.next).body()
        return self._identity.sign(Label.QUESTION, body)

    def _advance(self, message: bytes) -> Message:
        """Skips to the prekey that the others use. A signed header that it does not remember shows an old memory."""
        reader = Reader(message, COORDINATOR, Kind.ADVANCE)
        at, proof = read_place(reader), bytes(reader.rest())
        at.check(self._prepared.epoch, self._tag)
        if proof:
            self._check_proof(proof)
        prekeys = self._prekeys
        if at.index < prekeys.next and self._index is None:
            raise OutOfStep(COORDINATOR, at.index, prekeys.next)
        prekeys.skip_to(min(at.index, self._prepared.rounds))
        prekeys.restarted = False
        if self._index is not None:
            return b""
        return self._masked()

    def _check_proof(self, proof: bytes) -> None:
        identity, prekeys = self._identity, self._prekeys
        header = read_header(proof, COORDINATOR)
        identity.register.opened(identity.place, COORDINATOR, proof, Label.VECTOR)
        if header.sender != identity.place or header.at.epoch != self._prepared.epoch:
            return
        if prekeys.header(header.at.index) != proof:
            prekeys.void()
            raise RestoredState()

    # ---- opening -----------------------------------------------------------------------------------------------------

    def _read(self, reader: Reader) -> Outcome:
        outcome = read_outcome(reader, len(self._identity.register))
        outcome.at.check(self._prepared.epoch, self._tag)
        if self._index is None:
            raise UnexpectedMessage(COORDINATOR)
        if outcome.at.index != self._index:
            raise OutOfStep(COORDINATOR, outcome.at.index, self._index)
        check_outcome(outcome, self._identity, self._quorum)
        return outcome

    def _agree(self, message: bytes) -> bytes:
        """Signs one list of survivors in a round and no other."""
        reader = Reader(message, COORDINATOR, Kind.SURVIVORS)
        outcome = self._read(reader)
        reader.end()
        self._only_once("agreed", outcome, hashed(Label.SURVIVORS, outcome.body(Kind.SURVIVORS)), OtherSurvivors())
        return self._identity.sign(Label.CONSENT, consent_body(self._identity.place, outcome))

    def _unmask(self, message: bytes) -> bytes:
        """Sends one share of each neighbour's secret: of a survivor's seed or of a dropped party's mask key, never both.

        It also reveals the noise in its own vector that this list of survivors does not need.
        """
        reader = Reader(message, COORDINATOR, Kind.UNMASK)
        outcome = self._read(reader)
        self._check_signatures(outcome, reader)
        reader.end()
        refusal = AlreadyUnmasked(self._tag.hex()[:16])
        self._only_once("revealed", outcome, hashed(Label.UNMASK, outcome.body(Kind.SURVIVORS)), refusal)
        return self._revealed(outcome)

    def _only_once(self, what: str, outcome: Outcome, content: bytes, refusal: Refused) -> None:
        """Records what this party is about to send under a prekey. Refuses anything else than what it sent before."""
        before = self._prekeys.of_setup.get(f"masked {what} {outcome.at.index}")
        if before is not None and before != content:
            raise refusal
        self._quorum.only.hold([self._identity.register.name(place) for place in outcome.survivors])
        if before is None:
            self._prekeys.of_setup.put(f"masked {what} {outcome.at.index}", content)

    def _check_signatures(self, outcome: Outcome, reader: Reader) -> None:
        register = self._identity.register
        signers = reader.places(len(register))
        signatures = reader.entries(signers, SIGNATURE)
        if not self._policy.consistency:
            return
        agreed = hashed(Label.SURVIVORS, outcome.body(Kind.SURVIVORS))
        if self._prekeys.of_setup.get(f"masked agreed {outcome.at.index}") != agreed:
            raise OtherSurvivors()
        for place, signature in signatures.items():
            if place not in outcome.survivors:
                raise NotInCohort(register.name(place))
            register.verify(place, Label.CONSENT, consent_body(place, outcome), signature)
        if len(signers) < self._quorum.need:
            raise TooFewSignatures(len(signers), self._quorum.need)

    def _revealed(self, outcome: Outcome) -> bytes:
        dealers = [dealer for dealer in sorted(self._prepared.bundles) if dealer in self._quorum.active]
        which = {dealer: SEED if dealer in outcome.survivors else MASK_KEY for dealer in dealers}
        shares = (share_of(self._prepared.bundles[dealer], outcome.at.index, which[dealer]) for dealer in dealers)
        body = head(Kind.UNMASKED, self._identity.place) + outcome.at.body() + b"".join(shares)
        body += self._surplus(len(outcome.survivors))
        return self._identity.sign(Label.UNMASKED, body)
