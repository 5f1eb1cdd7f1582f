from __future__ import annotations

import numpy as np
import pytest

from sabun.density.picture import weights_svg
from sabun.telling.language import speaking

COLUMNS = [("age", np.arange(30.0)), ("sex", np.array(["F", "M"] * 15))]


def test_the_same_weights_give_the_same_picture() -> None:
    weights = np.linspace(0, 2, 30)
    assert weights_svg(COLUMNS, weights) == weights_svg(COLUMNS, weights)
    assert weights_svg(COLUMNS, weights) != weights_svg(COLUMNS, weights[::-1])


def test_a_picture_of_private_records_says_so() -> None:
    weights = np.ones(30)
    assert "NOT PRIVATE" not in weights_svg(COLUMNS, weights)
    assert "NOT PRIVATE" in weights_svg(COLUMNS, weights, private=[np.arange(9.0), np.array(["F"] * 9)])


def test_even_weights_can_be_drawn() -> None:
    assert weights_svg([("constant", np.ones(30))], np.ones(30)).startswith("<?xml")


@pytest.mark.filterwarnings("error")
def test_names_in_any_script_are_drawn_as_texts_without_a_word() -> None:
    assert ">年齢<" in weights_svg([("年齢", np.arange(30.0))], np.ones(30))


def test_a_picture_speaks_the_language_that_is_spoken() -> None:
    with speaking("ja"):
        picture = weights_svg(COLUMNS, np.ones(30), private=[np.arange(9.0), np.array(["F"] * 9)])
    assert all(
        f">{words}" in picture for words in ("公開（重みあり）", "非公開<", "重み（30 行、実質 30 行）", "NOT PRIVATE：")
    )


def test_dates_are_drawn_on_an_axis_of_dates() -> None:
    days = np.datetime64("2025-03-01") + np.arange(90)
    picture = weights_svg([("in", days)], np.ones(90), private=[days[:9]])
    assert picture.count(">2025-0") < 12, "not one label for each day"
    assert ">2025-04" in picture
