"""Why a device says no; none of these words depends on what a person holds.

ClientError (ValueError)
├── StudyRefused      the study asks for something this device does not accept
├── BudgetRefused     the device's own budget would be exceeded; nothing was drawn, nothing was booked
├── DiaryError        the device's book cannot be read or written; nothing was sent
├── ReportError       bytes that are no report of this study
└── UploadError       the collector did not take what it was sent; it waits on this device
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

__all__ = [
    "BudgetRefused",
    "ClientError",
    "DiaryError",
    "ReportError",
    "StudyRefused",
    "Undisturbed",
    "UploadError",
    "require",
    "shown",
]


class ClientError(ValueError):
    """Base of every error of the device side; a rule about public facts was broken."""


class StudyRefused(ClientError):
    """The study asks for something this device does not accept."""


class BudgetRefused(ClientError):
    """The device's own budget would be exceeded; nothing was drawn, nothing was booked."""


class DiaryError(ClientError):
    """The device's book cannot be read or written; nothing was sent."""


class ReportError(ClientError):
    """Bytes that are no report of this study."""


class UploadError(ClientError):
    """The collector did not take what it was sent; it waits on this device.

    Attributes:
        code: Why, in a word: a code of the collector's, or `unreachable`.
        status: The HTTP status; 0 where there was none.
    """

    def __init__(self, message: str, *, code: str = "unreachable", status: int = 0) -> None:
        super().__init__(message)
        self.code, self.status = code, status


class Undisturbed(AbstractContextManager[None]):
    """Goes on after whatever was raised inside, a cancelled task included; only an order to stop the program passes."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        """Takes the error away."""
        return kind is not None and not issubclass(kind, KeyboardInterrupt | SystemExit)


def require(condition: bool, name: str, rule: str, value: object, advice: str = "") -> None:
    """Raises `<name> must be <rule>; got <value>. <advice>` unless the condition holds."""
    if not condition:
        raise ClientError(f"{name} must be {rule}; got {shown(value)}.{' ' + advice if advice else ''}")


def shown(value: object) -> str:
    """A value for a message; its type where it cannot be written down (a number of thousands of digits, an odd object)."""
    try:
        return f"{value!r:.80}"
    except Exception:
        return f"a {type(value).__name__} that cannot be shown"
