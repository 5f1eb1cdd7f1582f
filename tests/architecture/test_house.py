from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import sabun

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "sabun"
MODULES = sorted(path for path in SOURCE.rglob("*.py"))
HEAVY = ("scipy.stats", "sklearn", "torch", "opendp", "matplotlib", "dp_accounting", "pandas", "polars", "pyarrow", "numba")


def test_importing_sabun_stays_light() -> None:
    names = "sabun.Guarantee, sabun.Ledger, sabun.Release, sabun.Schema, sabun.errors, sabun.__version__"
    probe = f"import sys, sabun; {names}; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_exported_name_exists() -> None:
    names = [name for _, name, _ in pkgutil.walk_packages(sabun.__path__, "sabun.") if not name.endswith("__main__")]
    modules = [importlib.import_module(name) for name in names]
    exported = [(module, list(getattr(module, "__all__", []))) for module in modules]
    assert [module for module, given in exported if len(set(given)) < len(given)] == [], "no name is exported twice"
    assert [(module, name) for module, given in exported for name in given if not hasattr(module, name)] == []


def test_no_module_is_an_everything_bag() -> None:
    long = [path for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 400]
    assert list(map(str, long)) == []
    bags = {"utils", "common", "helpers", "misc", "core", "manager", "handler"}
    assert [str(path) for path in MODULES if path.stem in bags] == []


def test_a_module_says_what_it_holds() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))]
    assert list(map(str, silent)) == [], "the first line of a module says what it holds"


def test_randomness_comes_from_the_one_coin() -> None:
    pattern = re.compile(r"np\.random\.|numpy\.random|\brandom\.random\(|torch\.(randn|normal|rand)\(")
    allowed = {"privacy/noise", "datasets"}
    offenders = [
        str(path.relative_to(SOURCE))
        for path in MODULES
        if pattern.search(path.read_text(encoding="utf-8"))
        and not any(str(path.relative_to(SOURCE)).startswith(room) for room in allowed)
    ]
    made_up = "/whole_fit.py"  # tables to try a mechanism on
    assert [path for path in offenders if path not in SIMULATION_OR_PUBLIC and not path.endswith(made_up)] == []


SIMULATION_OR_PUBLIC = frozenset(
    {
        "keyvalue/simulation.py",  # simulated people and devices: every result says NOT PRIVATE
        "audit/black_box.py",  # an example in its help: somebody's own mechanism
        "keyvalue/ranking.py",  # draws from what published counts say, to compare keys
        "learning/audit.py",  # the audit's own run by a formula, without noise or clipping
        "learning/canaries.py",  # the same
        "learning/membership_attack.py",  # which rows a shadow model is trained on; it is thrown away
        "learning/torch_modules/widened.py",  # public first weights of canaries; the module is thrown away
    }
)
"""Modules whose pseudo-random numbers protect nobody (simulation, public initial weights), with the reason beside them."""


def test_bugs_of_users_are_never_asserted() -> None:
    """An `assert` may narrow a type or state our own invariant; it never stands first in a public function."""
    found = []
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                if body and isinstance(body[0], ast.Assert):
                    found.append(f"{path.name}:{node.name}")
    allowed = {"guarantee.py:cost"}
    assert set(found) <= allowed


def test_the_project_speaks_of_itself_alone() -> None:
    tracked = [path for path in ROOT.rglob("*") if path.is_file() and _is_ours(path)]
    offenders = [
        str(path.relative_to(ROOT)) for path in tracked if re.search(r"/(work|tmp)/(main|shared|brief|sabun-venv)", _text(path))
    ]
    assert offenders == []


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return (
        not any(part.startswith(".") and part != ".ci" for part in parts)
        and "__pycache__" not in parts
        and path.suffix in {".py", ".md", ".toml", ""}
    )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="ignore")
