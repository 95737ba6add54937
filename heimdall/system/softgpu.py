"""The software GPU: PoCL and llvmpipe play the GPU on a fixed share of the CPU's cores.

Both draw and compute with worker threads of their own. A thread inherits affinity and
scheduling policy from the thread that creates it, so the calling thread is confined to the
GPU's cores while the two libraries start, and goes back to the other cores afterwards. From
then on GPU work and everything else contend as on a device with a GPU of its own.

Which of them has a core that both want is the system's affair, by the policy that their threads
run under. Under the normal one (*time-sliced*) the system favours short work, rendering, and hides
the contention that this framework is about. Under a *real-time* one nothing preempts running GPU
work but, with SCHED_RR, the end of its slice. Slices lie between PoCL's thread and llvmpipe's, and
not between OpenCL's queues: those are served by one PoCL thread a core, which takes from each queue
a kernel in turn (measured: docs/laboratory/drivers.md).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heimdall.errors import ConfigError, DeviceError
from heimdall.system.environment import variables
from heimdall.system.policy import NORMAL, RR, GpuPolicy
from heimdall.vocabulary.enums import Confinement

RT_PRIORITY = 1
_TASKS = Path("/proc/self/task")
_gpu_tids: set[int] = set()  # threads that ``confined`` has given to the GPU


@dataclass(frozen=True)
class Thread:
    """One thread of this process: where and how the system schedules it."""

    tid: int
    name: str
    cores: tuple[int, ...]
    realtime: bool


@dataclass(frozen=True)
class SoftwareGpu:
    """A division of the cores between the software GPU and everything else. ``policy``: of its
    threads in real time."""

    gpu_cores: tuple[int, ...]
    cpu_cores: tuple[int, ...]
    confinement: Confinement
    policy: GpuPolicy = RR

    @property
    def realtime(self) -> bool:
        return self.confinement == Confinement.REALTIME

    def describe(self) -> str:
        """One line for people: how it is confined, and to which cores."""
        apart = self._apart()
        sliced = "time-sliced by the system"
        return {
            Confinement.REALTIME: f"real-time ({self.policy.describe()}) {apart}",
            Confinement.TIME_SLICED: f"{sliced} {apart} (real-time scheduling is not permitted or"
            " was declined)",
            Confinement.SHARED: f"{sliced}: shares {_span(self.gpu_cores)} with everything else",
            Confinement.UNCONFINED: f"{sliced}: no core of its own ("
            + ("as asked" if _can_confine() else f"{sys.platform} cannot confine threads")
            + f"), {len(self.gpu_cores)} worker threads",
        }[self.confinement]

    @property
    def profile_key(self) -> str:
        """What is measured under it is kept under this name: work alone takes the same under all
        real-time policies. The words are those that saved profiles have."""
        if self.realtime:
            return f"real-time (SCHED_RR) {self._apart()}"
        return self.describe()

    def _apart(self) -> str:
        return f"on {_span(self.gpu_cores)}, everything else on {_span(self.cpu_cores)}"

    @property
    def load_limit(self) -> float:
        """The share of a second that GPU work may take before the system throttles it.

        Linux stops real-time threads for the rest of a period once they have used
        ``sched_rt_runtime_us`` of it (usually 95%); 0.93 stays clear of that, with what a
        second may take more by chance. Since 6.12 it does so only when normal threads wait for the
        core, but the kernel's own do: on 6.18 a busy loop under SCHED_RR stood still for 49 ms of
        each second.
        """
        return 0.93 if self.realtime and _throttled() else 1.0

    @contextlib.contextmanager
    def confined(self) -> Iterator[SoftwareGpu]:
        """Create the OpenCL and GL contexts, and run first work in them, inside this block.

        The threads they create become the GPU's. Threads that exist already, and the calling
        thread when the block ends, even by an exception, belong to ``cpu_cores``, each under its
        own policy. The environment variables that size both libraries are set inside the block:
        they are read when the libraries load. Import numpy, cv2 and onnxruntime before, so that
        threads of their own do not become GPU threads.
        """
        with variables(self._environment()):
            if self.confinement == Confinement.UNCONFINED:
                yield self
                return
            before = thread_ids()
            policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
            _gpu_tids.intersection_update(before)
            try:
                for tid in before - _gpu_tids:
                    _place(tid, self.cpu_cores)
                for tid in _gpu_tids:  # of an earlier block
                    _confine(tid, self.gpu_cores, self._scheduled)
                self._confine_caller()
                yield self
            finally:
                _place(0, self.cpu_cores)
                with contextlib.suppress(OSError):
                    os.sched_setscheduler(0, policy, param)
                self._claim(thread_ids() - before)

    def release(self) -> None:
        """Undo ``confined``: a real GPU was found, and every thread may run on every core."""
        if self.confinement != Confinement.UNCONFINED:
            everywhere = self.gpu_cores + self.cpu_cores
            for tid in thread_ids():
                if tid in _gpu_tids:
                    _confine(tid, everywhere, NORMAL)
                else:
                    _place(tid, everywhere)
            _gpu_tids.clear()

    def places(self, cores: set[int]) -> bool:
        """True if it puts threads that are not the GPU's on these cores."""
        return cores in ({*self.cpu_cores}, {*self.gpu_cores, *self.cpu_cores})

    def threads(self) -> list[Thread]:
        """The threads that play the GPU now (where threads can be confined; else none)."""
        return [thread for thread in list_threads() if thread.tid in _gpu_tids]

    def _confine_caller(self) -> None:
        os.sched_setaffinity(0, self.gpu_cores)
        if self.realtime:
            os.sched_setscheduler(0, self.policy.number, os.sched_param(RT_PRIORITY))

    @property
    def _scheduled(self) -> GpuPolicy:
        return self.policy if self.realtime else NORMAL

    def _claim(self, created: set[int]) -> None:
        """Make new threads the GPU's, except Python's and those for background work.

        Mesa's shader cache writes its files in a thread that, as soon as it first runs, puts
        itself on all cores with a background policy: let it do so, then overrule the cores.
        """
        _wait_until_idle(created)
        python = {thread.native_id for thread in threading.enumerate()}
        for tid in created:
            if tid in python or _policy(tid) in (os.SCHED_BATCH, os.SCHED_IDLE):
                _confine(tid, self.cpu_cores, NORMAL)
            else:
                _gpu_tids.add(tid)
                _confine(tid, self.gpu_cores, self._scheduled)
        if not self.realtime:
            self._spread()

    def _spread(self) -> None:
        """Give each of a library's workers a core of its own.

        They wait for one another after every kernel, and wake up too often for the system's
        balancing: on two cores it left PoCL's two on one of them for seconds (movenet 7.3 ms
        instead of 5.7). Real-time threads are moved to a free core as soon as they wake.
        """
        placed: dict[str, int] = {}
        for thread in self.threads():
            library = thread.name.rstrip("0123456789")  # PoCL's carry the program's name
            index = placed[library] = placed.get(library, -1) + 1
            core = self.gpu_cores[index % len(self.gpu_cores)]
            _confine(thread.tid, (core,), NORMAL)

    def _environment(self) -> dict[str, str | None]:
        """Sizes both libraries."""
        workers = str(len(self.gpu_cores))
        return {
            "LP_NUM_THREADS": workers,
            "POCL_MAX_PTHREAD_COUNT": workers,
            "POCL_CPU_MAX_CU_COUNT": workers,  # its name since PoCL 4
            "POCL_AFFINITY": None,  # would pin workers to cores of PoCL's choice
            "CL_CONFIG_CPU_TBB_NUM_WORKERS": workers,  # of Intel's runtime
            "SYCL_CPU_NUM_CUS": workers,
            "DPCPP_CPU_NUM_CUS": workers,  # its name before 2025
            "SYCL_CPU_CU_AFFINITY": None,  # would pin them
            "DPCPP_CPU_CU_AFFINITY": None,
        }


def plan(
    realtime: bool | None = None,
    cores: int | None = None,
    confine: bool = True,
    policy: GpuPolicy | None = None,
) -> SoftwareGpu:
    """Divide the cores this process may use: the GPU gets ``cores`` of them; without that the
    environment variable ``HEIMDALL_GPU_CORES`` decides, then it is one half. ``realtime`` None:
    where permitted (``HEIMDALL_REALTIME=0`` declines); True: insist (DeviceError when it is not
    permitted); False: never. ``policy`` insists on one, and overrides that. Without ``confine`` no
    thread of the process is placed anywhere. A GPU that has all cores shares them with the rest:
    where nothing is drawn, in a server, say.
    Raises ConfigError on a number of cores that there is not.
    """
    allowed = allowed_cores()
    wanted = _wanted_cores(len(allowed), cores)
    if not confine:
        return SoftwareGpu(allowed[:wanted], allowed, Confinement.UNCONFINED)
    if policy is not None:
        realtime = policy.realtime
        policy.check()
    if not _can_confine():
        if realtime:
            raise DeviceError(f"{sys.platform} has no real-time software GPU; leave it out")
        return SoftwareGpu(allowed[:wanted], allowed, Confinement.UNCONFINED)
    if len(allowed) == wanted:  # under a real-time policy the GPU would starve the rest
        if realtime:
            raise DeviceError(
                f"a real-time software GPU on all {wanted} cores leaves none for the rest: give it"
                " fewer, or leave real time out"
            )
        return SoftwareGpu(allowed, allowed, Confinement.SHARED)
    if realtime is None:
        realtime = os.environ.get("HEIMDALL_REALTIME", "1") != "0" and _realtime_permitted()
    elif realtime and not _realtime_permitted():
        raise DeviceError(
            "real-time scheduling is not permitted here: run as root, grant CAP_SYS_NICE, or"
            " raise the rtprio limit (ulimit -r 1)"
        )
    confinement = Confinement.REALTIME if realtime else Confinement.TIME_SLICED
    gpu, rest = tuple(sorted(allowed[:wanted])), tuple(sorted(allowed[wanted:]))
    return SoftwareGpu(gpu, rest, confinement, policy or RR)


def together(cores: int | None = None) -> SoftwareGpu:
    """GPU and everything else on the same ``cores`` cores (default: as many as ``plan`` gives
    the GPU), without real time: for comparing engines on equal terms.

    Raises ConfigError when this process may not use so many.
    """
    allowed = allowed_cores()
    wanted = _wanted_cores(len(allowed), None) if cores is None else cores
    if not 1 <= wanted <= len(allowed):
        raise ConfigError(f"{wanted} cores: this process may use 1 to {len(allowed)}")
    chosen = tuple(sorted(allowed[:wanted]))
    confinement = Confinement.SHARED if _can_confine() else Confinement.UNCONFINED
    return SoftwareGpu(chosen, chosen, confinement)


@contextlib.contextmanager
def restored_afterwards(software: SoftwareGpu | None = None) -> Iterator[None]:
    """Give the calling thread its own cores and policy back when the block ends; with
    ``software``, only cores on which that has put it."""
    unconfined = software is not None and software.confinement == Confinement.UNCONFINED
    if unconfined or not _can_confine():
        yield
        return
    cores = os.sched_getaffinity(0)
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if software is None:
                os.sched_setscheduler(0, policy, param)
            if software is None or software.places(os.sched_getaffinity(0)):
                os.sched_setaffinity(0, cores)


def list_threads() -> list[Thread]:
    """Every thread of this process, by id (Linux; elsewhere an empty list)."""
    found = []
    for tid in sorted(thread_ids()):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            name = (_TASKS / str(tid) / "comm").read_text().strip()
            cores = tuple(sorted(os.sched_getaffinity(tid)))
            found.append(Thread(tid, name, cores, _is_realtime(tid)))
    return found


def gpu_thread_ids() -> set[int]:
    """The threads that ``confined`` has given to the GPU; some may have ended."""
    return set(_gpu_tids)


def _can_confine() -> bool:
    return hasattr(os, "sched_setaffinity") and _TASKS.is_dir()


def allowed_cores() -> tuple[int, ...]:
    """The cores this process may use, hyperthreads of one physical core next to each other."""
    if hasattr(os, "sched_getaffinity"):
        # Not thread 0's own mask: an earlier plan may have confined the calling thread.
        mask = set().union(*(_affinity(tid) for tid in thread_ids())) or os.sched_getaffinity(0)
        return tuple(sorted(mask, key=_physical_core))
    return tuple(range(os.cpu_count() or 1))


def _affinity(tid: int) -> set[int]:
    try:
        return os.sched_getaffinity(tid)
    except ProcessLookupError:  # the thread has ended
        return set()


def _physical_core(core: int) -> tuple[int, int]:
    siblings = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        first = siblings.read_text().replace("-", ",").split(",")[0]
        return int(first), core
    except (OSError, ValueError):
        return core, core


def _wanted_cores(allowed: int, cores: int | None) -> int:
    text = os.environ.get("HEIMDALL_GPU_CORES")
    origin = f"{cores} GPU cores"
    if cores is None and text:
        origin = f"HEIMDALL_GPU_CORES={text}"
        if not text.isascii() or not text.isdigit():
            raise ConfigError(f"{origin}: must be a number of cores, such as 1")
        cores = int(text)
    if cores is None:
        return max(1, allowed // 2)
    if not 1 <= cores <= allowed:
        raise ConfigError(
            f"{origin}: this process may use {allowed} cores; give the software GPU 1 to {allowed}"
        )
    return cores


def _realtime_permitted() -> bool:
    """Whether the system lets a thread become real-time: asked with a thread made for it.

    No rule predicts the answer: root, CAP_SYS_NICE, the rtprio limit and the control group
    all have a say.
    """
    answer = []

    def ask() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(RT_PRIORITY))
            answer.append(True)
        except OSError:
            answer.append(False)

    thread = threading.Thread(target=ask, name="realtime?")
    thread.start()
    thread.join()
    return answer == [True]


def _throttled() -> bool:
    try:
        return int(Path("/proc/sys/kernel/sched_rt_runtime_us").read_text()) >= 0
    except (OSError, ValueError):
        return True


def thread_ids() -> set[int]:
    """The ids of all threads of this process (Linux; elsewhere none)."""
    try:
        return {int(entry) for entry in os.listdir(_TASKS)}
    except OSError:
        return set()


def _wait_until_idle(tids: set[int]) -> None:
    """Wait until the threads sleep, that is, have come through their own start-up."""
    end = time.monotonic() + 0.2
    while any(_state(tid) == "R" for tid in tids) and time.monotonic() < end:
        time.sleep(0.001)


def _state(tid: int) -> str:
    try:
        return (_TASKS / str(tid) / "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:  # the thread has ended
        return "X"


def _policy(tid: int) -> int:
    try:
        return os.sched_getscheduler(tid) & ~os.SCHED_RESET_ON_FORK
    except ProcessLookupError:  # the thread has ended
        return os.SCHED_OTHER


def _is_realtime(tid: int) -> bool:
    return _policy(tid) in (os.SCHED_RR, os.SCHED_FIFO)


def _place(tid: int, cores: tuple[int, ...]) -> None:
    """Put a thread (0: the calling one) on these cores, under the policy that it has."""
    with contextlib.suppress(OSError):  # it has just ended
        os.sched_setaffinity(tid, cores)


def _confine(tid: int, cores: tuple[int, ...], policy: GpuPolicy) -> None:
    """Place a thread (0: the calling one); one that has just ended is no error.

    With SCHED_RESET_ON_FORK a compiler or linker that PoCL starts from a GPU thread does not
    run in real time.
    """
    with contextlib.suppress(OSError):
        os.sched_setaffinity(tid, cores)
        if policy.realtime:
            number = policy.number | os.SCHED_RESET_ON_FORK
            os.sched_setscheduler(tid, number, os.sched_param(RT_PRIORITY))
        elif _is_realtime(tid):
            os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))


def _span(cores: tuple[int, ...]) -> str:
    return ("core " if len(cores) == 1 else "cores ") + ", ".join(str(core) for core in cores)
