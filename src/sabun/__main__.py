"""`python -m sabun` is the same as `sabun`."""

from __future__ import annotations

from sabun.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
