"""Operations of recorded training steps against torch's own counter, which sees every op as it is called."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slipstream
from slipstream.analysis import tables_of
from slipstream.store import Tables, Trace

torch = pytest.importorskip("torch")


def conv_net() -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=1),
        # Without groups: of the weight's gradient torch's counter multiplies channels of different groups as well.
        torch.nn.Conv2d(8, 8, 3, dilation=2),
        torch.nn.ConvTranspose2d(8, 6, 4, stride=2, bias=False),
        torch.nn.Flatten(),
        torch.nn.LazyLinear(5),
    )


class Products(torch.nn.Module):
    """Matrix products by every way to write them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 12), torch.nn.Linear(12, 8, bias=False)
        self.mix = torch.nn.Parameter(torch.randn(3, 16, 16))

    def forward(self, x: Any) -> Any:
        x = torch.einsum("bij,bjk->bik", self.mix, self.second(self.first(x).relu()))
        return torch.baddbmm(x, x, x.transpose(1, 2) @ x)


class Again(torch.nn.Module):
    """A layer whose forward is computed again in the backward pass."""

    def __init__(self, reentrant: bool) -> None:
        super().__init__()
        self.layer, self.reentrant = torch.nn.Linear(8, 8), reentrant

    def forward(self, x: Any) -> Any:
        from torch.utils.checkpoint import checkpoint

        return checkpoint(self.layer, x.relu(), use_reentrant=self.reentrant)


def step(model: Any, x: Any) -> Callable[[], None]:
    def run() -> None:
        model.zero_grad()
        model(x).square().sum().backward()

    run()
    return run


def recorded(run: Callable[[], None], path: Path) -> Tables:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        run()
    profiler.export_chrome_trace(str(path))
    trace = slipstream.load(path)
    assert isinstance(trace, Trace)
    return tables_of(trace)


def counted(run: Callable[[], None]) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        run()
    return int(counter.get_total_flops())


@pytest.mark.parametrize(
    ("model", "shape"), [(conv_net, (2, 4, 16, 16)), (Products, (3, 16, 8))], ids=["convolutions", "products"]
)
@pytest.mark.filterwarnings("ignore")
def test_as_torch_counts(model: Callable[[], Any], shape: tuple[int, ...], tmp_path: Path) -> None:
    run = step(model(), torch.randn(shape))
    tables = recorded(run, tmp_path / "trace.json")
    assert tables["mfu"]["flops"].to_list() == [counted(run)] * 2


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_computes_again_and_that_is_no_model_work(reentrant: bool, tmp_path: Path) -> None:
    run = step(Again(reentrant), torch.randn(4, 8, requires_grad=True))
    model, hardware = recorded(run, tmp_path / "trace.json")["mfu"]["flops"]
    once = 2 * 4 * 8 * 8
    assert (model, hardware) == (3 * once, 4 * once)
