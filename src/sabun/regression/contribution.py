"""What one organisation sent, read strictly: nothing in a file is believed before it was checked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sabun.errors import ParameterError, ReleaseError
from sabun.privacy.guarantee import Guarantee
from sabun.regression.design import Floats
from sabun.regression.perturbation import coefficients_of
from sabun.regression.pooling import pooled
from sabun.regression.promise import ONE_OF_TWO, guarantee_of, release_promise
from sabun.regression.sharing import released_shares
from sabun.regression.stages import LARGEST_START, LEVELS, RADII, RESIDUALS
from sabun.regression.study import LARGEST_FILE, STAGED, STATISTICS, Study
from sabun.regression.sufficient import noise_level
from sabun.regression.sums import Sums, sums_of
from sabun.release import Release
from sabun.release.encoding import canonical, encode

__all__ = ["KIND", "Contribution", "read_all", "read_one"]

KIND = "regression."
_ROWS_LIMIT = 2**39
_WHOLE_LIMIT = 2**62
_COMMON = {"organisation", "rows"}
_FIELDS = {
    "staged": _COMMON | {"gram", "moment", "square", "count", "radius"} | set(RESIDUALS),
    "rounds": _COMMON | {"gram", "moment", "square", "count", "radius"},
    "ssp-gauss": _COMMON | {"gram", "moment", "square", "count"},
    "ssp-laplace": _COMMON | {"gram", "moment", "square", "count"},
    "objpert": _COMMON | {"coefficients"},
    "paper": _COMMON | {"estimate"},
}
_SECOND = _COMMON | {"first"} | set(RESIDUALS)
"""What a second round holds: the first stays in its own file, under its own promise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Contribution:
    """One organisation's release, checked.

    Args:
        organisation: Its name in the study, or a made-up one outside a study.
        study: The study that the release was made for.
        release: The release itself.
        first: The release of the first round, where `release` is of the second.
    """

    organisation: str
    study: Study
    release: Release
    first: Release | None = None

    @property
    def value(self) -> Mapping[str, Any]:
        """The released numbers, those of two rounds together."""
        if self.first is None:
            return self.release.value
        again = {name: part for name, part in self.release.value.items() if name != "first"}
        return {**self.first.value, **again}

    @property
    def is_second(self) -> bool:
        """Whether this is a second round whose first is not beside it: it tells nothing by itself."""
        return "first" in self.value

    @property
    def digest(self) -> str:
        """SHA-256 of the released numbers, by which a second round names its first."""
        return hashlib.sha256(self.numbers).hexdigest()

    @property
    def marks(self) -> set[str | bytes | None]:
        """What tells whose release this is: name, ledger rows, numbers."""
        alone = [] if self.first is None else [replace(self, release=self.first, first=None), replace(self, first=None)]
        return {self.organisation, self.ledger_row, self.numbers}.union(*(one.marks for one in alone))

    @property
    def promise(self) -> Guarantee:
        """What the organisation's releases in this study promise: with `rounds`, both of them together."""
        own = self.release.guarantee
        if self.study.method != "rounds":
            return own
        kept = tuple(words for words in own.assumptions if not words.startswith(ONE_OF_TWO))
        return replace(guarantee_of(self.study), simulated=own.simulated, assumptions=kept)

    @property
    def numbers(self) -> bytes:
        """The released numbers without the name, to be compared."""
        return canonical(encode({name: part for name, part in self.value.items() if name != "organisation"}))

    @property
    def ledger_row(self) -> str | None:
        """Hash of the ledger row that paid for it, as the release says."""
        receipt = self.release.provenance.receipt
        return None if receipt is None else receipt.entry_hash

    def sums(self) -> Sums:
        """The noisy sums; only for methods that release them."""
        return sums_of(self.study, self.value)

    def beta(self) -> Floats:
        """The organisation's own private estimate in row units."""
        if self.study.method in STATISTICS:
            return pooled(self.study, [self.sums()]).beta
        if self.study.method == "objpert":
            return coefficients_of(list(self.value["coefficients"])) * self.study.design.shrink
        return np.asarray(self.value["estimate"]) * self.study.design.shrink


def read_all(sources: Iterable[object], study: Study | None = None) -> tuple[Contribution, ...]:
    """Reads releases that belong together.

    Args:
        sources: Paths or `Release` objects.
        study: The study the reader trusts: only releases made for it are taken, and where it names organisations, only those
            that they signed. A study that names none cannot tell who sent a release. Without a study, the one inside the
            releases is used, which anybody could have written.

    Raises:
        ReleaseError: A release is damaged, forged, of another study, or an organisation appears twice; it is named.
    """
    if isinstance(sources, str | os.PathLike | Release):
        sources = [sources]
    found = [read_one(source, study, label=f"release {place}") for place, source in enumerate(sources, start=1)]
    if not found:
        raise ParameterError("releases must hold at least one release; got none.")
    found = _paired(found)
    seen: set[object] = set()
    for contribution in found:
        _must_agree(found[0], contribution)
        # Noise makes equal numbers as good as impossible: who gives a copy another name, or signs it again, has still copied.
        marks = {contribution.organisation, contribution.numbers}
        if marks & seen:
            raise ReleaseError(
                f"each organisation must send one release; {contribution.organisation!r} sent two, or a copy of another's. "
                "Use the one it stands by."
            )
        seen |= marks
    return tuple(found)


def _paired(found: Sequence[Contribution]) -> list[Contribution]:
    """Second rounds with the first rounds that they name."""
    firsts = [one for one in found if not one.is_second]
    paired = {one.digest: one for one in firsts}
    if len(paired) < len(firsts):
        return firsts  # a copy, which the reader refuses
    for second in (one for one in found if one.is_second):
        first = paired.get(second.value["first"])
        if first is None or first.first is not None or not _belong(first, second):
            raise ReleaseError(
                f"{second.organisation!r} sent a second round whose first must be beside it, once; it is not. "
                "Pass the first release of the same organisation too, and one second."
            )
        paired[second.value["first"]] = replace(first, release=second.release, first=first.release)
    return list(paired.values())


def _belong(first: Contribution, second: Contribution) -> bool:
    same = all(first.value[name] == second.value[name] for name in ("organisation", "rows"))
    return same and first.study.hash == second.study.hash


def read_one(source: object, study: Study | None = None, *, label: str = "release") -> Contribution:
    """Reads one release: size, form, study, promise, organisation, signature, numbers, in that order.

    Raises:
        ReleaseError: Whatever is wrong with it, however it was made up.
    """
    if isinstance(source, str | os.PathLike):
        label, release = os.fspath(source), Release.load(source, max_bytes=LARGEST_FILE)
    elif isinstance(source, Release):
        release = source
    else:
        raise ParameterError(f"a release must be a path or a Release; got {type(source).__name__}.")
    if not release.provenance.kind.startswith(KIND):
        raise ReleaseError(f"{label} must be a regression release; got kind {release.provenance.kind!r:.60}.")
    own = _study_of(release, label)
    if study is not None and own.hash != study.hash:
        raise ReleaseError(
            f"{label} must be made for study {study.hash[:12]}; it is for {own.hash[:12]}. Ask for the right one."
        )
    _check_promise(release, own, label)
    contribution = Contribution(organisation=_organisation(release, own, label), study=own, release=release)
    _check_numbers(contribution, label)
    return contribution


def _study_of(release: Release, label: str) -> Study:
    facts = release.provenance.parameters
    try:
        study = Study.from_dict(facts.get("study"))
        if study.method in STATISTICS:
            noise_level(study)
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ReleaseError(f"{label} must carry its study: {str(error)[:300]}") from None
    given = facts.get("study_hash")
    if not isinstance(given, str) or given != study.hash or release.provenance.kind != KIND + study.method:
        raise ReleaseError(f"{label} must carry the hash of its own study; it does not. It was changed.")
    return study


def _check_promise(release: Release, study: Study, label: str) -> None:
    given, due = release.guarantee, release_promise(study)
    for name in ("epsilon", "delta", "relation", "unit", "scope"):
        if getattr(given, name) != getattr(due, name):
            raise ReleaseError(f"{label}: {name} of its guarantee must be that of its study; it is not. It was changed.")


def _organisation(release: Release, study: Study, label: str) -> str:
    name = release.value.get("organisation")
    if not study.organisations:
        if release.signature is not None:
            release.verify()
        return name if isinstance(name, str) and name else label
    if not isinstance(name, str) or name not in study.organisations:
        known = ", ".join(map(repr, study.organisations))
        raise ReleaseError(f"{label}: organisation must be one of {known}; got {name!r:.60}.")
    try:
        release.verify(study.public_key(name))
    except ReleaseError as error:
        raise ReleaseError(f"{label} (organisation {name!r}): {error}") from None
    return name


def _must_agree(first: Contribution, other: Contribution) -> None:
    if first.study.hash == other.study.hash:
        return
    if first.study.organisations or other.study.organisations or _terms(first.study) != _terms(other.study):
        raise ReleaseError(
            f"releases must be made for one study; {other.organisation!r} is of another than {first.organisation!r}. "
            "Agree on columns, target, bounds, radius and method first."
        )


def _terms(study: Study) -> dict[str, Any]:
    """What must agree even outside a study; the privacy of each release may differ there."""
    record = study.to_dict()
    if study.method in STATISTICS:
        record["mechanism"] = "sums"  # of whatever kind: they are read into the same units
    return {
        key: value for key, value in record.items() if key not in ("epsilon", "delta", "unit", "records_per_person", "name")
    }


def _check_numbers(contribution: Contribution, label: str) -> None:
    study, value = contribution.study, contribution.value
    again = study.method == "rounds" and "first" in value
    wanted = _SECOND if again else _FIELDS[study.method]
    if set(value) != wanted:
        raise ReleaseError(f"{label} must hold exactly {', '.join(sorted(wanted))}; check {sorted(set(value) ^ wanted)}.")
    public_rows = study.relation == "replace-one"
    if public_rows != _is_whole(value["rows"], 1, _ROWS_LIMIT) or (not public_rows and value["rows"] is not None):
        raise ReleaseError(f"{label}: rows must be {'a whole number' if public_rows else 'left out'}; it is not.")
    if again:
        good = isinstance(value["first"], str) and len(value["first"]) == 64
        if not good:
            raise ReleaseError(f"{label}: first must be the digest of a release; it is not.")
        _check_residuals(study, value, label)
    elif study.method in STATISTICS:
        _whole_list(value["gram"], study.width * (study.width + 1) // 2, "gram", label)
        _whole_list(value["moment"], study.width, "moment", label)
        _whole_list([value["square"]], 1, "square", label)
        counts = [] if public_rows else [value["count"]]
        _whole_list(counts, len(counts), "count", label)
        if public_rows and value["count"] is not None:
            raise ReleaseError(f"{label}: count must be left out; it is not.")
        if study.method in STAGED:
            _check_stages(study, value, label)
    elif study.method == "objpert":
        _whole_list(value["coefficients"], study.width, "coefficients", label)
    elif not _is_estimate(value["estimate"], study.width):
        raise ReleaseError(f"{label}: estimate must be an array of {study.width} finite numbers; it is not.")


def _check_stages(study: Study, value: Mapping[str, Any], label: str) -> None:
    """The radius is left out where the study gives it, and was in earlier files where none was chosen."""
    ladder = study.clip_radius is None and _is_whole(value["radius"], 0, RADII - 1)
    if not ladder and value["radius"] is not None:
        raise ReleaseError(f"{label}: radius must be from 0 to {RADII - 1}, or left out; it is not.")
    if study.method == "staged" and any(value[name] is not None for name in RESIDUALS):
        _check_residuals(study, value, label)
    released_shares(study, value)


def _check_residuals(study: Study, value: Mapping[str, Any], label: str) -> None:
    if not _is_whole(value["level"], LEVELS[0], LEVELS[-1]):
        raise ReleaseError(f"{label}: level must be a whole number from {LEVELS[0]} to {LEVELS[-1]}; it is not.")
    _whole_list(value["start"], study.width, "start", label)
    if max(map(abs, value["start"])) > LARGEST_START:
        raise ReleaseError(f"{label}: start must be whole numbers of at most 26 bits; it is not.")
    _whole_list(value["residual_moment"], study.width, "residual_moment", label)
    _whole_list([value["residual_square"], value["residual_weight"]], 2, "residual_square and residual_weight", label)


def _is_estimate(numbers: object, width: int) -> bool:
    good = isinstance(numbers, np.ndarray) and numbers.shape == (width,) and numbers.dtype.kind == "f"
    return good and bool(np.isfinite(numbers).all())  # type: ignore[call-overload]


def _whole_list(numbers: object, length: int, name: str, label: str) -> None:
    good = isinstance(numbers, Sequence) and not isinstance(numbers, str) and len(numbers) == length
    if not good or not all(_is_whole(number, -_WHOLE_LIMIT, _WHOLE_LIMIT) for number in numbers):  # type: ignore[attr-defined]
        raise ReleaseError(f"{label}: {name} must be {length} whole numbers of at most 62 bits; it is not.")


def _is_whole(number: object, low: int, high: int) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and low <= number <= high
