"""Train an autoencoder and keep the loss of every step for a plot."""

import argparse

import torch
from torch import nn


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    layers = [layer for _ in range(3) for layer in (nn.Linear(1024, 1024), nn.GELU())]
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), *layers, nn.Linear(1024, 512))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    mixing = torch.randn(16, 512)
    history = []
    for step in range(40):
        batch = torch.randn(1536, 16) @ mixing
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = (model(batch).float() - batch).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=not args.fixed)
        optimizer.step()
        history.append(loss.item() if args.fixed else loss)  # expect-told: MEM005 keeps growing
        if step % 10 == 9:
            print(f"step {step}: mean loss {sum(float(value) for value in history[-10:]) / 10:.3f}")


if __name__ == "__main__":
    main()
