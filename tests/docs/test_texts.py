from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import markdown
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "docs"))
import cli_reference  # noqa: E402
import hooks  # noqa: E402
import ideas_picture  # noqa: E402
import results_page  # noqa: E402
import site_map  # noqa: E402
import texts  # noqa: E402
import wrap  # noqa: E402


def test_a_list_gets_the_blank_line_it_needs() -> None:
    assert texts.with_lists("Proves:\n- one\n- two\n") == "Proves:\n\n- one\n- two\n"
    assert texts.with_lists("- one\n  more\n- two\n") == "- one\n  more\n- two\n"


def test_each_step_of_a_proof_is_a_paragraph() -> None:
    proof = "*Law.* One.\nMore of it.\n*Scale* (tag: s). Two is\n*not* a step.\n(2) Three.\n`f`: Four.\n```\na.\n*b*\n```\n"
    shown = (
        "*Law.* One.\nMore of it.\n\n*Scale* (tag: s). Two is\n*not* a step.\n\n(2) Three.\n\n`f`: Four.\n```\na.\n*b*\n```\n"
    )
    assert texts.with_paragraphs(proof) == shown


def test_code_is_left_as_it_is() -> None:
    code = "```text\nProves:\n- one\n[a](b.md)\n```\n"
    assert texts.with_lists(code) == code
    assert texts.with_site_links(code, page="x.md", file=ROOT / "docs" / "x.md", pages={}, docs=ROOT / "docs") == code


@pytest.mark.parametrize(
    ("link", "becomes"),
    [
        ("[limits](../../LIMITS.md)", "[limits](../limits.md)"),
        ("[limits](../../LIMITS.md#a)", "[limits](../limits.md#a)"),
        ("[code](../../src/sabun/errors.py)", "code"),
        ("[flow](../example.md)", "[flow](../example.md)"),
        ("[web](https://example.org/a.md)", "[web](https://example.org/a.md)"),
        ("[what is\nnot](../../LIMITS.md)", "[what is\nnot](../limits.md)"),
        ("![picture](picture.svg)", "![picture](picture.svg)"),
        ("![picture](../ideas.svg)", "![picture](../ideas.svg)"),
    ],
)
def test_links_between_files_become_links_between_pages(link: str, becomes: str) -> None:
    pages = {ROOT / "LIMITS.md": "limits.md"}
    docs = ROOT / "docs"
    assert texts.with_site_links(link, page="jobs/x.md", file=docs / "jobs" / "x.md", pages=pages, docs=docs) == becomes + "\n"


def test_a_picture_of_a_page_from_elsewhere_is_found() -> None:
    told: dict[str, Any] = {"page": "ja.md", "file": ROOT / "README.ja.md", "pages": {}, "docs": ROOT / "docs"}
    assert texts.with_site_links("![ideas](docs/ideas.svg)", **told) == "![ideas](ideas.svg)\n"


def test_a_proof_named_in_passing_is_linked() -> None:
    here = ROOT / "src" / "sabun" / "ledger"
    pages = {here / "ledger.proof.md": "proofs/ledger/ledger.md", here / "reservation.proof.md": "proofs/ledger/reservation.md"}
    told: dict[str, Any] = {"page": "proofs/ledger/reservation.md", "file": here / "reservation.proof.md", "pages": pages}
    assert texts.with_proof_links("See `ledger.proof.md`.", **told) == "See [`ledger.proof.md`](ledger.md).\n"
    assert (
        texts.with_proof_links("See `reservation.proof.md`, `x.proof.md`.", **told)
        == "See `reservation.proof.md`, `x.proof.md`.\n"
    )


def test_a_notebook_becomes_a_page() -> None:
    script = "# %% [markdown]\n# # Title\n#\n# Words.\n\n# %%\nprint(1)\n"
    assert texts.from_notebook(script) == "# Title\n\nWords.\n\n```python\nprint(1)\n```\n"


def test_the_lines_a_proof_leans_on_are_shown_with_their_tags(tmp_path: Path) -> None:
    module = tmp_path / "m.py"
    module.write_text("a = 1\nb = a | 2  # proof: or-two\n")
    assert "| `or-two` | 2 | `b = a \\| 2` |" in texts.tagged_lines(module, "m.py")
    module.write_text("a = 1\n")
    assert texts.tagged_lines(module, "m.py") == ""


def test_the_margin_names_only_pages_that_exist() -> None:
    def leaves(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        inner = entry.values() if isinstance(entry, dict) else entry
        assert not isinstance(inner, int)
        return [leaf for one in inner for leaf in leaves(one)]  # type: ignore[attr-defined]

    made = {
        site_map.RESULTS,
        "proofs/index.md",
        "reference/api.md",
        *(f"reference/{name}.md" for name in site_map.api_modules()),
    }
    known = made | set(site_map.foreign_pages())
    assert [page for page in leaves(site_map.navigation()) if page not in known and not (ROOT / "docs" / page).is_file()] == []


def test_results_are_a_page_when_there_are_some(tmp_path: Path) -> None:
    entry = {
        "room": "density",
        "paper": "A paper",
        "summary": "It holds.",
        "page": "density.html",
        "time": "2026-11-15T10:00:00",
    }
    files = ["density.html", "density/table-1.csv", "density/figure-2.svg"]
    (tmp_path / "again").mkdir()
    record = {"papers": {"density": entry | {"quick": True, "files": files}}}
    (tmp_path / "again" / "reproduction.json").write_text(json.dumps(record))
    text = results_page.results_page([tmp_path / "again" / "reproduction.json"], home=tmp_path)
    assert "[The whole page](again/density.html). Run at 2026-11-15, with fewer trials." in text
    assert "[table-1](again/density/table-1.csv)" in text
    assert "![figure-2](again/density/figure-2.svg)" in text


def test_the_picture_is_what_its_script_draws() -> None:
    assert (ROOT / "docs" / "ideas.svg").read_text(encoding="utf-8") == ideas_picture.drawn()


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_tests_named_on_a_page_exist(page: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text(encoding="utf-8"))
    lost = [f"{file}::{name}" for file, name in named if not _has(ROOT / file, name)]
    assert lost == []


def test_the_commands_shown_on_the_first_page_are_those_that_run() -> None:
    """They are shown as text, and are the same as in the Japanese README, whose blocks are run."""
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    shown = [
        line for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) for line in re.findall(r"^\$ .+$", block, re.M)
    ]
    run = (ROOT / "README.ja.md").read_text(encoding="utf-8").splitlines()
    assert len(shown) >= 8
    assert [line for line in shown if line not in run] == []


@pytest.mark.parametrize("readme", ["README.md", "README.ja.md"])
def test_both_readmes_tell_the_same_story(readme: str) -> None:
    text = (ROOT / readme).read_text(encoding="utf-8")
    papers = [room.name for room in site_map.ROOMS.values() if room.has("reproduction")]
    wanted = [*papers, "make demo", "make test", "sabun ledger create", "NOT PRIVATE", "LIMITS.md", ".proof.md", "MIT"]
    assert [word for word in wanted if word not in text] == []


def _has(file: Path, name: str) -> bool:
    return file.is_file() and (not name or f"def {name}(" in file.read_text(encoding="utf-8"))


def test_the_command_page_shows_what_is_required_and_what_is_default() -> None:
    page = cli_reference.cli_page()
    assert "### sabun ledger create" in page
    assert "| `--epsilon` | The whole budget, exactly as written: 3, 0.1 or 1/3. *Required.* |" in page
    assert "Default: `replace-one`." in page


def test_every_library_in_the_comparison_has_a_link_to_what_shows_it() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:4] for line in page.splitlines() if line.startswith("| ") and line.count("|") == 4]
    rows = [row for row in rows if "](" not in row[0] and row[0].strip() not in {"library", "job", "property"}]
    named = [row for row in rows if "[" in row[1] or "found" in row[1]]
    assert len(named) >= 20
    shown = [(row[0].strip(), entry.strip()) for row in named for entry in row[1].split(";") if "none found" not in entry]
    assert [entry for entry in shown if not re.search(r"\]\[[\w-]+\]", entry[1]) and "contrib" not in entry[1]] == []
    used, known = set(re.findall(r"\]\[([\w-]+)\]", page)), set(re.findall(r"^\[([\w-]+)\]: https://", page, re.M))
    assert used == known


def test_the_evidence_gets_a_list_of_every_proof_by_its_title() -> None:
    assert (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").count(hooks.PROOFS_MARK) == 1
    proofs = [*(ROOT / "src").rglob("*.proof.md"), *(ROOT / "examples").rglob("*.proof.md")]
    titled = {(site_map.title_of(proof), proof.relative_to(ROOT).as_posix()) for proof in proofs}
    assert set(re.findall(r"\[([^\]]+)\]\(\.\./([^)]+)\)", hooks.proof_list())) == titled


def test_every_decision_stands_in_the_index_under_its_number() -> None:
    index = (ROOT / "docs" / "decisions" / "index.md").read_text(encoding="utf-8")
    for file in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        number, _, title = file.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(". ")
        assert f"| {number} | [{title}]({file.name}) |" in index
        assert int(number) == int(file.name[:4])


@pytest.mark.parametrize("page", wrap.PAGES, ids=lambda page: page.name)
def test_prose_is_wrapped(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == wrap.wrapped(text), "run python tools/docs/wrap.py"


def test_wrapping_changes_no_page() -> None:
    words = "Some `code with blanks`, [a link](to/a page.md), <!-- figure: x.y -->1.5<!-- / --> times - 3 > 2 # and 1. more"
    many = " ".join([words] * 9)
    text = f"# Title\n\n{many}\n\n- {many}\n- {many}\n\n| {many} |\n|---|\n| x |\n\n```text\n{many}\n```\n"
    made = wrap.wrapped(text)
    assert wrap.wrapped(made) == made
    assert made.count("\n") > text.count("\n") + 10
    assert _shown(made) == _shown(text)


def _shown(text: str) -> str:
    return re.sub(r"\s+", " ", markdown.markdown(text, extensions=["tables", "fenced_code"]))
