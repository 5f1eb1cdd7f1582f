"""What the site adds to the pages in docs/: the margin, the proofs, the reference, links that fit.

`mkdocs build --strict` runs this; nothing here is written back to the repository.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from results_page import reproductions, results_page
from site_map import DOCS, RESULTS, ROOT, SOURCE, api_modules, exported, foreign_pages, module_file, navigation, title_of
from texts import from_notebook, tagged_lines, with_lists, with_paragraphs, with_proof_links, with_site_links

__all__ = ["PROOFS_MARK", "on_config", "on_files", "on_page_markdown", "proof_list"]

CLI_MARK = "<!-- the command line is inserted here -->"
PROOFS_MARK = "<!-- the proofs are inserted here -->"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the pages that exist into the margin."""
    config.nav = navigation()
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the pages whose text lives beside the code."""
    for page, file in foreign_pages().items():
        files.append(File.generated(config, page, content=_text(page, file)))
    files.append(File.generated(config, "proofs/index.md", content=_proof_index()))
    files.append(File.generated(config, "reference/api.md", content=_api_index()))
    for name in api_modules():
        files.append(File.generated(config, f"reference/{name}.md", content=_api_page(name)))
    if reproductions():
        files.append(File.generated(config, RESULTS, content=results_page(reproductions(), home=DOCS / "results")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fits a page to the site: links, lists, the inserted reference."""
    del config, files
    foreign = foreign_pages()
    here = page.file.src_uri
    file = foreign.get(here, DOCS / here)
    homes = {path: address for address, path in foreign.items()} | {
        ROOT / "README.md": "index.md",
        DOCS / "results": RESULTS if reproductions() else "index.md",
        DOCS / "decisions": next(
            (path.relative_to(DOCS).as_posix() for path in sorted(DOCS.glob("decisions/*.md"))), "index.md"
        ),
    }
    if CLI_MARK in markdown:
        markdown = markdown.replace(CLI_MARK, _cli())
    markdown = markdown.replace(PROOFS_MARK, proof_list())
    if file.is_file():  # a page that is made here has links between pages already
        markdown = with_site_links(markdown, page=here, file=file, pages=homes, docs=DOCS)
    return with_lists(with_proof_links(markdown, page=here, file=file, pages=homes))


def _text(page: str, file: Path) -> str:
    text = file.read_text(encoding="utf-8")
    if page.startswith("notebooks/"):
        title, _, story = from_notebook(text).partition("\n")
        return f"{title}\n\n*A notebook: `{file.relative_to(ROOT).as_posix()}`. Run it with Python, or cell by cell.*\n{story}"
    if page.startswith("proofs/"):
        module = file.with_name(file.name.removesuffix(".proof.md") + ".py")
        return with_paragraphs(text) + tagged_lines(module, module.relative_to(ROOT).as_posix())
    return text


def _proof_index() -> str:
    lines = [
        "# Proofs",
        "",
        "Every module that tosses the coin has a proof beside it. A proof names the functions it proves and the whole module,",
        "each with a digest of its code; after a change of the code a test fails until the proof is stamped again. Its tags",
        "stand in the code as comments; the last section of each page shows those lines.",
        "",
        "| module | claim |",
        "|---|---|",
    ]
    for page, file in foreign_pages().items():
        if page.startswith("proofs/"):
            module = file.with_name(file.name.removesuffix(".proof.md") + ".py").relative_to(ROOT)
            lines.append(f"| `{module.as_posix().removeprefix('src/')}` | [{title_of(file)}]({page.removeprefix('proofs/')}) |")
    return "\n".join(lines) + "\n"


def proof_list() -> str:
    """Every proof by its title, in the order of the packages."""
    groups: dict[str, list[str]] = {}
    for page, file in foreign_pages().items():
        if page.startswith("proofs/"):
            groups.setdefault(page.split("/")[1], []).append(f"[{title_of(file)}](../{file.relative_to(ROOT).as_posix()})")
    return "\n".join(f"- **{name}**: {' · '.join(links)}" for name, links in groups.items())


def _api_index() -> str:
    lines = ["# Python", "", "| package | what it holds |", "|---|---|"]
    for name in api_modules():
        lines.append(f"| [`{name}`]({name}.md) | {_summary(name)} |")
    return "\n".join(lines) + "\n"


def _summary(name: str) -> str:
    text = module_file(name).read_text(encoding="utf-8")
    return text.removeprefix('"""').split("\n", 1)[0].removesuffix('"""')


def _api_page(name: str) -> str:
    """The package's page; a function that bears its module's name has to be asked for by its full name."""
    if name == "sabun":
        return _top_page()
    folder = SOURCE.joinpath(*name.split(".")[1:])
    namesakes = [item for item in exported(name) if (folder / f"{item}.py").is_file() and item in exported(f"{name}.{item}")]
    extra = [f"\n::: {name}.{item}.{item}\n    options:\n      show_root_heading: true\n" for item in namesakes]
    return f"# {name}\n\n::: {name}\n" + "".join(extra)


def _top_page() -> str:
    """The names one gets from `import sabun`, each with the package that explains it."""
    homes = {item: module for module in api_modules() if module != "sabun" for item in exported(module)}
    rows = [f"| `sabun.{item}` | [`{homes[item]}`]({homes[item]}.md) |" for item in exported("sabun") if item in homes]
    rows.append("| `sabun.errors` | [`sabun.errors`](sabun.errors.md) |")
    table = "| name | explained in |\n|---|---|\n" + "\n".join(sorted(rows))
    return f"# sabun\n\n::: sabun\n    options:\n      members: false\n\n{table}\n"


def _cli() -> str:
    if str(ROOT / "src") not in sys.path:
        sys.path.insert(0, str(ROOT / "src"))
    folder = str(Path(__file__).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module: Any = importlib.import_module("cli_reference")
    return str(module.cli_page())
