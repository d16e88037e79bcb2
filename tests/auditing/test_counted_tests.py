"""Which attacks know an epsilon is read off their files, so that the tests of an epsilon are counted and none is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from securetm.auditing import attacks
from securetm.auditing.attacks import attack_called, attack_names, declared
from securetm.settings import digest


@pytest.mark.parametrize("name", attack_names())
def test_which_attack_knows_an_epsilon_is_read_off_its_file(name: str) -> None:
    assert (declared(name, "allowed") is None) == (attack_called(name).allowed is None)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ("ATTACK = Attack(name='a', allowed=limit)", True),
        ("ATTACK = Attack(name='a', allowed=None)", False),
        ("ATTACK = replace(OF_NOISE, name='a')", True),
        ("ATTACK = replace(OF_TRAFFIC, name='a')", False),
        ("ATTACK: Attack = Attack(name='a', allowed=limit)", None),
        ("ATTACK = Attack(**parts)", None),
        ("ATTACK = made('a')", None),
        ("ATTACK = replace(places.ATTACK, name='a')", None),
        ("ATTACK = Attack(name='a')\nATTACK = replace(ATTACK, allowed=limit)", None),
    ],
)
def test_what_a_file_does_not_say_plainly_is_asked_of_the_attack(
    declared: str, said: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a test of an epsilon is not counted, and all of them together err more often than they say."""
    module = f"strangers_{digest([declared]).hex()[:8]}"
    head = "from securetm.auditing.attacks.{0} import {1}\n"
    imports = head.format("many_runs", "MANY_RUN_EPSILON as OF_NOISE") + head.format("traffic", "TRAFFIC as OF_TRAFFIC")
    (tmp_path / f"{module}.py").write_text(imports + declared)
    monkeypatch.syspath_prepend(tmp_path)
    found = attacks._said(module, "ATTACK", "allowed")
    assert (found is attacks._UNSAID) if said is None else (found is not None) == said
