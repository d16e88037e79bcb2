"""The record of a run below a profile's minimum, or of a message that parties must refuse."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

EVERY_PARTY = "every party"  # in place of the party that refused, if all gave the same answer

Day = Annotated[str, Meta(pattern=r"^(\d{4}-\d\d-\d\d)?$")]  # as 2026-01-31, or nothing


class RefusalRecord(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A run below a profile's minimum, or a protocol violation by the coordinator, and the parties' answer."""

    profile: str
    attempt: str  # in words: how many documents of how many parties
    documents: Annotated[int, Meta(ge=0)]  # in the sum that was asked for; 0 for a protocol violation
    minimum: Annotated[int, Meta(ge=0)]  # that the profile demands; 0 for a protocol violation
    refused: bool
    by: str  # who refused; empty if nobody did
    reason: str  # the error that the others were told; if nobody refused, why the profile allows it
    kept: Day = ""  # the day on which it was found, if it was kept and not tried again

    @property
    def broken(self) -> bool:
        """Whether the profile promises a refusal, and nobody refused."""
        return not self.refused and (self.minimum > 0 or not self.reason)
