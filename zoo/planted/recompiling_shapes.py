"""A compiled network over point clouds, each batch with another number of points."""

import argparse

import torch
from torch import nn


class PointNet(nn.Module):
    """A cloud of points to a class."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = nn.Linear(3, 64), nn.Linear(64, 64), nn.Linear(64, 5)

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        """Logits of each cloud."""
        hidden = torch.relu(self.second(torch.relu(self.first(points))))
        return self.head(hidden.amax(dim=1))


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    model = torch.compile(PointNet(), dynamic=args.fixed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(14):
        points = torch.randn(64, 300 + 17 * step, 3)
        labels = (points.mean(dim=(1, 2)) * 100).long() % 5
        logits = model(points)  # expect: CPL001
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
