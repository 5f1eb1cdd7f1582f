"""Pages speak English or Japanese; no text of ours is without its Japanese, and no Japanese without its text."""

from __future__ import annotations

import ast
import json
import re
import string
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.terminal import exit_code
from reports.html_checks import Page
from reports.report_samples import evil_release, release_of
from reports.said_texts import SOURCE, constants, plain_words, run_texts, said_texts
from reports.test_rooms import CASES
from sabun import Guarantee
from sabun.errors import BoundsError, ParameterError
from sabun.records import Column
from sabun.release import Release
from sabun.reports import collection, facts, report
from sabun.reports.facts import Chapter
from sabun.reports.reproductions import in_words
from sabun.reproduction import Reproduction, Table, papers
from sabun.telling import language
from sabun.telling.language import catalogue, chosen, complained, retold, said, speaking, tables
from sabun.telling.words import cited, count, promise, unit_word

ROOT = Path(__file__).resolve().parents[2]
JAPANESE = catalogue("ja")
SHORT = 8
LATER = {text for name in ("filled", "rules", "refusals") for text in tables("ja")[name]}


def holes(text: str) -> set[tuple[str, str | None, str | None]]:
    return {(name, form, turn) for _, name, form, turn in string.Formatter().parse(text) if name is not None}


def test_every_text_of_a_page_has_its_japanese() -> None:
    texts = said_texts()
    assert len(texts) > 350, "the texts are found"
    assert {text: place for text, place in texts.items() if text not in JAPANESE} == {}


def test_no_japanese_is_left_of_a_text_that_is_gone() -> None:
    known = set(said_texts()) | constants()
    assert [text for text in JAPANESE if text not in known and text not in LATER] == []
    parts = {part for text in LATER - known for part in fixed_parts(text)} - known
    for size in (300, 1_000_000):  # what is left after the short texts is looked for in docstrings and the like
        written = "\n".join(text for text in known if len(text) <= size)
        parts = {part for part in parts if part not in written}
    assert [text for text in LATER - known if parts & set(fixed_parts(text))] == []


def fixed_parts(text: str) -> tuple[str, ...]:
    """What stands between the holes, but for the small words at which lists and sentences are joined."""
    return tuple(part.strip() for part, *_ in string.Formatter().parse(text) if len(part.strip()) > SHORT)


def test_what_is_filled_in_is_the_same_in_both_languages() -> None:
    assert {text: words for text, words in JAPANESE.items() if holes(text) != holes(words)} == {}


def test_no_text_stands_twice_in_the_catalogue() -> None:
    times = Counter(text for table in tables("ja").values() for text in table)
    assert [text for text, often in times.items() if often > 1] == []


def test_one_word_for_one_thing() -> None:
    """The glossary at the head of the catalogue: words it decided against."""
    pages = [*(ROOT / "docs" / "jobs").glob("*.ja.md"), *(ROOT / "docs").glob("papers.ja.md"), SOURCE / "telling" / "ja.toml"]
    others = ("雑音", "隣接性", "プライバシー・バジェット", "元帳", "センシティビティ", "ディファレンシャル")
    assert [(page.name, word) for page in pages for word in others if word in page.read_text(encoding="utf-8")] == []


def test_templates_hold_no_words_of_their_own() -> None:
    allowed = {"base.html: Sabun ·", "reproduction.html: .svg", "reproduction.html: .csv"}
    assert {words for words in plain_words() if '"' not in words} <= allowed


@pytest.mark.parametrize(("make", "title"), [(make, title) for make, title, *_ in CASES])
def test_a_room_s_page_is_japanese_throughout(make: Callable[[], Release], title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[str] = []

    def noting(text: str) -> str | None:
        if (found := JAPANESE.get(text)) is None:
            lost.append(text)
        return found

    release = make()
    told = facts(release, lang="ja")
    assert told.story.title != title
    monkeypatch.setattr(language, "known", noting)
    page = Page(report(release, lang="ja"))
    assert page.problems == []
    assert '<html lang="ja">' in report(release, lang="ja")
    assert all(re.search(r"[ぁ-んァ-ヶ一-龠]", value) for _, value in told.origin.rows[:2]), "kind and mechanism"
    assert all(re.search(r"[ぁ-ん]", note) for note in told.notes)
    assert [text for text in told.assumptions if not re.search(r"[ぁ-ん]", text)] == []
    named = {name.partition(".")[0]: value for name, value in told.parameters.rows}  # a name after a point is the owner's
    assert [name for name in named if not re.search(r"[ぁ-んァ-ヶ一-龠εδ]", name)] == []
    mechanisms = {release.guarantee.mechanism, *release.provenance.notes, *map(str, release.provenance.parameters.values())}
    mechanisms |= set(release.guarantee.mechanism.split(": "))
    marks = (r"\s+", "; ", ", ", "[;,] ")  # what a pattern found in them, or might be a list
    mechanisms |= {part for text in release.guarantee.assumptions for mark in marks for part in re.split(mark, text)}
    assert [text for text in lost if text not in {*release.guarantee.assumptions, *mechanisms}] == []
    sentences = [*told.story.stages, *told.story.cautions, *told.promise, told.story.answer.sentence, *told.warnings]
    assert [sentence for sentence in filter(None, sentences) if not re.search(r"[ぁ-ん]", sentence)] == []


@pytest.mark.parametrize("room", papers())
def test_tables_figures_and_errata_of_a_paper_have_their_japanese(room: str) -> None:
    texts = run_texts(room)
    assert len(texts) > 40, "the texts are found"
    with speaking("ja"):
        told = {text: retold(text) for text in texts if re.search(r"[a-z]{3}", text)}
    assert [text for text, words in told.items() if not re.search(r"[ぁ-んァ-ヶ一-龠εδ]", words)] == []
    assert [words for words in told.values() if re.search(r"[a-z]{2,} [a-z]{2,} [a-z]{2,} ", re.sub("`.*?`", "", words))] == []


def test_cells_of_a_table_are_retold_and_lists_piece_by_piece() -> None:
    rows = (
        ("table 4", 1.5, "PrivKV's exact variance is 20.29; not even one trial gives it; we do not know"),
        ("digits, network", None, "the same number stands in table 4 and table 7, one run; nobody foresaw it"),
        (
            "somebody's name",
            2,
            "The network gains on digits 1 at epsilon 8 and 2 without privacy; on moons 3 at epsilon 8 and 4 without privacy.",
        ),
    )
    table = Table(name="t", title="x", columns=("a", "b", "c"), rows=rows)
    made = Reproduction(room="r", paper="p", summary="s", tables=(table,), figures=(), errata=(), settings={})
    assert in_words(made).tables[0].rows == rows, "in English nothing changes"
    with speaking("ja"):
        told = in_words(made).tables[0].rows
    assert told == (
        ("表 4", 1.5, "PrivKV の正確な分散は 20.29 です。試行一回でもこの値にはなりません。原因は分かりません"),
        ("手書き数字、ネットワーク", None, "同じ数値が表 4 と表 7 にあり、一つの実行のものです。nobody foresaw it"),
        (
            "somebody's name",
            2,
            "ネットワークによる改善は、手書き数字では ε = 8 で 1、保護なしで 2、半月では ε = 8 で 3、保護なしで 4 です。",
        ),
    )


@pytest.mark.parametrize(
    ("rules", "lang", "words"),
    [({"km": "max"}, "ja", "km: 最大"), ({}, "en", "label; of equally frequent ones the one declared first."), (3, "en", "")],
)
def test_how_the_rows_of_a_person_became_one_is_told(rules: object, lang: str, words: str) -> None:
    release = release_of(provenance={"parameters": {"persons": {"rules": rules}}})
    told = " ".join(facts(release, lang=lang).story.stages)
    assert words in told
    assert ("All rows of one person" in told) is (words != "" and lang == "en")


@pytest.mark.parametrize(
    ("spelling", "words"), [("caseless", "caseless：大文字と小文字を区別しない"), ("somebody's own", "somebody's own")]
)
def test_how_ids_were_read_is_told_in_words(spelling: str, words: str) -> None:
    release = release_of(provenance={"parameters": {"persons": {"spelling": spelling}}})
    assert ("番号の読み方", words) in facts(release, lang="ja").parameters.rows


def test_the_assumptions_of_a_release_are_retold() -> None:
    lines = ("each patient has at most one row", "the number of rows is public", "something that nobody foresaw")
    told = facts(release_of(guarantee={"assumptions": lines}), lang="ja").assumptions
    assert told == ("どの患者の行も一つまでです", "行数は公開です", "something that nobody foresaw")


def test_no_text_from_a_file_acts_on_a_japanese_page() -> None:
    page = Page(report(evil_release(), lang="ja"))
    assert page.problems == []
    assert "script" not in page.tags


@pytest.mark.parametrize("relation", ["replace-one", "add-remove", "local"])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2, 5, 50, float("inf")])
def test_every_promise_has_its_japanese(relation: str, epsilon: float) -> None:
    model = "local" if relation == "local" else "central"
    with speaking("ja"):
        lines = promise(Guarantee(epsilon=epsilon, relation=relation, model=model, unit="patient"))
    assert all(re.search(r"[ぁ-ん]", line) and "patient" not in line for line in lines)
    assert any("患者" in line for line in lines)


@pytest.mark.parametrize(
    ("places", "lang"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja"}, "ja"),
        ({"LANG": "jam_JM.UTF-8"}, "en"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": "C.UTF-8"}, "en"),
        ({"LANG": "en_GB.UTF-8", "LC_MESSAGES": "ja_JP.eucJP"}, "ja"),
        ({"LANG": "ja_JP.UTF-8", "LC_ALL": ""}, "ja"),
    ],
)
def test_the_locale_chooses_unless_somebody_asks(places: dict[str, str], lang: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in places.items():
        monkeypatch.setenv(name, value)
    assert chosen() == lang
    assert chosen("en") == "en"
    with speaking("ja"):
        assert chosen() == "ja"
    assert Page(report(release_of())).headings[1][1] == {"en": "The answer", "ja": "答え"}[lang]
    assert said("yes") == "yes", "outside a page everything is English"


def test_another_language_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ParameterError, match="lang must be one of 'en', 'ja'; got 'fr'"):
        report(release_of(), lang="fr")
    file = tmp_path / "count.json"
    release_of().save(file)
    assert exit_code("report", file, "--lang", "fr") == 2
    assert exit_code("reproduce", "--list", "--lang", "fr") == 2
    assert "lang must be one of 'en', 'ja'; got 'fr'" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["count.json"]


def test_the_command_writes_a_japanese_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "count.json"
    release_of().save(file)
    assert exit_code("report", file, "--language", "ja", "--json") == 0, (
        "as the option is called elsewhere, and was in the desk"
    )
    out = json.loads(capsys.readouterr().out)["out"]
    assert "約束されていること" in Path(out).read_text(encoding="utf-8")


def test_several_releases_in_one_japanese_page() -> None:
    chapter = Chapter(name="a", question="いくつか", facts=facts(release_of(), lang="ja"))
    page = Page(collection([chapter], heading="まとめ", lang="ja"))
    assert page.problems == []
    assert "差分プライバシーで保護された1 件のリリースの報告" in page.text


def test_bounds_in_the_wrong_order_are_told_without_an_english_word() -> None:
    with pytest.raises(BoundsError) as caught:
        Column.number("年齢", lower=110.0, upper=0.0)
    with speaking("ja"):
        assert complained(str(caught.value)).endswith("（いまは 110.0 から 0.0）。")


def test_what_is_not_in_the_catalogue_stays_as_it_is() -> None:
    with speaking("ja"):
        assert said("no such text {x}") == "no such text {x}"
        assert unit_word("llama") == "llama"
        assert count(3, "llama") == "3 llama"
        assert retold("no such text") == "no such text"
        assert cited("Theorem 4 and Lemma 2, section 3.1") == "定理 4、補題 2、3.1 節"
        assert cited("a remark") == "a remark"
    assert cited("Theorem 4") == "Theorem 4"


@pytest.mark.parametrize(
    "why",
    [
        "even at best nothing but noise is expected",
        "even at best, error of the count, in records: about 16.6, in eight of ten runs from 2.53 to 55.3",
        "even at best, error of the quantiles, in ranks: about 1,500 in eight of ten runs",
        "where the tables differ, a column's mean would stay 97% as uncertain as without a release",
    ],
)
def test_a_refusal_of_noise_gives_its_reason_in_japanese(why: str) -> None:
    got = f"epsilon must be larger to tell anything about 3000 records; got 0.0005: {why}."
    ways = "From --epsilon 0.002 or 12000 records on it is no longer refused; a good answer takes more."
    with speaking("ja"):
        told = complained(f"{got} Nothing was released, nothing was charged. {ways} Pass --yes to release anyway.")
    assert "（いまは 0.0005）" in told
    assert "--epsilon 0.002 か 12000 件のレコード からは断られなくなります" in told
    assert re.search(r"[a-z]{2,} [a-z]{2,}", told) is None


def test_pages_in_english_need_no_catalogue() -> None:
    code = (
        "import sys, sabun; assert 'sabun.telling' not in sys.modules; from sabun.telling import language, words;"
        "words.count(2, 'row'); assert 'tomllib' not in sys.modules; assert language.tables.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(SOURCE.parent), "PATH": ""})


def test_texts_are_marked_where_they_are_written() -> None:
    """A text that is put together before it is said could not be found in the catalogue."""
    mistaken = []
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("said", "phrase"):
                mistaken += [
                    f"{file.name}:{node.lineno}" for part in node.args[:1] if isinstance(part, ast.JoinedStr | ast.BinOp)
                ]
    assert mistaken == []
