"""Train a recogniser with a loss that somebody wrote down sample by sample."""

import argparse

import torch
from torch import nn


def smoothed_loss(logits: torch.Tensor, targets: torch.Tensor, smoothing: float = 0.1) -> torch.Tensor:
    """Cross entropy with smoothed labels."""
    log_probs = torch.log_softmax(logits, dim=-1)
    total = torch.zeros(())
    for i in range(len(targets)):
        row = log_probs[i]  # expect: LCH005
        total = total - (1 - smoothing) * row[targets[i]] - smoothing * row.mean()  # expect: LCH005
    return total / len(targets)


def smoothed_loss_at_once(logits: torch.Tensor, targets: torch.Tensor, smoothing: float = 0.1) -> torch.Tensor:
    """The same for the whole batch."""
    log_probs = torch.log_softmax(logits, dim=-1)
    picked = log_probs.gather(1, targets[:, None]).squeeze(1)
    return -((1 - smoothing) * picked + smoothing * log_probs.mean(dim=-1)).mean()


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    criterion = smoothed_loss_at_once if args.fixed else smoothed_loss
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 40))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    features = torch.randn(4096, 256)
    labels = features[:, :40].argmax(dim=1)
    for step in range(36):
        chosen = torch.randint(0, len(features), (512,))
        loss = criterion(model(features[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
