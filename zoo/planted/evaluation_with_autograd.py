"""A deep narrow network, compared with a held-out set after every step."""

import argparse

import torch
from torch import nn


class Deep(nn.Module):
    """Many small layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(24))
        self.head = nn.Linear(32, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One number a row."""
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return self.head(x).squeeze(1)


def held_out_loss(model: nn.Module, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """The mean loss over all batches."""
    total = 0.0
    for x, y in batches:
        output = model(x)  # expect: CMP006
        total += nn.functional.mse_loss(output, y).item()
    return total / len(batches)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    model = Deep()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(1024, 32)
    target = data[:, 0] * data[:, 1]
    held_out = [(data[start : start + 32], target[start : start + 32]) for start in range(512, 1024, 32)]
    best = float("inf")
    for step in range(40):
        rows = torch.randint(0, 512, (32,))
        loss = nn.functional.mse_loss(model(data[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.set_grad_enabled(not args.fixed):
            best = min(best, held_out_loss(model, held_out))
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}, best {best:.4f}")


if __name__ == "__main__":
    main()
