"""Lightning, Hugging Face and notebooks, with the real libraries."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

HUGGING_FACE = """
import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from slipstream.integrations.huggingface import SlipstreamCallback

class Data(Dataset):
    def __len__(self):
        return 160
    def __getitem__(self, index):
        return {"input_ids": torch.arange(8) + index % 8, "attention_mask": torch.ones(8), "labels": index % 2}

config = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
arguments = TrainingArguments("out", max_steps=30, per_device_train_batch_size=4, use_cpu=True, report_to=[],
                              save_strategy="no", disable_tqdm=True, dataloader_pin_memory=False)
callback = SlipstreamCallback("recorded", steps=3)
Trainer(BertForSequenceClassification(config), arguments, train_dataset=Data(), callbacks=[callback]).train()
print(callback.recorded.outcome)
"""
LIGHTNING = """
import torch
import lightning
from torch.utils.data import DataLoader, TensorDataset
from slipstream.integrations.lightning import SlipstreamCallback

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def training_step(self, batch, number):
        return self.layer(batch[0]).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

callback = SlipstreamCallback("recorded", steps=3)
trainer = lightning.Trainer(max_steps=30, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False, callbacks=[callback])
trainer.fit(Model(), DataLoader(TensorDataset(torch.randn(256, 8)), batch_size=4))
print(callback.recorded.outcome)
"""


@pytest.mark.parametrize(("host", "script"), [("transformers", HUGGING_FACE), ("lightning", LIGHTNING)])
def test_a_callback_records_and_tells(host: str, script: str, tmp_path: Path) -> None:
    pytest.importorskip(host)
    (tmp_path / "train.py").write_text(script)
    command = [sys.executable, "train.py"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "3 steps recorded" in run.stdout
    assert (tmp_path / "recorded" / "rank0" / "trace.json.gz").exists()


def test_the_tutorial_runs(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    tutorial = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"
    notebook = nbformat.read(tutorial, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        kind
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        for kind in output.get("data", {})
    ]
    assert "text/markdown" in shown
    assert "text/html" in shown
