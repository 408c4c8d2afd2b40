"""Train embeddings of many items and save everything often, to be on the safe side."""

import argparse
import os
import tempfile
from pathlib import Path

import torch
from torch import nn


def save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """All that is needed to go on, safely on the disk."""
    with path.open("wb") as file:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.flush()
        os.fsync(file.fileno())


class Recommender(nn.Module):
    """How much a user likes an item."""

    def __init__(self, users: int, items: int) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, 64, sparse=True), nn.Embedding(items, 64, sparse=True)
        self.score = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        """One score for each pair."""
        return self.score(torch.cat([self.users(user), self.items(item)], dim=1)).squeeze(1)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    model = Recommender(60_000, 30_000)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    every = 10_000 if args.fixed else 8
    with tempfile.TemporaryDirectory() as folder:
        for step in range(1, 61):
            user, item = torch.randint(0, 60_000, (4096,)), torch.randint(0, 30_000, (4096,))
            liked = ((user + item) % 3 == 0).float()
            loss = nn.functional.binary_cross_entropy_with_logits(model(user, item), liked)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % every == 0:
                save(Path(folder) / "latest.pt", model, optimizer)  # expect: HST003
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
