"""Keys of five parties, made once, and who writes letters with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.credentials.homes import KEYS
from securetm.credentials.keys import Keys, make_keys
from securetm.credentials.roster import read_roster
from securetm.federation.courier.letters import Subject, Writer

from ..federation.conftest import keys as keys

SUBJECT = Subject(bytes(32), bytes([1]) * 32, bytes([2]) * 32)


@pytest.fixture(scope="module")
def writers(keys: Path) -> dict[str, Writer]:
    """The coordinator, two parties, and somebody who has the roster and a key of its own."""
    roster = read_roster(keys / "coordinator" / "roster.toml")
    homes = {"coordinator": keys / "coordinator", **{name: keys / "parties" / name for name in ("numpy", "torch")}}
    known = {name: Writer(name, Keys.open(home / "home" / KEYS), roster, SUBJECT) for name, home in homes.items()}
    return {**known, "stranger": Writer("coordinator", make_keys(keys.parent / "stranger", None), roster, SUBJECT)}
