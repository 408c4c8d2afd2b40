"""Predict the next value of short series with a network that was written for one series."""

import argparse

import torch
from torch import nn


class Forecaster(nn.Module):
    """A window of values to the next one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))
        self.head = nn.Linear(width, 1)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        """One value for each series."""
        hidden = series
        for layer in self.layers:
            hidden = hidden + torch.tanh(layer(hidden))
        return self.head(hidden)


def main() -> None:
    """Train on sines."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    width, batch_size = 64, 64
    model = Forecaster(width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loss_fn = nn.MSELoss()
    for step in range(40):
        start = torch.rand(batch_size, 1) * 6
        waves = torch.sin(start + torch.arange(width + 1) * 0.1)
        windows, targets = waves[:, :-1], waves[:, -1:]
        chunks = [windows] if args.fixed else windows.split(1)
        predictions = torch.cat([model(chunk) for chunk in chunks])  # expect: LCH006
        loss = loss_fn(predictions, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
