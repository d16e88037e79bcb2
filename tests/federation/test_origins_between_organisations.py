"""Parties of their own go on from a model: each believes what it wrote itself, and else what its owner accepts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from securetm.contracts import Unit
from securetm.contracts.origin import Origin, PaidEntry
from securetm.errors import BadSetting
from securetm.federation.refusal_errors import NotAllowedHere
from securetm.models.stored_model import StoredModel
from securetm.models.tensor_file import packed, unpacked
from securetm.plans.origins import accepted_as

from .joined import NAMES, Joined, Organisations, accepted, trained
from .private import public_words

BUDGET = """
profile = "dp-distributed"
[model]
name = "lda-vi"
n_topics = 3
[privacy]
unit = "document"
epsilon = 3.0
[training]
rounds = 2
start = "plain"
"""
LISTED = BUDGET + '[vocabulary]\nfile = "{words}"\n[origins]\nvocabulary = "made up"\n'


@pytest.fixture(scope="module")
def first(keys: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Organisations, Joined]:
    """Five organisations that trained a model under a budget."""
    folder = tmp_path_factory.mktemp("organisations")
    plan = LISTED.format(words=public_words(folder))
    organisations = Organisations.of(keys, folder / "all", plan)
    _, joined = trained(organisations, folder / "coordinator")
    assert joined.problems == {}
    return organisations, joined


@pytest.fixture
def organisations(first: tuple[Organisations, Joined], tmp_path: Path) -> Organisations:
    """A copy of theirs, in which every plan goes on from the model in the party's own home."""
    shutil.copytree(first[0].folder, tmp_path / "all")
    copied = Organisations(tmp_path / "all", first[0].plan)
    for name in NAMES:
        goes_on(copied, name, landed(copied, name))
    copied.plan = plan_from(landed(copied, NAMES[0]))
    return copied


def landed(organisations: Organisations, name: str) -> Path:
    """The model that this party wrote at its home."""
    (found,) = organisations.home(name).glob("data/*/runs/*/release/model.safetensors")
    return found


def plan_from(model: Path) -> str:
    return BUDGET.replace('start = "plain"\n', f'continue_from = "{model}"\n')


def goes_on(organisations: Organisations, name: str, model: Path) -> None:
    (organisations.file(name).parent / "plan.toml").write_text(plan_from(model), "utf-8")


def forged(model: Path, origin: Origin, to: Path) -> Path:
    """The same model with another origin, and a digest that fits it, as anybody can write it."""
    facts, arrays = unpacked(model)
    to.write_bytes(packed(arrays, {**facts, "origin": origin.as_text()}))
    return to


def test_every_role_writes_the_same_origin(first: tuple[Organisations, Joined]) -> None:
    organisations, joined = first
    origins = {name: StoredModel.open(landed(organisations, name)).origin for name in NAMES}
    (origin,) = set(origins.values())
    assert origin is not None
    assert (origin.entries[0].epsilon, origin.entries[0].parties) == (3.0, NAMES)
    assert origin.rests_on[0].endswith("words.txt: made up")
    assert all(report["origins"]["product"] == origin.facts() for report in joined.reports.values())
    assert all(report["run"] == origin.entries[0].run for report in joined.reports.values())


@pytest.mark.slow
def test_a_party_that_goes_on_from_its_own_model_counts_it_once(organisations: Organisations, tmp_path: Path) -> None:
    for name in NAMES:  # the owner allows more of the same documents
        organisations.write(name, privacy="epsilon = 9.0")
    _, joined = trained(organisations, tmp_path / "coordinator")
    assert joined.problems == {}
    for report in joined.reports.values():
        spent = report["spent"]
        assert spent["epsilon"] == pytest.approx(spent["own"]["epsilon"] + 3.0)
        assert spent["own"]["epsilon"] < spent["all_runs"] < 6.5
        assert len(report["origins"]["product"]["entries"]) == 2


def test_the_most_that_a_run_may_spend_includes_what_it_starts_from(organisations: Organisations) -> None:
    organisations.write("numpy", policy='most_epsilon = 5.0\nunit = "document"')
    with pytest.raises(NotAllowedHere, match="epsilon = 6"):
        organisations.prepared("numpy")
    organisations.write("numpy", policy='most_epsilon = 6.0\nunit = "document"')
    assert organisations.prepared("numpy").file.policy.most_epsilon == 6.0


def test_a_home_without_the_ledger_of_a_run_that_it_took_part_in_does_not_go_on(organisations: Organisations) -> None:
    shutil.rmtree(organisations.home("numpy") / "ledgers")
    with pytest.raises(BadSetting, match="in which numpy took part, and no ledger of this home holds it"):
        organisations.prepared("numpy")


@pytest.mark.parametrize("kind", ["public", "paid", "unbounded"])
def test_a_model_of_somebody_else_is_what_its_owner_accepts(kind: str, organisations: Organisations, tmp_path: Path) -> None:
    """A coordinator may write any origin into a file, and a digest that fits."""
    entry = PaidEntry("elsewhere 12ab", Unit.DOCUMENT, 0.01, 1e-9, ("a stranger",))
    origin = {
        "public": Origin.public("trained on an encyclopedia"),
        "paid": Origin.paid([entry]),
        "unbounded": Origin.unbounded("trained under masked, which has no budget"),
    }[kind]
    goes_on(organisations, "numpy", forged(landed(organisations, "numpy"), origin, tmp_path / "model.safetensors"))
    organisations.write("numpy")
    with pytest.raises(BadSetting) as refusal:
        organisations.prepared("numpy")
    if kind == "unbounded":
        assert "may tell anything about documents" in str(refusal.value)
        return
    assert "rests on somebody's word: it says of itself that it is" in str(refusal.value)
    asked = refusal.value.advice().partition('["')[2].partition('"]')[0]
    organisations.write("numpy", policy=f'inputs = ["{asked}"]')
    ready = organisations.prepared("numpy")
    assert asked in {accepted_as(one) for one in ready.agreement.inputs}


def test_an_accepted_input_is_accepted_with_this_content_only(first: tuple[Organisations, Joined], tmp_path: Path) -> None:
    organisations, _ = first
    plan = organisations.plan
    (tmp_path / "words.txt").write_text("other\nwords", "utf-8")
    before = accepted(plan)
    moved = plan.replace(plan.partition('\nfile = "')[2].partition('"')[0], str(tmp_path / "words.txt"))
    assert before != accepted(moved)
    assert before != accepted(plan.replace("made up", "for another reason"))
