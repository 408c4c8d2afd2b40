"""A small convolutional network on pictures that lie in a text file, one picture a line."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIZE = 28


class TextPictures(Dataset):
    """Pictures as lines of numbers."""

    def __init__(self, count: int, parse_once: bool) -> None:
        pictures = torch.randint(0, 256, (count, SIZE * SIZE), generator=torch.Generator().manual_seed(1))
        self.lines = [",".join(map(str, row)) for row in pictures.tolist()]
        self.labels = [sum(row[:40]) % 10 for row in pictures.tolist()]
        self.parsed = [self.parse(line) for line in self.lines] if parse_once else None

    @staticmethod
    def parse(line: str) -> torch.Tensor:
        """Numbers of a line, from -1 to 1."""
        values = [int(text) / 127.5 - 1 for text in line.split(",")]
        return torch.tensor(values).view(1, SIZE, SIZE)

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        picture = self.parsed[index] if self.parsed is not None else self.parse(self.lines[index])
        return picture, self.labels[index]


def main() -> None:
    """Train for some epochs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    loader = DataLoader(TextPictures(1024, parse_once=args.fixed), batch_size=128, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 49, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(5):
        total = 0.0
        for pictures, labels in loader:  # expect: INP001
            optimizer.zero_grad()
            loss = criterion(model(pictures), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
