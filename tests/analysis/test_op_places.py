"""Places of ops in the user's code."""

from typing import Any

import polars as pl

from slipstream.store import Tables
from support.tables import make_tables, span, step

Place = tuple[str, int, str, str]
MAIN: Place = ("train.py", 3, "main", "function")
FORWARD: Place = ("net.py", 9, "forward", "function")


def places(tables: Tables) -> list[Place | None]:
    """The place of each op in the order given."""
    text = [pl.col(name).cast(pl.String) for name in ("file", "function", "precision")]
    rows = tables["op_places"].select(text[0], "line", text[1], text[2]).rows()
    return [None if row[0] is None else row for row in rows]


def frames() -> list[dict[str, Any]]:
    return [
        span("train.py(3): main", 0, 10_000),
        span("torch/nn/modules/module.py(1): _call_impl", 90, 420),
        span("net.py(9): forward", 100, 400),
        span("torch/nn/functional.py(5): linear", 110, 300),
    ]


def test_the_innermost_user_frame_around_an_op() -> None:
    tables = make_tables(
        python=frames(),
        ops=[span("a", 120, 10), span("b", 600, 10), span("inside b", 602, 2), span("elsewhere", 120, 10, thread=4)],
    )
    assert places(tables) == [FORWARD, MAIN, MAIN, None]


def test_a_module_level_frame_is_a_fine_place() -> None:
    tables = make_tables(python=[span("train.py(1): <module>", 0, 100)], ops=[span("a", 10, 10)])
    assert places(tables) == [("train.py", 1, "<module>", "function")]


def test_call_stacks_of_older_recordings_tell_the_line_that_ran() -> None:
    lib = "/opt/conda/lib/python3.7/site-packages/torch/nn/functional.py(1848): linear"
    tables = make_tables(
        ops=[
            span("outer", 0, 100, call_stack=f"{lib};train.py(46): <module>"),
            span("inner", 10, 10),
            span("library only", 200, 10, call_stack=lib),
            span("user inside", 300, 10, call_stack=f"{lib};/home/me/net.py(7): forward;train.py(46): <module>"),
        ]
    )
    outer = ("train.py", 46, "<module>", "statement")
    assert places(tables) == [outer, outer, None, ("/home/me/net.py", 7, "forward", "statement")]


def test_backward_ops_take_the_place_of_the_forward_op_with_their_number() -> None:
    tables = make_tables(
        python=frames(),
        ops=[
            span("no grad", 60, 5, sequence=20),
            span("aten::linear", 120, 50, sequence=20, fwd_thread=0),
            span("later", 600, 5, sequence=21, fwd_thread=0),
            span("other thread", 130, 5, sequence=20, thread=3),
            span("evaluate: LinearBackward", 2_000, 100, sequence=20, fwd_thread=1, thread=7),
            span("LinearBackward", 2_010, 80, sequence=20, fwd_thread=1, thread=7),
            span("aten::mm", 2_020, 10, thread=7),
            span("AccumulateGrad", 3_000, 10, thread=7),
        ],
    )
    assert places(tables)[4:] == [FORWARD, FORWARD, FORWARD, None]


def test_on_the_cpu_backward_ops_leave_the_frame_that_called_backward() -> None:
    tables = make_tables(
        python=[*frames(), span("ops.py(30): backward", 3_050, 40)],
        ops=[
            span("aten::linear", 120, 50, sequence=20, fwd_thread=0),
            span("LinearBackward", 2_000, 100, sequence=20, fwd_thread=1),
            span("aten::mm", 2_020, 10),
            span("MineBackward", 3_000, 100, sequence=20, fwd_thread=1),
            span("before", 3_020, 10),
            span("in the user's backward", 3_060, 10),
            span("AccumulateGrad", 3_500, 10),
        ],
    )
    mine = ("ops.py", 30, "backward", "function")
    assert places(tables)[1:] == [FORWARD, FORWARD, FORWARD, FORWARD, mine, MAIN]


def test_recomputed_forward_ops_serve_their_own_backward() -> None:
    tables = make_tables(
        python=[*frames(), span("block.py(8): forward", 2_100, 200)],
        ops=[
            span("Checkpoint", 120, 50, sequence=20, fwd_thread=0),
            span("CheckpointBackward", 2_000, 1_000, sequence=20, fwd_thread=1),
            span("aten::gelu", 2_150, 50, sequence=55, fwd_thread=0),
            span("GeluBackward", 2_500, 50, sequence=55, fwd_thread=1),
        ],
    )
    block = ("block.py", 8, "forward", "function")
    assert places(tables) == [FORWARD, FORWARD, block, block]


def test_arrows_decide_where_numbers_do_not() -> None:
    tables = make_tables(
        python=frames(),
        ops=[
            span("a", 120, 50, sequence=20, fwd_thread=0),
            span("b", 600, 50, sequence=20, fwd_thread=0),
            span("Backward", 2_000, 100, sequence=20, fwd_thread=1, thread=7),
        ],
        flows=[
            {"kind": "fwdbwd", "flow_id": 1, "start": True, "ts_ns": 120},
            {"kind": "fwdbwd", "flow_id": 1, "thread": 7, "ts_ns": 2_000},
        ],
    )
    assert places(tables) == [FORWARD, MAIN, FORWARD]


STATEMENT = {"op": "aten::mm", "file": "net.py", "function": "forward", "def_line": 9}


def statement_lines(ops: list[dict[str, Any]], statements: list[dict[str, Any]]) -> list[tuple[int, str]]:
    tables = make_tables(
        steps=[step(1, 0, 1_000), step(2, 1_000, 1_000)],
        python=[span("net.py(9): forward", 100, 400), span("net.py(9): forward", 1_100, 400)],
        ops=ops,
        statements=statements,
    )
    return tables["op_places"].select("line", pl.col("precision").cast(pl.String)).rows()


def test_the_nth_op_of_a_step_comes_from_the_statement_of_the_nth() -> None:
    mm = [span("aten::mm", ts, 10) for ts in (200, 150, 1_150, 1_200)]
    seen = [{**STATEMENT, "nth": 0, "line": 11}, {**STATEMENT, "nth": 1, "line": 14}]
    assert statement_lines([*mm, span("aten::t", 300, 1)], seen) == [
        (14, "statement"),
        (11, "statement"),
        (11, "statement"),
        (14, "statement"),
        (9, "function"),
    ]


def test_other_counts_of_one_name_leave_the_function() -> None:
    mm = [span("aten::mm", ts, 10) for ts in (150, 200, 250)]
    seen = [{**STATEMENT, "nth": 0, "line": 11}, {**STATEMENT, "nth": 1, "line": 14}]
    assert statement_lines(mm, seen) == [(9, "function")] * 3


def run(*names: str) -> list[dict[str, Any]]:
    """Ops of one step, one after the other."""
    return [span(name, 150 + 10 * place, 5) for place, name in enumerate(names)]


def traced(*lines: tuple[str, int]) -> list[dict[str, Any]]:
    """The traced step: ops with their lines."""
    names = [name for name, _ in lines]
    return [
        {**STATEMENT, "op": name, "nth": names[:place].count(name), "line": line}
        for place, (name, line) in enumerate(lines)
    ]


def test_steps_that_differ_are_laid_side_by_side() -> None:
    seen = traced(("a", 11), ("b", 11), ("item", 12), ("item", 12), ("c", 13), ("mm", 13), ("mm", 14))
    # One branch not taken, one op of a name more than was seen, in a place of its own.
    assert statement_lines(run("a", "b", "item", "item", "c", "mm", "item"), seen) == [
        (11, "statement"),
        (11, "statement"),
        (12, "statement"),
        (12, "statement"),
        (13, "statement"),
        (13, "statement"),
        (9, "function"),
    ]


def test_a_new_op_inside_another_belongs_to_its_statement() -> None:
    seen = traced(("a", 11), ("b", 12))
    ops = [span("a", 150, 20), span("b", 200, 20), span("new", 205, 5), span("new", 230, 5)]
    assert statement_lines(ops, seen) == [(11, "statement"), (12, "statement"), (12, "statement"), (9, "function")]


def test_more_repetitions_of_one_statement_are_that_statement() -> None:
    seen = traced(("a", 11), ("a", 11))
    assert statement_lines(run(*"aaaa"), seen) == [(11, "statement")] * 4
    assert statement_lines(run("a"), seen) == [(11, "statement")]
    assert statement_lines(run(*"aaa"), seen) == [(9, "function")] * 3


def test_a_function_of_the_same_name_elsewhere_has_other_statements() -> None:
    seen = [{**STATEMENT, "file": "other.py", "nth": 0, "line": 11}]
    assert statement_lines([span("aten::mm", 150, 10)], seen) == [(9, "function")]


def test_backward_takes_the_statement_as_well() -> None:
    lines = statement_lines(
        [
            span("aten::mm", 150, 10, sequence=5, fwd_thread=0),
            span("MmBackward", 700, 10, sequence=5, fwd_thread=1, thread=7),
        ],
        [{**STATEMENT, "nth": 0, "line": 11}],
    )
    assert lines == [(11, "statement"), (11, "statement")]
