"""What is counted in a batch, and what is left unknown."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from slipstream.capture.batches import Batch, describe  # noqa: E402 - torch is optional


def ids(*lengths: int, width: int = 8, pad: int = 0) -> Any:
    rows = [[5 + (7 * row + place) % 11 for place in range(length)] for row, length in enumerate(lengths)]
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows])


def mask(*lengths: int, width: int = 8) -> Any:
    return torch.tensor([[1] * length + [0] * (width - length) for length in lengths])


def test_padding_by_the_mask() -> None:
    found = describe({"input_ids": ids(3, 5, 2), "attention_mask": mask(3, 5, 2), "labels": ids(3, 5, 2)})
    assert found == Batch(samples=3, positions=24, padding=14, trimmable=9)


def test_padding_on_the_left_can_be_trimmed_too() -> None:
    found = describe({"attention_mask": mask(3, 5).flip(1)})
    assert (found.padding, found.trimmable) == (8, 6)


def test_boolean_masks_and_masks_of_padding() -> None:
    assert describe({"attention_mask": mask(3, 5).bool()}).padding == 8
    assert describe({"key_padding_mask": ~mask(3, 5).bool()}).padding == 8


def test_a_nameless_mask_is_known_by_its_shape() -> None:
    assert describe((ids(3, 5), mask(3, 5), torch.tensor([0, 1]))).padding == 8
    labels = torch.tensor([[0, 1, 1, 0], [1, 0, 1, 1]])
    assert describe((ids(4, 4, width=4), labels)).padding is None


def test_no_pad_id_is_guessed_unless_most_rows_end_alike() -> None:
    padded = describe({"input_ids": ids(3, 5, 8, 2)})
    assert padded == Batch(samples=4, positions=32, padding=14, trimmable=0)
    full = describe({"input_ids": ids(8, 8, 8, 2)})
    assert full == Batch(samples=4, positions=32)


def test_other_batches_tell_their_samples_only() -> None:
    assert describe([torch.zeros(4, 3, 8, 8), torch.zeros(4)]) == Batch(samples=4)
    assert describe({"x": {"image": torch.zeros(2, 3)}}) == Batch(samples=2)
    assert describe("text") == Batch()
    assert describe({"attention_mask": torch.zeros(2, 3).to_sparse()}).padding is None
    assert describe({"attention_mask": mask(3, 5).t()}).padding is None  # not contiguous
    assert describe({"attention_mask": torch.tensor([[3, 4], [5, 6]])}).padding is None


def test_a_mask_of_nothing() -> None:
    assert describe({"attention_mask": torch.zeros(2, 4, dtype=torch.bool)}).trimmable == 8
