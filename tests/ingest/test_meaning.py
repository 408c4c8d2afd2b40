"""What rows mean: links, schemas, devices, collectives, steps, ranks."""

import pytest

OLD_KERNEL = {
    "ph": "X", "cat": "Kernel", "name": "gemm", "pid": 0, "tid": "stream 7", "ts": 120, "dur": 5,
    "args": {"device": 0, "stream": 7, "correlation": 11, "external id": 3, "grid": [2, 1, 1],
             "est. achieved occupancy %": 50, "blocks per SM": 0.5},
}  # fmt: skip


def test_older_schema(kineto):
    op = {"cat": "Operator", "tid": "7", "args": {"External id": 3, "Input Dims": [[2, 3]], "Sequence number": 8}}
    runtime = {"ph": "X", "cat": "Runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": "7", "ts": 101, "dur": 2}
    memory = {
        "ph": "i",
        "s": "t",
        "name": "[memory]",
        "pid": 7,
        "tid": 7,
        "ts": 102,
        "args": {"Device Type": 1, "Device Id": 0, "Bytes": -16},
    }
    flow = {"ph": "s", "id": 11, "pid": 7, "tid": 7, "ts": 101, "cat": "async", "name": "launch"}
    trace = kineto.read(
        [
            kineto.op() | op,
            kineto.op("ProfilerStep#5", 90, 500) | op,
            kineto.op("Optimizer.step#SGD.step", 300, 9) | op,
            kineto.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 400, 9) | op,
            runtime | {"args": {"correlation": 11, "external id": 3}},
            OLD_KERNEL,
            OLD_KERNEL | {"cat": "Memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "args": {"bytes": 64}},
            OLD_KERNEL | {"cat": "Memset", "name": "Memset (Device)", "args": {"bytes": 8, "correlation": 0}},
            memory,
            flow,
            flow | {"ph": "f", "pid": 0, "tid": "stream 7", "ts": 120},
        ]
    )
    assert trace.ops.select("name", "external_id", "sequence", "input_dims").row(0)[:3] == ("aten::add", 3, 8)
    assert trace.ops.height == 1
    assert trace.annotations["name"].cast(str).str.slice(0, 9).to_list() == ["ProfilerS", "Optimizer", "enumerate"]
    assert trace.steps.select("number", "start_ns", "dur_ns", "inferred").rows() == [(5, 0, 500_000, False)]
    kernel = trace.kernels.row(0, named=True)
    assert (kernel["stream"], kernel["correlation"], kernel["external_id"], kernel["occupancy_share"]) == (
        7,
        11,
        3,
        0.5,
    )
    assert trace.copies.select("kind", "pageable", "size_bytes", "stream").rows() == [("HtoD", True, 64, 7)]
    assert trace.sets.select("size_bytes", "correlation").rows() == [(8, None)]
    assert trace.memory.select("device_type", "size_bytes", "address").rows() == [(1, -16, None)]
    assert trace.flows.select("kind", "start", "flow_id").rows() == [("ac2g", True, 11), ("ac2g", False, 11)]
    assert set(trace.events["category"].cast(str)) == {
        "cpu_op", "user_annotation", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset", "cpu_instant_event", "ac2g",
    }  # fmt: skip
    # "7" and 7 are one thread
    assert trace.threads.select("pid", "tid").rows() == [("7", "7"), ("0", "stream 7")]
    assert trace.integrity.linked_kernel_share == 1.0


def test_flow_words_of_all_versions(kineto):
    flow = {"ph": "s", "id": 1, "pid": 7, "tid": 7, "ts": 1, "name": "x"}
    cats = ["ac2g", "async_cpu_to_gpu", "fwdbwd", "forward_backward", "something"]
    trace = kineto.read([kineto.op(), *(flow | {"cat": cat} for cat in cats)])
    assert trace.flows["kind"].to_list() == ["ac2g", "ac2g", "fwdbwd", "fwdbwd", "something"]


@pytest.mark.parametrize(
    ("name", "cat"),
    [
        ("cudaLaunchKernelExC", "cuda_runtime"),
        ("cuLaunchKernelEx", "cuda_driver"),
        ("hipExtModuleLaunchKernel", "hip_driver"),
        ("hipModuleLaunchKernel", "cuda_runtime"),
        ("hipGraphLaunch", "hip_runtime"),
        ("zeCommandListAppendLaunchKernel", "xpu_driver"),
        ("aclrtLaunch", "privateuse1_runtime"),
    ],
)
def test_every_launch_is_a_runtime_row(kineto, name, cat):
    trace = kineto.read([kineto.launch(4, 100, name, cat), kineto.kernel(4, 110, 5)])
    assert trace.runtime.select("name", "correlation", "external_id").rows() == [(name, 4, 5)]
    assert trace.integrity.linked_kernel_share == 1.0


def test_links_by_correlation_then_by_flow(kineto):
    flow = {"cat": "ac2g", "name": "ac2g", "pid": 7, "tid": 7}
    trace = kineto.read(
        [
            kineto.launch(1, 100),
            kineto.launch(1, 105),  # two launches with one correlation
            kineto.launch(0, 108),
            kineto.kernel(1, 110, 1),
            kineto.kernel(0, 120, 1),  # correlation 0: no link, but a whole flow
            kineto.kernel(0, 130, 1),  # a flow without its start
            flow | {"ph": "s", "id": 9, "ts": 108},
            flow | {"ph": "f", "id": 9, "ts": 120, "pid": 0},
            flow | {"ph": "f", "id": 8, "ts": 130, "pid": 0},
        ]
    )
    assert trace.kernels["correlation"].to_list() == [1, None, None]
    assert trace.runtime["correlation"].to_list() == [1, 1, None]
    assert trace.integrity.linked_kernel_share == pytest.approx(2 / 3)


def test_graph_replay_is_one_launch_with_many_kernels(kineto, issues):
    trace = kineto.read(
        [kineto.launch(5, 100, "cudaGraphLaunch"), *(kineto.kernel(5, 110 + n, 1) for n in range(1000))]
    )
    assert trace.kernels.height == 1000
    assert trace.integrity.linked_kernel_share == 1.0
    assert issues(trace) == {}


def test_missing_kernels_are_unknown_not_idle(kineto, issues):
    trace = kineto.read([kineto.launch(n, 100 + n) for n in range(1, 50)])
    assert issues(trace) == {"missing_device_events": 49}
    assert trace.integrity.grade == "E"
    assert trace.integrity.linked_kernel_share is None
    assert "unknown, not idle" in trace.integrity.issues[0].text


def test_a_graph_whose_kernels_are_missing(kineto, issues):
    sound = [event for n in range(2, 50) for event in (kineto.launch(n, 100 * n), kineto.kernel(n, 100 * n + 9, 1))]
    trace = kineto.read([*sound, kineto.launch(1, 99, "cudaGraphLaunch")])
    assert issues(trace) == {"missing_device_events": 1}
    assert issues(kineto.read([*sound, kineto.launch(1, 99)])) == {}  # one of 49: the end of the window


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "reduce_scatter"),
        ("void ncclDevKernel_Generic<4>(ncclDevComm*, unsigned long, ncclWork*)", None),
        ("nccldevkernel_allgather_ring_ll", "all_gather"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "send_recv"),
        ("void rcclKernel_AllReduce(...)", "all_reduce"),
        ("void vllm::cross_device_reduce_1stage<half, 8>(...)", "all_reduce"),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", "all_reduce"),
        ("void two_shot_all_reduce_kernel<float>(...)", "all_reduce"),
        ("mscclKernel_Sum_half_LL", None),
    ],
)
def test_collectives_by_name(kineto, name, operation):
    trace = kineto.read([kineto.kernel(1, 100, 5, name=name), kineto.kernel(2, 200, 5)])
    assert trace.kernels["collective"].to_list() == [True, False]
    assert trace.collectives.select("event", "operation", "source").rows() == [(0, operation, "name")]


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(...)",
        "void splitKreduce_kernel<float, float>(...)",
        "volta_scudnn_128x64_relu_small_nn_v1",
        "triton_red_fused_all_gather_0",
        "void gather_kernel<float>(...)",
        "void broadcast_kernel(...)",
        "void at::native::vectorized_gather_kernel<16, long>(...)",
    ],
)
def test_compute_kernels_are_no_collectives(kineto, name):
    trace = kineto.read([kineto.kernel(1, 100, 5, name=name)])
    assert trace.kernels["collective"].to_list() == [False]
    assert trace.collectives.height == 0


def test_collectives_by_metadata(kineto):
    told = {
        "Collective name": "_allgather_base", "In msg nelems": 1024, "Out msg nelems": 4096, "Group size": 4,
        "dtype": "BFloat16", "Process Group Name": "0", "Process Group Ranks": "[0, 1, 2, 3]", "Seq": 17,
    }  # fmt: skip
    trace = kineto.read([kineto.kernel(1, 100, 5, name="odd", **told)])
    row = trace.collectives.row(0, named=True)
    assert row == {
        "event": 0, "operation": "all_gather", "source": "metadata", "dtype": "BFloat16", "in_elements": 1024,
        "out_elements": 4096, "group_size": 4, "group_ranks": "[0, 1, 2, 3]", "group_name": "0", "sequence": 17,
    }  # fmt: skip


def test_odd_process_and_thread_ids(kineto):
    trace = kineto.read(
        [
            kineto.op() | {"pid": "Spans", "tid": "PyTorch Profiler"},
            kineto.op() | {"pid": "", "tid": ""},
            kineto.op() | {"pid": -1, "tid": 0},
            kineto.op() | {"pid": None, "tid": None},
            {"ph": "M", "name": "process_name", "pid": -1, "tid": 0, "args": {"name": "python"}},
            {"ph": "M", "name": "thread_name", "pid": "", "tid": "", "args": {"name": "main"}},
        ]
    )
    assert trace.threads.select("pid", "tid", "process_name", "thread_name").rows() == [
        ("Spans", "PyTorch Profiler", None, None), ("", "", None, "main"), ("-1", "0", "python", None),
        (None, None, None, None),
    ]  # fmt: skip
    assert trace.ops["thread"].to_list() == [0, 1, 2, 3]


def test_rank_only_in_the_name(kineto):
    from slipstream.ingest import read

    path = kineto.write(kineto.text([kineto.op()]), "rank_3.pt.trace.json")
    assert read(path).source.rank == 3
    told = kineto.write(kineto.text([kineto.op()], distributedInfo={"rank": 5, "world_size": 8}), "rank_4.json")
    assert (read(told).source.rank, read(told).source.world_size) == (5, 8)


def test_step_marks(kineto, issues):
    trace = kineto.read(
        [
            kineto.mark("ProfilerStep#2", 200, 90),
            kineto.mark("ProfilerStep#1", 100, 90),
            kineto.mark("ProfilerStep#2", 210, 50),  # inside
            kineto.mark("ProfilerStep#1", 101, 88, tid=9),  # on another thread
            kineto.mark("ProfilerStep#1", 100, 300, cat="gpu_user_annotation"),
            kineto.mark("ProfilerStep#3", 290, 90),
        ]
    )
    assert trace.steps.select("number", "start_ns", "dur_ns").rows() == [
        (1, 0, 90_000),
        (2, 100_000, 90_000),
        (3, 190_000, 90_000),
    ]
    assert trace.annotations["on_device"].to_list() == [False, False, False, False, True, False]
    assert issues(trace) == {"double_step_marks": 2}
    assert trace.integrity.grade == "A"


def test_one_mark_alone(kineto):
    assert kineto.read([kineto.mark("ProfilerStep#7", 5, 1)]).steps["number"].to_list() == [7]


def test_steps_by_the_optimizer(kineto, issues):
    ends = [kineto.mark("Optimizer.step#Adam.step", 100 * n, 10) for n in range(1, 5)]
    trace = kineto.read([kineto.op(ts=50), *ends])
    assert trace.steps.select("number", "start_ns", "dur_ns", "inferred").rows() == [
        (0, 60_000, 100_000, True), (1, 160_000, 100_000, True), (2, 260_000, 100_000, True),
    ]  # fmt: skip
    assert issues(trace) == {"inferred_steps": 3}


def test_no_marks_no_steps(kineto):
    two = [kineto.mark("Optimizer.step#Adam.step", 100 * n, 10) for n in range(2)]
    assert kineto.read([kineto.op(), *two]).steps.height == 0


def test_device_annotations_with_a_rim(kineto, issues):
    trace = kineto.read([kineto.kernel(1, 100, 10), kineto.mark("fwd", 99.999, 10.002, cat="gpu_user_annotation")])
    assert trace.annotations.select("on_device", "ts_ns", "dur_ns").rows() == [(True, 0, 10_002)]
    assert issues(trace) == {}


def test_events_without_args(kineto):
    bare = [
        {key: value for key, value in event.items() if key != "args"}
        for event in (kineto.op(), kineto.kernel(1, 100, 5))
    ]
    trace = kineto.read([*bare, kineto.op() | {"args": None}, kineto.op() | {"args": [1]}])
    assert trace.ops["external_id"].to_list() == [None, None, None]
    assert trace.kernels.select("device", "stream", "correlation").rows() == [(0, 7, None)]


@pytest.mark.parametrize(
    ("category", "name", "table", "kind"),
    [
        ("mtia_ccp_events", "pe_exe", "kernels", "mtia"),
        ("mtia_ccp_events", "dma_request", "copies", "mtia"),
        ("mtia_ccp_events", "event_wait", "syncs", "mtia"),
        ("xpu_kernel", "gemm", "kernels", "unknown"),
        ("npu_kernel", "MatMul", "kernels", "npu"),
        ("privateuse1_kernel", "k", "kernels", "unknown"),
        ("privateuse1_memcpy", "Memcpy HtoD", "copies", "unknown"),
    ],
)
def test_other_vendors_categories(kineto, category, name, table, kind):
    trace = kineto.read([kineto.op(), kineto.kernel(1, 105, 5, name=name) | {"cat": category}])
    assert trace.table(table).height == 1
    assert trace.source.device_kind in (kind, "xpu")


@pytest.mark.parametrize(
    ("device", "kind"),
    [
        ("NVIDIA A100-SXM4-80GB", "cuda"),
        ("Tesla V100-SXM2-32GB", "cuda"),
        ("NVIDIA H100 80GB HBM3", "cuda"),
        ("A100-PG509-200", "cuda"),
        ("NVIDIA B200", "cuda"),
        ("AMD Instinct MI300X", "rocm"),
        ("Intel(R) Data Center GPU Max 1550", "xpu"),
        ("Ascend910B", "npu"),
        ("Something Else 3000", "unknown"),
    ],
)
def test_device_by_its_name(kineto, device, kind):
    trace = kineto.read([kineto.kernel(1, 105, 5)], deviceProperties=[{"id": 0, "name": device}])
    assert (trace.source.device, trace.source.device_kind) == (device, kind)


def test_values_that_no_column_can_hold_become_null(kineto):
    trace = kineto.read(
        [kineto.kernel(2**70, 100, 5, **{"registers per thread": 2**31, "stream": 1.5, "device": 2**40})]
    )
    assert trace.kernels.select("correlation", "registers", "device").rows() == [(None, None, None)]


def test_counters(kineto):
    sample = {"ph": "C", "name": "GPU util", "pid": 0, "tid": 0, "ts": 101, "args": {"value": 40}}
    ranged = kineto.op("k", 105, 20, **{"smsp__inst.sum": 9}) | {"cat": "cuda_profiler_range"}
    trace = kineto.read([kineto.op(), sample, ranged])
    assert trace.counters.select("name", "ts_ns", "dur_ns").rows() == [("GPU util", 1000, None), ("k", 5000, 20_000)]
    assert '"value": 40' in trace.counters["values"][0]


def test_ops_keep_shapes_and_the_arguments_of_collectives(kineto):
    shapes = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"], "Concrete Inputs": ["", "1"]}
    told = {"Collective name": "allreduce", "In msg nelems": 7}
    trace = kineto.read([kineto.op(**shapes), kineto.op("record_param_comms", **told)])
    import json

    assert json.loads(trace.ops["input_dims"][0]) == shapes["Input Dims"]
    assert json.loads(trace.ops["concrete_inputs"][0]) == shapes["Concrete Inputs"]
    assert trace.ops["args"][0] is None
    assert json.loads(trace.ops["args"][1])["In msg nelems"] == 7
