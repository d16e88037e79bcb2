"""The coordinator's operator: each change of a roster is its next version, signed, and accepted in the coordinator's home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from securetm.credentials.acceptance import KEYS, accept, accepted_roster, check_succession, waiting_request
from securetm.credentials.authority import open_authority
from securetm.credentials.diagnosis import now_utc
from securetm.credentials.enrolment import new_keys
from securetm.credentials.issuing import DAYS, Issuing
from securetm.credentials.key_errors import NothingToChange
from securetm.credentials.key_files import REQUEST, Keys, Passphrase
from securetm.credentials.key_requests import KeyRequest
from securetm.credentials.member_names import COORDINATOR
from securetm.credentials.roster import FederationRoster
from securetm.credentials.roster_file import read_roster, write_roster
from securetm.settings import require

Edit = Callable[[FederationRoster], FederationRoster]


@dataclass(frozen=True)
class RosterOperator:
    """Whoever holds the coordinator's home, and the file of the roster that is sent around."""

    home: Path
    path: Path
    passphrase: Passphrase | None = None

    def begin(self, federation: str, address: str, days: int | None = DAYS) -> FederationRoster:
        """Makes the coordinator's keys where there are none, and returns the first roster. It is not written yet."""
        own = self._own_request()
        return self._issuing(federation, days).first(federation, address, own)

    def enrol(
        self, roster: FederationRoster, requests: Sequence[KeyRequest], address: str | None = None, days: int | None = DAYS
    ) -> FederationRoster:
        """The roster with these members, and with the coordinator's keys that wait; certificates that end soon are renewed.

        New certificates are valid for so many days; without a number none are issued.
        """
        issuing = self._issuing(roster.federation, days)
        return issuing.renew(issuing.enrol(issuing.at(roster, address), [self._own_request(), *requests]))

    def publish(self, old: FederationRoster | None, new: FederationRoster) -> FederationRoster:
        """Writes the new roster as the version after the old one, signed by the coordinator, and accepts it in its home."""
        if old is not None and old.digest == new.digest:
            raise NothingToChange(old.federation, old.version)
        new = replace(new, version=old.version + 1 if old else 1, signatures={})
        check_succession(accepted_roster(self.home), new)
        write_roster(self.path, new)  # before it is accepted: if this ends in between, the next change begins with this version
        accept(self.home, new)
        signed = new.signed_by(COORDINATOR, Keys.open(self.home / KEYS, self.passphrase))
        write_roster(self.path, signed)
        return signed

    def read(self) -> FederationRoster:
        """The roster as it is now. Refuses one that is older than what the coordinator accepted."""
        roster = read_roster(self.path)
        check_succession(accepted_roster(self.home), roster)
        return roster

    def _own_request(self) -> KeyRequest:
        if not (self.home / KEYS / REQUEST).exists():
            return new_keys(self.home, COORDINATOR, self.passphrase)
        own = waiting_request(self.home)
        require(own.name == COORDINATOR, "", "--home", str(self.home), f"holds the keys of {own.name}, not the coordinator's")
        return own

    def _issuing(self, federation: str, days: int | None) -> Issuing:
        now = now_utc()
        authority = None if days is None else open_authority(self.home, federation, self.passphrase, now)
        return Issuing(now, days or DAYS, authority)
