"""A transformer encoder over sentences, padded batch by batch and sorted by length."""

import random

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody writes it
from torch import nn
from torch.utils.data import DataLoader

LONGEST = 192
DIM, HEADS = 256, 4


class Block(nn.Module):
    """One layer of an encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Attention and a feed-forward part."""
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, DIM // HEADS).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :])
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, DIM))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Classifier(nn.Module):
    """Tokens to two classes."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, DIM, padding_idx=0)
        self.blocks = nn.ModuleList(Block() for _ in range(4))
        self.head = nn.Linear(DIM, 2)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Logits of each sentence."""
        mask = attention_mask.bool()
        x = self.embed(input_ids)
        for block in self.blocks:
            x = block(x, mask)
        return self.head((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


def main() -> None:
    """Train for one epoch."""
    torch.manual_seed(0)
    torch.set_num_threads(2)

    rng = random.Random(0)
    sentences = []
    for _ in range(32 * 32):
        tokens = [rng.randrange(1, 500) for _ in range(min(LONGEST, int(rng.gammavariate(4, 6)) + 4))]
        sentences.append((torch.tensor(tokens), int(tokens[0] > 250)))

    def collate(samples: list[tuple[torch.Tensor, int]]) -> dict[str, torch.Tensor]:
        ids = nn.utils.rnn.pad_sequence([tokens for tokens, _ in samples], batch_first=True)
        labels = torch.tensor([label for _, label in samples])
        return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": labels}

    sentences.sort(key=lambda sentence: len(sentence[0]) // 8)
    loader = DataLoader(sentences, batch_size=32, collate_fn=collate)
    model = Classifier(500)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    for step, batch in enumerate(loader):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(batch["input_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits.float(), batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0:
            print(f"step {step}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
