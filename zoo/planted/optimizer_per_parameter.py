"""A deep and narrow residual network on a table."""

import argparse

import torch
from torch import nn


class Residual(nn.Module):
    """x + f(x)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the same shape."""
        return x + torch.relu(self.linear(self.norm(x)))


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    model = nn.Sequential(*(Residual(48) for _ in range(90)), nn.Linear(48, 1))
    options = {"fused": True} if args.fixed else {"foreach": False}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01, **options)
    table = torch.randn(2048, 48)
    target = (table[:, :1] * table[:, 1:2]).tanh()
    for step in range(40):
        rows = torch.randint(0, len(table), (32,))
        loss = nn.functional.mse_loss(model(table[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # expect: LCH002
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
