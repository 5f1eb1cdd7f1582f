"""What a user installs: the wheel and the source archive, built without the network."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sabun"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def archive(built: Path) -> Path:
    (found,) = built.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def archive_names(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return ["/".join(PurePosixPath(name).parts[1:]) for name in opened.getnames()]


def expected(*endings: str) -> set[str]:
    """Files of the package with such an ending."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and path.name.endswith(endings) and "__pycache__" not in path.parts
    }


@pytest.mark.parametrize(
    "endings",
    [
        (".py",),
        ("py.typed",),
        (".proof.md", "LICENCE.md", "FORMAT.md"),
        (".csv.xz", ".html", ".j2", ".json", ".js", ".css", ".toml"),
    ],
)
def test_the_wheel_holds_every_file_of_the_package(wheel_names: list[str], endings: tuple[str, ...]) -> None:
    assert expected(*endings) <= set(wheel_names)
    assert endings[0] != ".py" or "sabun/py.typed" in wheel_names


def test_the_wheel_holds_nothing_else(wheel_names: list[str]) -> None:
    allowed = {"sabun", f"sabun-{PROJECT['version']}.dist-info"}
    assert {name.split("/")[0] for name in wheel_names} == allowed
    assert [name for name in wheel_names if "__pycache__" in name or name.endswith((".pyc", ".nbi", ".nbc"))] == []


def test_the_licences_travel_with_the_wheel(wheel: Path, wheel_names: list[str]) -> None:
    folder = f"sabun-{PROJECT['version']}.dist-info/licenses/"
    found = {name.removeprefix(folder) for name in wheel_names if name.startswith(folder)}
    data = [path.relative_to(ROOT).as_posix() for path in SOURCE.rglob("*.csv.xz")]
    assert data
    assert found == {"LICENSE", *(name.replace(".csv.xz", ".LICENCE.md") for name in data)}
    for name in found:
        assert zipfile.ZipFile(wheel).read(folder + name) == (ROOT / name).read_bytes()


def test_the_archive_gives_the_same_bytes_of_itself_and_of_the_wheel(wheel: Path, archive: Path, tmp_path: Path) -> None:
    """Whatever the folder, the age of its files, the umask, the time zone and the order in which a set of texts is walked."""
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    for path in folder.rglob("*"):
        os.utime(path, (2e9, 2e9))
    others = os.environ | {"TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7", "LC_ALL": "C"}

    def digests(epoch: str | None) -> list[bytes]:
        place = tmp_path / str(epoch)
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(place)]
        environment = others if epoch is None else others | {"SOURCE_DATE_EPOCH": epoch}
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment, umask=0o077)
        return [hashlib.sha256((place / path.name).read_bytes()).digest() for path in (wheel, archive)]

    first = [hashlib.sha256(path.read_bytes()).digest() for path in (wheel, archive)]
    assert digests(os.environ.get("SOURCE_DATE_EPOCH")) == first
    assert set(digests("1700000000")).isdisjoint(first), "the date inside must be the one that is given"


def test_the_archive_holds_what_is_needed_to_test_it(archive_names: list[str]) -> None:
    wanted = ["README.md", "LICENSE", "LIMITS.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"]
    wanted += ["SECURITY.md", "requirements.lock", "tools/sbom.py"]
    wanted += ["tests/packaging/test_build.py", "docs/example.md", "src/sabun/py.typed", "benchmarks/__main__.py"]
    assert [name for name in wanted if name not in archive_names] == []
    assert [name for name in archive_names if "__pycache__" in name or name.startswith((".venv", "site/", "dist/"))] == []


def test_the_metadata_says_what_the_project_says(wheel: Path) -> None:
    text = zipfile.ZipFile(wheel).read(f"sabun-{PROJECT['version']}.dist-info/METADATA").decode()
    head = text.partition("\n\n")[0]
    assert f"Version: {PROJECT['version']}" in head
    assert "License-Expression: MIT AND CC-BY-4.0\n" in head
    assert "Requires-Python: >=3.11" in head
    assert len(re.findall(r"^Requires-Dist: [^;\n]+$", head, re.MULTILINE)) == len(PROJECT["dependencies"])


def test_the_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(place), str(wheel)]
    subprocess.run(install, check=True, capture_output=True, env=os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    environment = os.environ | {"PYTHONPATH": str(place)}
    where = "import sabun, sabun.cli; print(sabun.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", where], capture_output=True, text=True, env=environment, cwd=tmp_path, check=True
    )
    assert Path(found.stdout.strip()).is_relative_to(place)
    demo = ["demo", "--quick", "--job", "count", "--folder", "demo"]
    for command in (["--version"], ["datasets", "save", "ionosphere", "radar.csv"], demo):
        done = subprocess.run(
            [sys.executable, "-m", "sabun.cli", *command], capture_output=True, text=True, env=environment, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "radar.csv").stat().st_size > 10_000
    assert "How many of the patients are 65 or older?" in (tmp_path / "demo" / "index.html").read_text(encoding="utf-8")


def test_the_citation_has_the_version_of_the_project() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {PROJECT['version']}\n" in text
    assert text.count("  - type: ") == 5
