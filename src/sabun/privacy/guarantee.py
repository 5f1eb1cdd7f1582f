"""The promise that travels with every result."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from sabun import checks
from sabun.errors import IncompatibleGuarantees, ParameterError
from sabun.foreign import one_line, parse_json
from sabun.notebook import Rich
from sabun.privacy.amounts import Amount, AmountLike, exact, float_above, is_short, plain, rounded_up
from sabun.privacy.certified import exp_up

__all__ = ["LARGE_EPSILON", "MODELS", "RELATIONS", "SCOPES", "Guarantee"]

RELATIONS = ("replace-one", "add-remove", "local")
MODELS = ("central", "local")
SCOPES = ("joint", "per-parameter")
LARGE_EPSILON = 10
"""A joint epsilon above this means little to a single person; whoever asks for it is told."""

_NEIGHBOURS = {
    "replace-one": "one {unit} is replaced by any other",
    "add-remove": "one {unit} is added or removed",
    "local": "one {unit} holds any other data, seen by the collector itself",
}


@dataclass(frozen=True, kw_only=True)
class Guarantee(Rich):
    """A differential-privacy promise about one released value.

    Guarantee: for all neighbouring inputs x, x' (see `relation`) and every set of outputs T,
    P[M(x) in T] <= exp(epsilon) P[M(x') in T] + delta, where a neighbour differs in all the data of one `unit`.

    Numbers are exact rationals (or `math.inf` for "no bound"); floats are read as the decimals they print as.
    A finite float that was *computed* must go through `sabun.privacy.rounded_up` before it comes here.

    Args:
        epsilon: Bound on the log-probability ratio.
        delta: Probability mass outside that bound.
        relation: `replace-one`, `add-remove` or `local`.
        unit: Whose data one neighbour step changes, in the user's word ("record", "patient", …).
        model: `central` (a curator sees the data) or `local` (nobody does).
        scope: `joint` for the whole output, `per-parameter` when each released number is bounded only by itself.
        assumptions: What must hold outside the code, in words a lawyer can read.
        mechanism: Name of the mechanism the promise is about.
        joint_epsilon: What a per-parameter promise really adds up to; equals `epsilon` when the scope is joint.
        joint_delta: The same for `delta`.
        simulated: True when the coin was seeded: the promise then describes what a private run would give. NOT PRIVATE.

    Example:
        >>> g = Guarantee(epsilon=0.5, relation="replace-one", unit="patient", mechanism="discrete Laplace")
        >>> (g + g).epsilon
        Fraction(1, 1)
    """

    epsilon: Amount
    delta: Amount = Fraction(0)
    relation: str = "replace-one"
    unit: str = "record"
    model: str = "central"
    scope: str = "joint"
    assumptions: tuple[str, ...] = ()
    mechanism: str = "unnamed"
    joint_epsilon: Amount | None = None
    joint_delta: Amount | None = None
    simulated: bool = False

    def __post_init__(self) -> None:
        checks.one_of(RELATIONS, relation=self.relation)
        checks.one_of(MODELS, model=self.model)
        checks.one_of(SCOPES, scope=self.scope)
        checks.text(unit=self.unit, mechanism=self.mechanism)
        checks.boolean(simulated=self.simulated)
        checks.require(
            (self.relation == "local") == (self.model == "local"),
            "'local' exactly when relation is 'local'",
            model=self.model,
        )
        self._set("epsilon", _amount(self.epsilon, "epsilon"))
        self._set("delta", _amount(self.delta, "delta", top=1))
        self._set("assumptions", _words(self.assumptions))
        self._fill_joint()

    def _fill_joint(self) -> None:
        if self.scope == "joint":
            for name, own in (("joint_epsilon", self.epsilon), ("joint_delta", self.delta)):
                given = getattr(self, name)
                checks.require(given is None or exact(given) == own, "left out when scope is 'joint'", **{name: given})
                self._set(name, own)
            return
        advice = "Say what the parameters add up to together (math.inf if unknown)."
        checks.require(self.joint_epsilon is not None, "given when scope is 'per-parameter'", advice, joint_epsilon=None)
        assert self.joint_epsilon is not None
        given = Fraction(0) if self.joint_delta is None and self.delta == 0 else self.joint_delta
        checks.require(given is not None, "given when scope is 'per-parameter' and delta is not 0", advice, joint_delta=given)
        assert given is not None
        self._set("joint_epsilon", _amount(self.joint_epsilon, "joint_epsilon"))
        self._set("joint_delta", _amount(given, "joint_delta", top=1))
        checks.require(self.joint_epsilon >= self.epsilon, ">= epsilon", joint_epsilon=self.joint_epsilon)
        checks.require(self.joint_delta is not None and self.joint_delta >= self.delta, ">= delta", joint_delta=given)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    @property
    def is_pure(self) -> bool:
        """Whether delta is zero."""
        return self.delta == 0

    @property
    def cost(self) -> tuple[Amount, Amount]:
        """What a ledger books: the joint (epsilon, delta), whatever the scope."""
        epsilon, delta = self.joint_epsilon, self.joint_delta
        assert epsilon is not None
        assert delta is not None
        return epsilon, delta

    def __add__(self, other: Guarantee) -> Guarantee:
        """Basic composition: both results together. Relations, units and scopes must agree."""
        if not isinstance(other, Guarantee):
            return NotImplemented
        self._must_match(other)
        return dataclasses.replace(
            self,
            epsilon=self.epsilon + other.epsilon,
            delta=min(self.delta + other.delta, Fraction(1)),
            assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)),
            mechanism=self.mechanism if self.mechanism == other.mechanism else f"{self.mechanism} + {other.mechanism}",
            joint_epsilon=None,
            joint_delta=None,
            simulated=self.simulated or other.simulated,
        )

    def _must_match(self, other: Guarantee) -> None:
        if self.unit != other.unit:
            raise IncompatibleGuarantees(
                f"units must agree to compose; got {self.unit!r} and {other.unit!r}. "
                "Restate both for the same unit (a person with k records gets k times the epsilon of one record)."
            )
        if self.relation != other.relation:
            raise IncompatibleGuarantees(
                f"relations must agree to compose; got {self.relation!r} and {other.relation!r}. "
                "Convert an add-remove guarantee with .as_replace_one() first; no other direction is sound."
            )
        if "per-parameter" in (self.scope, other.scope):
            raise IncompatibleGuarantees(
                "only joint guarantees compose; got a per-parameter one. Restate it jointly with .as_joint() first."
            )

    def as_replace_one(self) -> Guarantee:
        """The replace-one promise an add-remove promise implies: (2 epsilon, (1 + e^epsilon) delta).

        Guarantee: a replacement is one removal and one addition, so two steps of group privacy. The other direction is
        not sound and does not exist. See `guarantee.proof.md`.
        """
        if self.relation == "replace-one":
            return self
        if self.relation == "local":
            raise IncompatibleGuarantees(
                "a local guarantee must stay local; got relation 'local'. Book local reports in a ledger with relation='local'."
            )
        joint = self.as_joint()
        epsilon, delta = joint.cost
        doubled = min(delta + exp_up(epsilon) * delta, Fraction(1)) if delta else Fraction(0)  # proof: group-of-two
        return dataclasses.replace(
            joint,
            epsilon=2 * epsilon,
            delta=doubled,
            relation="replace-one",
            joint_epsilon=None,
            joint_delta=None,
            assumptions=(*joint.assumptions, "restated from add-remove neighbours as two steps of group privacy"),
        )

    def as_joint(self) -> Guarantee:
        """The joint promise about the whole output that this one adds up to."""
        if self.scope == "joint":
            return self
        epsilon, delta = self.cost
        return dataclasses.replace(self, epsilon=epsilon, delta=delta, scope="joint")

    def as_simulated(self) -> Guarantee:
        """The same promise, marked as what a private run *would* give. NOT PRIVATE."""
        return dataclasses.replace(self, simulated=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; amounts are strings such as "1/10" so that nothing is rounded."""
        record: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("epsilon", "delta", "joint_epsilon", "joint_delta"):
            record[name] = str(record[name])
        record["assumptions"] = list(self.assumptions)
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` wrote; unknown or missing fields are an error."""
        if not isinstance(record, Mapping):
            raise ParameterError(f"guarantee must be a JSON object; got {type(record).__name__}.")
        known = {field.name for field in dataclasses.fields(cls)}
        if set(record) != known:
            wrong = sorted(set(record) ^ known)
            raise ParameterError(f"guarantee must have exactly the fields {sorted(known)}; check {wrong}.")
        values = dict(record)
        if values["scope"] == "joint":
            _agree(values, "joint_epsilon", "epsilon")
            _agree(values, "joint_delta", "delta")
        return cls(**values)

    def to_json(self) -> str:
        """One line of canonical JSON."""
        return json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Reads what `to_json` wrote."""
        return cls.from_dict(parse_json(line, what="guarantee", error=ParameterError))

    def __str__(self) -> str:
        amount = f"epsilon = {plain(self.epsilon)}" + ("" if self.is_pure else f", delta = {plain(self.delta)}")
        change = _NEIGHBOURS[self.relation].format(unit=one_line(self.unit))
        lines = [f"{amount} ({self.relation}): " + self._in_words(change)]
        if self.scope == "per-parameter":
            assert self.joint_epsilon is not None
            lines.append(
                f"This bounds each released number by itself; all of them together: epsilon = {plain(self.joint_epsilon)}."
            )
        if self.assumptions:
            lines.append("Assumes: " + "; ".join(map(one_line, self.assumptions)) + ".")
        if self.simulated:
            lines.insert(0, "NOT PRIVATE: simulated with a seeded coin; a private run would promise:")
        return "\n".join(lines)

    def _in_words(self, change: str) -> str:
        if isinstance(self.epsilon, float):
            return f"no bound holds when {change}."
        tail = "" if self.is_pure else f", up to an added probability of {plain(self.delta)}"
        return f"no outcome becomes more than {_factor(self.epsilon)} times as likely when {change}{tail}."


def _amount(value: AmountLike, name: str, top: int | None = None) -> Amount:
    read = exact(value, name=name)
    rule = ">= 0" if top is None else f">= 0 and <= {top}"
    checks.require(read >= 0 and (top is None or read <= top), rule, **{name: value})
    if not is_short(read):
        raise ParameterError(
            f"{name} must be a fraction of at most 4000 digits; got a longer one. Round it up with sabun.privacy.rounded_up."
        )
    return read


def _words(assumptions: object) -> tuple[str, ...]:
    good = isinstance(assumptions, tuple | list) and all(isinstance(words, str) and words for words in assumptions)
    checks.require(good, "a tuple of sentences", assumptions=assumptions)
    assert isinstance(assumptions, tuple | list)
    return tuple(assumptions)


def _agree(values: dict[str, Any], joint: str, own: str) -> None:
    if values[joint] is not None and exact(values[joint], name=joint) != exact(values[own], name=own):
        raise ParameterError(f"{joint} must equal {own} when scope is 'joint'; got {values[joint]!r} and {values[own]!r}.")
    values[joint] = None


def _factor(epsilon: Amount) -> str:
    """How much likelier, rounded up to four digits."""
    return f"e^{plain(epsilon)}" if epsilon >= 12 else plain(rounded_up(float_above(Fraction(exp_up(epsilon))), digits=4))
