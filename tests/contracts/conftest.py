from __future__ import annotations

import pytest

from contracts.watch import Heard, listen


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Heard:
    """What the samplers are asked while a test runs."""
    return listen(monkeypatch)
