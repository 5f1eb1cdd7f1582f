"""A room from a folder on the path is found by everything that lists rooms; no file of the project names it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.proofs import ROOT

GUIDE = (ROOT / "docs" / "add-a-room.md").read_text(encoding="utf-8")
CARD, QUESTION = re.findall(r"```python\n(.*?)```", GUIDE, flags=re.DOTALL)
VERBS = '''
import typer
from sabun.telling.terminal.charging import Payment, asked_name
from sabun.telling.terminal.foretelling import foretell
from sabun.telling.terminal.options import Again, Epsilon, Json, Label, LedgerFile, Out, PrivateTable, Purpose, Yes
from sabun.telling.terminal.output import new_file, print_json, print_line

app = typer.Typer(help="Which share said yes.\\n\\nExample:\\n\\n    sabun shares plan", no_args_is_help=True)

@app.command()
def yes(table: PrivateTable, epsilon: Epsilon, ledger: LedgerFile = None, purpose: Purpose = None, out: Out = None,
        label: Label = None, again: Again = False, yes: Yes = False, json: Json = False) -> None:
    """Release the share.

    Example:

        sabun shares yes t.csv --epsilon 1
    """
    import numpy as np
    from toy_shares import YesShare

    if out is not None:
        new_file(out)
    payment = Payment.of(ledger, purpose, table=asked_name(table, label, again))
    with payment:
        asked = YesShare(epsilon=epsilon, ledger=payment.book)
        rows = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=[0]).reshape(-1, 1) / 100
        told = foretell(asked, n_records=len(rows), yes=yes, json=json)
        found = asked.fit(rows)
        payment.save(found.release_, out)
        if json:
            print_json({"share": found.share_} | told | payment.record(found.release_, out))
        else:
            payment.tell(found.release_, out)

@app.command()
def plan(epsilon: Epsilon = "1", json: Json = False) -> None:
    """Say what to expect.

    Example:

        sabun shares plan --epsilon 1
    """
    print_line("about one person")
'''
STORY = """
from sabun.telling.story import Answer, Story

def story(release):
    return Story(title="Share of yes", answer=Answer(big=str(release["share"])), stages=("counted",))
"""
EVIDENCE = """
from functools import partial
from sabun.asking.evidence import Checklist, Command, Specimen
from toy_shares import YesShare

SPECIMENS = (Specimen(question="YesShare", make=partial(YesShare, epsilon=0.5), fit=lambda model, rows: model.fit(rows)),)
COMMANDS = (Command(verb="yes", arguments=("t.csv",)),)
PROMISING = ("discrete Laplace",)
VARIANTS = (SPECIMENS[0].varied("discrete Laplace"),)
CHECKS = Checklist()


@CHECKS("discrete Laplace")
def _a_share_has_noise_for_one_person(bench):
    heard = bench.heard
    YesShare(epsilon=0.5).fit([[1.0], [0.0]] * 20)
    bench.must(len(heard.draws) == 1)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The room of the guide, installed as a package of its own beside Sabun."""
    folder = tmp_path_factory.mktemp("path")
    package = folder / "toy_shares"
    package.mkdir()
    (package / "__init__.py").write_text(QUESTION + '\n\n__all__ = ["YesShare"]\n')
    (package / "room.py").write_text(CARD.replace('name="shares"', 'name="shares", package="toy_shares"'))
    for name, text in (("verbs", VERBS), ("story", STORY), ("evidence", EVIDENCE)):
        (package / f"{name}.py").write_text(text)
    facts = folder / "toy_shares-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-shares\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[sabun.rooms]\nshares = toy_shares\n")
    return folder


def python(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = f"{place}:{ROOT / 'src'}:{ROOT / 'tests'}"
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, env={"PYTHONPATH": paths, "COLUMNS": "120"}, cwd=place
    )


def test_the_command_line_finds_it(place: Path) -> None:
    told = python(place, "-m", "sabun", "--help").stdout
    assert re.search(r"shares\b.*Which share said yes", told)
    assert "about one person" in python(place, "-m", "sabun", "shares", "plan").stdout


def test_it_releases_and_reports(place: Path) -> None:
    (place / "votes.csv").write_text("vote\n" + "\n".join(["100", "0"] * 50) + "\n")
    run = python(place, "-m", "sabun", "shares", "yes", "votes.csv", "--epsilon", "8", "--out", "share.json")
    assert run.returncode == 0, run.stderr
    run = python(place, "-m", "sabun", "report", "share.json", "--out", "share.html")
    assert run.returncode == 0, run.stderr
    assert "Share of yes" in (place / "share.html").read_text(encoding="utf-8")


def test_the_contracts_find_it(place: Path) -> None:
    laws = [str(ROOT / "tests" / "contracts" / name) for name in ("test_estimators.py", "test_charging_verbs.py")]
    run = python(
        place,
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
        "-k",
        "YesShare or shares",
        *laws,
    )
    assert run.returncode == 0, run.stdout[-2000:]
    assert int(re.findall(r"(\d+) passed", run.stdout)[0]) > 20
    assert re.search(r"test_estimators\.py::\S*YesShare\S* PASSED", run.stdout), "its question is one of the registry's"
    assert re.search(r"test_charging_verbs\.py::\S*shares.* PASSED", run.stdout), "and so is its command"


def test_an_audit_finds_it(place: Path) -> None:
    probe = (
        "from sabun.audit import audit; print(*[f'{one.passed} {one.mechanism}' for one in audit('shares').findings], sep='; ')"
    )
    found = python(place, "-c", probe).stdout.strip().split("; ")
    assert {line.split(" ", 1)[0] for line in found} == {"True"}
    assert {line.split(" ", 1)[1] for line in found} == {
        "discrete Laplace",
        "YesShare",
        "YesShare, discrete Laplace",
        "commands",
    }


def test_the_docs_check_asks_for_its_page(place: Path) -> None:
    probe = "import sys; sys.path.insert(0, 'TOOLS'); import site_map; print('shares' in site_map.ROOMS)"
    run = python(place, "-c", probe.replace("TOOLS", str(ROOT / "tools" / "docs")))
    assert run.stdout == "True\n", run.stderr


def test_no_file_of_the_project_names_it() -> None:
    files = [path for folder in ("src", "tools", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in files if "toy_shares" in path.read_text(encoding="utf-8")] == []
