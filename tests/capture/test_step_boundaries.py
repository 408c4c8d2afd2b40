"""What counts as a training step in loops that are not plain; the number of steps is known in each."""

import polars as pl

from support.jobs import MODEL, Record


def test_accumulation_is_one_step_per_update(record: Record) -> None:
    run = record(
        MODEL
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(14):
    for micro in range(4):
        (model(batch()).mean() / 4).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    steps = run.table("job_steps")
    assert steps["backward_calls"].to_list() == [4] * 14
    assert len(run.marks()) == 6
    assert run.outcome.info.outcome_code == "complete"


def test_two_optimizers_that_take_turns_make_one_step(record: Record) -> None:
    run = record(
        MODEL
        + """
critic = nn.Linear(8, 1)
one = torch.optim.Adam(critic.parameters())
two = torch.optim.Adam(model.parameters())
for step in range(14):
    critic(batch()).mean().backward()
    one.step()
    one.zero_grad()
    model(batch()).mean().backward()
    two.step()
    two.zero_grad()
"""
    )
    steps = run.table("job_steps")
    assert steps["number"].to_list() == list(range(14))
    assert steps["optimizer_steps"].to_list() == [2] * 14
    assert steps["backward_calls"].to_list() == [2] * 14
    assert len(run.marks()) == 6
    assert steps["line"].unique().to_list() == [run.line_of("    two.step()")]


def test_several_critic_updates_per_generator_update(record: Record) -> None:
    run = record(
        MODEL
        + """
critic = nn.Linear(8, 1)
one = torch.optim.Adam(critic.parameters())
two = torch.optim.Adam(model.parameters())
for step in range(14):
    for repeat in range(5):
        critic(batch()).mean().backward()
        one.step()
    model(batch()).mean().backward()
    two.step()
"""
    )
    settled = run.table("job_steps").filter(pl.col("phase") != "warmup")
    assert set(settled["optimizer_steps"]) == {6}
    assert len(run.marks()) == 6


def test_an_update_that_the_scaler_skips_is_a_step(record: Record) -> None:
    run = record(
        MODEL
        + """
scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(14):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(batch()).mean()
    scaler.scale(loss * (float("inf") if step == 2 else 1.0)).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
"""
    )
    steps = run.table("job_steps")
    assert steps["skipped"].to_list() == [step == 2 for step in range(14)]
    assert steps["optimizer_steps"].to_list() == [int(step != 2) for step in range(14)]
    assert dict(run.table("switches").rows())["autocast"] == "cpu torch.bfloat16"


def test_closures_belong_to_the_step_that_calls_them(record: Record) -> None:
    run = record(
        MODEL
        + """
data = batch()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.01, max_iter=3)
def closure():
    optimizer.zero_grad()
    loss = (model(data) - 1).square().mean()
    loss.backward()
    return loss
for step in range(14):
    optimizer.step(closure)
"""
    )
    steps = run.table("job_steps")
    assert steps.height == 14
    assert steps["backward_calls"][0] > 1
    assert len(run.marks()) == 6


def test_optimizers_inside_the_backward_pass(record: Record) -> None:
    run = record(
        MODEL
        + """
optimizers = {p: torch.optim.SGD([p], lr=0.01) for p in model.parameters()}
def update(parameter):
    optimizers[parameter].step()
    optimizers[parameter].zero_grad()
for parameter in model.parameters():
    parameter.register_post_accumulate_grad_hook(update)
for step in range(14):
    model(batch()).mean().backward()
"""
    )
    steps = run.table("job_steps")
    assert steps["number"].to_list() == list(range(14))
    assert steps["optimizer_steps"].to_list() == [4] * 14
    assert len(run.marks()) == 6
    assert run.outcome.info.outcome_code == "complete"


def test_evaluation_is_no_step_and_is_kept_out_of_the_window(record: Record) -> None:
    run = record(
        MODEL
        + """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(24, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(4):
    for (x,) in DataLoader(data, batch_size=4):
        model(x).mean().backward()
        optimizer.step()
    with torch.no_grad():
        for (x,) in DataLoader(data, batch_size=2):
            model(x)
"""
    )
    assert run.table("job_steps").height == 24
    assert run.outcome.info.outcome_code == "complete"
    marks = run.marks()
    assert 2 <= len(marks) <= 6
    in_trace = [event for event in run.trace()["traceEvents"] if event["name"].startswith("enumerate(DataLoader)")]
    # One batch per step and the end of the epoch: none of the evaluation's batches.
    assert len(marks) <= len(in_trace) <= len(marks) + 1
    assert (run.rank / "lines.parquet").exists()


def test_an_own_profiler_has_precedence(record: Record) -> None:
    run = record(
        MODEL
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    for step in range(14):
        model(batch()).mean().backward()
        optimizer.step()
profiler.export_chrome_trace("own.json")
print(sum(event.count for event in profiler.key_averages() if event.key == "Optimizer.step#SGD.step"))
"""
    )
    assert run.outcome.info.outcome_code == "own_profiler"
    assert run.stdout == "14\n"
    assert run.table("job_steps").height == 14
    assert not (run.rank / "trace.json.gz").exists()


def test_a_profiler_that_starts_inside_the_window_gets_it(record: Record) -> None:
    run = record(
        MODEL
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def steps(count):
    for step in range(count):
        model(batch()).mean().backward()
        optimizer.step()
steps(9)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
    steps(10)
print(sum(event.count for event in profiler.key_averages() if event.key == "Optimizer.step#SGD.step"))
""",
        warmup=4,
        steps=20,
    )
    assert run.stdout == "10\n"
    assert run.outcome.info.outcome_code == "complete"
    assert "profiler of its own" in str(run.outcome.info.outcome)
    assert run.marks() == [f"ProfilerStep#{number}" for number in range(4, 9)]


def test_a_compiled_step_is_left_alone(record: Record) -> None:
    run = record(
        MODEL
        + """
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
@torch.compile(backend="eager")
def update():
    optimizer.step()
for step in range(4):
    model(batch()).mean().backward()
    update()
    print(torch.cat([p.detach().flatten() for p in model.parameters()]).sum().item())
"""
    )
    assert run.outcome.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == 4
    assert run.outcome.info.outcome_code in {"no_steps", "too_few_steps"}
