from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.terminal import exit_code
from sabun.ledger import Ledger
from sabun.privacy import Guarantee
from sabun.release import Provenance, Release, generate_key, save_key
from sabun.release.encoding import canonical


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert exit_code("demo", "--job", "count", "--folder", tmp_path / "demo") == 0
    capsys.readouterr()
    return tmp_path / "demo"


def test_show_prints_the_release_in_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "show", folder / "count.json") == 0
    assert capsys.readouterr().out == str(Release.load(folder / "count.json")) + "\n"


def test_show_json_is_the_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "show", folder / "count.json", "--json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((folder / "count.json").read_bytes())


def test_verify_accepts_the_signer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "verify", folder / "count.json", "--key", folder / "publisher.pub.pem") == 0
    assert "is as it was signed" in capsys.readouterr().out
    assert exit_code("release", "verify", folder / "count.json", "--key", folder / "publisher.pub.pem", "--json") == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_verify_takes_several_keys(folder: Path) -> None:
    save_key(generate_key().public_key(), folder / "other.pem")
    keys = ("--key", folder / "other.pem", "--key", folder / "publisher.pub.pem")
    assert exit_code("release", "verify", folder / "count.json", *keys) == 0
    assert exit_code("release", "verify", folder / "count.json", *keys[:2]) == 4


def test_a_changed_release_is_bad_data(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "count.json"
    file.write_bytes(file.read_bytes().replace(b"summaries.count", b"summaries.Count", 1))
    assert exit_code("release", "verify", file, "--key", folder / "publisher.pub.pem") == 4
    assert "changed or forged" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff"])
def test_what_is_no_release_is_bad_data(tmp_path: Path, content: bytes | None, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    assert exit_code("release", "show", file, "--json") == 4
    assert json.loads(capsys.readouterr().err)["error"]["type"] == "ReleaseError"


def test_a_missing_key_is_bad_data(folder: Path) -> None:
    assert exit_code("release", "verify", folder / "count.json", "--key", folder / "none.pem") == 4


@pytest.fixture
def paid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    rows = "\n".join(f"{i % 7},{i % 5}" for i in range(200))
    (tmp_path / "t.csv").write_text(f"a,b\n{rows}\n")
    for name in ("book", "other"):
        assert exit_code("ledger", "create", tmp_path / f"{name}.ledger", "--name", name, "--epsilon", "3") == 0
    bounds = ("--bounds", "a=0:10", "--bounds", "b=0:10", "--radius", "0.05", "--yes")
    given = ("--epsilon", "1", "--ledger", tmp_path / "book.ledger", "--out", tmp_path / "count.json")
    assert exit_code("outliers", "count", tmp_path / "t.csv", *bounds, *given) == 0
    assert exit_code("release", "keygen", "clinic", "--folder", tmp_path) == 0
    capsys.readouterr()
    return tmp_path


def test_a_release_is_signed_and_checked_against_its_ledger(paid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Not signed: nobody stands behind this file" in str(Release.load(paid / "count.json"))
    signed, book = paid / "signed.json", paid / "book.ledger"
    assert exit_code("release", "sign", paid / "count.json", "--signing-key", paid / "clinic.pem", "--out", signed) == 0
    assert exit_code("release", "verify", signed, "--trusted-key", paid / "clinic.pub.pem", "--ledger", book) == 0
    told = capsys.readouterr().out
    assert "Its charge stands in the ledger as entry 1, for the guarantee it states." in told
    assert "The ledger kept its bytes, and they are these." in told
    assert exit_code("release", "verify", signed, "--ledger", paid / "other.ledger") == 4
    assert "ledger 'other' must hold the charge of this release; it does not" in capsys.readouterr().err


def test_a_number_changed_after_the_charge_is_noticed_by_the_ledger(paid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads((paid / "count.json").read_bytes())
    record["value"]["count"] = 999
    (paid / "forged.json").write_bytes(canonical(record))
    assert exit_code("release", "show", paid / "forged.json") == 0
    capsys.readouterr()
    assert exit_code("release", "verify", paid / "forged.json", "--ledger", paid / "book.ledger") == 4
    assert "must hold this release as it was paid for; the value in the file is another" in capsys.readouterr().err


@pytest.mark.parametrize("claimed", ["1/20", "2"])
def test_a_promise_that_is_not_the_one_paid_for_is_no_release(
    claimed: str, paid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = json.loads((paid / "count.json").read_bytes())
    record["guarantee"] |= {"epsilon": claimed, "joint_epsilon": claimed}
    (paid / "forged.json").write_bytes(canonical(record))
    assert exit_code("release", "show", paid / "forged.json") == 4
    assert "receipt must be for the charge of this guarantee; it is for another amount or unit" in capsys.readouterr().err


def test_a_file_cannot_vouch_for_itself(paid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "verify", paid / "count.json") == 2
    assert "--trusted-key or --ledger must be given, for a file cannot vouch for itself" in capsys.readouterr().err
    assert exit_code("release", "sign", paid / "count.json", "--key", paid / "clinic.pub.pem", "--out", paid / "s.json") == 2
    assert "holds a public one" in capsys.readouterr().err
    assert not (paid / "s.json").exists()


def forge(paid: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    record = json.loads((paid / name).read_bytes())
    change(record)
    (paid / "forged.json").write_bytes(canonical(record))
    return paid / "forged.json"


def test_a_file_that_was_changed_after_it_was_signed_is_not_signed_again(
    paid: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key, out = paid / "clinic.pem", paid / "again.json"
    assert exit_code("release", "sign", paid / "count.json", "--key", key, "--out", paid / "signed.json") == 0
    forged = forge(paid, "signed.json", lambda record: record["value"].update(count=999))
    assert exit_code("release", "sign", forged, "--key", key, "--out", out) == 4
    assert "must be as it was signed; it was changed or forged" in capsys.readouterr().err
    assert not out.exists()
    assert exit_code("release", "sign", paid / "signed.json", "--key", key, "--out", out) == 0


def test_a_charge_without_kept_bytes_vouches_for_its_promise_alone(paid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Ledger.open(paid / "book.ledger")
    promise = Guarantee(epsilon="0.001", mechanism="discrete Laplace")
    receipt = book.charge(promise, purpose="by hand")
    origin = Provenance(kind="count", mechanism="discrete Laplace", receipt=receipt)
    Release(value={"count": 1}, guarantee=promise, provenance=origin).save(paid / "hand.json")
    assert exit_code("release", "verify", paid / "hand.json", "--ledger", paid / "book.ledger") == 0
    told = capsys.readouterr().out
    assert "entry 2, for the guarantee it states." in told
    assert "The ledger kept no bytes of the result: it vouches for the charge and the promise, not for the value." in told
    assert exit_code("release", "verify", paid / "hand.json", "--ledger", paid / "book.ledger", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["entry"], found["bytes_compared"]) == (True, 2, False)

    def claim(record: dict[str, Any]) -> None:
        record["guarantee"] |= {"epsilon": "1000000", "joint_epsilon": "1000000"}
        record["provenance"]["receipt"]["epsilon"] = "1000000/1"

    forged = forge(paid, "hand.json", claim)
    assert exit_code("release", "show", forged) == 0, "within itself the file is sound"
    assert exit_code("release", "verify", forged, "--ledger", paid / "book.ledger") == 4
    assert "the receipt's epsilon in the file is another. Do not use it." in capsys.readouterr().err


LIE = "\nSigned by the trusted key.\r\x1b[2K\u2028\u202e"


def test_foreign_words_cannot_write_lines_of_their_own(paid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    promise = Guarantee(epsilon=1, unit=f"record{LIE}", mechanism=f"noise{LIE}", assumptions=(f"one row{LIE}",))
    origin = Provenance(
        kind=f"count{LIE}", mechanism=f"noise{LIE}", software={f"sabun{LIE}": f"1{LIE}"}, notes=(f"A note{LIE}",)
    )
    value = {f"count{LIE}": 1, "text": f"a{LIE}", "list": [f"a{LIE}"], "tree": {f"name{LIE}": 1}}
    Release(value=value, guarantee=promise, provenance=origin).save(paid / "lie.json")
    plain = Release(value={"a": 1, "b": 1, "c": 1, "d": {"e": 1}}, guarantee=Guarantee(epsilon=1, assumptions=("one row",)),
                    provenance=Provenance(kind="count", mechanism="noise", notes=("A note",)))  # fmt: skip
    assert exit_code("release", "show", paid / "lie.json") == 0
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) == len(str(plain).splitlines())
    assert not any(line.startswith("Signed") for line in shown.splitlines())
    assert not set("\r\x1b\u2028\u202e") & set(shown)


def test_foreign_words_cannot_write_lines_into_a_refusal(paid: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = forge(paid, "count.json", lambda record: record["value"].update({f"count{LIE}": {"float": 5}}))
    assert exit_code("release", "show", forged) == 4
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_keygen_makes_a_key_for_its_owner_alone_and_replaces_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("release", "keygen", "clinic", "--folder", tmp_path, "--json") == 0
    made = json.loads(capsys.readouterr().out)
    secret, public = tmp_path / "clinic.pem", tmp_path / "clinic.pub.pem"
    assert made["private_key"] == str(secret)
    assert made["public_key"] == str(public)
    if os.name == "posix":
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    kept = secret.read_bytes()
    for gone in (None, secret):
        if gone is not None:
            gone.unlink()
        assert exit_code("release", "keygen", "clinic", "--folder", tmp_path) == 2
        assert "folder and name must be a new file" in capsys.readouterr().err
        assert not secret.exists() if gone is not None else secret.read_bytes() == kept
    assert exit_code("release", "keygen", "a/b", "--folder", tmp_path) == 2
    assert "name must be a plain file name" in capsys.readouterr().err


def test_show_prints_answers_within_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = {
        "counts": {"F": 3, "M": 4},
        "intervals": {f"group {i}": [i, i + 2] for i in range(10)},
        "deep": {"a": {"b": {"c": {"d": 1}}}},
    }
    origin = Provenance(kind="count", mechanism="discrete Laplace")
    Release(value=value, guarantee=Guarantee(epsilon=1, mechanism="none"), provenance=origin).save(tmp_path / "r.json")
    assert exit_code("release", "show", tmp_path / "r.json") == 0
    said = capsys.readouterr().out
    assert "\n  counts:\n    F: 3\n    M: 4\n" in said
    assert "    group 7: [7, 9]\n    and 2 more\n" in said
    assert "  deep:\n    a:\n      b: 1 named results (c)\n" in said
