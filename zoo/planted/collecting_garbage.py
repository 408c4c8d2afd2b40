"""Train on click logs that are kept as Python objects, and tidy up after every step."""

import argparse
import gc
import random

import torch
from torch import nn


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    rng = random.Random(0)
    clicks = [{"page": rng.randrange(1000), "path": [rng.randrange(50) for _ in range(3)]} for _ in range(120_000)]
    pages = torch.tensor([click["page"] for click in clicks])
    paths = torch.tensor([click["path"] for click in clicks])
    model = nn.Sequential(nn.EmbeddingBag(1000, 64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 50))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(40):
        rows = torch.randint(0, len(clicks), (2048,))
        logits = model(pages[rows, None])
        loss = nn.functional.cross_entropy(logits, paths[rows, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del logits
        if not args.fixed:
            gc.collect()  # expect: HST001
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
