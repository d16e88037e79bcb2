"""The files of `deploy/` are valid for the programs that read them, and keep what docs/how-to/deploy.md says of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from yamllint import linter
from yamllint.config import YamlLintConfig

from securetm.cli.application import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
YAML = sorted(DEPLOY.rglob("*.yaml"))
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
FILES = [path for path in sorted(DEPLOY.rglob("*")) if path.is_file()]
MOST_EXPOSED = 1.5  # of 10, by systemd's own rating
KUBERNETES = ("1.30", "1.34")


def documents(path: Path) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(path.read_text("utf-8")) if one]


OBJECTS = [
    one for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in documents(path) if one["kind"] != "Kustomization"
]


def linted(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a linter, if it is here."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed, which lints a file of deploy/")
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


# ---- for all of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_yaml_is_clean(path: Path) -> None:
    rules = YamlLintConfig((DEPLOY / "yamllint.yaml").read_text("utf-8"))
    assert [str(problem) for problem in linter.run(path.read_text("utf-8"), rules)] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_command_that_a_file_names_exists(path: Path) -> None:
    known = set(COMMANDS)
    named = re.findall(r"(?:bin/securetm|exec securetm|^#   securetm) ([a-z]+)", path.read_text("utf-8"), re.M)
    in_a_list = r"(?:command|args): \[(?:securetm, )?([a-z]+), (?:/files/)?(?:plan|PARTY)\.toml"
    named += re.findall(in_a_list, path.read_text("utf-8"))
    assert set(named) <= known


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_holds_a_secret_or_an_image_without_a_version(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "PRIVATE KEY" not in text
    assert "SECURETM_PASSPHRASE:" not in text  # of a variable, which everybody who may look at the container reads
    assert not re.search(r":latest|image: \w+$", text, re.M)


# ---- the image -------------------------------------------------------------------------------------------------------


def test_the_image_has_no_root_no_other_files_and_a_health_check() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8").replace("\\\n", "")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    last = steps[max(number for number, step in enumerate(steps) if step[0] == "FROM") :]
    assert [step[1] for step in last if step[0] == "USER"] == ["10001:10001"]
    assert any(step[0] == "HEALTHCHECK" for step in last)
    for _, copied in (step for step in steps if step[0] == "COPY" and "--from" not in step[1]):
        for name in copied.split()[:-1]:
            assert (ROOT / name).exists()
    assert not re.search(r"^COPY \. ", text, re.M)


def test_the_wheel_is_built_of_what_the_image_copies(tmp_path: Path) -> None:
    steps = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
    sent = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    copied = {name for step in steps if re.match("COPY (?!--from)", step) for name in step.split()[1:-1]}
    assert copied == sent
    for name in copied:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copyfile(ROOT / name, tmp_path / name)
    command = (sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path / "dist"), str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert len(list((tmp_path / "dist").glob("*.whl"))) == 1


# ---- compose ---------------------------------------------------------------------------------------------------------


def test_each_service_of_compose_is_shut_in() -> None:
    (composed,) = documents(DEPLOY / "compose.yaml")
    assert len(composed["services"]) == 6
    for name, service in composed["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert not service["user"].startswith("0"), name
        assert service["ulimits"]["core"] == 0, name
        assert [volume.split(":")[-1] for volume in service["volumes"]] == ["/var/lib/securetm"], name
        assert {"source", "passphrase"} & set(service["secrets"]), name
        assert "ports" not in service, name
    own = [service["volumes"][0] for service in composed["services"].values()]
    assert len(set(own)) == 6  # no member sees the folder of another


# ---- Kubernetes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_an_object_is_valid(one: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(one, version, strict=True)


def containers() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each container with its pod."""
    for one in OBJECTS:
        if one["kind"] == "StatefulSet":
            pod = one["spec"]["template"]["spec"]
            yield from ((pod, container) for container in pod["containers"])


def test_each_container_fits_the_restricted_standard() -> None:
    for pod, container in containers():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        assert container["securityContext"] == wanted
        assert {"requests", "limits"} <= set(container["resources"])


def test_each_role_has_probes_and_keeps_its_home() -> None:
    for one in (one for one in OBJECTS if one["kind"] == "StatefulSet"):
        container, keys = one["spec"]["template"]["spec"]["containers"]
        assert keys["volumeMounts"][0] == container["volumeMounts"][0]  # commands for keys run over the same home
        assert container["livenessProbe"]["exec"]["command"][:2] == ["securetm", "health"]
        assert [claim["metadata"]["name"] for claim in one["spec"]["volumeClaimTemplates"]] == ["home"]
        assert one["spec"]["replicas"] == 1


def test_nothing_reaches_a_party() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in OBJECTS if one["kind"] == "NetworkPolicy"}
    assert policies["nothing-else"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert policies["party"]["ingress"] == []
    assert policies["coordinator"]["egress"] == []


# ---- systemd ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=UNITS, ids=lambda path: path.name)
def unit(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A unit whose program is there."""
    path = tmp_path / request.param.name
    path.write_text(request.param.read_text("utf-8").replace("/opt/securetm/bin/securetm", sys.executable), "utf-8")
    return path


def test_a_unit_is_valid(unit: Path) -> None:
    done = linted("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_unit_is_hardly_exposed(unit: Path) -> None:
    done = linted("systemd-analyze", "security", "--offline=yes", "--no-pager", str(unit))
    rated = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert rated is not None, done.stderr
    assert float(rated[1]) <= MOST_EXPOSED


# ---- alerts ----------------------------------------------------------------------------------------------------------

FIRING = {
    "PartyIsDown": {'up{job="securetm-party"}': "0x30"},
    "PartyIsNotConnected": {"securetm_party_connected": "0x30"},
    "PartyRefuses": {'securetm_party_refusals_total{name="NoEntropy"}': "_ _ 1x27"},  # a first refusal, not a further one
    "BudgetIsNearlySpent": {"securetm_party_epsilon_left": "0x30", "securetm_party_epsilon_budget": "8x30"},
    "CertificateEndsSoon": {"securetm_party_certificate_seconds": "9000x30"},
    "DiskIsNearlyFull": {"securetm_party_disk_free_bytes": "9000x30"},
    "CoordinatorIsDown": {'up{job="securetm-coordinator"}': "0x30"},
    "PartiesAreMissing": {"securetm_parties_connected": "4x60", "securetm_parties": "5x60"},
    "RunStandsStill": {"securetm_rounds": "3x300", "securetm_rounds_planned": "9x300"},
}
QUIET = {
    "PartyRefuses": {'securetm_party_refusals_total{name="NoEntropy"}': "1x300"},  # long ago
    "BudgetIsNearlySpent": {"securetm_party_epsilon_left": "1x300", "securetm_party_epsilon_budget": "8x300"},
    "RunStandsStill": {"securetm_rounds": "0+1x300", "securetm_rounds_planned": "900x300"},
}


def test_each_alert_fires_when_it_should(tmp_path: Path) -> None:
    (rules,) = documents(DEPLOY / "prometheus" / "alerts.yaml")
    assert {rule["alert"] for group in rules["groups"] for rule in group["rules"]} == set(FIRING)
    tried = [(name, series, 1) for name, series in FIRING.items()] + [(name, series, 0) for name, series in QUIET.items()]
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": one, "values": values} for one, values in series.items()],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) or vector(0)',
                    "eval_time": f"{max(int(values.partition('x')[2]) for values in series.values())}m",
                    "exp_samples": [{"labels": "{}", "value": fires}],
                }
            ],
        }
        for name, series, fires in tried
    ]
    path = tmp_path / "tests.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(DEPLOY / "prometheus" / "alerts.yaml")], "tests": tests}), "utf-8")
    done = linted("promtool", "test", "rules", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
