"""Spark Connect: a server on this machine, and what it must do, a frame alone or everything; says what was done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from engine.worlds import cloud, folder, outliers, recipe, reports, truth
from sabun.engine import spread
from sabun.errors import DataError


def main(where: Path, *, everything: bool) -> None:
    builder: Any = SparkSession.builder
    spark = builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    assert "connect" in type(spark).__module__
    table = folder(where / "table", files=2)
    frame = spark.read.parquet(str(table))
    assert spread(frame, engine=spark).counted(recipe()) == truth(table)
    print("frame")
    if everything:
        others(spark, where, table, frame)
    spark.stop()


def others(spark: Any, where: Path, table: Path, frame: Any) -> None:
    """What is the same in a session of the other kind, where all of it is tried."""
    assert spread(table, engine=spark).counted(recipe()) == truth(table)
    print("files")
    assert spread(frame.limit(0), engine=spark).counted(recipe()) == recipe().zero()
    print("none")
    refuse(spark, where)
    print("refused")
    meet(spark, where)
    print("met")


def refuse(spark: Any, where: Path) -> None:
    """Our own words arrive, a cell does not."""
    (where / "bad.csv").write_text("age\n1,SECRET\n")
    with pytest.raises(DataError, match=r"bad\.csv must be UTF-8 text with as many fields") as caught:
        spread(where / "bad.csv", engine=spark).counted(recipe())
    assert "SECRET" not in str(caught.value)


def meet(spark: Any, where: Path) -> None:
    """Neighbours of a frame, reports of files."""
    points = cloud(where / "points")
    assert outliers(spread(spark.read.parquet(str(points)), engine=spark), "abc") == outliers(points, "abc")
    study, _, tally = reports(where / "reports")
    counted = study.tally()
    counted.add_files([where / "reports"], engine=spark)
    assert counted == tally


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="everything" in sys.argv)
