"""Whether what the collector needs is installed: nothing here needs it."""

from __future__ import annotations

from sabun.errors import MissingExtra

__all__ = ["require_extra"]


def require_extra() -> None:
    """Says what to install.

    Raises:
        MissingExtra: The extra `service` is not installed.
    """
    try:
        import jinja2
        import msgspec
        import starlette
        import uvicorn
        import uvloop
    except ImportError as error:
        raise MissingExtra(job="the collector", package=str(error.name), extra="service") from None
    del jinja2, msgspec, starlette, uvicorn, uvloop
