"""Flower's own simulation engine carries the messages of a simulated run, to the same model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from securetm.federation.folder import begin
from securetm.federation.simulation.simulation import train
from securetm.federation.sources import corpora_of
from securetm.plans.recommend import whole_plan
from securetm.stages import Unwatched

from ..federation.conftest import FIVE, texts
from .deployed import deployed, needs_flower

PLAN = """
seed = 7
profile = "masked"
[corpus]
source = "{source}"
partition = "column"
[vocabulary]
most_candidates = 500
min_documents = 2
[model]
name = "lda"
n_topics = 3
[training]
rounds = 3
"""
SERVER = "securetm.federation.flower.simulation_app"
TRIES = 3
FIVE_NODES = "num-supernodes=5 client-resources-num-cpus=1 init-args-num-cpus=2"


@needs_flower
@pytest.mark.slow
def test_five_simulated_nodes_end_with_the_model_of_the_simulation(tmp_path: Path) -> None:
    source, plan = tmp_path / "documents.jsonl", tmp_path / "plan.toml"
    written = [(name, text) for seed, name in enumerate(FIVE) for text in texts(FIVE[name], 50, seed)]
    source.write_text("".join(json.dumps({"party": name, "text": text}) + "\n" for name, text in written), "utf-8")
    plan.write_text(PLAN.format(source=source), "utf-8")
    alone = whole_plan(plan, {})
    simulated = begin(tmp_path / "alone", alone, corpora_of(alone, Unwatched()))
    train(simulated, Unwatched())
    out = tmp_path / "out"
    with deployed(tmp_path / "flower", (), "--simulation") as flower:
        for attempt in range(TRIES):
            app = f"app{attempt}"
            said = flower.run(SERVER, plan, "--federation-config", FIVE_NODES, out=out, app=app)
            if "timed out during startup" not in said:
                break
        else:
            pytest.skip("Ray does not start here: it gives its own processes seconds, and this machine is too busy")
    assert (out / "result.json").is_file(), said
    assert (out / "release" / "model.safetensors").read_bytes() == simulated.model.read_bytes()
