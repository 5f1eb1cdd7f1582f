"""Whatever reads bytes from elsewhere takes them or refuses them in our own words, and changes nothing when it refuses.

The coverage-guided fuzzer runs where there is a build of atheris (Linux on x86-64); the seeds are read everywhere.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzz.targets import TARGETS
from sabun.errors import InternalError, ParameterError

TESTS = Path(__file__).resolve().parents[1]
UNTIL = 200 * len(TARGETS)  # a turn is about 150 of each: seeds may be more than the runs that were asked for
FIGURES = TESTS.parent / "docs" / "results" / "fuzz.json"
NEEDS_ATHERIS = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="there is no atheris here: pip install atheris"
)


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_lead_behind_the_door(name: str) -> None:
    """A fuzzer that starts from refused inputs alone would see little of a reader."""
    seeds = TARGETS[name].seeds()
    assert sum(TARGETS[name].taken(seed) for seed in seeds) > 0
    assert not TARGETS[name].taken(b"\x00\xff")


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, dict[str, Any], str]:
    """Two turns of every target, in one process that loads and instruments the package once."""
    return fuzzed(tmp_path_factory.mktemp("fuzz"), "--runs", "150", "--until", str(UNTIL))


@NEEDS_ATHERIS
def test_a_bounded_run_finds_no_crash(bounded: tuple[int, dict[str, Any], str]) -> None:
    code, told, words = bounded
    assert (code, told["crashes"]) == (0, 0), words
    assert set(told["targets"]) == set(TARGETS)
    for name, figures in told["targets"].items():
        assert figures["taken"] > 0, name
        assert figures["refused"] > 0, name


@NEEDS_ATHERIS
def test_targets_take_turns_until_enough_was_tried(bounded: tuple[int, dict[str, Any], str]) -> None:
    _, told, words = bounded
    assert told["inputs"] >= UNTIL
    assert words.count("typed: ") > 1


@NEEDS_ATHERIS
def test_a_reader_that_raises_anything_else_is_found(tmp_path: Path) -> None:
    """Here one of its own making; that a bug of ours counts as well is said of `refusals` below, which every target enters."""
    code, told, _ = fuzzed(
        tmp_path,
        "wire",
        "--runs",
        "2000",
        before="""
from sabun.keyvalue.client import wire
def unpack(terms, content, real=wire.unpack):
    if content[:1] == b"\\x02":  # only a mutation begins so
        raise KeyError("planted")
    return real(terms, content)
wire.unpack = unpack
""",
    )
    assert (code, told["crashes"]) == (1, 1)
    assert [path for path in tmp_path.glob("crashes/wire-*") if path.read_bytes()[1:2] == b"\x02"]


def test_refusals_let_our_own_words_pass_and_nothing_else() -> None:
    from fuzz.targets import refusals

    with refusals():
        raise ParameterError("a must be b; got c.")
    for error in (InternalError("a bug."), ParameterError(""), KeyError("a")):
        with pytest.raises((InternalError, AssertionError, KeyError)), refusals():
            raise error


def test_the_figures_are_those_of_a_run_over_every_target() -> None:
    told = json.loads(FIGURES.read_text(encoding="utf-8"))
    assert set(told["targets"]) == set(TARGETS)
    assert told["inputs"] == sum(each["inputs"] for each in told["targets"].values())
    assert told["crashes"] == 0
    text = (TESTS.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"{told['inputs']:,} inputs" in " ".join(text.split())


def fuzzed(folder: Path, *arguments: str, before: str = "") -> tuple[int, dict[str, Any], str]:
    """Runs the fuzzer in a process of its own; its exit code, its figures and what it printed."""
    out = folder / "figures.json"
    start = f"{before}\nimport runpy, sys\nsys.argv[0] = 'fuzz'\nrunpy.run_module('fuzz', run_name='__main__')"
    command = [sys.executable, "-W", "ignore", "-c", start, *arguments, "--out", str(out), "--crashes", str(folder / "crashes")]
    # The source under test comes first, whatever is installed.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, env=environment)
    return done.returncode, json.loads(out.read_text(encoding="utf-8")), done.stdout[-4000:]
