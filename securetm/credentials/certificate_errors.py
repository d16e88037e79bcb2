"""Certificates that are refused, each with what is to be done. All of them are public facts."""

from __future__ import annotations

from securetm.errors import Misuse

_ASK = "send a new request to the coordinator's operator (`securetm keys rotate` makes new keys and the request)"


class CertificateRefused(Misuse):
    """the certificate of {name} is refused"""

    name: str
    hint = _ASK


class CertificateUnreadable(CertificateRefused):
    """the certificate of {name} cannot be read: {problem}"""

    problem: str
    hint = "it has to be one X.509 certificate in PEM, from BEGIN CERTIFICATE to END CERTIFICATE"


class CertificateExpired(CertificateRefused):
    """the certificate of {name} ended on {until}, and this machine's clock says {now}"""

    until: str
    now: str
    hint = (
        "check the clock; if it is right, the coordinator's operator renews it: `securetm keys issue`, and sends the new roster"
    )


class CertificateNotYetValid(CertificateRefused):
    """the certificate of {name} begins on {since}, and this machine's clock says {now}"""

    since: str
    now: str
    hint = "set the clock of this machine (for example with an NTP service); the clock of whoever issued it may be wrong, too"


class CertificateRevoked(CertificateRefused):
    """the certificate of {name} was revoked in roster {version} of federation {federation}"""

    version: int
    federation: str


class CertificateOfAnotherKey(CertificateRefused):
    """the certificate of {name} does not belong to the TLS key in {path}"""

    path: str
    hint = "if the keys were changed, accept the roster that has the new ones (`securetm keys accept`), or restore the old"


class IdentityOfAnotherKey(CertificateRefused):
    """the roster names another identity for {name} than the one in {path}"""

    path: str
    hint = "another request may have come under your name: read your fingerprint (`securetm keys show`) to the roster's maker"


class CertificateNotEc(CertificateRefused):
    """the certificate of {name} has a key of kind {kind}, and only elliptic curves P-256 and P-384 are accepted"""

    kind: str
    hint = "have one issued for an EC key: openssl ecparam -name prime256v1 -genkey -noout"


class CertificateWeak(CertificateRefused):
    """the certificate of {name} is too weak: {problem}"""

    problem: str
    hint = "have one issued that is signed with SHA-256 or better, for a key on P-256 or P-384"


class CertificateNotForTls(CertificateRefused):
    """the certificate of {name} may not be used for this: {problem}"""

    problem: str
    hint = "it has to be an end entity's, with clientAuth and serverAuth if it limits its use, and a name in subjectAltName"


class CertificateNotInRoster(CertificateRefused):
    """{name} is in no entry of roster {version} of federation {federation}"""

    version: int
    federation: str
    hint = "check that both sides have the same roster (`securetm keys show roster.toml`), and accept the newest one"


class CertificateReplaced(CertificateNotInRoster):
    """the certificate of {name} is not the one in roster {version} of federation {federation}, though the key is the same"""

    hint = "the newest roster has the renewed certificate: accept it (`securetm keys accept roster.toml`)"


class CertificateOfAnotherFederation(CertificateRefused):
    """the certificate of {name} is of federation {found}, and this is federation {federation}"""

    found: str
    federation: str
    hint = "another home or roster is meant: see --home, and the settings `home` and `roster`"


class NotTheCoordinator(CertificateRefused):
    """the certificate that {name} shows is not the coordinator's in roster {version} of federation {federation}"""

    version: int
    federation: str
    hint = "somebody else answers at this address, or the certificate is new: ask the operator for the newest roster"


class AuthorityEnded(Misuse):
    """the certificate authority in {path} ended on {until}, so it issues nothing"""

    path: str
    until: str
    hint = "move the folder away, and issue again: members accept the new roster, which pins their new certificates"
