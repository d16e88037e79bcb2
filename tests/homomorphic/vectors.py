"""Protocol runs as JSON: every message of a good run, and for each bad one where it comes in, its error and the reason.

`python -m tests.homomorphic.vectors` writes the files again; a test asks that this changes nothing.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from securetm.aggregation.homomorphic.bfv import BfvSum
from securetm.aggregation.homomorphic.ckks import CkksSum
from securetm.aggregation.homomorphic.encrypted_sum import SECRET
from securetm.aggregation.homomorphic.parameters import Fit, cheapest
from securetm.contracts import Aggregation, Block, Cohort, Domain, Exchange, Terms
from securetm.sessions.framing import HASH, VERSION
from securetm.testing.known_secrets import KnownSecrets
from tests.homomorphic.sessions import COORDINATOR, Session, cohort, identity

FOLDER = Path(__file__).parents[2] / "protocols" / "vectors"
MEMBERS = ("ant", "bee", "cat", "dog")
TAKING_PART = ("ant", "bee", "cat")  # dog holds the key too, and is not in the round's cohort
HELLOS, BUNDLE, SEALED, KEYS, READY, FRESH, SUMS = 0, 4, 5, 6, 9, 12, 15  # where each kind begins among the messages
DOWN, UP = 2, 4  # bytes of the head of a message from the coordinator, and from a party, which says its place
TAG, KEY_ID, HELLO, BOX = 32, 16, 1284, 1616
BODY = UP + TAG + KEY_ID  # where ciphertexts begin in a fresh message, and where the list of survivors begins in a sum
LISTED = DOWN + TAG + KEY_ID
FITS = ((2, 1000), (3, 2**31 - 1), (10, 53_000_000), (40, 2**40), (100, 2**53), (700, 2**31))

Edit = Sequence[Any]  # [where, how many bytes go, which come instead (hex)]; below zero: counted from the end


def code_of(name: str) -> Aggregation:
    return {"bfv": BfvSum(), "ckks": CkksSum()}[name]


def terms_of(name: str) -> Terms:
    layout = (Block("first", (2, 2)), Block("second", (3,)))
    whole = Terms(layout, domain=Domain.INTEGER, bits=32, reach=1000.0)
    return whole if name == "bfv" else Terms(layout, reach=4.0)


def numbers_of(name: str) -> dict[str, np.ndarray]:
    rows = np.array([[1, -2, 3, 1000, 0, -1000, 7], [10, 20, -30, 1000, 5, -1000, 8], [0, 0, 0, 1000, -5, -1000, 9]])
    return dict(zip(TAKING_PART, rows if name == "bfv" else rows / 250.0, strict=True))


def known_secrets(name: str) -> KnownSecrets:
    """What the present file has of ML-KEM: the library draws it by itself, so that it is told again."""
    path, known = FOLDER / f"{name}_sum.json", KnownSecrets(in_turn=True)
    for row in json.loads(path.read_text()).get("told", ()) if path.is_file() else ():
        known.told[bytes.fromhex(row["key"])] = [(bytes.fromhex(row["secret"]), bytes.fromhex(row["ciphertext"]))]
    return known


class Play:
    """A seeded session that is played message by message, so that any of them can be replaced."""

    def __init__(self, name: str) -> None:
        self.known = known_secrets(name)
        self.code, self.during = code_of(name), cohort(TAKING_PART)
        self.session = Session(self.code, MEMBERS, seed="vectors")
        self.terms = self.code.admit(terms_of(name), self.during)
        self.numbers = numbers_of(name)
        self.messages: list[tuple[str, str, bytes]] = []
        self.exchanges: dict[str, Exchange] = {}
        self._start({n: self.session.seats[n].prepare(1) for n in (COORDINATOR, *MEMBERS)})

    def deliver(self, up_to: int) -> None:
        """Delivers messages of the good run in order, all before that place."""
        done = 0
        while done < up_to:
            if done == FRESH:
                self.begin_round()
            self.deliver_one(done)
            done += 1
        if up_to == FRESH:
            self.begin_round()

    def deliver_one(self, place: int) -> None:
        """One message; the carrier ends the wave where nothing more is on its way to the coordinator."""
        sender, to, message = self.messages[place]
        with self.known.come_again():
            replies = self.exchanges[to].receive(sender, message)
        if to == COORDINATOR and place + 1 == len(self.messages):
            replies = self.exchanges[to].expire(())
        self.messages.extend((to, then, reply) for then, reply in replies)

    def begin_round(self) -> None:
        if len(self.messages) == FRESH:
            self._start(self.session.round(self.during, self.terms, self.numbers))

    def _start(self, exchanges: Mapping[str, Exchange]) -> None:
        self.exchanges = dict(exchanges)
        self.messages += [(name, to, m) for name, one in exchanges.items() for to, m in one.begin()]


def edited(message: bytes, edit: Edit) -> bytes:
    at, drop, instead = edit
    at = at if at >= 0 else len(message) + at
    return message[:at] + bytes.fromhex(instead) + message[at + drop :]


def bad(
    instead_of: int, error: str, reason: str, edit: Edit = (0, 0, ""), use: int | None = None, sender: str = "", to: str = ""
) -> dict[str, Any]:
    """One bad message: what comes at that place, made from the message at `use` (default: the one that belongs there)."""
    source = instead_of if use is None else use
    given = {key: value for key, value in (("sender", sender), ("to", to)) if value}
    return {"instead_of": instead_of, "use": source, "edit": list(edit), **given, "error": error, "reason": reason}


OLD = (0, 1, "03")
SET_UP = [
    bad(1, "BadSignature", "a key that nobody signed: whoever carries the message could put in its own", (UP, 1, "00")),
    bad(1, "BadSignature", "a changed signature", (-1, 1, "00")),
    bad(1, "Malformed", "the hello of one member in the name of another", use=0),
    bad(1, "AnotherVersion", "a downgrade to version 3, whose keys do not outlast X25519", OLD),
    bad(1, "Malformed", "a byte too few", (-1, 1, "")),
    bad(1, "Malformed", "a byte too many", (HELLO, 0, "00")),
    bad(1, "Malformed", "a message of another wave", (1, 1, "19")),
    bad(1, "NotInCohort", "somebody who is not in the roster asks for a key", sender="eve"),
    bad(1, "Duplicate", "a second hello would replace the key that the first one is bound to", use=0, sender="ant"),
    bad(
        BUNDLE,
        "BadSignature",
        "the coordinator puts its own key in place of a member's, and would read the secret key",
        (DOWN + 2 + HELLO + UP, 1, "00"),
    ),
    bad(BUNDLE, "AnotherVersion", "a downgrade to version 3, whose keys do not outlast X25519", OLD),
    bad(BUNDLE, "Malformed", "a bundle that was cut", (-HELLO, HELLO, "")),
    bad(BUNDLE, "Malformed", "a member that the roster does not have", (DOWN + 2 + HELLO * 3 + 2, 2, "0009")),
    bad(
        BUNDLE,
        "Malformed",
        "one member twice: the key would be sealed to it twice",
        (DOWN + 2 + HELLO * 3 + 2, 2, "0002"),
    ),
    bad(BUNDLE, "UnexpectedMessage", "a member pretends to be the coordinator", sender="bee"),
    bad(SEALED, "UnexpectedMessage", "a member that was not asked hands out a key of its own", sender="bee"),
    bad(SEALED, "Malformed", "a member is left out: it would hold no key and not know it", (-BOX, BOX, "")),
    bad(SEALED, "Malformed", "the place of a member that the roster does not have", (UP + KEY_ID + 2, 2, "000a")),
    bad(KEYS, "NotSealedForUs", "a changed box: the key would be another one", (-1, 1, "00")),
    bad(KEYS, "NotSealedForUs", "a changed ciphertext: the member would have another secret", (DOWN + HELLO + 5, 4, "00" * 4)),
    bad(KEYS, "NotSealedForUs", "a box for somebody else", use=KEYS + 1),
    bad(KEYS, "BadSignature", "another key in the name of the member that drew", (DOWN + UP, 1, "00")),
    bad(KEYS, "BadSignature", "another member is said to have drawn the key", (DOWN + 2, 2, "0002")),
    bad(KEYS, "Malformed", "the member that is said to have drawn the key is not in the roster", (DOWN + 2, 2, "0009")),
    bad(KEYS, "AnotherVersion", "a downgrade to version 3, whose keys do not outlast X25519", OLD),
    bad(KEYS, "Malformed", "a byte too few", (-1, 1, "")),
    bad(
        KEYS + 1,
        "Malformed",
        "the key a second time: the private key for it is forgotten by then",
        use=KEYS,
        to="bee",
    ),
    bad(READY, "UnlikeKeys", "a party under another key: its numbers would turn the sum into noise", (-1, 1, "00")),
    bad(READY + 1, "Duplicate", "ready twice", use=READY, sender="bee"),
]
ROUND = [
    bad(FRESH, "AnotherVersion", "a downgrade to version 3, whose keys do not outlast X25519", OLD),
    bad(FRESH, "Malformed", "too few bytes: a ciphertext is missing", (-64, 64, "")),
    bad(FRESH, "Malformed", "too many bytes: they would cost memory for nothing", (BODY, 0, "00" * 64)),
    bad(FRESH, "Malformed", "ciphertexts in another party's name", (2, 2, "0001")),
    bad(
        FRESH,
        "BadCiphertext",
        "a residue above the modulus: the library would refuse or read it in its own way",
        (BODY, 7, "ff" * 7),
    ),
    bad(FRESH, "UnknownRound", "ciphertexts of another round: an old vector would count again", (UP, 1, "00")),
    bad(FRESH, "UnlikeKeys", "ciphertexts under another key: the sum would be noise", (UP + TAG, 1, "00")),
    bad(FRESH, "UnexpectedMessage", "a member of the roster that is not in the cohort", sender="dog"),
    bad(FRESH, "NotInCohort", "somebody unknown", sender="eve"),
    bad(FRESH + 1, "Duplicate", "a party that answers twice counts twice", use=FRESH, sender="ant"),
    bad(SUMS, "AnotherVersion", "a downgrade to version 3, whose keys do not outlast X25519", OLD),
    bad(SUMS, "Malformed", "a polynomial is missing", (-1, 1, "")),
    bad(SUMS, "BadCiphertext", "a residue above the modulus", (-7, 7, "ff" * 7)),
    bad(SUMS, "UnknownRound", "the sum of another round", (DOWN, 1, "00")),
    bad(SUMS, "UnlikeKeys", "a sum under another key", (DOWN + TAG, 1, "00")),
    bad(
        SUMS,
        "TooFewInSum",
        "one party's ciphertexts as the sum: the others would read that party's vector",
        (LISTED, 8, "00010000"),
    ),
    bad(SUMS, "NotInCohort", "the sum names a party that is not in the cohort", (LISTED, 8, "0003000000010003")),
    bad(SUMS, "Malformed", "the sum names a party twice", (LISTED, 8, "0003000000010001")),
    bad(SUMS, "UnexpectedMessage", "another party pretends to be the coordinator", sender="bee"),
]


def bad_ones(fit: Fit) -> list[dict[str, Any]]:
    half = 2048 * fit.modulus.width
    hidden = bad(
        SUMS,
        "BadCiphertext",
        "the second polynomial is nothing: the ciphertext is its own plaintext",
        (-half, half, "00" * half),
    )
    again = bad(
        SUMS + 1,
        "OpenedBefore",
        "a second sum for one round: the difference of two sums is somebody's vector",
        use=SUMS,
        to="ant",
    )
    return [*SET_UP, *ROUND, hidden, again]


def fits() -> list[dict[str, int]]:
    found = []
    for parties, reach in FITS:
        fit = cheapest(parties, reach)
        assert fit is not None
        named = {"modulus_bits": fit.modulus.bits, "modulus": fit.modulus.value, "digits": fit.digits, "shift": fit.shift}
        found.append({"parties": parties, "reach": reach, **named, "values": fit.values, "step": fit.step})
    return found


def document(name: str) -> dict[str, Any]:
    """The whole file of one protocol."""
    play = Play(name)
    play.deliver(SUMS + len(TAKING_PART))
    packed = play.session.stores["ant"]["sum key"][HASH:]
    assert len(packed) == SECRET
    answer = play.session.seats["ant"].answer(play.during.round_id)
    texts = [base64.b64encode(m).decode() for _, _, m in play.messages]
    messages = [{"from": s, "to": t, "bytes": text} for (s, t, _), text in zip(play.messages, texts, strict=True)]
    for one, later in ((SUMS, SUMS + 1), (SUMS, SUMS + 2)):
        assert texts[one] == texts[later]
        messages[later]["bytes"] = f"as message {one}"
    fit = play.code.fit(play.terms, play.during)[1]  # type: ignore[attr-defined]
    return {
        "protocol": f"{name}_sum, version {VERSION}",
        "session": play.session.roster.session.hex(),
        "profile": play.session.roster.profile.hex(),
        "roster": [{"name": m, "identity": identity(m).hex(), "public": play.session.roster.keys[m].hex()} for m in MEMBERS],
        "cohort": {"members": list(TAKING_PART), "threshold": play.during.threshold, "round_id": play.during.round_id.hex()},
        "terms": {
            "layout": [[b.name, list(b.shape)] for b in play.terms.layout],
            "reach": play.terms.reach,
            "grid": play.terms.grid,
        },
        "fit": {"modulus": fit.modulus.value, "digits": fit.digits, "values": fit.values, "step": fit.step},
        "numbers": {m: [float(x) if name == "ckks" else int(x) for x in row] for m, row in play.numbers.items()},
        "secret_key": packed.hex(),
        "told": [
            {"key": public.hex(), "secret": secret.hex(), "ciphertext": ciphertext.hex()}
            for public, pairs in play.known.told.items()
            for secret, ciphertext in pairs
        ],
        "total": {block: total.tolist() for block, total in answer.total.items()},  # type: ignore[union-attr]
        "fits": fits(),
        "messages": messages,
        "bad": bad_ones(fit),
    }


def written(name: str) -> str:
    return json.dumps(document(name), indent=1) + "\n"


def cohort_of(read: Mapping[str, Any]) -> Cohort:
    said = read["cohort"]
    return Cohort(bytes.fromhex(said["round_id"]), 0, tuple(said["members"]), threshold=said["threshold"])


if __name__ == "__main__":
    for protocol in ("bfv", "ckks"):
        (FOLDER / f"{protocol}_sum.json").write_text(written(protocol))
