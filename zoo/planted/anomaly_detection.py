"""Fit a surface with a small network; a NaN was hunted here once."""

import argparse

import torch
from torch import nn


class Net(nn.Module):
    """Coordinates to a height."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 64), *(nn.Linear(64, 64) for _ in range(10)), nn.Linear(64, 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One height for each point."""
        for layer in self.layers[:-1]:
            x = torch.sin(layer(x))
        return self.layers[-1](x)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for step in range(60):
        points = torch.rand(256, 2) * 4 - 2
        heights = (points[:, :1] * 3).sin() * points[:, 1:].cos()
        with torch.autograd.set_detect_anomaly(not args.fixed):  # expect: HST002
            loss = nn.functional.mse_loss(net(points), heights)
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
