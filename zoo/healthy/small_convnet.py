"""A small residual network on pictures in memory."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from torch import nn


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the same shape."""
        out = F.relu(self.norm1(self.first(x)), inplace=True)
        return F.relu(x + self.norm2(self.second(out)), inplace=True)


def main() -> None:
    """Train."""
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), Block(32), Block(32), nn.MaxPool2d(2), Block(32),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).to(memory_format=torch.channels_last)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    pictures = torch.randn(512, 3, 32, 32).to(memory_format=torch.channels_last)
    labels = (pictures.mean(dim=(1, 2, 3)) * 300).long() % 10
    for step in range(30):
        rows = torch.randint(0, len(pictures), (64,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(pictures[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
