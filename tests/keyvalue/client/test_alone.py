from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import sabun.keyvalue.client

PROBE = """
import sys
before = set(sys.modules)
import {name} as client
new = {{module.partition(".")[0] for module in set(sys.modules) - before}}
assert new <= set(sys.stdlib_module_names) | {{{root!r}}}, new - set(sys.stdlib_module_names)
# `sabun.lazy` lets the package around the device load its names on first use; it is standard library too.
others = [name for name in sys.modules if name.startswith("sabun.") and not name.startswith(("sabun.keyvalue", "sabun.lazy"))]
assert not others, others
terms = client.Terms(keys=("a", "b"), epsilon=2, protocol="kv3")
print(len(client.Client(terms).report({{"a": 0.5}})))
"""


def test_the_device_side_needs_the_standard_library_alone() -> None:
    probe = PROBE.format(name="sabun.keyvalue.client", root="sabun")
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("38\n", "")


def test_the_folder_works_when_it_is_copied_alone(tmp_path: Path) -> None:
    source = Path(sabun.keyvalue.client.__file__).parent
    shutil.copytree(source, tmp_path / "device", ignore=shutil.ignore_patterns("__pycache__"))
    probe = f"import sys; sys.path.insert(0, {str(tmp_path)!r})" + PROBE.format(name="device", root="device")
    # -I -S: no site-packages, no environment: the standard library is all there is.
    done = subprocess.run([sys.executable, "-I", "-S", "-c", probe], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("38\n", "")
