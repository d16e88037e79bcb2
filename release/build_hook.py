"""What a build adds to the wheel: the digest of each of its own files, and the list of what it depends on (CycloneDX, PEP 770).

Nothing in either depends on when, where or by whom the wheel is built.
"""

from __future__ import annotations

import importlib.util
import json
import re
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SETS = ("party", "all")  # requirements-NAME.txt, pinned with hashes
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)==(\S+) \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n?)+)", re.MULTILINE)


class ReleaseHook(BuildHookInterface[Any]):
    """Run by hatchling before it packs a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Makes both files beside the build, and says where they go."""
        if self.target_name != "wheel" or version == "editable":
            return
        own, folder = self._own(), Path(tempfile.mkdtemp())
        files = own.sources()
        (folder / own.PUBLISHED).write_text(json.dumps(files, indent=0, sort_keys=True) + "\n", "utf-8")
        bill = bill_of_materials(Path(self.root) / "release", own.__version__, own.build_digest(files))
        (folder / "securetm.cdx.json").write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", "utf-8")
        build_data["force_include"][str(folder / own.PUBLISHED)] = f"securetm/_data/{own.PUBLISHED}"
        build_data["sbom_files"].append(str(folder / "securetm.cdx.json"))

    def _own(self) -> Any:
        """The module of the version, without the package: what the package imports need not be installed to build it."""
        spec = importlib.util.spec_from_file_location("version_of_securetm", Path(self.root) / "securetm" / "version.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


def bill_of_materials(folder: Path, version: str, digest: str) -> dict[str, Any]:
    """What the pinned sets hold: packages that a party needs are required, all others optional."""
    found: dict[str, dict[str, Any]] = {}
    for name, scope in zip(SETS, ("required", "optional"), strict=True):
        for package, pinned, hashes in _PINNED.findall((folder / f"requirements-{name}.txt").read_text("utf-8")):
            reference = f"pkg:pypi/{re.sub(r'[-_.]+', '-', package).lower()}@{pinned}"
            entry = {"type": "library", "name": package, "version": pinned, "purl": reference, "bom-ref": reference}
            known = [{"alg": "SHA-256", "content": one} for one in re.findall(r"sha256:([0-9a-f]{64})", hashes)]
            found.setdefault(reference, {**entry, "scope": scope, "hashes": known})
    own = {
        "type": "application",
        "name": "securetm",
        "version": version,
        "bom-ref": "securetm",
        "purl": f"pkg:pypi/securetm@{version}",
    }
    own |= {"licenses": [{"license": {"id": "Apache-2.0"}}], "properties": [{"name": "digest of the sources", "value": digest}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [found[one] for one in sorted(found)],
        "dependencies": [{"ref": "securetm", "dependsOn": sorted(found)}],
    }
