"""Public bounds as people type them."""

from __future__ import annotations

from sabun.errors import ParameterError

__all__ = ["typed_bounds"]


def typed_bounds(text: str, *, option: str = "bounds") -> tuple[str, tuple[float, float]]:
    """The name with the two ends of `name=low:high`.

    Raises:
        ParameterError: It looks otherwise.

    Example:
        >>> typed_bounds("age=0:120")
        ('age', (0.0, 120.0))
    """
    name, _, ends = text.rpartition("=")
    low, _, high = ends.partition(":")
    try:
        if not name.strip():
            raise ValueError
        return name.strip(), (float(low), float(high))
    except ValueError:
        raise ParameterError(f"{option} must look like name=low:high, such as age=0:120; got {text!r:.60}.") from None
