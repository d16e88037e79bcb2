"""The published vectors drive the implementation: the good run byte by byte, every bad message to its named refusal."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from securetm import errors
from securetm.aggregation.homomorphic.bfv import BfvCode
from securetm.aggregation.homomorphic.ckks import CkksCode
from securetm.aggregation.homomorphic.encrypted_sum import unpack_residues, unpack_secret
from securetm.aggregation.homomorphic.parameters import cheapest, from_digits, real_or_whole
from securetm.aggregation.homomorphic.seal_library import decrypt
from securetm.contracts import Terms
from securetm.errors import SecuretmError, error_classes
from tests.homomorphic.vectors import BODY, FOLDER, FRESH, LISTED, MEMBERS, SUMS, Play, edited, fits, written

CODES = ("bfv", "ckks")


@cache
def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}_sum.json").read_text())
    return found


def message(read_vectors: dict[str, Any], place: int) -> bytes:
    text = read_vectors["messages"][place]["bytes"]
    return message(read_vectors, int(text.split()[-1])) if text.startswith("as message") else base64.b64decode(text)


BAD = [pytest.param(name, one, id=f"{name}-{one['error']}-{i}") for name in CODES for i, one in enumerate(read(name)["bad"])]


@pytest.mark.parametrize("name", CODES)
def test_the_files_are_what_the_generator_writes(name: str) -> None:
    assert (FOLDER / f"{name}_sum.json").read_text() == written(name)


@pytest.mark.parametrize("name", CODES)
def test_a_good_run_gives_these_messages_and_this_total(name: str) -> None:
    vectors, play = read(name), Play(name)
    play.deliver(SUMS + 3)
    assert [m for _, _, m in play.messages] == [message(vectors, i) for i in range(SUMS + 3)]
    assert [(s, t) for s, t, _ in play.messages] == [(m["from"], m["to"]) for m in vectors["messages"]]
    for member in vectors["cohort"]["members"]:
        total = play.session.seats[member].answer(play.during.round_id).total
        assert {block: values.tolist() for block, values in total.items()} == vectors["total"]


@pytest.mark.parametrize("name", CODES)
def test_who_has_only_the_key_and_the_last_message_reads_the_same_total(name: str) -> None:
    """As a stranger would, from the file and the specification alone."""
    vectors = read(name)
    fit = cheapest(len(vectors["cohort"]["members"]), round(vectors["terms"]["reach"] / (vectors["terms"]["grid"] or 1)))
    assert fit is not None
    assert vectors["fit"] == {"modulus": fit.modulus.value, "digits": fit.digits, "values": fit.values, "step": fit.step}
    first, second = np.split(unpack_residues(message(vectors, SUMS)[LISTED + 8 :], fit, "coordinator"), 2)
    secret = unpack_secret(bytes.fromhex(vectors["secret_key"]), "ant")
    code = {"bfv": BfvCode(), "ckks": CkksCode()}[name]
    layout = Play(name).terms.layout
    size = Terms(layout).size
    total = real_or_whole(from_digits(decrypt(code, fit, secret, first, second), fit, size), layout, vectors["terms"]["grid"])
    assert {block: values.tolist() for block, values in total.items()} == vectors["total"]


@pytest.mark.parametrize("name", CODES)
def test_the_parameters_are_those_of_the_file(name: str) -> None:
    assert read(name)["fits"] == fits()


@pytest.mark.parametrize(("name", "one"), BAD)
def test_each_bad_message_ends_in_its_named_refusal(name: str, one: dict[str, Any]) -> None:
    assert one["reason"]
    play = Play(name)
    play.deliver(one["instead_of"])
    sender, to, _ = play.messages[one["instead_of"]]
    content = edited(message(read(name), one["use"]), one["edit"])
    to, sender = one.get("to", to), one.get("sender", sender)
    with pytest.raises(error_classes()[one["error"]]) as caught:
        play.exchanges[to].receive(sender, content)
    assert type(caught.value).__name__ == one["error"]
    assert issubclass(type(caught.value), errors.Refused)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), name=st.sampled_from(CODES), place=st.integers(0, SUMS + 2))
def test_mutated_messages_end_in_named_errors_or_in_nothing(data: st.DataObject, name: str, place: int) -> None:
    """Cut, stretched, spliced, overwritten: neither role crashes, hangs, or says something without a name."""
    play = Play(name)
    play.deliver(place)
    sender, to, good = play.messages[place]
    other = play.messages[data.draw(st.integers(0, len(play.messages) - 1))][2]
    mutated = good
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated)) | st.integers(0, min(len(mutated), 200)))
        drop = data.draw(st.integers(0, 64) | st.integers(0, len(mutated)))
        new = data.draw(
            st.binary(max_size=64) | st.just(other) | st.just(other[at : at + drop]) | st.just(b"\xff" * min(drop, 4096))
        )
        mutated = mutated[:at] + new + mutated[at + drop :]
    sender = data.draw(st.sampled_from([sender, sender, "coordinator", *MEMBERS]))
    refused: SecuretmError | None = None
    try:
        play.exchanges[to].receive(sender, mutated)
    except SecuretmError as problem:
        refused = problem
    assert type(refused) is not SecuretmError
    assert refused is None or str(refused)


@pytest.mark.parametrize("name", CODES)
def test_random_residues_and_seeds_are_added_and_opened_without_harm(name: str) -> None:
    """What looks like a ciphertext cannot be told from one: it spoils the sum, as any false vector would, and nothing else."""
    play = Play(name)
    play.deliver(FRESH)
    rng = np.random.default_rng(0)
    _, _, good = play.messages[FRESH]
    noise = rng.integers(0, 256, len(good) - BODY, dtype=np.uint8)
    noise[4:-64:5] = 0  # every residue below the modulus
    play.messages[FRESH] = ("ant", "coordinator", good[:BODY] + noise.tobytes())
    for place in range(FRESH, FRESH + 3):
        play.deliver_one(place)
    play.exchanges["bee"].receive("coordinator", play.messages[-1][2])
    assert play.session.seats["bee"].answer(play.during.round_id).total is not None
