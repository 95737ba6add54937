"""The engine on other implementations of OpenCL, each in processes of its own (scripts/opencl.py).

``make test-all`` runs a part of it; ``HEIMDALL_OPENCL=all`` (``make test-opencl``) every op, both
families of kernels, whole networks and the contract. What cannot be had here is skipped, and the
reason told. Oclgrind interprets kernels and must have nothing to report: no access outside a
buffer, no race, no wrong call. Its check for uninitialised values is left out: of memory that
clEnqueueFillBuffer has written it says that it was not written.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.timeout(3600), pytest.mark.long]

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
ALL = os.environ.get("HEIMDALL_OPENCL") == "all"
KERNEL_FILES = ROOT / "heimdall" / "engine" / "opencl" / "kernels"
CONTRACT = "../test_contract.py"
EACH_KERNEL = "test_kernels.py"
PART = {  # what `make test-all` runs: a file and what of it
    "intel": [("test_operators.py", "softmax or pools or pads"), (CONTRACT, "opencl")],
    "rusticl": [("test_operators.py", "softmax or pads"), (CONTRACT, "opencl")],
    "oclgrind": [(EACH_KERNEL, "")],
}
OPERATORS = ("test_operators.py", "test_conv.py", "test_conv_separable.py", "test_drawn.py")
KERNELS = (EACH_KERNEL, *OPERATORS, CONTRACT)
NETWORKS = (
    *("test_whole.py", "test_random_networks.py", "test_network.py", "test_state.py"),
    "test_lanes.py",
)
WHOLE = {
    "intel": [*KERNELS, *NETWORKS, "test_transfer.py", "test_slices.py", "test_program.py"],
    "rusticl": [*KERNELS, *NETWORKS, "test_transfer.py"],
    "oclgrind": [*KERNELS],
}
CHOSEN = {(name, CONTRACT): "opencl" for name in WHOLE} | {  # of these files not all
    # Without AVX-512's tiles: llvmpipe compiles one for minutes, and no GPU of Mesa's gets them.
    ("rusticl", "test_conv.py"): "gpu or narrow or of_other_devices",
    # llvmpipe takes 5 s for squeezenet, which is run 21 times there, and half a minute for nanodet.
    ("rusticl", "test_whole.py"): "not thread_comes_last",
    ("rusticl", "test_network.py"): "not (forced and (palm or nanodet or movenet))",
    # Kernels for CPUs; Oclgrind says that it is a GPU too.
    ("rusticl", "test_conv_separable.py"): "NEON",
    ("oclgrind", "test_conv_separable.py"): "NEON or narrow",
}
CASES = [
    pytest.param(name, file, chosen, id=f"{name}-{Path(file).stem}")
    for name, part in PART.items()
    for file, chosen in ([(f, CHOSEN.get((name, f), "")) for f in WHOLE[name]] if ALL else part)
]


def _script():
    spec = importlib.util.spec_from_file_location("opencl_script", ROOT / "scripts" / "opencl.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def variables():
    """variables(name): the environment of a process that sees this implementation and no other."""
    script = _script()

    def get(name: str) -> dict[str, str]:
        try:
            return {**os.environ, **script.environment(name)}
        except script.UnavailableError as reason:
            pytest.skip(f"{name} cannot be had here: {reason}")

    return get


def run(environment: dict[str, str], *command: str) -> str:
    """Both outputs of a command that must succeed. It is no worker of this run."""
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


@pytest.mark.parametrize(("name", "file", "chosen"), CASES)
def test_the_engine_is_right_on(variables, tmp_path, name, file, chosen):
    environment = variables(name)
    report = tmp_path / "report"
    if name == "oclgrind":
        environment |= {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_CHECK_API": "1"}
        environment |= {"OCLGRIND_LOG": str(report), "OCLGRIND_INST_COUNTS": "1"}
        environment |= {"HEIMDALL_EXAMPLES": "2"}  # it interprets: of what is drawn, less
    options = ["-s", "-p", "no:cacheprovider", "--timeout", "1200", "-rs"]
    output = run(environment, "-m", "pytest", *options, *(("-k", chosen) if chosen else ()),
                 str(HERE / file))  # fmt: skip
    assert " passed" in output
    assert "no OpenCL" not in output  # every test would be skipped
    if name == "oclgrind":
        assert report.exists()
        assert report.read_text().strip() == ""
        assert refused_calls(output) == []
    if name == "oclgrind" and file == EACH_KERNEL:
        ran = re.findall(r"Instructions executed for kernel '(\w+)'", output)
        source = "".join(path.read_text() for path in KERNEL_FILES.glob("*.cl"))
        assert set(ran) == set(re.findall(r"__kernel void (\w+)", source))


def refused_calls(output: str) -> list[str]:
    """The OpenCL functions that Oclgrind calls misused; questions about what it has are none, nor
    is that for a kernel `_source`: pyopencl's, of a program made from its binary."""
    called = re.findall(r"runtime error detected\s+Function: (\w+)\s+Error: +\w+\s*(.*)", output)
    return [name for name, why in called if not name.startswith("clGet") and "'_source'" not in why]


def test_oclgrind_finds_what_it_is_there_for(variables, tmp_path):
    """A race and an access outside of a buffer, or else the silence above says nothing."""
    report = tmp_path / "report"
    environment = variables("oclgrind")
    environment |= {"OCLGRIND_DATA_RACES": "1", "OCLGRIND_LOG": str(report)}
    code = (
        "import numpy as np, pyopencl as cl\n"
        "device = cl.get_platforms()[0].get_devices()[0]\n"
        "queue = cl.CommandQueue(cl.Context([device]))\n"
        "source = '__kernel void k(__global int *x) { x[0] = get_global_id(0); x[4] = 1; }'\n"
        "buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 16)\n"
        "kernel = cl.Kernel(cl.Program(queue.context, source).build(cache_dir=False), 'k')\n"
        "kernel(queue, (2,), (1,), buffer)\n"
        "queue.finish()\n"
    )
    run(environment, "-c", code)
    found = report.read_text()
    assert "Invalid write of size 4" in found
    assert "data race" in found


@pytest.mark.skipif(not ALL, reason="make test-opencl: every bundled network")
def test_the_bundled_networks_are_right_on_intels_runtime(variables):
    """Measured too. On rusticl, which is a hundred times slower, test_network compares them."""
    environment = variables("intel")
    output = run(environment, "-m", "heimdall", "check", "--all", "--cores", "1", "--json")
    results = json.loads(output[output.index("{") :])["models"]
    wrong = [each for each in results if each["error"] or not each["max_rel_error"] <= 1e-3]
    assert results
    assert wrong == []


def test_intels_runtime_is_found_in_pythons_environment(variables, tmp_path):
    """As `pip install heimdall-ar[cpu]` puts it there; the loader itself looks elsewhere."""
    environment = variables("intel")
    unpacked = Path(environment.pop("OCL_ICD_VENDORS")).parent
    environment |= {"LD_LIBRARY_PATH": "", "HEIMDALL_CACHE": str(tmp_path)}
    code = (
        "from pathlib import Path\n"
        "from heimdall.engine.opencl import icd\n"
        f"icd.PREFIXES, icd.SYSTEM = (Path({str(unpacked)!r}),), Path('/nowhere')\n"
        "from heimdall.engine.opencl.device import devices, label\n"
        "print([label(device) for device in devices()], icd.drivers().problems)\n"
    )
    output = run(environment, "-c", code)
    assert "Intel(R) OpenCL" in output
    assert output.strip().endswith("()")


PLAYS_THE_GPU = """
    import json, os, threading
    from dataclasses import asdict
    import cv2, numpy as np, onnxruntime
    from heimdall import inspection
    from heimdall.graph.samples import sample_inputs
    from heimdall.system import softgpu

    (graph,) = inspection.load_networks("selfie", {})
    gpu = softgpu.plan()
    with gpu.confined():
        from heimdall.engine.opencl.engine import OpenCLEngine
        engine = OpenCLEngine()
    opened = {thread.tid for thread in gpu.threads()}
    network = engine.load(graph)
    state = network.new_state()
    found = {}

    def work():
        for _ in range(20):
            network.infer(state, sample_inputs(graph))
        found["all"] = [asdict(thread) for thread in softgpu.list_threads()]

    def ticks(tid):
        return int(open(f"/proc/self/task/{tid}/stat").read().rpartition(")")[2].split()[11])

    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    busy = {thread.tid: ticks(thread.tid) for thread in gpu.threads()}
    print(json.dumps({"plan": asdict(gpu), "units": engine.device.max_compute_units,
                      "opened": sorted(opened), "busy": busy, **found}))
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads are confined on Linux")
def test_intels_workers_are_confined_to_the_gpus_cores(variables, run_python):
    """As PoCL's are: created when the engine opens, on the GPU's cores, and in real time."""
    if len(os.sched_getaffinity(0)) != 2:
        pytest.skip("with more cores than one for the GPU, the thread that waits computes too")
    result = run_python(PLAYS_THE_GPU, env=variables("intel"))
    plan = result["plan"]
    assert result["units"] == len(plan["gpu_cores"])
    assert result["opened"]
    assert sum(result["busy"].values()) > 0
    gpu = [thread for thread in result["all"] if thread["tid"] in result["opened"]]
    rest = [thread for thread in result["all"] if thread["tid"] not in result["opened"]]
    assert all(set(thread["cores"]) <= set(plan["gpu_cores"]) for thread in gpu)
    assert all(thread["realtime"] == (plan["confinement"] == "real-time") for thread in gpu)
    assert all(set(thread["cores"]) <= set(plan["cpu_cores"]) for thread in rest)
