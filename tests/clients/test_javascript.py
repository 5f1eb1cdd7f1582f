"""The JavaScript client, in Node and in a real Chromium: golden vectors, diaries, and the law of its reports."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from clients.fake_collector import served
from keyvalue.client.test_law import EPSILON, KEYS, MEAN, PADDING, ROUNDS, WRONG, Law, enough, law_of, refused
from sabun.keyvalue.client import PROTOCOLS, Terms
from sabun.keyvalue.client.probabilities import PADDED

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HELD = {"a": 0.4}

pytestmark = pytest.mark.skipif(not (ROOT / "js").is_dir(), reason="the JavaScript client is not part of this archive")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no Node on this machine")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@needs_node
def test_the_suite_of_the_module_passes_in_node() -> None:
    done = subprocess.run(
        [str(NODE), "--test", "--test-reporter=tap", "test/client.test.js"],
        cwd=ROOT / "js",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout
    assert "checks" in done.stdout


def test_the_module_has_no_dependencies_and_says_what_it_exports() -> None:
    record = json.loads((ROOT / "js/package.json").read_text(encoding="utf-8"))
    assert not {name for name in record if "ependencies" in name}
    exported = (ROOT / "js/src/index.js").read_text(encoding="utf-8")
    names = [
        name.strip()
        for line in exported.splitlines()
        if line.startswith("export {")
        for name in line[8 : line.index("}")].split(",")
    ]
    typed = (ROOT / "js/src/index.d.ts").read_text(encoding="utf-8")
    assert [name for name in names if f" {name}" not in typed] == []
    imports = [
        line
        for file in (ROOT / "js/src").glob("*.js")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.startswith("import ")
    ]
    outside = {line.rsplit('"', 2)[1] for line in imports if '"./' not in line}
    assert outside == {"node:crypto", "node:fs/promises", "node:path"}  # of node.js alone


def _study(protocol: str) -> Terms:
    facts: dict[str, Any] = {"padding_length": PADDING} if protocol in PADDED else {}
    keys = KEYS if protocol in PADDED else KEYS[:1]
    return Terms(keys=keys, epsilon=Fraction(2), protocol=protocol, rounds=ROUNDS if protocol == "privkvm" else 1, **facts)


def _asked(protocol: str) -> tuple[dict[str, Any], Law, list[Law]]:
    """How many new devices are to report what, and the right and the wrong laws.

    A right law is refused once in ten million runs; one whose epsilon is off by 30 % passes less than once in a million runs.
    """
    law = law_of(protocol, EPSILON, HELD, "a")
    wrong = [law_of(protocol, factor * EPSILON, HELD, "a") for factor in WRONG]
    means = {"means": {"a": MEAN}} if protocol == "privkvm" else {}
    return {"terms": _study(protocol).to_json(), "pairs": HELD, "n": enough(law, wrong)} | means, law, wrong


def _judge(counts: dict[str, int], law: Law, wrong: list[Law]) -> None:
    found = Counter({_cell(json.loads(cell)): times for cell, times in counts.items()})
    assert not refused(found, law)
    assert all(refused(found, other) for other in wrong)


def _cell(said: Any) -> Any:
    return tuple(said) if isinstance(said, list) else said


@pytest.fixture(scope="module")
def drawn() -> dict[str, dict[str, int]]:
    """What new devices said, by protocol; of one process, for starting one takes as long as a thousand reports."""
    program = """import { draw } from "./test/draws.js";
    const counts = {};
    for (const [protocol, asked] of Object.entries(JSON.parse(process.argv[1]))) counts[protocol] = await draw(asked);
    console.log(JSON.stringify(counts));"""
    asked = json.dumps({protocol: _asked(protocol)[0] for protocol in PROTOCOLS})
    command = [str(NODE), "--input-type=module", "-e", program, asked]
    done = subprocess.run(command, cwd=ROOT / "js", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    counts: dict[str, dict[str, int]] = json.loads(done.stdout)
    return counts


@needs_node
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_reports_in_node_follow_their_law_and_no_law_whose_epsilon_is_off_by_30_per_cent(
    drawn: dict[str, dict[str, int]], protocol: str
) -> None:
    _judge(drawn[protocol], *_asked(protocol)[1:])


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of a local server with the module loaded, in a browser of its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with served(ROOT / "js") as address, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context().new_page()
        page.goto(f"{address}/test/browser.html")
        page.wait_for_function("window.ready === true")
        yield page
        browser.close()


def _vectors() -> Any:
    return json.loads((ROOT / "src/sabun/keyvalue/wire-vectors.json").read_text(encoding="ascii"))


@needs_chromium
def test_the_golden_vectors_in_chromium(page: Any) -> None:
    found = page.evaluate("(vectors) => check(vectors)", _vectors())
    assert found["failures"] == []
    assert found["passed"] > 2000


@needs_chromium
def test_a_diary_in_indexed_db_keeps_what_it_must(page: Any) -> None:
    assert len(page.evaluate("(vectors) => behave(vectors, (name) => indexedDbStorage(name))", _vectors())) == 14


@needs_chromium
def test_a_diary_outlives_the_page_and_is_shared_by_tabs(page: Any) -> None:
    program = """async (text) => {
        const client = await Client.open(Terms.fromJson(text), { diary: Diary.inBrowser(), maxEpsilon: 3 });
        return hex(await client.report({ LINE: Math.random() * 2 - 1 }));
    }"""
    text = _vectors()["studies"][0]["terms"]
    first = page.evaluate(program, text)
    other = page.context.new_page()
    other.goto(page.url)
    other.wait_for_function("window.ready === true")
    assert other.evaluate(program, text) == first
    other.close()
    page.reload()
    page.wait_for_function("window.ready === true")
    assert page.evaluate(program, text) == first
    assert page.evaluate("() => Diary.inBrowser().persist()") in (True, False)


@needs_chromium
@pytest.mark.parametrize("protocol", ["pckv-ue", "set"])
def test_reports_in_chromium_follow_their_law_and_no_law_whose_epsilon_is_off_by_30_per_cent(page: Any, protocol: str) -> None:
    asked, law, wrong = _asked(protocol)
    _judge(page.evaluate("(asked) => draw(asked)", asked), law, wrong)
