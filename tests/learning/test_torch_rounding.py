"""Clipped sums of torch modules at the edges of floating point, beside any neighbours, under any setting of torch's."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra: pip install 'sabun[learning]'")

from torch import nn  # noqa: E402

from sabun.errors import ParameterError  # noqa: E402
from sabun.learning.torch_modules import by_hand, layers  # noqa: E402
from sabun.learning.torch_modules.by_hand import Laid, size_for, sizes_below  # noqa: E402
from sabun.learning.torch_modules.ghost import Clipper, _full_precision, clipped_gradients, rows_stand_alone  # noqa: E402
from sabun.learning.torch_modules.layers import rule_for  # noqa: E402
from sabun.learning.torch_modules.module_checks import check_module  # noqa: E402
from sabun.learning.torch_modules.paths import rounds_by_row, why_written_out  # noqa: E402

LOSS = nn.CrossEntropyLoss(reduction="none")
ROWS = 16


def modules() -> dict[str, tuple[nn.Module, Any]]:
    torch.manual_seed(0)
    return {
        "vectors": (nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 3, bias=False)), torch.randn(ROWS, 5)),
        "sequence": (nn.Sequential(nn.Linear(4, 6), nn.Flatten(), nn.Linear(30, 3)), torch.randn(ROWS, 5, 4)),
        "images": (
            nn.Sequential(
                nn.Conv2d(2, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
                nn.GroupNorm(2, 6),
                nn.ReLU(),
                nn.MaxPool2d(2, 1),
                nn.Conv2d(6, 4, (3, 1), padding="same", groups=2),
                nn.Flatten(),
                nn.Linear(60, 3),
            ),
            torch.randn(ROWS, 2, 8, 8),
        ),
        "words": (
            nn.Sequential(nn.Embedding(6, 4, padding_idx=0), nn.LayerNorm(4), nn.Flatten(), nn.Linear(20, 3)),
            torch.randint(0, 6, (ROWS, 5)),
        ),
    }


NAMES = ["vectors", "sequence", "images", "words"]


def labels() -> Any:
    return torch.arange(ROWS) % 3


def size(parts: dict[str, Any]) -> float:
    """The norm, with no rounding worth speaking of."""
    return math.sqrt(math.fsum(float(value) ** 2 for part in parts.values() for value in part.flatten()))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_chains_equal_gradients_written_out_one_by_one(name: str, kind: Any) -> None:
    module, x = modules()[name]
    module = module.to(kind)
    x = x.to(kind) if x.dtype.is_floating_point else x
    assert why_written_out(module, LOSS) is None
    ours = clipped_gradients(module, LOSS, x, labels(), clip_norm=0.3)
    written = clipped_gradients(module, LOSS, x, labels(), clip_norm=0.3, fallback=True)
    for part, value in written.items():
        torch.testing.assert_close(ours[part], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-20, 1.0, 1e10, 1e18, 1e25, 3e38])
@pytest.mark.parametrize("fallback", [False, True])
def test_one_example_stays_within_one_at_every_scale(name: str, scale: float, fallback: bool) -> None:
    module, x = modules()[name]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(min(1e30, 1 / scale) if scale < 1 else 1.0)
    if x.dtype.is_floating_point:
        x = x * scale
    for row in range(2):
        found = clipped_gradients(module, LOSS, x[row : row + 1], labels()[row : row + 1], clip_norm=1e-6, fallback=fallback)
        assert size(found) <= 1 + 1e-12


@pytest.mark.parametrize(
    ("kind", "inputs", "backs"),
    [
        (torch.float32, [1e-44, 3e-39, 1e-30], [1e38, 2e37, 0.0]),
        (torch.float32, [1e38, -1e38, 1.0], [1e-44, 1e-45, 1e-40]),
        (torch.float64, [1e-170, 2e-165, 0.0], [1e150, 1e90, 0.0]),
        (torch.float64, [1e-162, 1e-162, 1e-162], [1e153, 0.0, 0.0]),
        (torch.float64, [3.0, 1e99, 1e-99], [1e-150, 1e-3, 0.0]),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_the_norm_of_an_outer_product_is_never_found_too_small(kind: Any, inputs: Any, backs: Any, bias: bool) -> None:
    layer, rule = nn.Linear(3, 3, bias=bias, dtype=kind), rule_for(nn.Linear(3, 3))
    assert rule is not None
    x, d = torch.tensor([inputs], dtype=kind), torch.tensor([backs], dtype=kind)
    found = float(rule(layer, x, d, torch.float64).squares)
    exact = (sum(Fraction(float(v)) ** 2 for v in x[0]) + bias) * sum(Fraction(float(v)) ** 2 for v in d[0])
    assert math.isinf(found) or Fraction(found) * (1 + Fraction(1, 2**40)) + Fraction(1, 10**60) >= exact


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fallback", [False, True])
def test_a_row_adds_the_same_bits_wherever_it_stands_and_whatever_is_beside_it(name: str, fallback: bool) -> None:
    module, x = modules()[name]
    clipper = Clipper(module, LOSS, clip_norm=0.1, fallback=fallback)
    others = torch.flip(x, [0]) if not x.dtype.is_floating_point else 1e3 * torch.randn_like(x)
    alone = clipper(x, labels(), count=1)
    others[0] = x[0]
    for part, value in clipper(others, labels(), count=1).items():
        assert torch.equal(value, alone[part])


def chains() -> dict[str, tuple[nn.Module, Any]]:
    """Sizes with which matrix libraries were seen to round a row by where it stands."""
    torch.manual_seed(0)
    found: dict[str, tuple[nn.Module, Any]] = {}
    for inputs, hidden, classes in ((5, 7, 3), (105, 32, 2), (4, 6, 5), (33, 17, 11), (100, 1, 3)):
        for places in (1, 9):
            layers = [nn.Linear(inputs, hidden), nn.ReLU(), nn.Flatten(), nn.Linear(hidden * places, hidden)]
            x = torch.randn(64, places, inputs)
            found[f"{inputs}-{hidden}-{classes}, {places} places"] = (
                nn.Sequential(*layers, nn.ReLU(), nn.Linear(hidden, classes)),
                x if places > 1 else x[:, 0].contiguous(),
            )
    for channels, kernel, side in ((3, 3, 9), (2, 3, 7), (5, 2, 6)):
        layers = [nn.Conv2d(channels, 6, kernel), nn.ReLU(), nn.AvgPool2d(2, 1), nn.Flatten()]
        width = 6 * (side - kernel) ** 2
        found[f"{channels} channels of {side}"] = (
            nn.Sequential(*layers, nn.Linear(width, 3)),
            torch.randn(64, channels, side, side),
        )
    found["words"] = (
        nn.Sequential(nn.Embedding(9, 5), nn.Flatten(), nn.Linear(35, 3)),
        torch.randint(0, 9, (64, 7)),
    )
    return found


@pytest.mark.parametrize("name", chains())
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_a_row_of_a_chain_adds_the_same_bits_wherever_it_stands(name: str, kind: Any) -> None:
    module, x = chains()[name]
    module, y = module.to(kind), torch.arange(64) % 2
    x = x.to(kind) if x.dtype.is_floating_point else x
    if not rounds_by_row(module, LOSS, dimensions=x.dim()):
        assert kind == torch.float64
        return
    clipper, heard = Clipper(module, LOSS, clip_norm=0.1), []
    for shift in (0, 1, 2, 3, 5, 8, 13):
        moved, targets = x.roll(shift, 0), y.roll(shift, 0)
        squares, sums = clipper.contribution(moved, targets, (7 + shift) % 64)
        heard.append([squares.roll(-shift, 0), *sums.values()])
    for other in heard[1:]:
        assert all(torch.equal(a, b) for a, b in zip(heard[0], other, strict=True))


PLAIN = {
    "no bias": lambda: nn.Sequential(nn.Linear(9, 33), nn.ReLU(), nn.Linear(33, 16, bias=False), nn.ReLU(), nn.Linear(16, 3)),
    "no ReLU": lambda: nn.Sequential(nn.Linear(9, 8), nn.Linear(8, 3)),
    "two ReLUs": lambda: nn.Sequential(nn.Linear(9, 7), nn.ReLU(), nn.ReLU(), nn.Linear(7, 3)),
    "one layer": lambda: nn.Sequential(nn.Linear(9, 3)),
    "alone": lambda: nn.Linear(9, 3),
    "wide": lambda: nn.Sequential(nn.Linear(9, 70), nn.ReLU(), nn.Linear(70, 3)),
    "frozen first": lambda: nn.Sequential(nn.Linear(9, 8).requires_grad_(False), nn.ReLU(), nn.Linear(8, 3)),
    "frozen between": lambda: nn.Sequential(
        nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 8).requires_grad_(False), nn.ReLU(), nn.Linear(8, 3)
    ),
    "frozen last": lambda: nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3).requires_grad_(False)),
}


@pytest.fixture
def doubles_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried of the arithmetic holds also where this machine's library would not be trusted with it."""
    monkeypatch.setattr(by_hand, "doubles_stand_alone", lambda: True)


@pytest.mark.usefixtures("doubles_by_hand")
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_passes_by_hand_are_those_of_automatic_differentiation(name: str, kind: Any, precision: str) -> None:
    torch.manual_seed(1)
    module, x, y = PLAIN[name]().to(kind), torch.randn(64, 9, dtype=kind), torch.arange(64) % 3
    clipper = Clipper(module, LOSS, clip_norm=0.1, precision=precision)
    assert clipper.by_hand(x)
    known = clipper._by_graph(x, y)(None)
    for row in (0, 7, 63):
        squares, sums = clipper.contribution(x, y, row)
        torch.testing.assert_close(squares, known.squares, rtol=1e-4, atol=1e-7)
        alone = torch.zeros(64, dtype=torch.float64 if precision == "double" else torch.float32)
        alone[row] = 1.0
        assert list(sums) == [name for name, p in module.named_parameters() if p.requires_grad]
        for part, value in known.weighted(alone).items():
            torch.testing.assert_close(sums[part], value.double(), rtol=1e-4, atol=1e-5)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(-2.0)
    again = clipper(x, y)
    for part, value in clipped_gradients(module, LOSS, x, y, clip_norm=0.1, fallback=True).items():
        torch.testing.assert_close(again[part], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "settings", [{}, {"weight": torch.tensor([1.0, 0.5, 2.0])}, {"label_smoothing": 0.3}, {"ignore_index": 1}], ids=str
)
def test_the_gradient_of_a_loss_by_hand_is_that_of_torch(settings: dict[str, Any]) -> None:
    """Whatever the loss; a row whose target is to be ignored adds nothing."""
    torch.manual_seed(2)
    loss, x, y = nn.CrossEntropyLoss(reduction="none", **settings), torch.randn(64, 9), torch.arange(64) % 3
    y[::5] = -100 if "ignore_index" not in settings else 1
    module = PLAIN["no bias"]()
    ours, written = (clipped_gradients(module, loss, x, y, clip_norm=0.1, fallback=fallback) for fallback in (False, True))
    for part, value in written.items():
        torch.testing.assert_close(ours[part], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(64, 1), (64, 3)])
def test_targets_by_hand_are_refused_where_torch_refuses_them(shape: tuple[int, ...]) -> None:
    """Class numbers in a column must not be paired with every row: one of them would then move everybody's gradient."""
    module, x, y = PLAIN["no bias"](), torch.randn(64, 9), torch.zeros(shape, dtype=torch.long)
    with pytest.raises(RuntimeError, match="target"):
        clipped_gradients(module, LOSS, x, y, clip_norm=0.1)
    with pytest.raises(ParameterError, match="shape and type that the loss takes"):
        check_module(module, LOSS, x, y)


def test_a_row_by_hand_adds_the_same_bits_beside_targets_that_are_no_class() -> None:
    torch.manual_seed(4)
    module, x, y = PLAIN["no bias"](), torch.randn(64, 9), torch.arange(64) % 3
    clipper, ignored = Clipper(module, LOSS, clip_norm=0.1), y.clone()
    ignored[1:] = -100
    (squares, sums), (others, theirs) = (clipper.contribution(x, targets, 0) for targets in (y, ignored))
    assert float(squares[0]) == float(others[0])
    assert not others[1:].any()
    assert all(torch.equal(sums[part], theirs[part]) for part in sums)


def test_shares_of_classes_are_tried_before_a_run_and_trained_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    module, x, y = PLAIN["no bias"](), torch.randn(64, 9), torch.softmax(torch.randn(64, 3), 1)
    clipper, product = Clipper(module, LOSS, clip_norm=0.1), torch.mm
    assert clipper.by_hand(x)
    assert rows_stand_alone(clipper, x, y, most=64)
    written = clipped_gradients(module, LOSS, x, y, clip_norm=0.1, fallback=True)
    for part, value in clipper(x, y).items():
        torch.testing.assert_close(value, written[part], rtol=1e-4, atol=1e-5)

    def uneven(a: Any, b: Any, *, out: Any) -> Any:
        product(a, b, out=out)
        out[:, 0] *= 1 + 2.0**-20
        return out

    monkeypatch.setattr(torch, "mm", uneven)
    assert not rows_stand_alone(clipper, x, y, most=64)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_where_doubles_round_a_column_by_its_place_no_pass_by_hand_is_in_doubles(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one library does on the processors of another maker: single numbers, or torch's own passes with examples as rows."""
    product, loss = torch.mm, nn.CrossEntropyLoss(reduction="none")

    def uneven(a: Any, b: Any, *, out: Any = None) -> Any:
        found = product(a, b) if out is None else product(a, b, out=out)
        found[:, 1] *= 1 + 2.0**-50  # no change of a single number
        return found

    monkeypatch.setattr(torch, "mm", uneven)
    by_hand.doubles_stand_alone.cache_clear()
    try:
        assert not by_hand.doubles_stand_alone()
        module, x = nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3)).to(kind), torch.randn(4, 9, dtype=kind)
        clipper = Clipper(module, loss, clip_norm=1.0)
        assert clipper.by_hand(x) == (kind == torch.float32)
        assert rows_stand_alone(clipper, x, torch.zeros(4, dtype=torch.long), most=200)
    finally:
        by_hand.doubles_stand_alone.cache_clear()


@pytest.mark.usefixtures("doubles_by_hand")
def test_lengths_of_rows_laid_out_are_those_of_the_numbers_that_are_summed() -> None:
    module, x = nn.Linear(9, 3).double(), torch.full((64, 9), 1 + 2.0**-24 + 2.0**-40, dtype=torch.float64)
    laid = Clipper(module, LOSS, clip_norm=0.1, precision="single").laid(x, 64)
    assert isinstance(laid, Laid)
    torch.testing.assert_close(laid.lengths, laid.rows.float().double().square().sum(1), rtol=1e-14, atol=0)


def test_many_pieces_laid_out_at_once_add_up_to_those_given_one_by_one() -> None:
    torch.manual_seed(3)
    module, x, y = PLAIN["no bias"](), torch.randn(200, 9), torch.arange(200) % 3
    clipper = Clipper(module, LOSS, clip_norm=0.1)
    laid = clipper.laid(x, 64)
    assert isinstance(laid, Laid)
    pieces = [slice(at, at + 64) for at in (0, 64, 128)]
    together = clipper.over([(laid.map(lambda part, some=some: part[some]), y[some], 40) for some in pieces])
    together = {name: value.clone() for name, value in together.items()}
    for name, value in together.items():
        one_by_one = sum(clipper(x[some], y[some], count=40)[name] for some in pieces)
        torch.testing.assert_close(value, one_by_one, rtol=1e-12, atol=1e-12)


def test_only_linear_layers_trained_whole_with_relus_between_run_by_hand() -> None:
    x = torch.randn(4, 5)
    half = nn.Linear(5, 3)
    half.bias.requires_grad_(False)
    others = (
        nn.Sequential(nn.Linear(5, 4), nn.LeakyReLU(), nn.Linear(4, 3)),
        nn.Sequential(nn.Linear(5, 3), nn.ReLU()),
        nn.Sequential(nn.ReLU(), nn.Linear(5, 3)),
        nn.Sequential(half),
        nn.Linear(5, 3, dtype=torch.float64),
    )
    assert not any(Clipper(module, LOSS, clip_norm=1.0).by_hand(x) for module in others)
    assert not Clipper(nn.Linear(5, 3), LOSS, clip_norm=1.0).by_hand(torch.randn(4, 2, 5))


@pytest.mark.parametrize("rows", [64, 128])
@pytest.mark.parametrize("settings", [{}, {"ignore_index": 0}, {"weight": torch.tensor([0.0, 1.0, 1.0])}], ids=str)
def test_a_library_that_rounds_a_row_by_its_place_is_found_before_a_run(
    rows: int, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it does so for one of the numbers of rows that a run may take at a time, and where one class adds nothing."""
    module, x, y = (
        nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 3)),
        torch.randn(4, 9),
        torch.zeros(4, dtype=torch.long),
    )
    clipper, product = Clipper(module, nn.CrossEntropyLoss(reduction="none", **settings), clip_norm=1.0), torch.mm
    assert rows_stand_alone(clipper, x, y, most=200)

    def uneven(a: Any, b: Any, *, out: Any) -> Any:
        product(a, b, out=out)
        out[:, 1] *= 1 + 2.0**-20 * (out.shape[1] == rows)
        return out

    monkeypatch.setattr(torch, "mm", uneven)
    assert not rows_stand_alone(clipper, x, y, most=200)


@pytest.mark.parametrize("name", ["vectors", "sequence", "images"])
@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("bad", [math.nan, math.inf, 3e38])
def test_rows_beyond_float_count_as_nothing_and_spoil_nobody(name: str, fallback: bool, bad: float) -> None:
    module, x = modules()[name]
    with torch.no_grad():
        next(module.parameters()).mul_(10)
    spoiled = x.clone()
    spoiled[3] = bad
    spoiled[3].flatten()[::2] = -bad
    clipper = Clipper(module, LOSS, clip_norm=0.1, fallback=fallback)
    found, rest = clipper(spoiled, labels()), clipper(x, labels())
    assert size({part: found[part] - rest[part] for part in rest}) <= 2 + 1e-6
    assert all(bool(torch.isfinite(value).all()) for value in found.values())


@pytest.mark.parametrize("name", NAMES)
def test_what_fills_a_piece_up_counts_as_nothing(name: str) -> None:
    module, x = modules()[name]
    filled = x.clone()
    filled[5:] = math.nan if x.dtype.is_floating_point else 0
    clipper = Clipper(module, LOSS, clip_norm=0.1)
    few = clipper(x[:5], labels()[:5])
    for part, value in clipper(filled, labels(), count=5).items():
        torch.testing.assert_close(value, few[part], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("fallback", [False, True])
def test_settings_of_lower_precision_do_not_reach_the_sums(precision: str, fallback: bool) -> None:
    module, x = modules()["images"]
    clipper = Clipper(module, LOSS, clip_norm=0.1, precision=precision, fallback=fallback)
    plain = clipper(x, labels())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for part, value in clipper(x, labels()).items():
            assert torch.equal(value, plain[part])
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        assert size(clipper(x[:1], labels()[:1])) <= 1 + 1e-6
        with _full_precision(torch.float32):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


def test_written_out_gradients_survive_lower_precision() -> None:
    """A gradient may be computed in fewer bits; its norm is that of the numbers that are summed."""
    module, x = modules()["images"]
    with torch.no_grad():
        module[0].weight.mul_(1e4)
    for row in range(ROWS):
        found = Clipper(module.bfloat16(), LOSS, clip_norm=0.01)(x[row : row + 1].bfloat16(), labels()[row : row + 1])
        assert size(found) <= 1 + 1e-9


def test_layers_that_write_in_place_or_share_weights_are_written_out_right() -> None:
    torch.manual_seed(0)
    first, second, x = nn.Linear(4, 4), nn.Linear(4, 4), torch.randn(ROWS, 4)
    calm = nn.Sequential(first, nn.ReLU(), second)
    hasty = nn.Sequential(first, nn.ReLU(inplace=True), second)
    for part, value in clipped_gradients(calm, LOSS, x, labels(), clip_norm=0.1).items():
        torch.testing.assert_close(
            clipped_gradients(hasty, LOSS, x, labels(), clip_norm=0.1)[part], value, rtol=1e-4, atol=1e-5
        )
    shared = nn.Sequential(first, nn.Tanh(), first)
    assert why_written_out(shared, LOSS) is not None
    for row in range(ROWS):
        clipped = clipped_gradients(shared, LOSS, x[row : row + 1], labels()[row : row + 1], clip_norm=1e-3)
        gradients = torch.autograd.grad(
            LOSS(shared(x[row : row + 1]), labels()[row : row + 1]).sum(), list(shared.parameters())
        )
        norm = math.sqrt(sum(float(g.double().square().sum()) for g in gradients))
        for part, gradient in zip(clipped.values(), gradients, strict=True):
            torch.testing.assert_close(part, gradient.double() / norm, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("stride", "padding", "bias"), [(1, 1, True), (2, 1, True), (2, 0, False)])
def test_places_give_the_norm_and_the_sum_of_gradients_written_out(stride: int, padding: int, bias: bool) -> None:
    torch.manual_seed(0)
    layer, x = nn.Conv2d(5, 7, 3, stride, padding, bias=bias), torch.randn(6, 5, 9, 8)
    d = torch.randn_like(layer(x))
    written, places = (rule(layer, x, d, torch.float64) for rule in (layers._conv, layers._by_places))
    assert torch.allclose(written.squares, places.squares, rtol=1e-5)
    share = torch.rand(4, dtype=torch.float64)
    sums, others = written.weighted(share), places.weighted(share)
    assert sums.keys() == others.keys()
    assert all(torch.allclose(sums[name], others[name], atol=1e-4) for name in sums)


@pytest.mark.parametrize("size", [1.0, 1e-30, 1e30])
def test_places_that_cancel_never_count_for_too_little(size: float) -> None:
    """Equal patches, gradients that sum to about nothing: what is added stays below the norm that is reckoned with."""
    torch.manual_seed(1)
    layer, x = nn.Conv2d(3, 4, 1), torch.ones(5, 3, 8, 8) * size
    d = torch.randn(5, 4, 8, 8) * size
    d[:, :, 4:] = -d[:, :, :4]
    d[1:, 0, 0, 0] += size * 2.0 ** -torch.arange(10, 14)
    part = layers._by_places(layer, x, d, torch.float64)
    for row in range(5):
        alone = torch.zeros(5, dtype=torch.float64)
        alone[row] = 1.0
        added = sum(float(value.square().sum()) for value in part.weighted(alone).values())
        assert added <= float(part.squares[row]) * (1 + 2.0**-30)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 3, "padding": 1, "stride": 2},
        {"kernel_size": (3, 2), "padding": (1, 0), "dilation": (1, 2)},
        {"kernel_size": (4, 3), "padding": "same", "groups": 2},
        {"kernel_size": 1, "padding": "valid"},
    ],
)
def test_patches_are_the_same_by_a_view_and_unfolded(settings: dict[str, Any]) -> None:
    layer, x = nn.Conv2d(4, 6, **settings), torch.randn(5, 4, 9, 8)
    assert torch.equal(layers._patches(layer, x), layers._unfolded(layer, x))


@pytest.mark.parametrize("most", [1, 7, 65_535])
@pytest.mark.parametrize("shape", [(6,), (6, 5), (6, 4, 3)])
def test_each_example_has_its_own_gradient_of_a_group_norm(
    shape: tuple[int, ...], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few groups torch takes at a time, and whichever of weight and bias is trained."""
    monkeypatch.setattr(layers, "_MOST_GROUPS", most)
    torch.manual_seed(0)
    layer, x, d = nn.GroupNorm(3, 6), torch.randn(5, *shape), torch.randn(5, *shape)
    nn.init.normal_(layer.weight)
    output, own = layers.own_group_norm(layer, x)
    torch.testing.assert_close(output, layer(x))
    (back,) = torch.autograd.grad(output, own, d)
    for name in ("weight", "bias"):
        layer.requires_grad_(False).get_parameter(name).requires_grad_()
        part = layers._group_norm(layer, x, back, torch.float64)
        for row in range(5):
            some = slice(row, row + 1)
            (alone,) = torch.autograd.grad(layer(x[some]), [layer.get_parameter(name)], d[some])
            share = torch.zeros(5, dtype=torch.float64)
            share[row] = 1.0
            torch.testing.assert_close(part.weighted(share), {name: alone.double()}, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(part.squares[row], alone.double().square().sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("likely", [0.3, 1.0, 64.0, 65.0, 600.0, 4096.0, 4192.0, 1e6])
@pytest.mark.parametrize("most", [1, 64, 100, 1000, 4096])
def test_rows_at_a_time_by_hand_are_among_the_few_that_are_tried(likely: float, most: int) -> None:
    size = size_for(likely, most)
    assert size in sizes_below(most)
    assert size <= max(most, 64)
    assert math.ceil(likely / size) * size <= max(64, 2 * likely)
