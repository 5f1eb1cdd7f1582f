"""Draws docs/jobs/keyvalue-means.svg again: python docs/jobs/keyvalue_picture.py"""

from __future__ import annotations

from pathlib import Path

from sabun.keyvalue import Study
from sabun.keyvalue.plots import means_svg

KEYS = ["YouTube", "LINE", "Maps", "Chess", "Radio"]
FREQUENCIES, MEANS = [0.8, 0.6, 0.4, 0.1, 0.02], [6.0, 3.0, 1.0, 8.0, 5.0]

if __name__ == "__main__":
    study = Study(keys=KEYS, epsilon=2, value_range=(0, 10))
    found = study.simulate(FREQUENCIES, MEANS, n=6000, random_state=0).estimate()
    Path(__file__).with_name("keyvalue-means.svg").write_text(means_svg(found, MEANS), encoding="utf-8")
