from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from sabun.asking import rooms

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from benchmarks import figures, freshness  # noqa: E402
from benchmarks import page as pages  # noqa: E402
from benchmarks.__main__ import ROOMS, missed  # noqa: E402
from benchmarks.figures import filled, short  # noqa: E402
from benchmarks.measure import Figure, keep, machine  # noqa: E402
from benchmarks.page import PAGE, kept, page  # noqa: E402

FILES = kept()
FIGURES = [
    Figure(
        room="noise",
        name="a|b",
        ours=2_500_000.0,
        peer=50_000.0,
        peer_name="opendp 0.16",
        unit="samples/s",
        ratio=50.0,
        target=15.0,
    ),
    Figure(room="noise", name="alone", ours=0.00123, note="one vector"),
    Figure(room="noise", name="slow", ours=2.0, peer=1.0, peer_name="peer 1", ratio=0.5, target=2.5),
]


def test_every_figure_is_a_row(tmp_path: Path) -> None:
    keep(tmp_path / "noise.json", FIGURES, room="noise", quick=True)
    text = page([tmp_path / "noise.json"])
    assert r"| a\|b | 2,500,000 samples/s | 50,000 samples/s (opendp 0.16) | **50.0** | 15.0 |" in text
    assert "| alone | 0.00123 s | – | – | – |" in text
    assert "2.50 (missed)" in text
    assert "- alone: one vector" in text
    assert "Smaller sizes" in text


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0.0"), (1234.5, "1,230"), (12.345, "12.3"), (0.5, "0.500"), (1e-9, "1.00e-09")]
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert short(value) == shown


def test_a_run_on_another_machine_is_told_with_what_it_had(tmp_path: Path) -> None:
    place = machine() | {"machine": "Linux arm64, 8 cores", "processor": "P", "accelerator": "one G"}
    (tmp_path / "learning_gpu.json").write_text(json.dumps({"machine": place, "figures": [asdict(FIGURES[1])]}))
    text = page([tmp_path / "learning_gpu.json"])
    assert "## learning gpu" in text
    assert "Linux arm64, 8 cores, P, one G. †" in text


def test_the_page_in_the_repository_is_the_one_the_files_give() -> None:
    assert FILES
    assert PAGE.read_text(encoding="utf-8") == page(FILES)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one room, measured just now."""
    for name in ("src/sabun/cellar/wine.py", "src/sabun/cellar/rack/shelf.py", "tools/bottles.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('"""Words."""\nYEAR = 1  # a comment\n')
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "cellar.py").write_text("def run(quick): ...\n")
    monkeypatch.setattr(freshness, "ROOT", tmp_path)
    monkeypatch.setattr(pages, "ROOMS", ("cellar",))
    keep(tmp_path / "cellar.json", FIGURES, room="cellar", quick=False)
    return tmp_path


def test_a_run_of_the_code_as_it_is_has_no_mark(project: Path) -> None:
    assert page([project / "cellar.json"]).partition("## cellar")[2].count("†") == 0
    assert pages.stale([project / "cellar.json"]) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/sabun/cellar/wine.py", "YEAR = 2\n"),
        ("src/sabun/cellar/rack/shelf.py", "YEAR = 2\n"),
        ("src/sabun/cellar/new.py", ""),
        ("src/sabun/cellar/wine.py", None),
        ("benchmarks/cellar.py", "def run(quick): return []\n"),
    ],
)
def test_every_figure_older_than_its_code_is_marked(project: Path, name: str, text: str | None) -> None:
    (project / name).unlink() if text is None else (project / name).write_text(text)
    section = page([project / "cellar.json"]).partition("## cellar")[2]
    assert "† Older than the code." in section
    assert all("†" in line for line in section.splitlines() if line.startswith(("| a", "| slow")))
    assert pages.stale([project / "cellar.json"]) == {"cellar": [name]}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/sabun/cellar/wine.py", '"""Other words."""\n\nYEAR = 1\n'),
        ("tools/bottles.py", "YEAR = 2\n"),
        ("src/sabun/cellar/verbs.py", "YEAR = 2\n"),
    ],
)
def test_words_and_code_of_others_change_no_figure(project: Path, name: str, text: str) -> None:
    (project / name).write_text(text)
    assert pages.stale([project / "cellar.json"]) == {}


def test_a_benchmark_may_measure_what_has_another_name(project: Path) -> None:
    (project / "benchmarks" / "drinks.py").write_text('MEASURES = ("src/sabun/cellar/rack", "tools/bottles.py")\n')
    assert list(freshness.modules("drinks")) == ["benchmarks/drinks.py", "src/sabun/cellar/rack/shelf.py", "tools/bottles.py"]
    (project / "benchmarks" / "drinks.py").write_text("")
    with pytest.raises(ValueError, match="src/sabun/drinks"):
        freshness.modules("drinks")


def test_every_kept_run_says_what_it_measures() -> None:
    assert all(freshness.modules(name) for name in {*ROOMS, *(file.stem for file in FILES)})


def test_a_room_without_a_run_and_a_run_without_digests_are_stale(project: Path) -> None:
    assert pages.stale([]) == {"cellar": ["no run is kept"]}
    record = json.loads((project / "cellar.json").read_text())
    del record["modules"]
    (project / "cellar.json").write_text(json.dumps(record))
    assert pages.stale([project / "cellar.json"]) == {"cellar": ["the run kept no digests"]}


def test_the_check_fails_and_names_what_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["page", "--check", str(project / "cellar.json")])
    assert pages.main() == 0
    (project / "src" / "sabun" / "cellar" / "wine.py").write_text("YEAR = 2\n")
    assert pages.main() == 1
    assert "cellar: older than the code it measures (src/sabun/cellar/wine.py)" in capsys.readouterr().err


def test_no_package_is_built_before_the_check_unless_somebody_says_that_old_figures_are_marked() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\npackage:")[2].splitlines()
    assert recipe[1].endswith("-m benchmarks.page --check || test '$(OLD)' = marked")


@pytest.mark.parametrize("text", figures.texts(), ids=lambda text: text.relative_to(ROOT).as_posix())
def test_figures_in_texts_are_those_of_the_kept_runs(text: Path) -> None:
    words = text.read_text(encoding="utf-8")
    assert filled(words) == words
    assert words.count("<!-- figure: ") == words.count("<!-- / -->")


def test_every_named_figure_stands_in_a_text() -> None:
    words = "".join(text.read_text(encoding="utf-8") for text in figures.texts())
    assert [name for name in figures.FIGURES if f"<!-- figure: {name} -->" not in words] == []


def test_a_figure_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(figures.FIGURES, "age", lambda: "8")
    assert filled("| **<!-- figure: age -->7<!-- / -->×** |") == "| **<!-- figure: age -->8<!-- / -->×** |"
    with pytest.raises(LookupError, match="got 'height'"):
        filled("<!-- figure: height -->7<!-- / -->")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_published_ratio_is_below_half_of_what_is_stated(file: Path) -> None:
    record = json.loads(file.read_text(encoding="utf-8"))
    assert not record["quick"]
    assert missed([Figure(**figure) for figure in record["figures"]]) == []


def test_a_ratio_far_below_what_is_stated_is_found() -> None:
    assert missed(FIGURES) == [FIGURES[2]]


def test_every_module_that_runs_is_a_room() -> None:
    modules = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "benchmarks").glob("*.py")}
    runs = {
        name for name, tree in modules.items() for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"
    }
    assert runs == set(ROOMS)


@pytest.mark.parametrize(("arguments", "code", "told"), [("['--help']", 0, "keyvalue"), ("['cellar']", 2, "got 'cellar'")])
def test_the_command_line_needs_no_room_to_be_importable(arguments: str, code: int, told: str) -> None:
    names = ("torch", "opendp", "sklearn", *(room.package for room in rooms()))
    blocked = f"import sys; sys.modules |= dict.fromkeys({names!r})"
    script = f"{blocked}; sys.argv[1:] = {arguments}; from benchmarks.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == code
    assert told in done.stdout + done.stderr
