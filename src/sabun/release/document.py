"""The one thing that leaves the house: a value with its promise and its origin."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from sabun.errors import IncompatibleGuarantees, ParameterError, ReleaseError, SimulatedError
from sabun.foreign import one_line
from sabun.ledger import Receipt
from sabun.notebook import Rich
from sabun.privacy.guarantee import Guarantee
from sabun.privacy.renyi import grouped
from sabun.release.encoding import canonical, check_amount, decode_mapping, encode, exactly, parse
from sabun.release.files import read_whole, write_whole
from sabun.release.provenance import Provenance
from sabun.release.signature import Signature, Signer, TrustedKeys
from sabun.release.signing_keys import fingerprint
from sabun.release.tree import Frozen

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["FORMAT", "MAX_BYTES", "VERSION", "Release", "check_facts"]

FORMAT = "sabun-release"
VERSION = 1
MAX_BYTES = 64 * 2**20
"""The largest file `load` reads unless told otherwise."""

_AMOUNTS = ("epsilon", "delta", "joint_epsilon", "joint_delta")
_LONGEST_SHOWN = 60
_LONGEST_LIST = 8
_DEEPEST_SHOWN = 2
_ROUNDED_UP = 1 + Fraction(1, 10**6)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(Rich):
    """A released value with its guarantee, its provenance, and a signature once somebody signs it.

    Immutable: mappings and lists are frozen, arrays are kept as bytes, and each access gives a new read-only array over them. A
    result of a seeded coin can be looked at, printed or pickled (it keeps its mark), but not saved, serialised or signed: it is
    NOT PRIVATE. This prevents accidents. Who builds a release with a false guarantee on purpose can do so in their own process;
    only a reader who trusts the signer's key, or checks the receipt against the ledger, is safe from that.

    Args:
        value: Names and results: numbers, texts, lists, mappings, numpy arrays.
        guarantee: The promise about the whole value.
        provenance: How it was made.
        signature: Who stands behind it; made by `sign`.

    Example:
        >>> promise = Guarantee(epsilon=0.5, unit="patient", mechanism="discrete Laplace")
        >>> release = Release(value={"count": 42}, guarantee=promise,
        ...                   provenance=Provenance(kind="count", mechanism="discrete Laplace"))
        >>> Release.from_json(release.to_json())["count"]
        42
    """

    value: Mapping[str, Any]
    guarantee: Guarantee
    provenance: Provenance
    signature: Signature | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", Frozen(self.value, where="value"))
        if not self.value:
            raise ParameterError("value must hold at least one named result; got none.")
        check_facts(self.guarantee, self.provenance)
        _must_be_paid(self.guarantee, self.provenance.receipt)
        if not (self.signature is None or isinstance(self.signature, Signature)):
            raise ParameterError(f"signature must be a Signature or None; got {type(self.signature).__name__}.")

    def __getitem__(self, name: str) -> Any:
        return self.value[name]

    def __eq__(self, other: object) -> bool:
        return self._bytes() == other._bytes() if isinstance(other, Release) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._bytes())

    def to_json(self) -> bytes:
        """The release as canonical JSON: equal releases give equal bytes.

        Raises:
            SimulatedError: The result came from a seeded coin.
        """
        self._must_be_private()
        return self._bytes()

    @classmethod
    def from_json(cls, content: bytes | str, *, max_bytes: int = MAX_BYTES) -> Self:
        """Reads what `to_json` wrote, byte for byte; anything else is refused.

        Raises:
            ReleaseError: The bytes are not a release; the message says what is wrong and where.
        """
        content = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)
        if len(content) > max_bytes:
            raise ReleaseError(f"a release must have at most {max_bytes} bytes; got {len(content)}. Pass a larger max_bytes.")
        release = cls._from_document(parse(content))
        if release._bytes() != content:
            raise ReleaseError(
                "a release must be in its canonical form, byte for byte; this one was edited or reformatted. "
                "Use the file as it was saved."
            )
        return release

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the release to a file that is complete or not there at all.

        Raises:
            SimulatedError: The result came from a seeded coin.
            DataError: The file exists and `overwrite` is False, or cannot be written.
        """
        write_whole(path, self.to_json(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Self:
        """Reads what `save` wrote.

        Raises:
            ReleaseError: The file is missing, too large or not a release.
        """
        content = read_whole(path, max_bytes=max_bytes)
        try:
            return cls.from_json(content, max_bytes=max_bytes)
        except ReleaseError as error:
            raise ReleaseError(f"{os.fspath(path)}: {error}") from None

    def sign(self, private_key: Ed25519PrivateKey) -> Release:
        """The same release with a signature over everything in it, in the place of the one it may have.

        Raises:
            SimulatedError: The result came from a seeded coin.
            ParameterError: The key is not a private Ed25519 key.
            ReleaseError: It was changed since somebody else signed it; a new signature would hide that.
        """
        self._must_be_private()
        if self.signature is not None:
            self.verify()
        return dataclasses.replace(self, signature=Signature.of(self._bytes(signed=False), private_key))

    def verify(self, public_key: TrustedKeys = None) -> Signer:
        """Makes sure that nothing was changed since it was signed.

        Args:
            public_key: The key or keys the reader trusts. None checks only that the file is whole; the signer in the answer
                then has `trusted=False`, for anybody can sign with a key of their own.

        Raises:
            ReleaseError: The release is unsigned, changed, or signed by a key that is not trusted.
        """
        if self.signature is None:
            raise ReleaseError("the release must be signed; it is not. Ask its publisher for a signed one.")
        return self.signature.check(self._bytes(signed=False), public_key)

    def __str__(self) -> str:
        # The names are foreign words: a line break in one would write lines of its own, such as who signed.
        made = ", ".join(f"{one_line(name)} {one_line(version)}" for name, version in self.provenance.software.items())
        lines = [f"{one_line(self.provenance.kind)} ({one_line(self.provenance.mechanism)})"]
        lines += [line for name, tree in self.value.items() for line in _lines(name, tree)]
        lines += [f"Guarantee: {self.guarantee}", f"Ledger: {self.provenance.charge}."]
        # Foreign sentences too: without the word before it, one could read like a line of ours.
        lines += [f"Note: {one_line(note)}" for note in self.provenance.notes]
        lines.append(f"Made {self.provenance.time} with {made}.")
        if self.signature is None:
            lines.append("Not signed: nobody stands behind this file, and a change in it would not be noticed.")
        else:
            lines.append(f"Signed by {fingerprint(self.signature.public_key)} (not checked here: verify it).")
        if self.guarantee.simulated:
            lines.insert(0, "NOT PRIVATE: drawn with a seeded coin, for trying things out only.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        warning = "NOT PRIVATE, " if self.guarantee.simulated else ""
        return f"<Release {warning}{self.provenance.kind!r}: {', '.join(map(one_line, self.value))}>"

    def _must_be_private(self) -> None:
        if self.guarantee.simulated:
            raise SimulatedError(
                "NOT PRIVATE: a release must come from the operating system's entropy; this one came from a seeded coin, so it "
                "cannot be saved, serialised or signed. Run again with random_state=None."
            )

    def _bytes(self, *, signed: bool = True) -> bytes:
        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "value": encode(self.value),
            "guarantee": self.guarantee.to_dict(),
            "provenance": self.provenance.to_dict(),
        }
        if signed and self.signature is not None:
            document["signature"] = self.signature.to_dict()
        return canonical(document)

    @classmethod
    def _from_document(cls, document: object) -> Self:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            found = document.get("format") if isinstance(document, dict) else None
            other = f"this one is {found!r:.60}" if isinstance(found, str) and found.startswith("sabun-") else "it is not"
            raise ReleaseError(f"a release must be a JSON object with format {FORMAT!r}; {other}.")
        if type(document.get("version")) is not int or document["version"] != VERSION:
            raise ReleaseError(f"version must be {VERSION}; got another. A newer Sabun may be able to read this release.")
        fields = {"format", "version", "value", "guarantee", "provenance"}
        exactly(document, fields, "the release", optional=frozenset({"signature"}))
        try:
            release = cls(
                value=decode_mapping(document["value"], "value"),
                guarantee=_guarantee(document["guarantee"]),
                provenance=Provenance.from_dict(document["provenance"]),
                signature=Signature.from_dict(document["signature"]) if "signature" in document else None,
            )
        except ParameterError as error:
            raise ReleaseError(str(error)) from None
        release._must_be_private()
        return release


def check_facts(guarantee: Guarantee, provenance: Provenance) -> None:
    """Makes sure that all of a release but its value can be written down and read back.

    The facts of a provenance are frozen, so they can be; a promise and a receipt are tried.

    Raises:
        ParameterError: Something cannot.
    """
    for name, thing, kind in (("guarantee", guarantee, Guarantee), ("provenance", provenance, Provenance)):
        if not isinstance(thing, kind):
            raise ParameterError(f"{name} must be a {kind.__name__}; got {type(thing).__name__}.")
    _check_writable(guarantee, provenance.receipt)


@functools.lru_cache(maxsize=64)
def _check_writable(guarantee: Guarantee, receipt: Receipt | None) -> None:
    """Neither can change, and equal ones are written alike: each pair is tried once."""
    try:
        record = guarantee.to_dict()
        _check_amounts(record)
        canonical({"guarantee": record, "receipt": None if receipt is None else receipt.to_dict()})
    except ReleaseError as error:
        raise ParameterError(str(error)) from None
    except UnicodeEncodeError:
        raise ParameterError("guarantee must hold valid Unicode text; got one with a lone surrogate. Write it anew.") from None


def _must_be_paid(guarantee: Guarantee, receipt: Receipt | None) -> None:
    """Refuses a receipt for another amount than the release promises to cost; a ledger may round up what it books."""
    if receipt is None:
        return
    try:
        promise = guarantee if guarantee.relation == receipt.relation else guarantee.as_replace_one()
    except IncompatibleGuarantees:
        promise = None
    same = promise is not None and (promise.relation, promise.unit) == (receipt.relation, receipt.unit)
    booked = (receipt.epsilon, receipt.delta)
    costs = None if promise is None or not same else grouped(*promise.cost, steps=receipt.group)
    if costs is None or any(not cost <= paid <= cost * _ROUNDED_UP for cost, paid in zip(costs, booked, strict=True)):
        raise ParameterError("receipt must be for the charge of this guarantee; it is for another amount or unit.")


def _guarantee(record: object) -> Guarantee:
    if not isinstance(record, dict):
        raise ReleaseError("guarantee must be a JSON object; it is not.")
    _check_amounts(record)
    try:
        return Guarantee.from_dict(record)
    except (ParameterError, TypeError) as error:
        raise ReleaseError(f"guarantee: {error}") from None


def _check_amounts(record: Mapping[str, Any]) -> None:
    for name in _AMOUNTS:
        check_amount(record.get(name), f"guarantee.{name}")


def _lines(name: str, tree: Any, depth: int = 1) -> list[str]:
    """A part of the value, with the parts inside it on lines of their own; a foreign file cannot make it long."""
    start = f"{'  ' * depth}{one_line(name)}:"
    if not isinstance(tree, Mapping) or depth > _DEEPEST_SHOWN:
        return [f"{start} {_shown(tree)}"]
    parts = list(tree.items())
    inner = [line for key, part in parts[:_LONGEST_LIST] for line in _lines(key, part, depth + 1)]
    more = len(parts) - _LONGEST_LIST
    return [start, *inner, *([f"{'  ' * depth}  and {more} more"] if more > 0 else [])]


def _shown(tree: Any) -> str:
    """A part of the value in few words."""
    if isinstance(tree, np.ndarray):
        return f"array of shape {'×'.join(map(str, tree.shape)) or 'scalar'} ({tree.dtype})"
    if isinstance(tree, Mapping):
        return f"{len(tree)} named results ({', '.join(map(one_line, tree)):.{_LONGEST_SHOWN}})"
    if isinstance(tree, tuple) and len(tree) > _LONGEST_LIST:
        return f"list of {len(tree)} results"
    words = one_line(str(list(tree) if isinstance(tree, tuple) else tree))
    return words if len(words) <= _LONGEST_SHOWN else f"{words[:_LONGEST_SHOWN]}…"
