"""`sabun-client`, the distribution of the device side alone: built from the same sources, used without anything else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import sabun.keyvalue.client

ROOT = Path(__file__).parents[2]
PROBE = """
import sys
import sabun_client as client
outside = {module.partition(".")[0] for module in sys.modules} - set(sys.stdlib_module_names) - {"sabun_client", "__main__"}
assert not outside, outside
terms = client.Terms(keys=("a", "b"), epsilon=2, protocol="set")
device = client.Client(terms, diary=sys.argv[1] + "/diary", max_epsilon=2)
outbox = client.Outbox(sys.argv[1] + "/outbox")
outbox.put(device.report({"a": 0.5}))
try:
    client.Uploader("http://127.0.0.1:9", attempts=1).send(outbox)
except client.UploadError as error:
    print(error.code, len(outbox.waiting()), len(outbox.waiting()[0]))
"""

pytestmark = pytest.mark.skipif(not (ROOT / "clients/python").is_dir(), reason="the distribution is not part of this archive")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT / "clients/python", check=True, capture_output=True)
    [found] = folder.glob("*.whl")
    return found


def test_the_wheel_has_the_sources_of_the_full_package_and_nothing_to_depend_on(wheel: Path) -> None:
    source = Path(sabun.keyvalue.client.__file__).parent
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        for file in source.glob("*.py"):
            assert opened.read(f"sabun_client/{file.name}") == file.read_bytes()
        [facts] = [name for name in names if name.endswith("METADATA")]
        assert b"Requires-Dist" not in opened.read(facts)
        assert "sabun_client/py.typed" in names
        assert not [name for name in names if "__pycache__" in name]
    assert wheel.stat().st_size < 200_000


def test_the_wheel_works_in_an_empty_environment_without_the_network(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "empty"
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(place)  # what pip does with a wheel of pure Python
    program = f"import sys; sys.path.insert(0, {str(place)!r})\n{PROBE}"
    # -I -S: no site-packages, no environment.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("unreachable 1 38\n", "")
