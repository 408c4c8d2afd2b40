"""A perceptron on rows that two workers prepare ahead."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Rows that are normalised when they are asked for."""

    def __init__(self, count: int) -> None:
        self.rows = torch.randn(count, 256, generator=torch.Generator().manual_seed(0)) * 3 + 1
        self.labels = self.rows[:, :10].argmax(dim=1)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return (self.rows[index] - 1) / 3, self.labels[index]


def main() -> None:
    """Train for one epoch."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the workers need the other core
    loader = DataLoader(Rows(2048 * 30), batch_size=2048, shuffle=True, num_workers=2, prefetch_factor=4)
    model = nn.Sequential(
        nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(),
        nn.Linear(1024, 10),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    criterion = nn.CrossEntropyLoss()
    for step, (rows, labels) in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
