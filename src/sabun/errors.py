"""Every error Sabun raises on purpose.

    SabunError
    ├── ParameterError (ValueError)        a parameter breaks its rule                        exit 2
    │   ├── BoundsError                    a public bound is missing or impossible            exit 2
    │   ├── IncompatibleGuarantees         relations, units or scopes that cannot be joined   exit 2
    │   └── VacuousPlan                    nothing but noise is to be expected                exit 2
    ├── SimulatedError                     a seeded result was about to pass for a private one exit 2
    ├── MissingExtra (ImportError)         an optional dependency is not installed            exit 2
    ├── BudgetExceeded                     the ledger refuses: nothing released, nothing spent exit 3
    ├── DataError (ValueError)             a table or file cannot be read as declared         exit 4
    │   ├── ReleaseError                   a release file is damaged, unsigned or forged      exit 4
    │   └── LedgerError                    a ledger is missing, damaged or was tampered with  exit 4
    └── InternalError                      a bug of ours, never the user's fault              exit 70

A message says *what* must be *which rule*; got *which value*; and *what to do*. An error is an output too: no message may hold
a private record's value, a count of private records, or anything computed from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

__all__ = [
    "BoundsError",
    "BudgetExceeded",
    "DataError",
    "IncompatibleGuarantees",
    "InternalError",
    "LedgerError",
    "MissingExtra",
    "ParameterError",
    "ReleaseError",
    "SabunError",
    "SimulatedError",
    "VacuousPlan",
]


class SabunError(Exception):
    """Base of every error raised on purpose; `exit_code` is what the command line returns for it."""

    exit_code: int = 70


class ParameterError(SabunError, ValueError):
    """A parameter breaks its rule."""

    exit_code = 2


class BoundsError(ParameterError):
    """A public bound is missing or impossible."""


class IncompatibleGuarantees(ParameterError):
    """Two guarantees speak of different relations, units or scopes and cannot be joined."""


class VacuousPlan(ParameterError):
    """Even at best nothing but noise is to be expected, and nobody said to go on; `facts` has the plan in plain JSON types."""

    def __init__(self, message: str, facts: Mapping[str, object]) -> None:
        super().__init__(message, facts)
        self.facts = dict(facts)

    def __str__(self) -> str:
        return str(self.args[0])


class SimulatedError(SabunError):
    """A seeded result was about to be charged, saved or signed as if it were private."""

    exit_code = 2


class MissingExtra(SabunError, ImportError):
    """An optional dependency is not installed."""

    exit_code = 2

    def __init__(self, *, job: str, package: str, extra: str) -> None:
        super().__init__(f"{job} needs {package}. Install it with: pip install 'sabun[{extra}]'")


class BudgetExceeded(SabunError):
    """The ledger refuses a charge; the amounts are on the exception."""

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        remaining_epsilon: Fraction,
        remaining_delta: Fraction,
        requested_epsilon: Fraction | float,
        requested_delta: Fraction | float,
    ) -> None:
        super().__init__(message)
        self.remaining_epsilon = remaining_epsilon
        self.remaining_delta = remaining_delta
        self.requested_epsilon = requested_epsilon
        self.requested_delta = requested_delta


class DataError(SabunError, ValueError):
    """A table or file cannot be read as it was declared."""

    exit_code = 4


class ReleaseError(DataError):
    """A release file is damaged, unsigned or forged."""


class LedgerError(DataError):
    """A ledger is missing, damaged or was tampered with."""


class InternalError(SabunError):
    """A bug of ours."""

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} This is a bug in Sabun, not a mistake of yours: please report it.")
