"""What comes with the package from others: locked by hash, and listed in a bill of materials."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="ascii")
LEFT_OUT = {"torch"}


def locked() -> dict[str, list[tuple[Requirement, int]]]:
    """Every requirement of the lock file with how many hashes it has."""
    found: dict[str, list[tuple[Requirement, int]]] = {}
    lines = "\n".join(line for line in LOCK.splitlines() if not line.startswith("#")).replace("\\\n", "")
    for line in lines.splitlines():
        words, *hashes = line.split("--hash=sha256:")
        assert all(re.fullmatch("[0-9a-f]{64}", digest.strip()) for digest in hashes)
        requirement = Requirement(words.strip())
        found.setdefault(canonicalize_name(requirement.name), []).append((requirement, len(hashes)))
    return found


def test_every_locked_package_has_one_version_and_its_hashes() -> None:
    for name, versions in locked().items():
        for requirement, hashes in versions:
            assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), name
            assert hashes >= 1, name


def test_whatever_the_demo_and_the_tests_ask_for_is_locked_in_a_version_that_fits() -> None:
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *extras["dev"], *extras["learning"]]
    [own] = [Requirement(line) for line in asked if canonicalize_name(Requirement(line).name) == PROJECT["name"]]
    asked += [line for extra in own.extras for line in extras[extra]]
    known = locked()
    for requirement in map(Requirement, asked):
        name = canonicalize_name(requirement.name)
        if name in LEFT_OUT | {PROJECT["name"]}:
            assert name not in known
            continue
        assert name in known, f"{name} is not locked: run make lock"
        for version, _ in known[name]:
            assert requirement.specifier.contains(str(version.specifier)[2:], prereleases=True), f"{name}: run make lock"


@pytest.fixture(scope="module")
def sbom() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "tools" / "sbom.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_bill_lists_all_that_the_package_needs_and_nothing_else(sbom: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "sabun-0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    found = sbom.bill("sabun", wheel)
    assert found["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"a wheel").hexdigest()}]
    names = {component["name"]: component["version"] for component in found["components"]}
    assert {canonicalize_name(Requirement(line).name) for line in PROJECT["dependencies"]} <= set(names)
    assert "python-dateutil" in names, "what pandas asks for"
    assert not {"pytest", "ruff", "pip", "sabun"} & set(names)
    assert all(metadata.version(name) == version for name, version in names.items())


def test_the_bill_is_whole_and_the_same_again(sbom: ModuleType, tmp_path: Path) -> None:
    wheel = tmp_path / "sabun-0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    found = sbom.bill("sabun", wheel)
    assert json.dumps(found) == json.dumps(sbom.bill("sabun", wheel))
    known = {component["bom-ref"] for component in [*found["components"], found["metadata"]["component"]]}
    assert {entry["ref"] for entry in found["dependencies"]} == known
    assert {need for entry in found["dependencies"] for need in entry["dependsOn"]} <= known
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", found["serialNumber"])
    wheel.write_bytes(b"another")
    assert sbom.bill("sabun", wheel)["serialNumber"] != found["serialNumber"]
