from __future__ import annotations

from regression.worlds import unit_study
from sabun.regression.promise import guarantee_of


def test_several_rows_of_a_person_are_not_said_to_be_hidden() -> None:
    words = "how many rows one record has is not hidden: they are replaced by as many others"
    assert words in guarantee_of(unit_study(records_per_person=3)).assumptions
    assert words not in guarantee_of(unit_study(records_per_person=3, relation="add-remove")).assumptions
    assert words not in guarantee_of(unit_study()).assumptions
