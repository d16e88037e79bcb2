"""`securetm choose`: flags, a file or a terminal give the answers; the plan it writes is one that `securetm check` takes."""

from __future__ import annotations

import io
import json
import tomllib
from pathlib import Path

import pytest

from securetm.auditing.attacks.prepared_weights import FARTHEST
from securetm.federation.budget.forecast import forecast_of
from securetm.plans.agreement import agree
from securetm.plans.recommend import plan_from_tables
from securetm.reports.statement.guesses import MOST_RIGHT, right_guesses

from ..auditing.conftest import write_plan
from ..quick_part import quick
from .conftest import securetm, write_documents
from .keys.terminal import interrupted_at, typed

SIZES = ("--parties", "5", "--documents", "20000", "--per-person", "0", "--purpose", "explore")
FEARS = ("--looks", "coordinator", "--hide", "document", "--breaks", "nobody", "--colluding", "2")


def test_flags_answer_everything(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    said = securetm("choose", *SIZES, *FEARS, "--out", str(plan), "--json")
    assert (said.code, said.json["profile"], len(said.json["reason"])) == (0, "dp-distributed", 3)
    assert len(said.json["next_best"]) == 2
    assert (said.json["spent"]["epsilon"], said.json["cost"]["epsilon"]) == (4, 3)  # the cost of the next below that was tried
    assert said.json["out_of_scope"]
    assert plan.read_text("utf-8") == said.json["plan"]
    checked = securetm("check", str(plan), "--json")
    assert (checked.code, checked.json["sound"]) == (0, True)


def test_a_plan_is_never_replaced_unless_told(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text("mine")
    said = securetm("choose", *SIZES, *FEARS, "--out", str(plan))
    assert (said.code, "is there already" in said.err, plan.read_text()) == (2, True, "mine")
    assert securetm("choose", *SIZES, *FEARS, "--out", str(plan), "--replace").code == 0
    assert "profile" in plan.read_text()


def test_nothing_fits_and_it_says_what_would_have_to_change(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    fears = ("--looks", "coordinator", "--hide", "document", "--breaks", "coordinator", "--colluding", "1")
    said = securetm("choose", "--parties", "3", *SIZES[2:], *fears, "--out", str(plan), "--json")
    assert (said.code, said.json["profile"], plan.exists()) == (1, None, False)
    assert {"change": "5 parties instead of 3", "profile": "fortress"} in said.json["changes"]


def test_without_a_terminal_every_missing_option_is_named() -> None:
    said = securetm("choose", "--parties", "5", "--looks", "nobody")
    assert said.code == 2
    assert "--documents --per-person --purpose" in said.err
    assert "--hide" not in said.err  # nobody looks


def test_a_file_answers_and_an_option_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = tmp_path / "answers.toml"
    answers.write_text('looks = ["nobody"]\nparties = 3\ndocuments = 90\nper_person = 0\npurpose = "sort"\n')
    said = securetm("choose", "--answers", str(answers), "--parties", "4", "--json")
    assert (said.json["profile"], said.json["answers"]["parties"]) == ("open", 4)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(answers.read_bytes())))
    assert securetm("choose", "--answers", "-", "--json").json["profile"] == "open"


TO_EACH = {  # answers that lead to each profile that can be chosen
    "open": ("--looks", "nobody"),
    "masked": ("--looks", "coordinator", "--hide", "organisation", "--breaks", "nobody", "--colluding", "2"),
    "masked_strict": ("--looks", "coordinator", "--hide", "organisation", "--breaks", "coordinator", "--colluding", "2"),
    "bfv": ("--looks", "coordinator", "--hide", "total", "--breaks", "nobody", "--colluding", "0"),
    "dp-central": ("--looks", "reader", "--hide", "document", "--breaks", "nobody", "--colluding", "0"),
    "dp-distributed": FEARS,
    "dp-local": (*FEARS[:-1], "4"),
    "fortress": ("--looks", "coordinator", "--hide", "document", "--breaks", "coordinator", "--colluding", "2"),
}


@pytest.mark.parametrize("profile", quick(["dp-central", "dp-distributed", "dp-local", "fortress"], "dp-distributed"))
@pytest.mark.parametrize(
    ("sizes", "notes"),
    [
        (("--documents", "2000", "--per-person", "0"), ()),
        (("--documents", "30000", "--per-person", "5"), ("--document-length", "12", "--language", "english")),
        (("--documents", "9000", "--per-person", "0"), ("--document-length", "5")),  # so short that the start follows from it
        (("--documents", "900000", "--per-person", "0"), ("--document-length", "5")),
    ],
)
def test_the_plan_has_the_settings_of_the_forecast_and_a_run_forecasts_the_same(
    profile: str, sizes: tuple[str, ...], notes: tuple[str, ...]
) -> None:
    """Whatever a run decides by itself (start, noise, words) is what the forecast that was shown counted with."""
    said = securetm("choose", "--parties", "7", *sizes, "--purpose", "explore", *TO_EACH[profile], *notes, "--json")
    assert (said.code, said.json["profile"]) == (0, profile), said.err
    shown, plan = said.json["forecast"], plan_from_tables(tomllib.loads(said.json["plan"]), "plan.toml")
    for name in ("rounds", "documents"):
        assert getattr(plan.training, name) == shown["setting"][name]
    words = shown["setting"]["listed"] or shown["setting"]["words"]  # so many are listed, and as many may be found beside them
    assert (plan.vocabulary.max_words, plan.model.name) == (words, shown["setting"]["model"])
    assert plan.model.settings["n_topics"] == shown["setting"]["topics"]
    assert plan.training.persons == (6_000 if "5" in sizes else 0)
    told = forecast_of(agree(plan), 7)
    assert told is not None
    assert told.verdict.value == shown["verdict"]
    assert told.record()["held_out"] == pytest.approx(shown["held_out"], abs=0.01)
    assert told.record()["classification"] == pytest.approx(shown["classification"], abs=0.01)


def test_titles_of_two_parties_are_promised_nothing() -> None:
    """Of five words one or two are on a list of general words, and behind the noise too few of their own are found."""
    asked = ("--parties", "2", "--documents", "6444", "--per-person", "0", "--purpose", "explore", *FEARS[:-1], "0")
    shown = securetm("choose", *asked, "--document-length", "5", "--epsilon", "4", "--json").json["forecast"]
    assert (shown["verdict"], shown["held_out"], shown["setting"]["general_list"]) == ("cannot say", None, True)
    longer = securetm("choose", *asked, "--document-length", "60", "--epsilon", "4", "--json").json["forecast"]
    assert longer["setting"]["length"] < 60  # those of its words that are on the list
    assert longer["setting"]["written"] == 60


@pytest.mark.slow
@pytest.mark.parametrize("profile", TO_EACH)
def test_check_and_run_take_every_plan_as_it_is(profile: str, tmp_path: Path) -> None:
    write_documents(tmp_path / "notes.jsonl", 160)
    plan, sizes = tmp_path / "plan.toml", ("--parties", "5", "--documents", "800", "--per-person", "0", "--purpose", "explore")
    notes = ("--corpus", str(tmp_path / "notes.jsonl"), "--language", "english", "--out", str(plan))
    said = securetm("choose", *sizes, *TO_EACH[profile], *notes, "--json")
    assert (said.code, said.json["profile"]) == (0, profile), said.err
    assert securetm("check", str(plan)).code == 0
    ran = securetm("run", str(plan), "--out", str(tmp_path / "run"), "--json")
    assert (ran.code, ran.json["profile"]) == (0, profile), ran.err


def test_a_misspelt_answer_is_told_with_its_line_and_before_what_is_missing(tmp_path: Path) -> None:
    answers = tmp_path / "answers.toml"
    answers.write_text('parties = 5\ndocuments = "many"\nlook = ["coordinator"]\n')
    said = securetm("choose", "--answers", str(answers))
    assert said.code == 2
    for sentence in ("line 2", "must be a whole number", "line 3", "did you mean looks?"):
        assert sentence in said.err
    assert "have no answer" not in said.err


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        (("--per-person", "20001"), "at most 20,000, the number of documents"),
        (("--language", "klingon"), "--language"),
        (("--corpus", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
        (("--person", "who"), "name the documents with --corpus"),
    ],
)
def test_what_a_plan_could_not_be_run_with_is_refused(bad: tuple[str, ...], named: str, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    said = securetm("choose", *SIZES, *FEARS, *bad, "--out", str(plan))
    assert (said.code, plan.exists()) == (2, False)
    assert named in " ".join(said.err.split())


def test_the_questions_are_asked_at_a_terminal_until_they_are_answered(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    said = typed(("choose", "--out", str(plan), "--json"), "no\n5\n20000\n\n4\n9\n1\n0\n1\n1 4\n1,3\n2\n2\n2\n")
    assert (said.code, said.json["profile"]) == (0, "fortress")  # a coordinator that lies
    for sentence in ("whole number from 1", "type an answer", "'9' is none of the answers", "not both"):
        assert sentence in said.err
    assert said.json["answers"]["looks"] == ["coordinator", "reader"]
    assert plan.exists()


def test_back_returns_to_the_question_before() -> None:
    said = typed(("choose", "--json"), "back\n6\nback\n1\n900\n0\n2\n1\n4\n")
    assert (said.code, said.json["profile"], said.json["answers"]["parties"]) == (0, "open", 1)
    assert "deals its documents out to 2 parties" in said.json["reason"][1]


def test_the_end_of_input_and_an_interrupt_leave_nothing(tmp_path: Path) -> None:
    command = ("choose", "--out", str(tmp_path / "plan.toml"))
    ended, interrupted = typed(command, "5\n\x04"), interrupted_at(command, "> ")
    assert (ended.code, "8 questions have no answer" in ended.err) == (2, True)
    assert (interrupted.code, "interrupted" in interrupted.err) == (3, True)
    assert not any("Traceback" in said.err for said in (ended, interrupted))
    assert not list(tmp_path.iterdir())


# ---- what the plan means for a person, and what a run of it does -------------------------------------------------------

OFFERED = {"dp-central": 4, "dp-distributed": 4, "dp-local": 4, "fortress": 3}  # fortress has 3 of its own
READER = ("--looks", "reader", "--hide", "document", "--breaks", "nobody", "--colluding", "0")


@pytest.mark.parametrize(
    "profile", quick(["dp-central", "dp-distributed", "dp-local", "fortress"], "dp-distributed", "fortress")
)
@pytest.mark.parametrize("documents", quick(["900", "9000000"], "900"))
def test_no_budget_is_offered_that_the_page_to_sign_warns_of(profile: str, documents: str) -> None:
    said = securetm("choose", "--parties", "7", "--documents", documents, *SIZES[4:], *TO_EACH[profile], "--json")
    spent, limit = said.json["spent"], said.json["guess_limit"]
    assert limit["right"] == right_guesses(spent["epsilon"], spent["delta"]) <= MOST_RIGHT
    assert limit["passes"] is True
    assert tomllib.loads(said.json["plan"])["privacy"]["epsilon"] == spent["epsilon"] == OFFERED[profile]
    assert said.json["forecast"]["setting"]["epsilon"] == OFFERED[profile]


def test_a_run_of_the_plan_has_the_parties_of_the_plan(tmp_path: Path) -> None:
    """The trial as it is printed, on its own corpus, and without saying who holds what."""
    write_documents(tmp_path / "notes.jsonl", 40)
    plan = tmp_path / "plan.toml"
    three = ("--parties", "3", "--documents", "200", *SIZES[4:], "--looks", "nobody")
    said = securetm("choose", *three, "--out", str(plan))
    assert "--partition equal --parties 3" in " ".join(said.err.split()) + " ".join(said.out.split())
    plan.write_text(plan.read_text("utf-8") + "\n[federation]\nparties = 3\n")
    begun = ("run", str(plan), "--corpus", str(tmp_path / "notes.jsonl"), "--rounds", "1", "--topics", "2", "--no-comparison")
    done = securetm(*begun, "--out", str(tmp_path / "run"), "--json")
    assert (done.code, len(done.json["parties"])) == (0, 3), done.err
    refused = securetm(*begun, "--parties", "5", "--out", str(tmp_path / "other"))
    assert (refused.code, "contradicts the documents" in refused.err, "parties" in refused.err) == (2, True, True)
    by_column = securetm(*begun, "--partition", "column", "--out", str(tmp_path / "other"))
    assert (by_column.code, "the column of the corpus names" in by_column.err) == (2, True)


def test_words_that_noise_would_drown_are_taken_from_a_public_list() -> None:
    """Two organisations with short texts: their own words would be too few for any topics."""
    few = ("--parties", "2", "--documents", "6444", *SIZES[4:], *FEARS[:-1], "0", "--document-length", "8", "--json")
    plan = tomllib.loads(securetm("choose", *few).json["plan"])
    assert (plan["profile"], plan["vocabulary"]["file"]) == ("dp-local", "english")
    foreign = tomllib.loads(securetm("choose", *few, "--language", "slovenian").json["plan"])
    assert (foreign["vocabulary"]["file"], foreign["tokeniser"]["stop_words"]) == ("slovenian", "sl")
    assert foreign["training"].get("start") != "public"  # the vectors that are installed are English


def test_a_language_makes_no_worse_plan_than_none() -> None:
    many = ("choose", *SIZES, *FEARS, "--document-length", "60", "--json")
    with_none, named = (tomllib.loads(securetm(*many, *more).json["plan"]) for more in ((), ("--language", "english")))
    assert named == with_none
    assert named["vocabulary"]["source"] == "joint"


def test_documents_that_name_their_parties_keep_them_and_their_language(tmp_path: Path) -> None:
    notes = tmp_path / "notes.csv"
    posts = "Občina bo letos obnovila cesto med šolo in muzejem ker je že zelo slaba"
    notes.write_text("party,text\n" + "".join(f"p{n % 5},{posts} {n}\n" for n in range(50)), "utf-8")
    open_to_all = ("choose", *SIZES, "--looks", "nobody", "--corpus", str(notes), "--json")
    plan = tomllib.loads(securetm(*open_to_all).json["plan"])
    assert (plan["corpus"]["partition"], plan["tokeniser"]["stop_words"]) == ("column", "sl")
    assert "parties" not in plan["corpus"]
    private = securetm("choose", *SIZES, *FEARS, "--corpus", str(notes), "--json")
    assert "it counts as public" in " ".join(private.err.split())
    assert tomllib.loads(private.json["plan"])["tokeniser"]["stop_words"] == "sl"
    assert "the plan takes that for public" in private.json["plan"]
    for length in ("5", "80"):  # of such titles nothing can be forecast
        asked = ("--documents", "1200", *SIZES[4:], *READER, "--epsilon", "1", "--document-length", length)
        few = ("choose", *SIZES[:2], *asked, "--corpus", str(notes), "--json")
        assert tomllib.loads(securetm(*few).json["plan"])["vocabulary"]["file"] == "sl"  # too few words would be found
    notes.write_text("party,text\n" + "p1,a knee in a cast\n" * 50 + f"p2,{posts * 30}\n", "utf-8")  # one long post
    one = securetm("choose", *SIZES, *FEARS, "--corpus", str(notes), "--json")
    assert "Slovenian" not in one.err
    notes.write_text("party,text\n" + f"p1,the knee is in a cast\np2,{posts}\np3,{posts}\n" * 20, "utf-8")  # a third is not
    some = securetm("choose", *SIZES, *FEARS, "--corpus", str(notes), "--json")
    assert "--language sl" in some.err
    assert tomllib.loads(some.json["plan"])["tokeniser"]["stop_words"] == "english"


def test_who_holds_the_documents_is_told_how_long_they_are_and_no_plan_is(tmp_path: Path) -> None:
    """A single document may decide what is seen of them, so that only what somebody says may stand in a plan with a budget."""
    notes = tmp_path / "notes.csv"
    notes.write_text("text\n" + "knee cast bone fever rash\n" * 60, "utf-8")
    asked = ("choose", *SIZES, *FEARS)
    told, unseen = securetm(*asked, "--corpus", str(notes), "--json"), securetm(*asked, "--json")
    assert "about 5 words each" in told.err
    assert "--document-length 5" in " ".join(told.err.split())
    assert tomllib.loads(told.json["plan"])["training"] == tomllib.loads(unseen.json["plan"])["training"]
    stated = securetm(*asked, "--corpus", str(notes), "--document-length", "5", "--json")
    assert "words each" not in stated.err
    assert "document_length" in tomllib.loads(stated.json["plan"])["training"]


def test_how_many_models_are_of_use_is_not_said_in_languages_that_were_not_tried() -> None:
    asked = ("choose", *SIZES, *FEARS, "--document-length", "14", "--json")
    english, slovenian = (securetm(*asked, "--language", one).json["forecast"] for one in ("english", "slovenian"))
    assert "of 100 were of use" in english["said"]
    assert "of 100 were of use" not in slovenian["said"]
    assert "in Slovenian, nothing tells before" in slovenian["said"]


def test_where_nobody_says_how_long_documents_are_the_plan_serves_short_ones_and_long_ones() -> None:
    """Titles were told apart at F1 .62 with the plan for long posts, and at .76 with this one."""
    asked = ("choose", "--parties", "5", "--documents", "18000", *SIZES[4:], *TO_EACH["dp-central"], "--epsilon", "3", "--json")
    told = {length: securetm(*asked, "--document-length", length).json["forecast"] for length in ("0", "5", "120")}
    models = {length: one["setting"]["model"] for length, one in told.items()}
    assert models == {"0": "moments", "5": "moments", "120": "lda-vi"}  # which hardly differ on long ones
    assert "--document-length" in told["0"]["said"]
    assert "--corpus" in told["0"]["said"]
    assert "--document-length" not in told["5"]["said"]


def test_a_risk_of_many_that_collude_is_one_of_those_that_there_are() -> None:
    sizes, fears = ("--documents", "20000", *SIZES[4:]), FEARS[:-1]

    def beyond(parties: int, colluding: int) -> str:
        told = securetm("choose", "--parties", str(parties), *sizes, *fears, str(colluding), "--json").json
        assert told["profile"]
        return "; ".join(told["out_of_scope"])

    assert "more than two parties that share what they know" in beyond(5, 2)
    three = beyond(3, 0)
    assert "two parties that share what they know" in three
    assert "more than two parties" not in three
    few = beyond(2, 0)
    assert "a party that shares what it knows with the coordinator" in few
    assert "two parties that share" not in few


def test_a_file_of_other_numbers_than_the_answers_say_is_told_of_and_changes_nothing(tmp_path: Path) -> None:
    notes, plan = tmp_path / "notes.csv", tmp_path / "plan.toml"

    def answered(documents: int, parties: int) -> tuple[str, str]:
        notes.write_text("party,text\n" + "".join(f"p{n % parties},a knee in a cast {n}\n" for n in range(documents)))
        sizes = ("--parties", "5", "--documents", "100", *SIZES[4:], "--looks", "nobody")
        said = securetm("choose", *sizes, "--corpus", str(notes), "--out", str(plan), "--replace")
        assert said.code == 0, said.err
        return " ".join(said.err.split()), said.out + plan.read_text()

    as_said, without = answered(95, 5)
    told, whole = answered(40, 2)
    assert "where the answers say" not in as_said
    assert "has 40 documents and 2 parties in its column of parties, where the answers say 100 documents and 5 parties." in told
    assert "where the answers say 5 parties" in answered(100, 4)[0]
    assert whole == without


def test_a_list_in_a_file_is_public_for_a_reason_that_the_plan_has(tmp_path: Path) -> None:
    """Under a budget a list of unknown origin may tell anything; the reason of a person goes into the plan."""
    words, why = tmp_path / "words.txt", "the glossary that the ministry published in 2019"
    words.write_text("fever\ncough\nlung\n", "utf-8")
    listed = (*SIZES, *READER, "--language", str(words))
    refused = securetm("choose", *listed)
    assert (refused.code, "--public vocabulary=" in refused.err) == (2, True)
    plan = tmp_path / "plan.toml"
    said = securetm("choose", *listed, "--public", f"vocabulary={why}", "--out", str(plan), "--json")
    assert said.code == 0, said.err
    assert tomllib.loads(said.json["plan"])["origins"] == {"vocabulary": why}
    assert securetm("check", str(plan)).code == 0
    for wrong in ("vectors=because", "vocabulary"):
        assert securetm("choose", *listed, "--public", wrong).code == 2
    assert securetm("choose", *SIZES, *READER, "--language", "english", "--public", f"vocabulary={why}").code == 2


@pytest.mark.slow
def test_of_a_large_budget_several_trainings_take_what_they_can_share() -> None:
    """The chance of a false answer counts e^epsilon times, so a ledger admits no three runs that spend 50 together."""
    said = securetm("choose", *SIZES, *FEARS, "--trainings", "3", "--epsilon", "50", "--json")
    assert said.code == 0, said.err
    spent, read = said.json["spent"], tomllib.loads(said.json["plan"])
    assert 20 < spent["epsilon"] == read["privacy"]["epsilon"] < spent["allowed"] == 50
    assert read["privacy"]["noise"] == spent["noise"] < 2
    assert "of 50 that may be spent, so many can share no more" in said.json["plan"]
    shown = securetm("choose", *SIZES, *FEARS, "--trainings", "3", "--epsilon", "50").out
    assert "so many can share no more" in " ".join(shown.replace("│", " ").split())


@pytest.mark.slow
def test_the_budget_of_the_plan_lasts_for_as_many_trainings_as_were_said(tmp_path: Path) -> None:
    """A ledger for all runs admits each of them with all its rounds, and no round of one more."""
    write_documents(tmp_path / "notes.jsonl", 40)
    plan = tmp_path / "plan.toml"
    notes = ("--corpus", str(tmp_path / "notes.jsonl"), "--language", "english", "--out", str(plan))
    sizes = ("--parties", "5", "--documents", "200", *SIZES[4:], "--trainings", "3")
    said = securetm("choose", *sizes, *READER, *notes, "--json")
    assert said.code == 0, said.err
    spent, read = said.json["spent"], tomllib.loads(plan.read_text("utf-8"))
    assert (said.json["answers"]["trainings"], spent["trainings"], read["privacy"]["noise"]) == (3, 3, spent["noise"])
    assert spent["epsilon"] / 3 < spent["epsilon_of_one"] < spent["epsilon"] == read["privacy"]["epsilon"]
    assert said.json["guess_limit"]["right"] == right_guesses(spent["epsilon"], spent["delta"])  # of all, and not of one
    told = forecast_of(agree(plan_from_tables(read, "plan.toml")), 5)
    assert told is not None
    assert told.record()["held_out"] == pytest.approx(said.json["forecast"]["held_out"], abs=0.01)
    assert "for all 3 trainings on these documents together" in " ".join(said.err.replace("│", " ").split())

    def trained(number: int) -> int:
        run = ("--ledgers", str(tmp_path / "ledgers"), "--no-comparison", "--out", str(tmp_path / f"run-{number}"), "--json")
        ran = securetm("run", str(plan), *run)
        return int(ran.json["rounds"]) if ran.code == 0 else 0

    assert [trained(number) for number in range(4)] == [*[read["training"]["rounds"]] * 3, 0]


@pytest.mark.slow
def test_the_costs_are_those_of_the_run_of_the_plan() -> None:
    """20 topics of 1,000 words for 18,820 documents were measured; of a plan with a tenth of all that less is said."""
    small, large = (
        securetm("choose", "--parties", "5", "--documents", size, *SIZES[4:], *FEARS, "--language", "english", "--json").json
        for size in ("2000", "900000")
    )
    for said in (small, large):
        own, plan = said["plan_cost"], tomllib.loads(said["plan"])
        assert (own["rounds"], own["words"]) == (plan["training"]["rounds"], plan["vocabulary"]["max_words"])
        assert (own["topics"], own["documents"]) == (plan["model"]["n_topics"], plan["training"]["documents"])
        measured = said["cost"]
        values = own["rounds"] * own["topics"] * own["words"] / (measured["rounds"] * measured["topics"] * measured["words"])
        assert own["megabytes"] == pytest.approx(measured["megabytes"] * values, rel=0.01)
    assert small["plan_cost"]["seconds"] < small["cost"]["seconds"] < large["plan_cost"]["seconds"]
    other = securetm("choose", *SIZES, *TO_EACH["masked"], "--json")
    assert (other.json["plan_cost"]["model"], other.json["plan_cost"]["seconds"]) == ("lda", None)  # `lda-vi` was measured
    assert "not measured for lda" in " ".join(other.err.replace("│", " ").split())


WEIGHTS = {
    "attack": "prepared_weights",
    "threat_model": "model_reader",
    "adversary": "party",
    "claim": "the total is differentially private",
    "profiles": ["open", "dp-central"],
    "measure": FARTHEST,
    "refuted_from": 1.0,
    "effort": {"rounds": 1, "documents": 41, "states": 1},
}  # an attack on any model


@pytest.mark.slow
def test_a_run_of_a_plan_for_persons_can_be_audited(tmp_path: Path) -> None:
    """Its baseline has no budget of persons, and so no number of them."""
    rows = [json.loads(line) for line in _documents(tmp_path, 40).splitlines()]
    named = "".join(json.dumps({**row, "who": f"{row['party']} {n // 2}"}) + "\n" for n, row in enumerate(rows))
    (tmp_path / "notes.jsonl").write_text(named, "utf-8")
    plan, run = tmp_path / "plan.toml", tmp_path / "run"
    notes = ("--corpus", str(tmp_path / "notes.jsonl"), "--person", "who", "--language", "english", "--out", str(plan))
    said = securetm("choose", "--parties", "5", "--documents", "200", "--per-person", "2", *SIZES[6:], *READER, *notes)
    assert said.code == 0, said.err
    assert "persons = 100" in plan.read_text("utf-8")
    ran = securetm("run", str(plan), "--record", "--no-comparison", "--out", str(run))
    assert ran.code == 0, ran.err
    tried = write_plan(tmp_path / "tried.toml", tmp_path / "notes.jsonl", **WEIGHTS)
    audited = securetm("audit", str(tried), "--run", str(run), "--workers", "1", "--json")
    assert audited.code == 0, audited.err
    assert audited.json["findings"]
    assert not any("means nothing" in one for one in audited.json["not_tried"])


def _documents(place: Path, number: int) -> str:
    write_documents(place / "documents.jsonl", number)
    return (place / "documents.jsonl").read_text("utf-8")
