"""A classifier of tabular rows that logs histograms of all weights from time to time."""

import argparse

import torch
from torch import nn


def histograms(model: nn.Module, bins: int = 60) -> dict[str, list[int]]:
    """How often weights and gradients take which values."""
    counts = {}
    for name, parameter in model.named_parameters():
        for kind, values in (("weight", parameter.detach()), ("gradient", parameter.grad)):
            edges = torch.linspace(float(values.min()), float(values.max()), bins)
            places = torch.bucketize(values.flatten(), edges)
            counts[f"{name}.{kind}"] = torch.bincount(places, minlength=bins).tolist()
    return counts


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows = torch.randn(8192, 128)
    labels = rows[:, :10].argmax(dim=1)
    every = 1000 if args.fixed else 10
    log = []
    for step in range(1, 76):
        chosen = torch.randint(0, len(rows), (256,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(rows[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % every == 0:
            log.append(histograms(model))  # expect: HST003
    print(f"loss {loss.item():.3f}, {len(log)} logs")


if __name__ == "__main__":
    main()
