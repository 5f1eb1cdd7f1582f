"""Freezes a version: writes one file of every kind that this version writes, with what they must say, into a new folder.

    cd tests && python -m corpus.write v0.1.0

Run by hand, once for each version that goes out; what it wrote is never written again. The tables are made up. The signing
keys are thrown away. Checkpoints are begun in surroundings that every machine can imitate (`frozen.SAME`).
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from corpus.frozen import (
    GOLDEN,
    HERE,
    PUBLISHER,
    ask,
    carry_on,
    pack,
    processor,
    same_surroundings,
    table,
    train,
    trainer,
)
from sabun import Column, Guarantee, Ledger, Release, Schema
from sabun.cli import main
from sabun.density import DensityRatio
from sabun.errors import BudgetExceeded
from sabun.keyvalue import Study as Collection
from sabun.keyvalue.client import new_seed, to_json
from sabun.learning import PrivateClassifier, load_model
from sabun.outliers import OutlierCount
from sabun.regression import PublicModel, Study, combine
from sabun.release import generate_key, save_key

ROWS, PUBLIC_ROWS = 48, 30
POINTS = ["height", "weight"]
PEOPLE: dict[str, Any] = {"file": "people.csv", "as": "array", "columns": POINTS}
FRAME = PEOPLE | {"as": "frame"}
SCORE, ANSWER = ({"file": "people.csv", "as": "array", "columns": name} for name in ("score", "answer"))
WITH_TOWN = {"file": "people.csv", "as": "frame", "columns": [*POINTS, "town"]}
PUBLIC = {"file": "public.csv", "as": "frame", "columns": [*POINTS, "town"]}
LEARN = {"X": FRAME, "y": ANSWER}
CLASSES = ["no", "yes"]
NOISY = {"epsilon": 0.5, "delta": 0.001, "sampling_rate": 0.5, "epochs": 2, "n_public": ROWS}
"""One plan for all runs of DP-SGD: pricing it takes seconds."""


class Interrupted(BaseException):
    """Ctrl-C at a chosen moment."""


def write(folder: Path) -> None:
    """Everything, into a folder that does not exist yet."""
    folder.mkdir()
    for name in ("ledgers", "releases", "keyvalue", "models", "runs"):
        (folder / name).mkdir()
    publisher = generate_key()
    save_key(publisher.public_key(), folder / PUBLISHER)
    tables(folder)
    facts: dict[str, Any] = {"processor": processor()}
    facts["requests"] = requests(folder)
    facts["commands"] = commands(folder)
    facts["models"] = models(folder, publisher)
    facts["runs"] = runs(folder)
    facts["unfinished"] = unfinished(folder)
    facts["densities"] = densities(folder)
    facts["regressions"] = regressions(folder)
    facts["keyvalue"] = collections(folder)
    facts["diary"] = diary(folder)
    facts["schemas"] = schemas(folder)
    Release.load(folder / "releases/count-array.json").sign(publisher).save(folder / "releases/count-signed.json")
    facts["releases"] = releases(folder)
    facts["ledgers"] = {path.name: ledger_facts(path) for path in sorted((folder / "ledgers").glob("[!.]*"))}
    (folder / GOLDEN).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for lock in folder.rglob("*.lock"):
        lock.unlink()
    for book in (*folder.rglob("*.ledger"), *folder.rglob("*.diary")):
        pack(book)


def tables(folder: Path) -> None:
    """A private table, a public one and their schema; numbers are short binary fractions, equal wherever they are read."""
    generator = np.random.default_rng(20260101)

    def people(count: int) -> pd.DataFrame:
        numbers = np.round(generator.uniform(0, 1, (count, 2)) * 256) / 256
        towns = generator.choice(["A", "B", "01"], count)
        return pd.DataFrame(dict(zip(POINTS, numbers.T, strict=True)) | {"town": towns})

    private = people(ROWS)
    private["score"] = private["height"] + private["weight"] / 2
    private["answer"] = np.where(private["height"] > 0.5, "yes", "no")
    private.to_csv(folder / "people.csv", index=False)
    people(PUBLIC_ROWS).to_csv(folder / "public.csv", index=False)
    numbers = [Column.number(name, lower=0, upper=1, missing=0.5) for name in POINTS]
    Schema(columns=[*numbers, Column.category("town", ["A", "B", "01"], missing="A")]).save(folder / "schema.json")
    Schema(columns=numbers).save(folder / "points.schema.json")
    odd = Column.number("income", lower=0, upper=10_000, log1p=True)
    Schema(columns=[odd, Column.category("flag", [True, False]), Column.category("grade", [1, 2])]).save(
        folder / "odd.schema.json"
    )


def requests(folder: Path) -> list[dict[str, Any]]:
    """Every public class that charges, some of them twice; with retry keys where there are any."""
    north, south = generate_key(), generate_key()
    features, target = Schema.load(folder / "points.schema.json"), Column.number("score", lower=0, upper=2)
    together = Study(
        features=features,
        target=target,
        epsilon=2,
        delta="1/10000",
        name="both",
        organisations={"north": north.public_key(), "south": south.public_key()},
    )
    together.save(folder / "both.study.json")
    terms: dict[str, Any] = {"features": features, "target": target, "epsilon": 1, "name": "patients", "unit": "patient"}
    Study(**terms, mechanism="ssp-laplace", relation="add-remove").save(folder / "patients.study.json")
    Study(features=features, target=target, epsilon=1, name="open", mechanism="objpert").save(folder / "open.study.json")
    create = partial(Ledger.create, delta="1/10")
    create(folder / "ledgers/rooms.ledger", name="rooms", epsilon=40)
    create(folder / "ledgers/patients.ledger", name="clinic", unit="patient", relation="add-remove", epsilon="61/3")
    Ledger.create(folder / "ledgers/empty.ledger", name="phones", unit="person", relation="local", epsilon=1)
    asked = [
        count("rooms", "count-array", k=2, radius=0.125, epsilon=0.5),
        count("rooms", "count-laplace", k=2, radius=0.25, epsilon="1/3", delta=1e-4, mechanism="laplace", schema="schema.json")
        | {"fit": {"X": {"file": "people.csv", "as": "file"}}},
        count("rooms", "count-global", k=3, radius=0.25, epsilon=1, delta=1e-4, mechanism="global-gaussian", confidence=0.9),
        count("patients", "count-patients", k=2, radius=0.125, epsilon=0.7, relation="add-remove", error_bar=0),
        asking(
            "rooms",
            "regions",
            "RegionCount",
            {"X": FRAME},
            regions={"short": {"height": [None, 0.5]}, "tall": {"height": [0.5, None]}},
            k=2,
            radius=0.125,
            epsilon=1,
            retry_key="regions",
        ),
        asking(
            "rooms",
            "subspace",
            "SubspaceChoice",
            {"X": FRAME},
            subspaces={"one": ["height"], "both": POINTS},
            k=2,
            radius={"one": 0.0625, "both": 0.125},
            epsilon=1,
            retry_key="subspace",
        ),
        ridge("rooms", "north", study="both.study.json", organisation="north"),
        ridge("rooms", "south", study="both.study.json", organisation="south"),
        ridge("patients", "ridge-patients", study="patients.study.json", organisation="clinic"),
        asking("rooms", "weights", "DensityRatio", {"private": WITH_TOWN, "public": PUBLIC}, epsilon=4, schema="schema.json"),
        asking("patients", "weights-patients", "DensityRatio", {"private": FRAME, "public": PUBLIC}, epsilon=4, delta=1e-3)
        | {"fit": {"private": FRAME, "public": PUBLIC | {"columns": POINTS}}},
        asking(
            "patients",
            "synthetic",
            "PrivateClassifier",
            {"X": WITH_TOWN, "y": ANSWER},
            method="anonymizing-first",
            epsilon=3,
            schema="schema.json",
            classes=CLASSES,
            hidden=[],
            n_synthetic=20,
            bins=4,
            epochs=2,
        ),
    ]
    for request in asked:
        release = ask(request, folder, Ledger.open(folder / request["ledger"])).release_
        key = {"north": north, "south": south}.get(request["parameters"].get("organisation"))
        (release if key is None else release.sign(key)).save(folder / request["release"])
    words = Ledger.open(folder / "ledgers/patients.ledger", remark="by hand, for the yearly report")
    words.charge(Guarantee(epsilon="1/7", relation="add-remove", unit="patient"), purpose="a table made elsewhere", key="year")
    # Booked as a replace-one promise: the note in the entry says so.
    Ledger.open(folder / "ledgers/rooms.ledger").charge(Guarantee(epsilon="1/9", relation="add-remove"), purpose="restated")
    return asked


def asking(ledger: str, name: str, kind: str, fit: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    """One request, with the file its release is kept in."""
    place = {"ledger": f"ledgers/{ledger}.ledger", "release": f"releases/{name}.json"}
    return place | {"class": kind, "fit": fit, "parameters": parameters}


def count(ledger: str, name: str, **parameters: Any) -> dict[str, Any]:
    """A count with a retry key."""
    return asking(ledger, name, "OutlierCount", {"X": PEOPLE}, **parameters, retry_key=name)


def ridge(ledger: str, name: str, **parameters: Any) -> dict[str, Any]:
    """A contribution to a study, whose name is its retry key."""
    return asking(ledger, name, "PrivateRidge", {"X": PEOPLE, "y": SCORE}, **parameters) | {"keyed_by_study": True}


def commands(folder: Path) -> list[dict[str, Any]]:
    """The verbs that have retry keys."""
    counted = "outliers count people.csv --schema points.schema.json --radius 0.25 --k 2 --epsilon 0.5 --yes --key by-command"
    chosen = "outliers choose people.csv --schema points.schema.json --subspace one=height --subspace both=height,weight"
    fitted = "regression fit people.csv --study open.study.json --organisation west --yes"
    found = []
    for name, text in (
        ("command-count", counted),
        ("command-choose", f"{chosen} --radius 0.125 --k 2 --epsilon 0.5 --key chosen-by-command"),
        ("command-fit", fitted),
    ):
        command = {"arguments": text.split(), "ledger": "ledgers/rooms.ledger", "release": f"releases/{name}.json"}
        with chdir(folder), suppress(SystemExit):
            main([*text.split(), "--ledger", command["ledger"], "--out", command["release"]])
        Release.load(folder / command["release"])
        found.append(command)
    return found


def models(folder: Path, publisher: Any) -> dict[str, Any]:
    """Model folders of both kinds, as they are saved and with a signed release."""
    book = Ledger.open(folder / "ledgers/patients.ledger")
    fitted: PrivateClassifier = PrivateClassifier(**NOISY, classes=CLASSES, hidden=(3,), ledger=book)
    fitted.fit(table(folder, FRAME), table(folder, ANSWER)).save(folder / "models/numpy")
    mixed = PrivateClassifier(
        method="laplace-sgd", epsilon=2, classes=CLASSES, schema=Schema.load(folder / "schema.json"), hidden=(), ledger=book
    )
    mixed.fit(table(folder, WITH_TOWN), table(folder, ANSWER)).save(folder / "models/schema")
    request = {"class": "TorchTrainer", "fit": {"X": PEOPLE, "y": ANSWER}, "parameters": NOISY}
    module = train(trainer(request, book), request, folder)
    module.save(folder / "models/torch")
    found: dict[str, Any] = {}
    for name in ("numpy", "schema", "torch"):
        place = folder / "models" / name
        shutil.copytree(place, signed := place.with_name(f"{name}-signed"))
        Release.load(place / "release.json").sign(publisher).save(signed / "release.json", overwrite=True)
        rows = WITH_TOWN if name == "schema" else PEOPLE
        said = module_scores(module.module, table(folder, rows)) if name == "torch" else chances(place, table(folder, rows))
        for one in (place, signed):
            found[one.name] = {"rows": rows, "torch": name == "torch", "scores": said, "signed": one == signed}
    return found


def chances(place: Path, rows: Any) -> Any:
    """What a numpy model says about the first rows."""
    return load_model(place).predict_proba(rows[:8]).tolist()


def module_scores(module: Any, rows: Any) -> Any:
    """What a torch module says about the first rows."""
    import torch

    with torch.no_grad():
        return module.eval()(torch.from_numpy(rows[:8].astype(np.float32))).tolist()


def runs(folder: Path) -> list[dict[str, Any]]:
    """Training runs that were stopped, each with its charge: before their first step, or after some."""
    book = Ledger.create(
        folder / "ledgers/runs.ledger", name="runs", relation="add-remove", unit="patient", epsilon=20, delta="1/10"
    )
    laplace = {"method": "laplace-sgd", "epsilon": 1, "sampling_rate": 0.5, "epochs": 3, "hidden": [], "classes": CLASSES}
    made = {
        "laplace-sgd": laplace,
        "dp-sgd": NOISY | {"hidden": [2], "classes": CLASSES},
        "anonymizing-first": {
            "method": "anonymizing-first",
            "epsilon": 1,
            "schema": "schema.json",
            "classes": CLASSES,
            "hidden": [],
            "n_synthetic": 20,
            "bins": 4,
            "epochs": 2,
        },
        "torch": NOISY,
    }
    found = []
    for name, parameters in made.items():
        for step in (0, 2) if name != "anonymizing-first" else (0,):
            place = f"runs/{name}-{step}"
            request = {"folder": place, "ledger": "ledgers/runs.ledger", "step": step, "parameters": parameters}
            # Exact fractions price it and no step is repeated: it goes on wherever this package runs.
            request["anywhere"] = not step and "delta" not in parameters
            request |= {"class": "TorchTrainer" if name == "torch" else "PrivateClassifier", "fit": LEARN}
            if name in ("torch", "anonymizing-first"):
                request["fit"] = {"X": PEOPLE if name == "torch" else WITH_TOWN, "y": ANSWER}
            with pytest.MonkeyPatch.context() as patch, suppress(Interrupted):
                same_surroundings(patch, torch=name == "torch")
                carry_on(request, folder, book, checkpoint=folder / place, progress=stop_after(step + 1))
            assert json.loads((folder / place / "run.state").read_text())["now"]["step"] == step, place
            found.append(request)
    return found


def stop_after(calls: int) -> Callable[[float, str], None]:
    """A progress that breaks off; a step that was not heard of is not kept."""
    left = [calls]

    def listen(share: float, words: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise Interrupted

    return listen


def unfinished(folder: Path) -> list[dict[str, Any]]:
    """A ledger with a charge that was given back, one whose result never came, and one that was refused."""
    book = Ledger.create(folder / "ledgers/unfinished.ledger", name="unfinished", epsilon=2)
    book.reserve(Guarantee(epsilon=1), purpose="given back", key="voided").void()
    request = count("unfinished", "unfinished", k=2, radius=0.125, epsilon=0.5)
    del request["release"]
    with dying(), suppress(Interrupted):
        ask(request, folder, book)
    with suppress(BudgetExceeded):
        book.charge(Guarantee(epsilon=3), purpose="refused")
    return [request]


@contextmanager
def dying() -> Iterator[None]:
    """A process that dies between the charge and the noise."""

    def death(*given: object) -> None:
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutlierCount, "_draw", death)
        yield


def densities(folder: Path) -> list[dict[str, Any]]:
    """What weights answer."""
    found = []
    for name, public in (("weights", PUBLIC), ("weights-patients", PUBLIC | {"columns": POINTS})):
        restored = DensityRatio.restore(folder / f"releases/{name}.json", public=table(folder, public))
        answers = {column: restored.query(column, ci=False) for column in POINTS}
        found.append({"release": f"releases/{name}.json", "public": public, "answers": answers})
    return found


def regressions(folder: Path) -> list[dict[str, Any]]:
    """Models from releases, and a model with its release as files."""
    model = combine([folder / f"releases/{name}.json" for name in ("north", "south")])
    assert isinstance(model, PublicModel)
    model.save(folder / "both.model.json")
    model.release().save(folder / "releases/both.json")
    found = []
    for releases, study, method in (
        (["north", "south"], "both.study.json", "pool"),
        (["north", "south"], "both.study.json", "average"),
        (["ridge-patients"], "patients.study.json", "pool"),
        (["command-fit"], "open.study.json", "average"),
    ):
        paths = [f"releases/{name}.json" for name in releases]
        joined = combine([folder / path for path in paths], study=Study.load(folder / study), method=method)
        said = {"coef": joined.coef_.tolist(), "intercept": float(joined.intercept_)}
        found.append({"label": f"{'+'.join(releases)} {method}", "releases": paths, "study": study, "method": method} | said)
    found.append(
        {"label": "both", "model": "both.model.json", "coef": model.coef_.tolist(), "intercept": float(model.intercept_)}
    )
    return found


def collections(folder: Path) -> dict[str, Any]:
    """Studies with their reports and counters, one for each family of protocols."""
    seed, commitment = new_seed()
    keys = ["YouTube", "LINE", "地図"]
    made: dict[str, dict[str, Any]] = {
        "kv3": {"rounds": 3},
        "committed": {"index_commitment": commitment, "value_range": (0, "5/2")},
        "chosen": {"protocol": "privkv-tight", "index_mode": "chosen"},
        "pckv-ue": {"protocol": "pckv-ue", "padding_length": 2},
        "pckv-grr": {"protocol": "pckv-grr", "keys_per_user": 2},
        "privkvm": {"protocol": "privkvm"},
    }
    found = {}
    for name, terms in made.items():
        place = folder / "keyvalue" / name
        place.mkdir()
        study = Collection(**{"keys": keys, "epsilon": 2, "protocol": "kv3"} | terms)
        study.save(place / "study.json")
        own = seed if "index_commitment" in terms else b""
        holdings = [{keys[i % 3]: 0.25 * (i % 4), "LINE": 0.5} for i in range(12)]
        reports = [study.client(seed=own).report(held) for held in holdings]
        with chdir(place):
            (Path("reports.bin")).write_bytes(b"".join(len(one).to_bytes(4, "big") + one for one in reports))
            lines = "".join(to_json(study.terms, one) + "\n" for one in reports)
            Path("reports.jsonl").write_text(lines, encoding="ascii")
        whole = study.tally(seed=own)
        for half, part in (("first", reports[:6]), ("second", reports[6:])):
            tally = study.tally(seed=own)
            assert tally.add_reports(part).accepted == 6
            tally.save(place / f"{half}.tally")
            whole.merge(tally)
        estimates = {method: rows_of(whole.estimate(method)) for method in ("mle", "unbiased", "ye", "em", "posterior")}
        counts = whole.counts()
        said = {"task_id": study.task_id, "epsilon": str(study.guarantee.epsilon), "reports": len(reports)}
        said |= {"plus": counts.plus.tolist(), "minus": counts.minus.tolist(), "total": counts.total.tolist()}
        found[name] = said | {"estimates": estimates, "seed": own.hex()}
        if name == "kv3":
            whole.estimate().release().save(folder / "releases/estimates.json")
    return found


def rows_of(estimates: Any) -> dict[str, Any]:
    """Points as plain numbers; None where there is none."""
    plain = {"frequency": estimates.frequency, "mean": estimates.mean}
    return {name: [None if np.isnan(x) else x for x in column.tolist()] for name, column in plain.items()}


def diary(folder: Path) -> dict[str, Any]:
    """A device's book after its first round."""
    place = "keyvalue/kv3/study.json"
    study, held = Collection.load(folder / place), {"YouTube": 0.5, "LINE": -0.25}
    device = study.client(diary=folder / "keyvalue/device.diary")
    report = device.report(held)
    return {"file": "keyvalue/device.diary", "study": place, "held": held, "report": report.hex(), "spent": str(device.spent)}


def schemas(folder: Path) -> dict[str, Any]:
    """The hashes that releases name."""
    return {path.name: {"hash": Schema.load(path).hash} for path in sorted(folder.glob("*schema.json"))}


def releases(folder: Path) -> dict[str, Any]:
    """Each release with its kind, and whether somebody signed it."""
    found = {}
    for path in sorted((folder / "releases").iterdir()):
        release = Release.load(path)
        receipt = release.provenance.receipt
        found[path.name] = {
            "kind": release.provenance.kind,
            "epsilon": str(release.guarantee.epsilon),
            "delta": str(release.guarantee.delta),
            "signed": release.signature is not None,
            "by_publisher": path.name == "count-signed.json",
            "ledger": None if receipt is None else receipt.ledger_name,
            "entry": None if receipt is None else receipt.entry,
        }
    return found


def ledger_facts(path: Path) -> dict[str, Any]:
    """What a ledger must still say."""
    said = Ledger.open(path).to_dict()
    names = ("entry", "state", "key", "epsilon", "delta", "purpose", "note", "remark", "entry_hash", "payload_sha256")
    return said | {"entries": [{name: entry[name] for name in names} for entry in said["entries"]]}


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].startswith("v"):
        sys.exit(__doc__)
    if (HERE / sys.argv[1]).exists():
        sys.exit(f"{sys.argv[1]} is frozen already.")
    write(HERE / sys.argv[1])
