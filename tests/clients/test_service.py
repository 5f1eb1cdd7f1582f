"""Clients against the collector itself: Python, Node and Chromium enrol, report, and are counted once each."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `service` is not installed")
pytest.importorskip("uvicorn", reason="the extra `service` is not installed")

from clients.fake_collector import served
from sabun.keyvalue import Study, Tally
from sabun.keyvalue.client import Client, Diary, Outbox, Uploader, UploadError, report_id, unpack

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAIRS = {"YouTube": 0.5, "地図": -1}
needs_js = pytest.mark.skipif(not (ROOT / "js").is_dir(), reason="the JavaScript client is not part of this archive")


def sabun(*words: object) -> str:
    command = [sys.executable, "-m", "sabun", "keyvalue", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("service") / "study.json"
    Study(keys=("YouTube", "LINE", "地図"), epsilon=2, protocol="set", padding_length=2).save(path)
    return path


@pytest.fixture(scope="module")
def address(study: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "sabun", "keyvalue", "serve", str(study), "--port", "0", "--tickets"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        lines = (re.search(r"https?://\S+?(?=/)(?=/v1)", line) for line in server.stdout)
        found = next(line for line in lines if line)
        yield found[0]
        server.terminate()


@pytest.fixture(scope="module")
def tickets(study: Path, address: str) -> Iterator[str]:
    del address  # the server has made the store
    path = study.with_name("tickets.txt")
    sabun("tickets", study, "--count", 4, "--out", path)
    return iter(path.read_text().split())


def test_a_device_in_python_is_counted_once(study: Path, address: str, tickets: Iterator[str], tmp_path: Path) -> None:
    uploader, outbox, ticket = Uploader(address, attempts=4, first_pause=0.05), Outbox(tmp_path), next(tickets)
    terms = uploader.study(Study.load(study).terms.task_id)
    credential = uploader.enrol(terms, ticket=ticket, outbox=outbox)
    assert uploader.enrol(terms, ticket=ticket, outbox=outbox) == credential
    with pytest.raises(UploadError) as other:
        uploader.enrol(terms, ticket=ticket, outbox=Outbox(tmp_path / "another"))
    assert (other.value.code, other.value.status) == ("other-promise", 409)
    assert uploader.round(terms, 0).state == "open"
    report = Client(terms, credential=credential, diary=tmp_path / "diary", max_epsilon=2).report(PAIRS)
    for accepted, duplicate in ((1, 0), (0, 1)):
        outbox.put(report)
        sent = uploader.send(outbox)
        assert (sent.accepted, sent.duplicate, sent.rejected, outbox.waiting()) == (accepted, duplicate, (), [])
    uninvited = Client(terms, diary=Diary.in_memory()).report({})
    outbox.put(uninvited)
    assert uploader.send(outbox).rejected == ((uninvited, "enrolment"),)


def _judge(study: Path, said: dict[str, Any]) -> None:
    terms = Study.load(study).terms
    assert (said["first"]["accepted"], said["second"]["duplicate"], said["state"]) == (1, 1, "open")
    assert said["first"]["rejected"] == said["second"]["rejected"] == []
    report = unpack(terms, bytes.fromhex(said["report"]))
    assert report.report_id == report_id(terms, bytes.fromhex(said["credential"]))


@needs_js
@pytest.mark.skipif(NODE is None, reason="there is no Node on this machine")
def test_a_device_in_node_is_counted_once(study: Path, address: str, tickets: Iterator[str], tmp_path: Path) -> None:
    program = """import { takePart } from "./test/device.js";
    import { diaryIn } from "./src/node.js";
    const { folder, ...asked } = JSON.parse(process.argv[1]);
    console.log(JSON.stringify(await takePart({ ...asked, diary: diaryIn(folder) })));"""
    task = Study.load(study).terms.task_id
    asked = {"server": address, "task": task, "ticket": next(tickets), "pairs": PAIRS, "folder": str(tmp_path / "diary")}
    command = [str(NODE), "--input-type=module", "-e", program, json.dumps(asked)]
    done = subprocess.run(command, cwd=ROOT / "js", capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    _judge(study, json.loads(done.stdout))


@needs_js
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_a_device_in_chromium_is_counted_once_from_a_page_of_another_origin(
    study: Path, address: str, tickets: Iterator[str]
) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    asked = {"server": address, "task": Study.load(study).terms.task_id, "ticket": next(tickets), "pairs": PAIRS}
    with served(ROOT / "js") as site, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        methods = []
        page.on("request", lambda request: methods.append(request.method))
        page.goto(f"{site}/test/browser.html")
        page.wait_for_function("window.ready === true")
        said = page.evaluate("(asked) => takePart({ ...asked, diary: Diary.inBrowser() })", asked)
        browser.close()
    _judge(study, said)
    assert "OPTIONS" not in methods  # nothing that a browser would ask about first


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_a_page_of_ones_own_takes_a_person_to_a_counted_report(study: Path, address: str, tickets: Iterator[str]) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sabun("page", study, "--server", address, "--out", study.with_name("page"))
    with served(study.with_name("page")) as site, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{site}/index.html?ticket={next(tickets)}&server=http://x&task={'1' * 32}&limit=99")
        fields = {name: page.locator(f"input[name={name}]").input_value() for name in ("server", "task", "limit")}
        # A link fills in what is empty; it sends nobody's answers elsewhere and lets nobody spend more.
        assert fields == {"server": address, "task": Study.load(study).terms.short_id.hex(), "limit": "3"}
        page.get_by_label("地図").fill("0.5")
        page.get_by_role("button").click()
        playwright.expect(page.get_by_role("status")).to_contain_text("counted; 38 bytes left this browser")
        page.get_by_role("button").click()
        playwright.expect(page.get_by_role("status")).to_contain_text("sent before; 38 bytes")
        page.get_by_label("Study").fill("0" * 32)
        page.get_by_role("button").click()
        playwright.expect(page.get_by_role("status")).to_contain_text("unknown-study")
        browser.close()


def test_the_collector_has_as_many_reports_as_devices_took_part(study: Path, address: str, tickets: Iterator[str]) -> None:
    token = json.loads(sabun("operator", "add", study, "counter", "--scope", "read", "--json"))["token"]
    task = Study.load(study).terms.short_id.hex()
    request = urllib.request.Request(
        f"{address}/v1/studies/{task}/rounds/0/tally", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        tally = Tally.from_bytes(response.read(), study=Study.load(study))
    assert tally.n == 4 - len(list(tickets))
