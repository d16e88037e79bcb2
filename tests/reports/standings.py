"""Facts of a served run for tests of what shows them: five parties in every state, names that could become markup."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from securetm.federation.coordinator.status import ANSWERED, ASKED, AWAY, CONNECTED, TRAINING, PartyStatus

PARTIES = {
    "hospital-north": PartyStatus(ANSWERED, 117, 33_900_512, 71_004_211),
    "hospital-south": PartyStatus(ASKED, 117, 33_897_020, 71_004_211),
    "<b>clinic</b> & sons": PartyStatus(AWAY, 112, 32_451_900, 68_020_077, "AnotherRoster"),
    "university-library-of-a-town-with-a-very-long-name": PartyStatus(CONNECTED, 117, 33_900_512, 71_004_211),
    "archive": PartyStatus(ANSWERED, 117, 33_900_512, 71_004_211, "OutOfTurn"),
}


def facts(**changed: Any) -> dict[str, Any]:
    """The facts in the middle of a training."""
    whole: dict[str, Any] = {
        "run": "notes",
        "model": "lda",
        "profile": "dp-distributed",
        "address": "0.0.0.0:8470",
        "phase": TRAINING,
        "session": 3,
        "done": 117,
        "of": 400,
        "survivors": tuple(name for name in PARTIES if "clinic" not in name),
        "parties": PARTIES,
        "bytes_up": 168_050_456,
        "bytes_down": 352_036_921,
        "waves": 361,
        "refusals": {"AnotherRoster": 4, "OutOfTurn": 1},
        "seconds": 1_234.5,
        "seconds_per_round": 3.21,
        "seconds_left": 908.4,
        "epsilon": {"unit": "document", "epsilon": 4.0613, "delta": 1e-5, "budget": 8.0},
    }
    whole |= changed
    parties = {name: asdict(party) for name, party in whole["parties"].items()}
    return {**whole, "survivors": list(whole["survivors"]), "parties": parties}
