"""Draws docs/jobs/learning-joint.svg from the tables of `sabun reproduce learning`, which takes some minutes.

python docs/jobs/learning_picture.py
"""

from __future__ import annotations

from pathlib import Path

from sabun.reproduction.learning import reproduce


def main() -> None:
    """Runs all experiments, then draws."""
    [figure] = reproduce(quick=False, progress=lambda share, words: print(f"{share:4.0%} {words}")).figures
    Path(__file__).with_name("learning-joint.svg").write_text(figure.svg, encoding="utf-8")


if __name__ == "__main__":
    main()
