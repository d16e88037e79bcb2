"""`securetm explain`, `check`, `threats` and `parts`: what there is to choose from, what it means, whether it is sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from securetm.cli.command import Output, command
from securetm.cli.options import ARGUMENT, MODELS, PROFILES, THREATS, ProfileName

_USUAL_PARTIES = 5
Parties = Annotated[int | None, "How many parties; if not given, 5 or as many as it needs.", {"min": 1, "max": 100_000}]


@command("open")
def explain(
    out: Output,
    profiles: Annotated[
        list[str],
        ARGUMENT,
        "A profile's name, or a file ending in .toml; several: side by side.",
        PROFILES,
        {"metavar": "PROFILE..."},
    ],
    parties: Parties = None,
) -> dict[str, Any]:
    """Says who sees what under a profile, what protects it, and what is spent."""
    from securetm.errors import BadSetting
    from securetm.settings import read_toml

    for name in profiles:
        path = Path(name)
        table = read_toml(path) if path.suffix == ".toml" and path.is_file() else {}
        if isinstance(profile := table.get("profile"), str):
            instead = f"`securetm explain {profile}` explains its profile; `securetm check {name}` checks the plan"
            raise BadSetting("", "PROFILE", name, "is a plan, and no profile", instead=instead)
    if len(profiles) > 1:
        return _side_by_side(profiles, parties, out)
    from securetm.reports.profiles import explain as facts_of
    from securetm.reports.profiles import show_explanation

    facts = facts_of(profiles[0], parties)
    show_explanation(facts, out.results)
    return facts


@command("masked dp-distributed")
def compare_profiles(
    out: Output,
    profiles: Annotated[
        list[str], ARGUMENT, "Two names or more, or files ending in .toml.", PROFILES, {"metavar": "PROFILE..."}
    ],
    parties: Parties = None,
) -> dict[str, Any]:
    """Shows profiles side by side, one row a question: who sees what, unit and epsilon, quality, rounds, bytes.

    Rows whose answers differ are marked.
    """
    return _side_by_side(profiles, parties, out)


def _side_by_side(profiles: list[str], parties: int | None, out: Output) -> dict[str, Any]:
    from securetm.reports.profiles import compare_profiles as facts_of
    from securetm.reports.profiles import show_comparison

    facts = facts_of(profiles, parties)
    show_comparison(facts, out.results)
    return facts


@command("open --model prodlda")
def check(
    out: Output,
    profile: Annotated[str, ARGUMENT, "A profile's name, or a file ending in .toml: of a profile, or a plan.", PROFILES],
    model: Annotated[str | None, "Check it for this topic model too; a plan names its own.", MODELS] = None,
    threat_model: Annotated[str | None, "Another threat model than the profile's own.", THREATS] = None,
    parties: Annotated[
        int | None, "How many parties take part; if not given, as the plan says, or 5.", {"min": 1, "max": 100_000}
    ] = None,
) -> dict[str, Any]:
    """Refuses an unsound choice and names every gap; exits 1 if there is one."""
    from securetm.federation.soundness import against, check_plan, plan_to_check
    from securetm.federation.soundness import check as gaps_of
    from securetm.reports.profiles import centres_show, show_check
    from securetm.settings import require

    plan = plan_to_check(profile)
    require(plan is None or model is None, "", "--model", model, "means nothing for a plan, which names its model")
    taking = parties or (plan.federation.parties if plan else 0) or _USUAL_PARTIES
    found = gaps_of(profile, model, threat_model, taking) if plan is None else check_plan(plan, threat_model, taking)
    said = ""
    if plan is not None and not found:
        from securetm.reports.choosing import too_few_documents, use_said

        found += too_few_documents(plan, taking)
        said = "" if found else use_said(plan, taking)
    under, trained = (profile, model) if plan is None else (plan.profile, plan.model.name)
    centres = centres_show(under, trained) if trained else []
    facts = {**against(under, threat_model), "gaps": found, "forecast": said, "centres": centres}
    show_check(facts, out.results)
    if said:
        out.results.print(said, markup=False)
    out.exit_code = 1 if facts["gaps"] else 0
    return {**facts, "profile": profile, "sound": not facts["gaps"]}


@command("masked")
def threats(
    out: Output,
    profile: ProfileName,
    every: Annotated[bool, "--all", "Every threat model, beside the profile's own."] = False,
    parties: Annotated[
        int | None, "How many parties take part; if not given, 5, or as many as it needs.", {"min": 2, "max": 100_000}
    ] = None,
    evidence: Annotated[
        Path | None, "Another folder of kept results than audits/evidence.", {"exists": True, "file_okay": False}
    ] = None,
) -> dict[str, Any]:
    """Says what is required against each adversary, who claims it, what tried it and with what result.

    Exits 1 if a claim that the profile makes was broken, if parties did not refuse what they should, or if its own threat
    model requires a claim that it does not make.
    """
    from securetm.reports.audits.threats import show_threats, threats_of

    facts = threats_of(profile, parties, every=every, folder=evidence)
    show_threats(facts, out.results)
    broken = facts["refuted_claims"] or facts["refusals"].get("not_held") or facts["threat_models"][0]["gaps"]
    out.exit_code = 1 if broken else 0
    return facts


@command("--json")
def parts(out: Output) -> dict[str, Any]:
    """Lists models, mechanisms, aggregations, attacks and corpus readers by name, those of installed packages too.

    A name that several packages declare is listed once for each, and refused where it is used. The parts of other packages are
    imported, and those that cannot be used are named with the reason.
    """
    from securetm.reports.profiles import listed_parts, show_parts, unusable_parts

    facts, unusable = listed_parts(), unusable_parts()
    show_parts(facts, unusable, out.results)
    return {**facts, "unusable": unusable}
