"""The job of ``proof.py``: a small network, as it is or with its steps made longer by a known share.

python benchmarks/proof_job.py mlp --slower 0.05
"""

import argparse
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

STEPS = 400


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=["mlp", "conv"])
    parser.add_argument("--slower", type=float, default=0.0, help="share of its own time that a step waits besides")
    asked = parser.parse_args()
    if asked.model == "mlp":
        width, layers = 512, 4
        parts = [layer for _ in range(layers) for layer in (torch.nn.Linear(width, width), torch.nn.ReLU())]
        model, shape, batch = torch.nn.Sequential(*parts), (width,), 128
    else:
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 32, 3, padding=1),
            torch.nn.BatchNorm2d(32),
            torch.nn.ReLU(),
            torch.nn.Conv2d(32, 32, 3, padding=1),
            torch.nn.ReLU(),
        )
        shape, batch = (3, 32, 32), 16
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = DataLoader(TensorDataset(torch.randn(batch * 8, *shape)), batch_size=batch, shuffle=True)
    batches = (x for _ in range(STEPS) for (x,) in data)
    for _, x in zip(range(STEPS), batches, strict=False):
        began = time.process_time()  # wall time runs on while others have their turn
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        until = time.process_time() + asked.slower * (time.process_time() - began)
        while time.process_time() < until:
            pass


if __name__ == "__main__":
    main()
