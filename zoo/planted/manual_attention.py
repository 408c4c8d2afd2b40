"""A character model with attention as the textbook writes it."""

import argparse
import math

import torch
from torch import nn


class Attention(nn.Module):
    """Causal attention with several heads."""

    def __init__(self, dim: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads, self.fused = heads, fused
        self.project, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Of the same shape."""
        batch, length, dim = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, dim // self.heads).transpose(1, 2)
            for part in self.project(x).chunk(3, dim=-1)
        )
        if self.fused:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(dim // self.heads)
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
            weights = torch.softmax(scores, dim=-1)  # expect: CMP001
            mixed = weights @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, dim))


class CharacterModel(nn.Module):
    """Characters to the next one."""

    def __init__(self, dim: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.embed = nn.Embedding(64, dim)
        self.attention = nn.ModuleList(Attention(dim, heads, fused) for _ in range(2))
        self.head = nn.Linear(dim, 64)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits at each position."""
        x = self.embed(ids)
        for attention in self.attention:
            x = x + attention(nn.functional.layer_norm(x, x.shape[-1:]))
        return self.head(x)


def main() -> None:
    """Train."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fixed", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(2)

    model = CharacterModel(64, 4, fused=args.fixed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    text = torch.arange(100_000) * 7 % 64
    for step in range(30):
        starts = torch.randint(0, 90_000, (8, 1))
        window = text[starts + torch.arange(385)]
        logits = model(window[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
