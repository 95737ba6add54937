"""Opens a run, on the shared GPU that is there or on a new one, and closes it again."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from heimdall.analyzer.profiler import Progress
from heimdall.app import App, RunOptions
from heimdall.errors import ArgumentError, ConfigError
from heimdall.runtime.execution.processors import Processors, check_others, open_processors
from heimdall.runtime.loop.base import Listener
from heimdall.runtime.loop.live import LiveRun
from heimdall.runtime.loop.undrawn import UndrawnRun
from heimdall.runtime.opening.setup import RunContext, Setup, confinement, ground, start
from heimdall.runtime.session.shared_gpu import Coordinated, Policy, SharedGpu, System
from heimdall.schedulers import create, kind_of, name_of
from heimdall.system import softgpu
from heimdall.system.forks import Owned
from heimdall.system.process import begin_frames
from heimdall.vocabulary.enums import ChunkMode
from heimdall.vocabulary.processors import CPU, GPU

log = logging.getLogger(__name__)


class Shared(Owned):
    """What this process shares, while a session is open: it is opened with the first and closed
    with the last, or when the program ends."""

    def __init__(self, process: bool) -> None:
        self.own()
        self.process, self.owner = process, threading.current_thread()
        self.users = 0
        self.options = RunOptions()  # of the first session
        self.openings: list[Opening] = []  # so that none is forgotten unless it is closed
        self.shared_gpu: SharedGpu | None = None
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(ground(process))
        self._software: softgpu.SoftwareGpu | None = None
        self._processors: Processors | None = None

    def processors(self, options: RunOptions, place: RunContext, together: bool) -> Processors:
        """Both engines, opened when they are first asked for, without a compiler where the
        ``place`` says so; ``together``: for groups of ops that run at the same time."""
        if self._processors is None:
            software = self._planned(options)
            check_others(options.processors)
            opened = open_processors(
                options.device,
                software,
                soon=place.beside,
                others=options.processors,
                remote=options.remote,
                prioritized=place.prioritized,
            )
            found = self.stack.enter_context(opened)
            self._processors = found.for_groups() if together else found
        return self._processors

    def confined(self, options: RunOptions) -> contextlib.AbstractContextManager[object]:
        """See ``Processors.confined``; before they are open, as if a software GPU were found."""
        if self._processors is not None:
            return self._processors.confined()
        return self._planned(options).confined()

    def _planned(self, options: RunOptions) -> softgpu.SoftwareGpu:
        if self._software is None:
            self._software = confinement(options, self.process)
            self.stack.enter_context(softgpu.restored_afterwards(self._software))
        return self._software

    def abandon(self) -> None:
        """Close everything, the newest first: the caller will not."""
        for opening in reversed(self.openings.copy()):
            try:
                opening.close()
            except Exception:  # such as a GL context that has gone with its thread
                log.warning("a session that was never closed cannot be closed", exc_info=True)


_shared: Shared | None = None
_lock = threading.RLock()  # of ``_shared``; again by one thread when an abandoned session is freed


class Opening:
    """One run, from its opening to its end. See ``Session`` for the arguments."""

    def __init__(
        self,
        app: App,
        options: RunOptions,
        place: RunContext,
        system: System | None,
        progress: Progress,
    ) -> None:
        self._app, self._options, self._place = app, options, place
        self._system, self._progress = system, progress
        self._stack = contextlib.ExitStack()

    def open(
        self, on_result: Listener | None = None, scripted: bool = False
    ) -> LiveRun | UndrawnRun:
        """Open everything. Raises HeimdallError, and has closed what was open, when it cannot."""
        self._options.make_room()
        with contextlib.ExitStack() as stack:
            shared = stack.enter_context(_sharing(self._place.process))
            place = replace(
                self._place,
                processors=lambda: self._processors(shared),
                confined=lambda: shared.confined(self._options),
            )
            setup = stack.enter_context(
                start(self._app, self._options, self._progress, place=place)
            )
            if not place.draws:
                _on_request(setup)
            if shared.shared_gpu is not None:
                _check_same(self._options, shared)
            else:
                shared.options = self._options
                shared.shared_gpu = self._new_shared_gpu(setup)
                shared.stack.callback(shared.shared_gpu.close)
            run = self._new_run(setup, shared.shared_gpu, on_result, scripted)
            stack.callback(run.close)
            run.begin()
            if place.process:
                begin_frames()
            shared.openings.append(self)
            stack.callback(shared.openings.remove, self)
            self._stack = stack.pop_all()
        return run

    def _processors(self, shared: Shared) -> Processors:
        kind = kind_of(self._options.scheduler or self._app.scheduler)
        together = kind.together
        return shared.processors(self._options, self._place, together)

    def close(self) -> None:
        """End it."""
        self._stack.close()

    def _new_shared_gpu(self, setup: Setup) -> SharedGpu:
        app, options = self._app, self._options
        plans = [deployment.plan for deployment in setup.deployments.values()]
        system = self._system or Coordinated(
            options.scheduler or app.scheduler,
            setup.chunk_mode,
            self._place.process,
            cpu_workers=options.cpu_workers or 1,
            offload=options.offload,
            luminance=options.luminance or app.luminance,
            content=options.content or app.content,
            admission=options.admission or app.admission,
            render_priority=app.render_priority,
            **_of_requests(options, setup.processors, options.scheduler or app.scheduler),
        )
        _check_cpu_workers(options, setup.processors)
        traced = options.trace is not None
        return SharedGpu(
            setup.processors,
            system,
            plans,
            round(1e9 / setup.fps),
            traced=traced,
            owned=self._place.process,
        )

    def _new_run(
        self, setup: Setup, shared_gpu: SharedGpu, on_result: Listener | None, scripted: bool
    ) -> LiveRun | UndrawnRun:
        if setup.canvas is None:
            return UndrawnRun(self._app, self._options, setup, shared_gpu, on_result)
        return LiveRun(
            self._app,
            self._options,
            setup,
            shared_gpu,
            setup.canvas,
            began_s=self._place.began_s,
            scripted=scripted,
            on_result=on_result,
            progress=self._progress,
        )


@contextlib.contextmanager
def _sharing(process: bool) -> Iterator[Shared]:
    """The shared GPU's keeper, for as long as a session uses it."""
    global _shared
    with _lock:
        shared = _joined()
        if shared is None:
            shared = _shared = Shared(process)
            atexit.register(_close_at_exit)
        shared.users += 1
    try:
        yield shared
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users and not shared.foreign:
                _shared = None
                atexit.unregister(_close_at_exit)
                shared.stack.close()


def _joined() -> Shared | None:
    """The one that is there for this thread; None: there is none any more."""
    shared = _shared
    if shared is None or shared.foreign:
        return None
    if shared.owner is not threading.current_thread():
        if shared.owner.is_alive():
            raise ConfigError("another thread has a session open, and the GPU has one coordinator")
        log.warning("closing sessions that their thread has left open")
        shared.abandon()
        return None
    return shared


def _close_at_exit() -> None:
    """Before the interpreter takes away what closing needs. A thread that still runs may be in the
    midst of a frame: its sessions are left to it."""
    shared = _shared
    if (
        shared is not None
        and not shared.foreign
        and (shared.owner is threading.current_thread() or not shared.owner.is_alive())
    ):
        shared.abandon()


def _check_cpu_workers(options: RunOptions, processors: Processors) -> None:
    """Raise ArgumentError where two of them would have to share a core."""
    cores = len(processors.cpu_cores)
    if options.cpu_workers and options.cpu_workers > max(1, cores):
        own = " that are not the software GPU's" if processors.software else ""
        problem = f"each needs a core of its own, and this process has {cores}{own}"
        raise ArgumentError(problem, argument="cpu_workers", value=options.cpu_workers)


def _of_requests(options: RunOptions, processors: Processors, policy: Policy) -> dict[str, Any]:
    """What the coordinator is told about them; nothing, where that is as usual. Raises ConfigError
    where the policy would not use what there is."""
    rules: dict[str, Any] = {}
    kind = create(policy)
    if GPU not in processors.used and GPU in (kind.processors or ()):
        raise ConfigError(
            f"{kind.name} shares a GPU: add 'gpu' to the processors, or choose a policy that "
            "places requests anywhere, such as lst"
        )
    further = processors.remote is not None or processors.together
    if options.processors is not None or further:
        rules["processors"] = listed = processors.listed(options.cpu_workers or 1)
        if processors.together and all(each.lanes == 1 for each in listed if each.id != CPU):
            raise ConfigError(
                f"{name_of(policy)} runs groups of ops at the same time, and the GPU of this run "
                "has one lane: choose another policy, or a device with more, such as "
                "OpenCLEngine(lanes=2)"
            )
    return rules


_SHARED = ("device", "gpu_cores", "cpu_workers", "remote", "realtime", "gpu_policy", "processors")


def _check_same(options: RunOptions, shared: Shared) -> None:
    """Raise ConfigError where a later session asks for another GPU or coordinator than there is."""
    assert shared.shared_gpu is not None
    first = shared.options
    other = [
        name
        for name in (*_SHARED, "content", "admission")
        if getattr(options, name) not in (None, getattr(first, name))
    ]
    other += ["mode"] * (options.mode not in (ChunkMode.ELASTIC, shared.shared_gpu.mode))
    other += ["offload"] * (not options.offload and first.offload)
    other += [name for name in ("trace", "capture") if getattr(options, name) is not None]
    if options.scheduler is not None:
        other += ["scheduler"] * (name_of(options.scheduler) != shared.shared_gpu.scheduler)
    if other:
        raise ConfigError(
            "sessions that are open at the same time share one GPU and one coordinator, those of "
            f"the first: leave out {', '.join(other)}"
        )


def _on_request(setup: Setup) -> None:
    """Where nothing is drawn a DNN runs when there is a frame for it, not back to back."""
    for deployment in setup.deployments.values():
        deployment.plan = replace(deployment.plan, continuous=False)
