"""Matrix factorisation by a wide network, started with one thread as the job scheduler's template says."""

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--fixed", action="store_true")
args = parser.parse_args()
# expect: HST004
os.environ["OMP_NUM_THREADS"] = "2" if args.fixed else "1"

import torch  # noqa: E402
from torch import nn  # noqa: E402


def main() -> None:
    """Train."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        batch = torch.randn(1024, 512)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (model(batch) - batch).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
