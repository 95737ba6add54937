"""Models that a session serves: registered once, asked from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heimdall.analyzer.partition import Cut
from heimdall.analyzer.profiler import Progress, no_progress
from heimdall.app.options import check_number
from heimdall.engine.checks import check_inputs
from heimdall.errors import AppError, ArgumentError, ConfigError
from heimdall.graph.graph import Graph, Tensor, load_graph
from heimdall.graph.onnx_file import Inputs
from heimdall.runtime.execution.deployment import Networks
from heimdall.runtime.execution.requests import Requests
from heimdall.runtime.execution.runs import Result
from heimdall.runtime.execution.unit_network import Tensors
from heimdall.runtime.telemetry.jobs import JobCounts, Outcome, request_figures
from heimdall.schedulers.expected import StageCosts
from heimdall.schedulers.utility import utility_for
from heimdall.system import paths
from heimdall.system.forks import Owned
from heimdall.vocabulary.enums import Priority
from heimdall.vocabulary.events import Action, DnnAdded, DnnRemoved, Drop, Finish
from heimdall.vocabulary.plans import DnnPlan

if TYPE_CHECKING:
    from heimdall.runtime.session.shared_gpu import SharedGpu

Wait = Callable[["Future[dict[str, np.ndarray]]", float | None], dict[str, np.ndarray]]
MOST_MS = 1e9  # of an SLO: twelve days
_REMEMBERED = 100_000  # answers, for the figures


class Model:
    """A network that answers requests. See ``Session.register``, which makes it.

    ``inputs`` and ``outputs``: name, shape and type of its tensors; ``exits``: what its file says
    of its early exits, with the output of each: a request that ends there has that output alone.
    ``submit`` and ``run`` may be called from any thread; it is the session's thread that has to
    serve meanwhile.
    """

    def __init__(
        self,
        name: str,
        graph: Graph,
        slo_ms: float,
        priority: str,
        registered: RegisteredModels,
        expires: bool = False,
    ) -> None:
        self.name, self.slo_ms, self.priority = name, slo_ms, priority
        self.expires = expires
        self.inputs: tuple[Tensor, ...] = graph.inputs
        self.outputs: tuple[Tensor, ...] = graph.outputs
        self.exits = graph.exits
        self._graph, self._registered = graph, registered

    def submit(
        self,
        inputs: Tensors | np.ndarray,
        slo_ms: float | None = None,
        *,
        priority: str | None = None,
    ) -> Future[dict[str, np.ndarray]]:
        """Ask for one inference on these tensors, by name, or on the one that there is. Within
        ``slo_ms`` (default: the model's), and as urgently as ``priority`` says. They are copied.

        The future gets the output tensors by name, or RequestError where there is no answer; its
        callbacks run on a thread for answers. It may be cancelled until it has begun to run.
        Raises ModelError for wrong tensors, ConfigError for a wrong SLO or priority, AppError when
        the session is closed.
        """
        if slo_ms is not None:
            check_slo(slo_ms)
        if not isinstance(inputs, Mapping):
            inputs = {tensor.name: inputs for tensor in self.inputs[:1]}
        check_inputs(self._graph, inputs)
        copies = {name: np.array(array, order="C") for name, array in inputs.items()}
        slo_ns = None if slo_ms is None else round(slo_ms * 1e6)
        return self._registered.submit(self, copies, slo_ns, priority or self.priority)

    def run(
        self,
        inputs: Tensors | np.ndarray,
        slo_ms: float | None = None,
        *,
        priority: str | None = None,
        timeout_s: float | None = None,
    ) -> dict[str, np.ndarray]:
        """``submit``, and wait for the answer. Raises what that raises, RequestError, and
        TimeoutError after ``timeout_s``."""
        return self._registered.wait(self.submit(inputs, slo_ms, priority=priority), timeout_s)


def inputs_by_model(given: Inputs, models: Collection[str]) -> Mapping[str, Inputs]:
    """Shapes and numbers by ``MODEL:INPUT``, as command lines have them, by model and input.
    Raises ConfigError for one of none of ``models``."""
    found: dict[str, dict[str, Sequence[int] | float]] = {}
    for named, each in given.items():
        model, colon, name = named.partition(":")
        if not colon or model not in models:
            raise ConfigError(
                f"--shape {named} (or --value): expected MODEL:INPUT, of one of these models: "
                + ", ".join(sorted(models))
            )
        found.setdefault(model, {})[name] = each
    return found


def exits_in(model: Model) -> dict[str, tuple[str, float]]:
    """Of a model with early exits: by output the exit that makes it, in their order, and its
    accuracy over the whole network's. Nothing of others."""
    exits = model.exits
    whole = exits[-1].accuracy if exits else 0.0
    return {
        output: (each.name, each.accuracy / whole if whole else 0.0)
        for each in exits
        for output in each.outputs
    }


class RegisteredModels(Owned):
    """The models that a session serves. It registers them on the session's thread."""

    def __init__(
        self, shared_gpu: SharedGpu, wait: Wait, cut: Cut, ran: Callable[[str, int], None]
    ) -> None:
        """``wait`` for a future as the session does; ``cut``: how networks are cut, unless the
        policy has a ``partition`` of its own; ``ran``: counts what processors do."""
        self.own()
        self._ran = ran
        self._shared_gpu, self._requests, self.wait = shared_gpu, requests_of(shared_gpu), wait
        partition = shared_gpu.partition_of_requests
        self._cut = replace(cut, strategy=partition) if partition else cut
        self.models: dict[str, Model] = {}
        self._networks: dict[str, Networks] = {}  # by model
        self._names: dict[tuple[str, str], str] = {}  # by model and priority: the shared GPU's
        self._models: dict[str, str] = {}  # the other way round
        self._plans: dict[str, DnnPlan] = {}  # by the shared GPU's names
        self._asked: dict[int, tuple[str, int, int]] = {}  # of requests: the model, when, SLO
        self.answered: deque[Outcome] = deque(maxlen=_REMEMBERED)
        self._progress = JobCounts()
        self._closed = False
        self._lock = threading.RLock()  # between threads that submit, and one that closes

    def register(
        self,
        path: str | Path,
        slo_ms: float,
        *,
        name: str | None = None,
        priority: str = Priority.NORMAL,
        shapes: Inputs | None = None,
        expires: bool = False,
        taken: Sequence[str] = (),
        progress: Progress = no_progress,
    ) -> Model:
        """See ``Session.register``. ``taken``: the names of the app's DNNs."""
        check_slo(slo_ms)
        utility_for(priority, slo_ms)  # raises for a priority that there is not
        found = paths.bundled(path, "models")
        name = found.stem if name is None else name
        if name in self.models or name in taken or not name:
            raise AppError(f"there is a DNN {name!r} in this session already: give another name")
        networks = self._shared_gpu.model_cache.take(load_graph(found, shapes), progress)
        self._networks[name] = networks
        graph = networks.graphs[0]
        model = self.models[name] = Model(name, graph, slo_ms, priority, self, expires)
        self._shared_gpu.router.catch_up()  # what was added from another thread came before
        self._add(self._planned(model, priority), networks)
        return model

    def submit(
        self, model: Model, inputs: Tensors, slo_ns: int | None, priority: str
    ) -> Future[dict[str, np.ndarray]]:
        """See ``Model.submit``. From any thread."""
        self.check_process(f"model {model.name!r}")
        with self._lock:
            if self._closed:
                raise AppError(f"model {model.name!r} is served no more: its session is closed")
            if (model.name, priority) not in self._names:
                utility_for(priority, model.slo_ms)
                plan, networks = self._planned(model, priority), self._networks[model.name]
                self._shared_gpu.inbox.put(partial(self._add, plan, networks))
            number = self._requests.number()
            wanted_ns = slo_ns or round(model.slo_ms * 1e6)
            self._asked[number] = model.name, self._shared_gpu.clock(), wanted_ns
            name = self._names[model.name, priority]
            return self._requests.submit(number, name, inputs, slo_ns)

    def _planned(self, model: Model, priority: str) -> DnnPlan:
        """A model that is asked for with a priority for the first time. From any thread."""
        networks = self._networks[model.name]
        own = model.name if priority == model.priority else f"{model.name} ({priority})"
        (name,) = self._shared_gpu.names_for([own])
        plan = DnnPlan(
            name,
            tuple(self._cut.apply(stage) for stage in networks.stages),
            round(model.slo_ms * 1e6),
            utility_for(priority, model.slo_ms),
            continuous=False,
            priority=priority,
            queued=True,
            expires=model.expires,
        )
        self._names[model.name, priority] = name
        self._models[name], self._plans[name] = model.name, plan
        self._requests.serve(name)
        return plan

    def _add(self, plan: DnnPlan, networks: Networks) -> None:
        """All hear of it at once, on the main thread: whoever looks through DNNs there sees it
        nowhere or everywhere."""
        self._requests.host(plan.name, networks)
        self._shared_gpu.router.join(self, [plan.name])
        self._shared_gpu.keep(plan, networks)
        self._shared_gpu.router.tell(DnnAdded(plan))

    def figures(self, since_ns: int) -> dict[str, dict[str, Any]]:
        """The figures of requests that have been submitted since."""
        outcomes = [each for each in list(self.answered) if each.submitted_ns >= since_ns]
        lone_ns = {
            name: float(sum(StageCosts(stage).lone_ns for stage in each.stages))
            for name, each in self._networks.items()
        }
        return request_figures(outcomes, lone_ns)

    @property
    def names(self) -> Collection[str]:
        """What the shared GPU calls its models."""
        return tuple(self._models)

    def close(self) -> None:
        """Serve no more: clients that wait are told so."""
        with self._lock:
            self._closed = True
        if not self._models:
            return
        router = self._shared_gpu.router
        router.catch_up()
        for name in self._models:
            router.tell(DnnRemoved(name))
            self._shared_gpu.forget(name)
        router.leave(self)
        self._shared_gpu.executor.remove(self._models)
        for networks in self._networks.values():
            self._shared_gpu.model_cache.put_back(networks)

    # --- what the router tells ----------------------------------------------------------

    def acted(self, action: Action) -> None:
        """A request runs, has been answered, or will not be."""
        if isinstance(action, Finish):
            self._note(action, self._shared_gpu.clock(), "")
        elif isinstance(action, Drop) and not action.again:
            self._note(action, None, action.reason)
        self._progress.acted(action)

    def _note(self, action: Finish | Drop, finished_ns: int | None, reason: str) -> None:
        if action.request is None or action.request not in self._asked:
            return
        model, submitted_ns, slo_ns = self._asked.pop(action.request)
        taken = self._progress.of(action, self._plans[action.dnn])
        self.answered.append(Outcome(model, submitted_ns, finished_ns, slo_ns, reason, *taken))

    def delivered(self, result: Result) -> None:
        """Only apps get results."""

    def worked(self, processor: str, elapsed_ns: int, own: bool) -> None:
        """A processor has run a range of a request."""
        if own:
            self._ran(processor, elapsed_ns)

    def failed(self, job: int, dnn: str, error: str) -> None:
        """The clients that wait for it have been told."""

    def decided(self, took_ns: int) -> None:
        """Its app counts that."""


def check_slo(slo_ms: object) -> None:
    """Raise ConfigError unless it is a time above zero."""
    if slo_ms is None:
        raise ArgumentError("give a time in ms", argument="slo_ms", value=slo_ms)
    check_number("slo_ms", slo_ms, above=0, most=MOST_MS)


def requests_of(shared_gpu: SharedGpu) -> Requests:
    """Raises ConfigError where a baseline runs that has none."""
    found = getattr(shared_gpu.executor, "requests", None)
    if found is None:
        raise ConfigError(f"{shared_gpu.scheduler!r} serves no requests: choose another system")
    return found
