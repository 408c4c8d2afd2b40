"""A small training job that can be told to train wrongly, for ``numerics.py``.

python benchmarks/numerics_job.py mlp --wrong no_clipping
"""

import argparse
from collections.abc import Iterator

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset

WRONG = {
    "no_clipping": "gradients are not clipped",
    "rate": "learning rate 2 % higher",
    "no_decay": "no weight decay",
    "loss": "loss 1 % larger",
    "skipped": "every tenth step left out",
    "no_zero_grad": "gradients not set to zero",
    "no_dropout": "nothing is dropped",
    "order": "samples in another order",
    "frozen": "one layer does not learn",
    "eval_norm": "normalisation in evaluation mode",
    "truncated": "sequences cut short",
}
DOES_NOT_APPLY = {"mlp": {"truncated"}, "conv": {"truncated"}, "bert": {"eval_norm"}}
LENGTH, WORDS, CLASSES = 48, 200, 10


class Samples(Dataset[dict[str, torch.Tensor]]):
    """Random samples with labels that can be learnt."""

    def __init__(self, kind: str) -> None:
        chance = torch.Generator().manual_seed(1)
        self.kind = kind
        if kind == "bert":
            lengths = torch.randint(8, LENGTH - 8, (512, 1), generator=chance)
            self.mask = (torch.arange(LENGTH) < lengths).long()
            self.data = torch.randint(1, WORDS, (512, LENGTH), generator=chance) * self.mask
        else:
            shape = (512, 64) if kind == "mlp" else (512, 3, 16, 16)
            self.data = torch.randn(shape, generator=chance)
        self.labels = torch.randint(0, CLASSES, (512,), generator=chance)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if self.kind == "bert":
            return {"input_ids": self.data[index], "attention_mask": self.mask[index], "labels": self.labels[index]}
        return {"x": self.data[index], "labels": self.labels[index]}


class Encoder(nn.Module):
    """A small transformer that classifies sequences."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 64)
        self.places = nn.Embedding(LENGTH, 64)
        layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, CLASSES)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Logits of shape (batch, classes)."""
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.encoder(x, src_key_padding_mask=attention_mask == 0)
        return self.head(x[:, 0])


def build(kind: str) -> nn.Module:
    """An untrained model."""
    if kind == "bert":
        return Encoder()
    if kind == "mlp":
        return nn.Sequential(
            nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.ReLU(),
            nn.Linear(128, CLASSES),
        )  # fmt: skip
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, padding=1, stride=2),
        nn.ReLU(), nn.Dropout(0.1), nn.Flatten(), nn.Linear(32 * 64, CLASSES),
    )  # fmt: skip


def batches(kind: str, wrong: str) -> Iterator[dict[str, torch.Tensor]]:
    """Endlessly."""
    order = torch.Generator().manual_seed(3 if wrong == "order" else 2)
    while True:
        yield from DataLoader(Samples(kind), batch_size=16, shuffle=True, generator=order)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=("mlp", "bert", "conv"))
    parser.add_argument("--wrong", default="", choices=("", *WRONG))
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()
    wrong = args.wrong
    torch.manual_seed(0)
    model = build(args.kind)
    if wrong == "no_dropout":
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
    if wrong == "frozen":
        next(model.parameters()).requires_grad_(False)
    optimizer = torch.optim.AdamW(
        (parameter for parameter in model.parameters() if parameter.requires_grad),
        lr=2e-3 * (1.02 if wrong == "rate" else 1),
        weight_decay=0 if wrong == "no_decay" else 0.01,
    )
    scheduler = LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 5))
    model.train()
    if wrong == "eval_norm":
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
    for step, batch in zip(range(args.steps), batches(args.kind, wrong), strict=False):
        labels = batch.pop("labels")
        if wrong == "truncated":
            batch = {name: tensor[:, :16] for name, tensor in batch.items()}
        out = model(**batch) if args.kind == "bert" else model(batch["x"])
        loss = nn.functional.cross_entropy(out, labels) * (1.01 if wrong == "loss" else 1)
        loss.backward()
        if wrong != "no_clipping":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if not (wrong == "skipped" and step % 10 == 9):
            optimizer.step()
        scheduler.step()
        if wrong != "no_zero_grad":
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
