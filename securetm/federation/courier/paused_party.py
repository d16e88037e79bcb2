"""What a party has in memory between two passes, on its disk: the session that it joined, and the exchange that is open in it.

It is sealed under a key of the party's own and opened by nobody else. Where it is lost, damaged, or of another version, the
party goes on as one that was started anew, and is invited again.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from securetm.entropy import OperatingSystem
from securetm.federation.party.reply_times import PacedParty
from securetm.federation.party.words import read_in_words
from securetm.sessions.identities import IDENTITY
from securetm.version import __version__

_NONCE = 12
_LABEL = b"securetm paused party 1 "
_STORE = ("last", "memory", "lineage", "after", "counted")


def paused(paced: PacedParty) -> bytes:
    """The party's session as it is now, sealed; nothing where it holds what no file can hold."""
    party = paced.party
    kept = {
        "session": party.session,
        "store": {name: getattr(party.store, name) for name in _STORE},
        "words": (party.questions.vocabulary, party.questions.candidates),
        "parcel": party.limits.parcel,
        "learner": party.learner and (party.learner.rounds, party.learner.state, party.learner.hidden),
        "finished": party.finished,
        "longest": paced.longest,
    }
    written = io.BytesIO()
    try:
        _Pickler(written, _lasting(paced)).dump(kept)
    except (pickle.PicklingError, TypeError, AttributeError):
        return b""
    nonce = OperatingSystem().bytes(_NONCE)
    return nonce + _lock(paced).encrypt(nonce, written.getvalue(), None)


def go_on(paced: PacedParty, sealed: bytes) -> bool:
    """Takes up the session where it was paused. Returns whether that went; else the party is as it was before."""
    party = paced.party
    try:
        content = _lock(paced).decrypt(sealed[:_NONCE], sealed[_NONCE:], None)
        kept = _Unpickler(io.BytesIO(content), _lasting(paced)).load()
    except (InvalidTag, ValueError, pickle.UnpicklingError, AttributeError, ImportError, TypeError, KeyError, EOFError):
        return False
    words, candidates = kept["words"]
    if words:
        party.documents = read_in_words(party, words)
        party.questions.adopt(words, candidates=candidates)
    for name, value in kept["store"].items():
        setattr(party.store, name, value)
    if party.learner is not None and kept["learner"] is not None:
        party.learner.rounds, party.learner.state, party.learner.hidden = kept["learner"]
    party.session, party.limits.parcel, party.finished = kept["session"], kept["parcel"], kept["finished"]
    paced.longest = kept["longest"]
    return True


def _lock(paced: PacedParty) -> ChaCha20Poly1305:
    secret = paced.party.store.get(IDENTITY) or b""
    label = _LABEL + __version__.encode() + paced.party.agreement.digest
    return ChaCha20Poly1305(HKDF(hashes.SHA256(), 32, None, label).derive(secret))


def _lasting(paced: PacedParty) -> Mapping[str, Any]:
    """What every process has anyway, by name: a session refers to it, and is not written with it."""
    party = paced.party
    names = ("store", "ledger", "others", "entropy", "agreement", "corpus", "engine", "watch", "failure_log", "questions")
    own = {name: getattr(party, name) for name in (*names, "drawn", "keys", "learner", "limits", "policy", "documents")}
    plan = {"profile": party.agreement.profile, "model": party.agreement.model, "plan": party.agreement.plan}
    return {"party": party, **{name: thing for name, thing in {**own, **plan}.items() if thing is not None}}


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, lasting: Mapping[str, Any]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._names = {id(thing): name for name, thing in lasting.items()}

    def persistent_id(self, thing: Any) -> str | None:
        return self._names.get(id(thing))

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, Ed25519PrivateKey):
            return Ed25519PrivateKey.from_private_bytes, (thing.private_bytes_raw(),)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, lasting: Mapping[str, Any]) -> None:
        super().__init__(file)
        self._lasting = lasting

    def persistent_load(self, name: Any) -> Any:
        return self._lasting[name]
