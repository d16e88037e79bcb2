"""What members and federations may be called: a name that is fit for a certificate, a folder and a screen alike."""

from __future__ import annotations

import re
import unicodedata

from securetm.settings import require

COORDINATOR = "coordinator"
LONGEST = 63  # letters of one label of a name on the network
_NAME = re.compile(rf"[a-z0-9](?:[a-z0-9-]{{0,{LONGEST - 2}}}[a-z0-9])?")
_RULE = f"must be 1 to {LONGEST} small letters of English, digits and hyphens, with no hyphen at either end"


def check_name(name: str, where: str, setting: str = "name") -> str:
    """Returns the name, or refuses it and proposes one that is allowed."""
    proposal = proposed_name(name)
    instead = f"call it {proposal}" if proposal and proposal != name else ""
    require(_NAME.fullmatch(name) is not None, where, setting, name, _RULE, instead=instead)
    return name


def check_party_name(name: str, where: str) -> str:
    """Returns the name of a party. The coordinator's name is its own."""
    require(name != COORDINATOR, where, "name", name, "must not be the coordinator's name", instead="call the party otherwise")
    return check_name(name, where)


def proposed_name(name: str) -> str:
    """The allowed name that is most like this one; it may be empty."""
    plain = unicodedata.normalize("NFKD", name[:200]).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:LONGEST].strip("-")
