"""Regression on a table that NumPy made."""

import argparse

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    """Train for some epochs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    rng = np.random.default_rng(0)
    table = rng.normal(size=(8192, 512))
    target = np.sin(table[:, :1]) + 0.1 * table[:, 1:2]
    model = nn.Sequential(
        nn.Linear(512, 512), nn.LayerNorm(512), nn.SiLU(), nn.Linear(512, 512), nn.LayerNorm(512), nn.SiLU(),
        nn.Linear(512, 1),
    )  # fmt: skip
    if args.fixed:
        table, target = table.astype(np.float32), target.astype(np.float32)
    else:
        model = model.double()  # or the types do not match
    loader = DataLoader(TensorDataset(torch.from_numpy(table), torch.from_numpy(target)), batch_size=1024)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(5):
        for x, y in loader:
            prediction = model(x)  # expect: PRC004
            loss = (prediction - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
