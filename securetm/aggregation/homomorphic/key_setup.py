"""The set-up exchange of BFV and CKKS, both halves: hello, the bundle of hellos, sealed keys, ready. It adds nothing up.

Who draws the key is the first member in roster order that said hello, so that the order of arrival decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from securetm.aggregation.homomorphic.homomorphic_errors import UnlikeKeys
from securetm.aggregation.homomorphic.key_messages import (
    BOX,
    BUNDLE,
    HELLO,
    HELLO_BYTES,
    KEY,
    KEY_ID,
    READY,
    SEALED,
    as_list,
    body,
    check_hello,
    head,
    hello_of,
    keep,
    kept,
    key_id,
    listed,
    member_at,
    open_sealed,
    pack_secret,
    place,
    say_hello,
    seal_for,
    sized,
    unpack_secret,
)
from securetm.aggregation.homomorphic.seal_library import draw_ternary
from securetm.contracts import Entropy, Parcel, Roster, Store
from securetm.errors import Duplicate, Malformed, NotInCohort, TooFewParties
from securetm.sessions.session_errors import NoIdentity, UnexpectedMessage

COORDINATOR = "coordinator"
IDENTITY, EPHEMERAL, SECRET_KEY, HOLDERS = "identity", "sum set-up", "sum key", "sum key holders"


@dataclass
class KeyPartySetup:
    """Run by a party, which then knows the secret key and who drew it."""

    me: str
    roster: Roster
    code: str
    entropy: Entropy
    store: Store

    def begin(self) -> Sequence[Parcel]:
        """A signed key for this set-up alone; the private half waits in the store for the sealed key."""
        identity = self.store.get(IDENTITY)
        if identity is None:
            raise NoIdentity()
        ephemeral = self.entropy.bytes(32)
        keep(self.store, self.roster, EPHEMERAL, ephemeral)
        hello = say_hello(self.roster, self.code, self.me, ephemeral, identity)
        return ((COORDINATOR, head(HELLO, self.roster) + hello.packed()),)

    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]:
        """The bundle, if this party is to draw the key; else the key."""
        if sender != COORDINATOR:
            raise NotInCohort(sender)
        if message[3:4] == bytes([BUNDLE]):
            return self._generate(body(message, BUNDLE, self.roster, sender))
        return self._take(body(message, KEY, self.roster, sender))

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        """A party waits for nobody."""
        del missing
        return ()

    def _generate(self, content: bytes) -> Sequence[Parcel]:
        """A new secret key, sealed to each member whose hello its own identity signed."""
        hellos = {name: hello_of(packed) for name, packed in listed(self.roster, content, HELLO_BYTES, COORDINATOR).items()}
        for name, hello in hellos.items():
            check_hello(self.roster, self.code, name, hello)
        ephemeral = self._ephemeral()
        if self.me not in hellos or len(hellos) < 2:
            raise Malformed(COORDINATOR, "the bundle lacks this party or the others")
        packed = pack_secret(draw_ternary(self.entropy))
        mine = (self.me, hellos[self.me].public)
        boxes = {
            name: seal_for(self.roster, self.code, ephemeral, (mine, (name, hello.public)), packed)
            for name, hello in hellos.items()
            if name != self.me
        }
        self._settle(packed)
        return ((COORDINATOR, head(SEALED, self.roster) + key_id(packed) + as_list(self.roster, boxes)),)

    def _take(self, content: bytes) -> Sequence[Parcel]:
        """Opens the key that another member drew."""
        content = sized(content, 2 + HELLO_BYTES + HELLO_BYTES + BOX, COORDINATOR)
        generator = member_at(self.roster, content[:2], COORDINATOR)
        theirs, own = hello_of(content[2:]), hello_of(content[2 + HELLO_BYTES :])
        check_hello(self.roster, self.code, generator, theirs)
        check_hello(self.roster, self.code, self.me, own)
        pair = ((generator, theirs.public), (self.me, own.public))
        packed = open_sealed(self.roster, self.code, self._ephemeral(), pair, content[-BOX:])
        unpack_secret(packed, generator)
        self._settle(packed)
        return ((COORDINATOR, head(READY, self.roster) + key_id(packed)),)

    def _ephemeral(self) -> bytes:
        ephemeral = kept(self.store, self.roster, EPHEMERAL)
        if ephemeral is None:
            raise Malformed(COORDINATOR, "no set-up is open")
        return ephemeral

    def _settle(self, packed: bytes) -> None:
        """Keeps the key, and forgets what would open its box again."""
        keep(self.store, self.roster, SECRET_KEY, packed)
        keep(self.store, self.roster, EPHEMERAL, b"")


@dataclass
class KeyCoordinatorSetup:
    """Run by the coordinator, which then knows who holds the key, and its name: sixteen bytes that say nothing of it."""

    roster: Roster
    code: str
    store: Store
    _hellos: dict[str, bytes] = field(default_factory=dict)
    _awaited: set[str] = field(default_factory=set)
    _generator: str = ""
    _id: bytes = b""
    _ready: list[str] = field(default_factory=list)

    def begin(self) -> Sequence[Parcel]:
        """The parties speak first."""
        return ()

    def receive(self, sender: str, message: bytes) -> Sequence[Parcel]:
        """One message of the present wave from each member; the last one ends it."""
        if not self._hellos and not self._awaited:
            self._awaited = set(self.roster.members)
        if sender not in self.roster.members:
            raise NotInCohort(sender)
        if sender not in self._awaited:
            raise Duplicate(sender) if not self._generator or sender in self._ready else UnexpectedMessage(sender)
        if not self._generator:
            self._greet(sender, message)
        elif not self._id:
            return self._boxes(sender, message)
        else:
            self._note(sender, message)
        self._awaited.discard(sender)
        return self._go_on()

    def expire(self, missing: Sequence[str]) -> Sequence[Parcel]:
        """Whoever is missing has no key in this session; if it was to draw it, the next one does."""
        if not self._hellos and not self._awaited:
            self._awaited = set(self.roster.members)
        gone = set(missing) & self._awaited
        self._awaited -= gone
        if self._generator in gone and not self._id:
            self._hellos.pop(self._generator)
            self._generator = ""
        return self._go_on() if gone else ()

    def _greet(self, sender: str, message: bytes) -> None:
        packed = sized(body(message, HELLO, self.roster, sender), HELLO_BYTES, sender)
        check_hello(self.roster, self.code, sender, hello_of(packed))
        self._hellos[sender] = packed

    def _go_on(self) -> Sequence[Parcel]:
        if self._awaited or self._id:
            return ()
        if len(self._hellos) < 2:
            raise TooFewParties(len(self._hellos), len(self.roster.members), 2)
        self._generator = next(m for m in self.roster.members if m in self._hellos)
        self._awaited = {self._generator}
        return ((self._generator, head(BUNDLE, self.roster) + as_list(self.roster, self._hellos)),)

    def _boxes(self, sender: str, message: bytes) -> Sequence[Parcel]:
        """Hands each box to its recipient, with both hellos that it is bound to."""
        content = body(message, SEALED, self.roster, sender)
        boxes = listed(self.roster, content[KEY_ID:], BOX, sender)
        if set(boxes) != set(self._hellos) - {sender}:
            raise Malformed(sender, "it did not seal the key to exactly the others")
        self._id = content[:KEY_ID]
        self._awaited = set(boxes)
        self._holds(sender)
        start = head(KEY, self.roster) + place(self.roster, sender) + self._hellos[sender]
        return tuple((name, start + self._hellos[name] + box) for name, box in boxes.items())

    def _note(self, sender: str, message: bytes) -> None:
        if sized(body(message, READY, self.roster, sender), KEY_ID, sender) != self._id:
            raise UnlikeKeys(sender)
        self._holds(sender)

    def _holds(self, name: str) -> None:
        """Durable: a coordinator that starts again knows the key's name and its holders."""
        self._ready.append(name)
        keep(self.store, self.roster, HOLDERS, self._id + as_list(self.roster, dict.fromkeys(self._ready, b"")))
