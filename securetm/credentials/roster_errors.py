"""Rosters that are refused. Where a file is wrong, the error names the place in it."""

from __future__ import annotations

from securetm.errors import Misuse


class RosterRefused(Misuse):
    """the roster of federation {federation} is refused"""

    federation: str


class NotReadInFull(Misuse):
    """{path} is not read: {problem}"""

    path: str
    problem: str
    hint = "ask the coordinator's operator for the file again"


class DuplicateMember(RosterRefused):
    """two members of federation {federation} have the same {what}: {names}"""

    what: str
    names: tuple[str, ...]
    hint = "each member has a name and keys of its own: whoever made the roster removes one of them"


class MemberRevoked(RosterRefused):
    """the roster of federation {federation} lists {name} with a key that it lists as revoked, too"""

    name: str
    hint = "the member makes new keys (`securetm keys new`) and sends a new request"


class BadRosterSignature(RosterRefused):
    """the signature of {name} under the roster of federation {federation} is wrong: it was changed after it was signed"""

    name: str
    hint = "ask for the file again, and compare fingerprints by telephone (`securetm keys show roster.toml`)"


class RosterNotAccepted(RosterRefused):
    """roster {version} of federation {federation} is not accepted here, and not every member has signed it"""

    version: int
    hint = "see what it says and accept it: securetm keys accept roster.toml"


class RosterRolledBack(RosterRefused):
    """this is roster {found} of federation {federation}, and roster {known} was accepted here before"""

    found: int
    known: int
    hint = "take the newest roster; an older one may list members that left and keys that were revoked"


class RosterForked(RosterRefused):
    """two different rosters of federation {federation} have the version {version}: this one and the accepted one"""

    version: int
    hint = "members may have been shown different rosters: compare fingerprints with the others by telephone first"


class AnotherFederation(RosterRefused):
    """this roster is of federation {federation}, and here keys are for federation {known}"""

    known: str
    hint = "keep one home for each federation: `securetm keys new NAME --home FOLDER`"


class RevocationDropped(RosterRefused):
    """the new roster of federation {federation} no longer lists {count:key|keys} as revoked that the accepted one lists"""

    count: int
    hint = "what was revoked stays revoked: ask the coordinator's operator why"


class NotAMember(RosterRefused):
    """there is no member called {name} in roster {version} of federation {federation}"""

    name: str
    version: int
    hint = "send the request again (`securetm keys request` writes it), and ask for a roster that has it"


class IdentityChanged(RosterRefused):
    """the request of {name} has another identity than the roster of federation {federation}, which did not consent"""

    name: str
    hint = "somebody else may have sent it: ask the member by telephone; if its old keys are lost, `securetm keys revoke` them"


class KeyIsRevoked(RosterRefused):
    """the request of {name} is for a key that federation {federation} has revoked"""

    name: str
    hint = "the member makes new keys (`securetm keys new`) and sends a new request"


class NotConfirmed(RosterRefused):
    """roster {version} of federation {federation} was not accepted; nothing was changed"""

    version: int
    hint = "compare the fingerprint by telephone, then answer y; without a terminal, type it after --fingerprint"


class FingerprintDiffers(RosterRefused):
    """the fingerprint that was typed is not that of this roster of federation {federation}; nothing was changed"""

    hint = "type all 60 digits, and compare them by telephone: if they differ, this is not the roster that the others have"
