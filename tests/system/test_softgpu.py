"""The software GPU divides the cores, confines real worker threads, and cleans up after itself."""

from __future__ import annotations

import os
import sys

import pytest

from heimdall.errors import ConfigError, DeviceError
from heimdall.system import softgpu
from heimdall.system.policy import FIFO, NORMAL
from heimdall.vocabulary.enums import Confinement

linux = pytest.mark.skipif(sys.platform != "linux", reason="threads are confined on Linux only")
two_cores = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs two cores",
)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("HEIMDALL_GPU_CORES", raising=False)
    monkeypatch.delenv("HEIMDALL_REALTIME", raising=False)


@pytest.fixture
def machine(monkeypatch):
    """Pretend that the process may use ``n`` cores, and may or may not be real-time."""

    def pretend(n: int, permitted: bool = True) -> None:
        monkeypatch.setattr(softgpu, "_can_confine", lambda: True)
        monkeypatch.setattr(softgpu, "allowed_cores", lambda: tuple(range(n)))
        monkeypatch.setattr(softgpu, "_realtime_permitted", lambda: permitted)

    return pretend


@pytest.mark.parametrize(("cores", "gpu"), [(2, 1), (3, 1), (4, 2), (7, 3), (16, 8)])
def test_half_of_the_cores_are_the_gpus(machine, cores, gpu):
    machine(cores)
    plan = softgpu.plan()
    assert plan.gpu_cores == tuple(range(gpu))
    assert plan.cpu_cores == tuple(range(gpu, cores))
    assert plan.confinement == Confinement.REALTIME


def test_the_environment_sets_the_number_and_an_argument_overrides_it(machine, monkeypatch):
    machine(8)
    monkeypatch.setenv("HEIMDALL_GPU_CORES", "3")
    assert len(softgpu.plan().gpu_cores) == 3
    assert len(softgpu.plan(cores=1).gpu_cores) == 1


@pytest.mark.parametrize("text", ["0", "9", "two", "-1", "1.5", "³"])
def test_a_number_of_cores_that_there_is_not_is_refused(machine, monkeypatch, text):
    machine(8)
    monkeypatch.setenv("HEIMDALL_GPU_CORES", text)
    with pytest.raises(ConfigError, match="HEIMDALL_GPU_CORES"):
        softgpu.plan()


def test_all_cores_are_shared_without_real_time(machine):
    machine(4)
    plan = softgpu.plan(cores=4)
    assert plan.gpu_cores == plan.cpu_cores == (0, 1, 2, 3)
    assert plan.confinement == Confinement.SHARED
    with pytest.raises(DeviceError, match="all 4 cores"):
        softgpu.plan(cores=4, realtime=True)


def test_one_core_is_shared_without_real_time(machine):
    machine(1)
    plan = softgpu.plan()
    assert (plan.gpu_cores, plan.cpu_cores, plan.confinement) == ((0,), (0,), Confinement.SHARED)
    with pytest.raises(DeviceError, match="leaves none"):
        softgpu.plan(realtime=True)


def test_without_permission_the_system_slices_the_time(machine):
    machine(4, permitted=False)
    plan = softgpu.plan()
    assert plan.confinement == Confinement.TIME_SLICED
    assert "time-sliced" in plan.describe()
    assert plan.load_limit == 1.0
    with pytest.raises(DeviceError, match="CAP_SYS_NICE"):
        softgpu.plan(realtime=True)


@pytest.mark.parametrize(
    ("confinement", "sentence"),
    [
        (Confinement.REALTIME, "real-time (SCHED_RR) on core 0, everything else on cores 1, 2"),
        (
            Confinement.TIME_SLICED,
            "time-sliced by the system on core 0, everything else on cores 1, 2"
            " (real-time scheduling is not permitted or was declined)",
        ),
        (Confinement.SHARED, "time-sliced by the system: shares core 0 with everything else"),
    ],
)
def test_saved_profiles_stay_valid_under_the_words_they_were_saved_with(confinement, sentence):
    plan = softgpu.SoftwareGpu((0,), (1, 2), confinement)
    assert plan.profile_key == sentence
    if confinement != Confinement.REALTIME:
        assert plan.describe() == sentence


def test_work_alone_is_the_same_under_every_real_time_policy(machine):
    machine(2)
    turns, on_and_on = softgpu.plan(), softgpu.plan(policy=FIFO)
    assert turns.profile_key == on_and_on.profile_key != softgpu.plan(policy=NORMAL).profile_key
    assert turns.describe() != on_and_on.describe()


def test_a_policy_that_is_asked_for_is_insisted_on(machine, monkeypatch):
    machine(4)
    monkeypatch.setenv("HEIMDALL_REALTIME", "0")
    assert softgpu.plan(policy=FIFO).confinement == Confinement.REALTIME
    assert softgpu.plan(policy=NORMAL).confinement == Confinement.TIME_SLICED
    machine(4, permitted=False)
    assert softgpu.plan(policy=NORMAL).confinement == Confinement.TIME_SLICED
    with pytest.raises(DeviceError, match="CAP_SYS_NICE"):
        softgpu.plan(policy=FIFO)


@linux
@two_cores
@pytest.mark.parametrize(("name", "number"), [("RR", 2), ("FIFO", 1), ("NORMAL", 0)])
def test_the_gpus_threads_run_under_its_policy(run_python, name, number):
    permitted, found = run_python(f"""
        import json, os
        import numpy as np
        from heimdall.system import policy, softgpu
        permitted = softgpu._realtime_permitted()
        gpu = softgpu.plan(policy=policy.{name} if permitted else policy.NORMAL)
        with gpu.confined():
            import pyopencl as cl
            device = next(d for p in cl.get_platforms() for d in p.get_devices())
            cl.CommandQueue(cl.Context([device])).finish()
        found = [os.sched_getscheduler(t.tid) & ~os.SCHED_RESET_ON_FORK for t in gpu.threads()]
        print(json.dumps([permitted, found]))
    """)
    if not found:
        pytest.skip("this machine has a GPU")
    assert set(found) == {number if permitted else 0}


def test_real_time_can_be_declined(machine, monkeypatch):
    machine(4)
    assert softgpu.plan(realtime=False).confinement == Confinement.TIME_SLICED
    monkeypatch.setenv("HEIMDALL_REALTIME", "0")
    assert softgpu.plan().confinement == Confinement.TIME_SLICED


def test_a_system_that_cannot_confine_says_so(machine, monkeypatch):
    machine(4)
    monkeypatch.setattr(softgpu, "_can_confine", lambda: False)
    for name in ("LP_NUM_THREADS", "POCL_MAX_PTHREAD_COUNT", "POCL_CPU_MAX_CU_COUNT"):
        monkeypatch.setenv(name, "")  # puts back what was there
    plan = softgpu.plan()
    assert plan.confinement == Confinement.UNCONFINED
    assert "cannot confine" in plan.describe()
    before = plan.threads()  # of tests before
    with plan.confined():
        assert os.environ["LP_NUM_THREADS"] == "2"
    plan.release()
    assert plan.threads() == before
    with pytest.raises(DeviceError, match="no real-time"):
        softgpu.plan(realtime=True)


def test_older_kernels_limit_the_load_of_a_real_time_gpu(machine, monkeypatch):
    machine(2)
    monkeypatch.setattr(softgpu, "_throttled", lambda: True)
    assert softgpu.plan().load_limit == 0.93
    assert softgpu.plan(realtime=False).load_limit == 1.0


CREATE_BOTH = """
    import json, os, threading
    # Mesa's disk cache has a thread that chooses its own cores, at a moment of its own choice.
    os.environ["MESA_SHADER_CACHE_DISABLE"] = "true"
    os.environ["MESA_GLSL_CACHE_DISABLE"] = "true"  # its name in older versions
    import numpy as np
    from dataclasses import asdict
    from heimdall.system import softgpu

    gpu = softgpu.plan()
    with gpu.confined():
        import moderngl, pyopencl as cl
        device = next(d for p in cl.get_platforms() for d in p.get_devices())
        queue = cl.CommandQueue(cl.Context([device]))
        cl.enqueue_fill_buffer(
            queue, cl.Buffer(queue.context, 1, 4096), np.int32(1), 0, 4096
        )
        queue.finish()
        gl = moderngl.create_context(standalone=True, backend="egl")
        target = gl.simple_framebuffer((64, 64))
        target.use()
        gl.clear(1.0)
        target.read()
    idle = threading.Event()
    later = threading.Thread(target=idle.wait)
    later.start()
    result = {"plan": asdict(gpu), "units": device.max_compute_units, "later": later.native_id,
              "main": threading.get_native_id(), "platform": device.platform.name,
              "renderer": gl.info["GL_RENDERER"],
              "gpu": [asdict(t) for t in gpu.threads()],
              "all": [asdict(t) for t in softgpu.list_threads()]}
    with gpu.confined():  # once more: what is the GPU's stays the GPU's
        pass
    result["again"] = [asdict(t) for t in gpu.threads()]
    gpu.release()
    result["released"] = [asdict(t) for t in softgpu.list_threads()]
    idle.set()
    print(json.dumps(result))
"""


@linux
@two_cores
def test_pocl_and_llvmpipe_run_on_the_gpus_cores_and_python_on_the_others(run_python):
    pytest.importorskip("pyopencl")
    result = run_python(CREATE_BOTH)
    if "llvmpipe" not in result["renderer"] or "Portable" not in result["platform"]:
        pytest.skip("this machine has a GPU")
    plan = result["plan"]
    names = [thread["name"] for thread in result["gpu"]]
    workers = len(plan["gpu_cores"])
    assert result["units"] == workers
    assert sum(name.startswith("llvmpipe-") for name in names) == workers
    assert len(names) >= 2 * workers  # PoCL's workers carry the program's own name
    realtime = plan["confinement"] == "real-time"
    assert all(set(thread["cores"]) <= set(plan["gpu_cores"]) for thread in result["gpu"])
    assert all(len(thread["cores"]) == (workers if realtime else 1) for thread in result["gpu"])
    assert all(thread["realtime"] == realtime for thread in result["gpu"])

    gpu = {thread["tid"] for thread in result["gpu"]}
    rest = [thread for thread in result["all"] if thread["tid"] not in gpu]
    assert {result["main"], result["later"]} <= {thread["tid"] for thread in rest}
    assert all(thread["cores"] == plan["cpu_cores"] for thread in rest)
    assert not any(thread["realtime"] for thread in rest)

    assert result["again"] == result["gpu"]
    everything = sorted({*plan["gpu_cores"], *plan["cpu_cores"]})
    assert all(thread["cores"] == everything for thread in result["released"])
    assert not any(thread["realtime"] for thread in result["released"])


@linux
@two_cores
def test_workers_that_share_their_cores_get_one_each(run_python):
    pytest.importorskip("pyopencl")
    result = run_python(CREATE_BOTH.replace("softgpu.plan()", "softgpu.together(2)"))
    if "llvmpipe" not in result["renderer"] or "Portable" not in result["platform"]:
        pytest.skip("this machine has a GPU")
    by_library: dict[str, set[int]] = {}
    for thread in result["gpu"]:
        assert len(thread["cores"]) == 1
        by_library.setdefault(thread["name"].rstrip("0123456789"), set()).update(thread["cores"])
    assert by_library
    assert all(len(used) == 2 for used in by_library.values())


@linux
@two_cores
def test_a_failure_inside_gives_the_calling_thread_back(run_python):
    result = run_python("""
        import json, os, threading
        from heimdall.system import softgpu
        gpu = softgpu.plan()
        idle, threads = threading.Event(), []
        try:
            with gpu.confined():
                assert tuple(os.sched_getaffinity(0)) == gpu.gpu_cores
                threads.append(threading.Thread(target=idle.wait))
                threads[0].start()
                raise RuntimeError("no OpenCL")
        except RuntimeError:
            pass
        print(json.dumps({"cpu": gpu.cpu_cores, "own": sorted(os.sched_getaffinity(0)),
                          "policy": os.sched_getscheduler(0), "gpu": len(gpu.threads()),
                          "thread": sorted(os.sched_getaffinity(threads[0].native_id))}))
        idle.set()
    """)
    assert result["own"] == result["cpu"] == result["thread"]
    assert result["policy"] == os.SCHED_OTHER
    assert result["gpu"] == 0


@linux
@two_cores
def test_only_the_gpus_threads_change_their_policy(run_python):
    """What is first in line stays so when a second session opens."""
    result = run_python("""
        import json, os, threading
        from heimdall.system import softgpu
        gpu = softgpu.plan()
        with gpu.confined():
            pass
        idle, ready = threading.Event(), threading.Event()

        def background():
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
            ready.set()
            idle.wait()

        other = threading.Thread(target=background)
        other.start()
        ready.wait()
        policy = lambda tid: os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
        if gpu.realtime:
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(2))
            wanted = [os.SCHED_RR, 2]
        else:
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
            wanted = [os.SCHED_BATCH, 0]
        with gpu.confined():
            pass
        own = [policy(0), os.sched_getparam(0).sched_priority]
        print(json.dumps([own == wanted, policy(other.native_id) == os.SCHED_BATCH,
                          tuple(os.sched_getaffinity(0)) == gpu.cpu_cores]))
        gpu.release()
        assert [policy(0), os.sched_getparam(0).sched_priority] == wanted
        idle.set()
        """)
    assert result == [True, True, True]


def test_the_environment_is_given_back_unless_somebody_else_has_set_it(monkeypatch):
    plan = softgpu.plan(confine=False)
    monkeypatch.setenv("LP_NUM_THREADS", "7")
    monkeypatch.setenv("POCL_AFFINITY", "1")
    monkeypatch.delenv("POCL_MAX_PTHREAD_COUNT", raising=False)
    monkeypatch.setenv("POCL_CPU_MAX_CU_COUNT", "5")
    with plan.confined():
        assert os.environ["LP_NUM_THREADS"] == str(len(plan.gpu_cores))
        assert "POCL_AFFINITY" not in os.environ
        os.environ["POCL_CPU_MAX_CU_COUNT"] = "another"
    assert os.environ["LP_NUM_THREADS"] == "7"
    assert os.environ["POCL_AFFINITY"] == "1"
    assert "POCL_MAX_PTHREAD_COUNT" not in os.environ
    assert os.environ["POCL_CPU_MAX_CU_COUNT"] == "another"


@linux
def test_only_the_cores_this_process_may_use_are_divided(run_python):
    core = max(os.sched_getaffinity(0))
    result = run_python(
        """
        import json
        from heimdall.system import softgpu
        plan = softgpu.plan()
        with plan.confined():
            pass
        print(json.dumps([plan.gpu_cores, plan.cpu_cores, plan.confinement]))
        """,
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    assert result == [[core], [core], "shared"]
