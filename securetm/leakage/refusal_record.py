"""What became of a run below a profile's minimum, or of a message that parties must refuse, as a plain record."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

EVERY_PARTY = "every party"  # in place of a party that refused: all answered, and alike

Day = Annotated[str, Meta(pattern=r"^(\d{4}-\d\d-\d\d)?$")]  # as 2026-01-31, or nothing


class RefusalRecord(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run that was begun below a profile's minimum, or a protocol violation by the coordinator, and the parties' answer."""

    profile: str
    attempt: str  # in words: how many documents of how many parties
    documents: Annotated[int, Meta(ge=0)]  # in the sum that was asked for; 0 of a protocol violation
    minimum: Annotated[int, Meta(ge=0)]  # that the profile demands; 0 where the minimum was not tried
    refused: bool
    by: str  # who refused; nobody where it went on
    reason: str  # as named to the others; of what nobody refused, that the profile claims nothing against it
    kept: Day = ""  # the day on which it was found, where it was kept and not tried again

    @property
    def broken(self) -> bool:
        """Whether the profile promises that this is refused, and nobody refused it."""
        return not self.refused and (self.minimum > 0 or not self.reason)
