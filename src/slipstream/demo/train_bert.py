"""Train a small BERT from scratch, by masked-language modelling on the docstrings of Python's standard library.

    python train_bert.py --steps 100 --batch-size 16

Text and tokenizer are made on the spot, nothing is downloaded. Uses a GPU when there is one.
"""

import argparse
import ast
import inspect
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForMaskedLM

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(len(SPECIAL_TOKENS))
SKIPPED = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "ensurepip"}
IGNORED_LABEL = -100
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")

Batch = dict[str, torch.Tensor]


def sentences(root: Path) -> Iterator[str]:
    """Sentences from the docstrings of all modules, classes and functions below a folder."""
    for path in sorted(root.rglob("*.py")):
        if SKIPPED.intersection(path.relative_to(root).parts):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue  # templates and the like
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                    text = " ".join(inspect.cleandoc(paragraph).split())
                    yield from (sentence for sentence in SENTENCE_END.split(text) if len(sentence) >= 40)


def train_tokenizer(texts: list[str], vocab_size: int, max_length: int) -> Tokenizer:
    """A byte-pair tokenizer that pads and truncates to a fixed length."""
    # WordPiece would be the usual one, but training it gives another vocabulary every time, whatever the seed.
    tokenizer = Tokenizer(BPE(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.train_from_iterator(
        texts, BpeTrainer(vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, show_progress=False)
    )
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)]
    )
    tokenizer.enable_truncation(max_length)
    tokenizer.enable_padding(length=max_length, pad_id=PAD)
    return tokenizer


class Sentences(Dataset[Batch]):
    """Encoded sentences."""

    def __init__(self, texts: list[str], tokenizer: Tokenizer) -> None:
        encodings = tokenizer.encode_batch(texts)
        self.input_ids = torch.tensor([encoding.ids for encoding in encodings])
        self.attention_mask = torch.tensor([encoding.attention_mask for encoding in encodings])

    def __len__(self) -> int:
        return len(self.input_ids)

    def __getitem__(self, index: int) -> Batch:
        return {"input_ids": self.input_ids[index], "attention_mask": self.attention_mask[index]}


class MaskingCollator:
    """Stacks samples and hides part of their tokens, which become the labels.

    Of the chosen tokens 80 % are masked, 10 % replaced by a random one and 10 % left as they are.
    """

    def __init__(self, vocab_size: int, probability: float) -> None:
        self.vocab_size = vocab_size
        self.probability = probability

    def __call__(self, samples: list[Batch]) -> Batch:
        """One batch of the given samples."""
        input_ids = torch.stack([sample["input_ids"] for sample in samples])
        attention_mask = torch.stack([sample["attention_mask"] for sample in samples])
        labels = input_ids.clone()

        chosen = (torch.rand(input_ids.shape) < self.probability) & (input_ids >= len(SPECIAL_TOKENS))
        labels[~chosen] = IGNORED_LABEL
        fate = torch.rand(input_ids.shape)
        input_ids[chosen & (fate < 0.8)] = MASK
        replaced = chosen & (fate >= 0.8) & (fate < 0.9)
        input_ids[replaced] = torch.randint(len(SPECIAL_TOKENS), self.vocab_size, input_ids.shape)[replaced]
        return {"input_ids": input_ids, "attention_mask": attention_mask, "labels": labels}


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="optimizer steps (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=16, help="sentences per batch (default: %(default)s)")
    parser.add_argument("--max-length", type=int, default=128, help="tokens per sentence (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=4, help="(default: %(default)s)")
    parser.add_argument("--hidden-size", type=int, default=256, help="(default: %(default)s)")
    parser.add_argument("--heads", type=int, default=4, help="(default: %(default)s)")
    parser.add_argument("--vocab-size", type=int, default=4096, help="(default: %(default)s)")
    parser.add_argument("--lr", type=float, default=1e-3, help="peak learning rate (default: %(default)s)")
    parser.add_argument("--warmup-steps", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--max-grad-norm", type=float, default=1.0, help="(default: %(default)s)")
    parser.add_argument("--workers", type=int, default=0, help="processes that load data (default: %(default)s)")
    parser.add_argument("--log-every", type=int, default=10, help="steps between two lines (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="(default: %(default)s)")
    return parser.parse_args()


def build_model(args: argparse.Namespace, device: torch.device) -> BertForMaskedLM:
    """An untrained BERT with a masked-language head."""
    config = BertConfig(
        vocab_size=args.vocab_size,
        hidden_size=args.hidden_size,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.hidden_size,
        max_position_embeddings=args.max_length,
        pad_token_id=PAD,
    )
    with device:
        return BertForMaskedLM(config)


def train(model: BertForMaskedLM, loader: DataLoader[Batch], args: argparse.Namespace) -> None:
    """Train for a number of steps, over as many epochs as that takes."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    scheduler = LambdaLR(optimizer, lambda step: warmup_then_decay(step, args.warmup_steps, args.steps))
    model.train()
    step = 0
    running_loss = 0.0
    while step < args.steps:
        for batch in loader:
            batch = {name: tensor.to(model.device) for name, tensor in batch.items()}
            loss = model(**batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()

            step += 1
            running_loss += loss.item()
            if step % args.log_every == 0:
                print(f"step {step:5d}  loss {running_loss / args.log_every:.4f}  lr {scheduler.get_last_lr()[0]:.2e}")
                running_loss = 0.0
            if step == args.steps:
                break


def warmup_then_decay(step: int, warmup_steps: int, steps: int) -> float:
    """Factor of the learning rate: up in a straight line, then down to nothing."""
    if step < warmup_steps:
        return step / warmup_steps
    return max(0.0, (steps - step) / max(1, steps - warmup_steps))


def main() -> None:
    """Make data, tokenizer and model, and train."""
    args = parse_arguments()
    torch.manual_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    texts = list(sentences(Path(sysconfig.get_path("stdlib"))))
    tokenizer = train_tokenizer(texts, args.vocab_size, args.max_length)
    dataset = Sentences(texts, tokenizer)
    mean_length = dataset.attention_mask.sum(dim=1).float().mean().item()
    print(f"{len(dataset):,} sentences of {mean_length:.0f} tokens on average, on {device}")

    loader = DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        pin_memory=device.type == "cuda",
        collate_fn=MaskingCollator(tokenizer.get_vocab_size(), probability=0.15),
    )
    model = build_model(args, device)
    print(f"{sum(parameter.numel() for parameter in model.parameters()):,} parameters")
    train(model, loader, args)


if __name__ == "__main__":
    main()
