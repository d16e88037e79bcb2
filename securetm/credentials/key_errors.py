"""Keys and requests that cannot be used. No field of an error holds a secret."""

from __future__ import annotations

from securetm.errors import Misuse


class KeysMissing(Misuse):
    """there are no keys in {path}"""

    path: str
    hint = "make them with `securetm keys new NAME`, or say where they are with --home"


class KeysExist(Misuse):
    """there are keys in {path} already"""

    path: str
    hint = "`securetm keys request` writes their request again; `securetm keys rotate` makes new ones and keeps these meanwhile"


class KeysWait(Misuse):
    """new keys in {path} wait for a roster already"""

    path: str
    hint = "accept the roster that has them (`securetm keys accept`); to give them up, delete that folder"


class KeyDamaged(Misuse):
    """{path} holds no {kind} private key"""

    path: str
    kind: str
    hint = "take the file from your back-up, or make new keys: `securetm keys rotate`, or `securetm keys new` in another home"


class PassphraseNeeded(Misuse):
    """{path} is protected with a passphrase, and none was given"""

    path: str
    hint = "give it with --passphrase-file FILE, or in the variable SECURETM_PASSPHRASE, or run in a terminal, which asks"


class WrongPassphrase(Misuse):
    """the passphrase does not open {path}"""

    path: str
    hint = "type it again; nobody can recover a passphrase that is lost: make new keys and have the old ones revoked"


class PassphraseUnusable(Misuse):
    """the passphrase {problem}"""

    problem: str
    hint = "choose one of 8 to 1,000 characters in one line"


class NoHome(Misuse):
    """it is not clear whose keys are meant: {problem}"""

    problem: str
    hint = "name the home of the keys with --home FOLDER"


class RequestDamaged(Misuse):
    """{path} is no request that can be used: {problem}"""

    path: str
    problem: str
    hint = "ask for it again; `securetm keys request` writes it"


class NothingToChange(Misuse):
    """roster {version} of federation {federation} says so already"""

    federation: str
    version: int
    hint = "name the files of new requests: securetm keys issue *.request"


class NoCertificate(Misuse):
    """the request of {name} brings no certificate, and no authority is there to issue one"""

    name: str
    hint = "`securetm keys issue` issues one; or the member brings its own (`securetm keys own CERTIFICATE KEY`)"
