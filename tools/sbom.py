"""A bill of materials (CycloneDX 1.6, JSON): a wheel, and what its environment holds because the wheel asks for it.

It is read from the metadata of the installed packages, so it names the versions that the wheel was tried with, not those that
an installation elsewhere will choose. No date and no random number is in it: the same environment gives the same bytes.

    python tools/sbom.py dist/sabun-0.1.0-py3-none-any.whl --out dist/sbom.cdx.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import uuid
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["bill"]

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/schema/bom-1.6.schema.json")


def bill(root: str, wheel: Path) -> dict[str, Any]:
    """The bill of an installed distribution and of everything it needs here.

    Args:
        root: Name of the distribution.
        wheel: The file it was installed from.

    Raises:
        PackageNotFoundError: Something that is needed is not installed.
    """
    needs: dict[str, list[str]] = {}
    waiting = [canonicalize_name(root)]
    while waiting:
        name = waiting.pop()
        if name not in needs:
            needs[name] = _needed(name)
            waiting += needs[name]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    top = _component(canonicalize_name(root)) | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    others = [_component(name) for name in sorted(needs) if name != canonicalize_name(root)]
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": top},
        "components": others,
        "dependencies": [
            {"ref": _address(name), "dependsOn": [_address(need) for need in needs[name]]} for name in sorted(needs)
        ],
    }
    return content | {"serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, json.dumps(content, sort_keys=True))}"}


def _needed(name: str) -> list[str]:
    """What a distribution asks for in this environment, extras apart."""
    wanted = (Requirement(line) for line in metadata.requires(name) or ())
    return sorted({canonicalize_name(one.name) for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})})


def _address(name: str) -> str:
    return f"pkg:pypi/{name}@{metadata.version(name)}"


def _component(name: str) -> dict[str, Any]:
    about = metadata.metadata(name)
    found = {"type": "library", "bom-ref": _address(name), "name": name, "version": about["Version"], "purl": _address(name)}
    return found | _licence(about)


def _licence(about: metadata.PackageMetadata) -> dict[str, Any]:
    """An SPDX expression where the package states one; otherwise the first line of whatever it says, or nothing."""
    if expression := about.get("License-Expression"):
        return {"licenses": [{"expression": expression}]}
    said = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")]
    said = said or [(about.get("License") or "").strip().partition("\n")[0]]
    return {"licenses": [{"license": {"name": words}} for words in said]} if said[0] else {}


def main() -> None:
    """Writes the bill of one wheel."""
    parser = argparse.ArgumentParser(description="Write a CycloneDX bill of materials for an installed wheel.")
    parser.add_argument("wheel", type=Path, help="the file that was installed into this environment")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    written = bill(asked.wheel.name.partition("-")[0], asked.wheel)
    asked.out.write_text(json.dumps(written, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{asked.out}: sabun and {len(written['components'])} packages it needs")


if __name__ == "__main__":
    main()
