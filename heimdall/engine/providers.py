"""onnxruntime's execution providers in the GPU's role: CUDA, TensorRT, DirectML, OpenVINO, CoreML.

For users whose GPU is better served that way than by OpenCL. A chunk is a sub-model; the tensors
between chunks stay in the provider's memory (I/O binding).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import onnx
import onnxruntime as ort

from heimdall.engine.base import Engine, LoadProgress
from heimdall.engine.checks import check_forced, is_forced
from heimdall.engine.network import LoadedNetwork, Op
from heimdall.engine.onnxruntime import OnnxRuntimeNetwork
from heimdall.engine.submodels import PROVIDERS as CPU_ONLY
from heimdall.engine.submodels import session_options
from heimdall.errors import ConfigError, DeviceError, ModelError, unknown
from heimdall.graph.graph import Graph, Node
from heimdall.system import forks, paths
from heimdall.system.cpu import cpu_name
from heimdall.vocabulary.processors import GPU

Options = Mapping[str, str]
# Which provider took which node can be asked since onnxruntime 1.24.
_ASSIGNMENT = "session.record_ep_graph_assignment_info"


@dataclass(frozen=True)
class Target:
    """A device a provider may compute on, and the options that choose it."""

    device: str = "GPU"
    hardware: bool = True
    options: Options = field(default_factory=dict)


@dataclass(frozen=True)
class Provider:
    """``memory`` is where its tensors stay between chunks, in onnxruntime's words. ``targets``
    are tried in order; ``helpers`` take the nodes it lacks without leaving the GPU."""

    title: str
    package: str
    memory: str = "cpu"
    targets: tuple[Target, ...] = (Target(),)
    helpers: tuple[str, ...] = ()

    @property
    def available(self) -> bool:
        return self.title in ort.get_available_providers()


def _tensorrt_options() -> Options:
    """Engines take minutes to build: kept on disk, one for each chunk."""
    folder = str(paths.cache_dir() / "tensorrt")
    return {"trt_engine_cache_enable": "True", "trt_engine_cache_path": folder}


_CPU_TARGET = Target("CPU", hardware=False)
PROVIDERS = {
    "cpu": Provider("CPUExecutionProvider", "onnxruntime", targets=(_CPU_TARGET,)),
    "cuda": Provider("CUDAExecutionProvider", "onnxruntime-gpu", memory="cuda"),
    "tensorrt": Provider(
        "TensorrtExecutionProvider",
        "onnxruntime-gpu",
        memory="cuda",
        helpers=("CUDAExecutionProvider",),
    ),
    "directml": Provider("DmlExecutionProvider", "onnxruntime-directml", memory="dml"),
    "openvino": Provider(
        "OpenVINOExecutionProvider",
        "onnxruntime-openvino",
        targets=(
            # half precision, its default on GPUs, costs more accuracy than the checks allow
            Target(options={"device_type": "GPU", "precision": "FP32"}),
            Target("CPU", False, {"device_type": "CPU", "num_of_threads": "1"}),
        ),
    ),
    "coreml": Provider("CoreMLExecutionProvider", "onnxruntime"),
}


def provider_named(device: str | None) -> str | None:
    """The provider that ``--device`` asks for: ``onnxruntime:cuda``, or ``cuda`` alone.

    None when it names no provider. Raises ConfigError for ``onnxruntime:`` and an unknown one.
    """
    text = (device or "").lower()
    if text.startswith("onnxruntime:"):
        name = text.partition(":")[2]
        if name not in PROVIDERS:
            raise ConfigError(unknown("onnxruntime provider", name, PROVIDERS))
        return name
    return text if text in PROVIDERS and text != "cpu" else None


def available_providers() -> list[str]:
    """The GPU providers of the installed onnxruntime, as ``--device`` takes them."""
    return [name for name, each in PROVIDERS.items() if each.available and name != "cpu"]


class ProviderEngine(Engine):
    """Networks on one of ``PROVIDERS``. With ``"cpu"`` the same path runs without a GPU.

    Raises ConfigError for an unknown provider, DeviceError when it is not installed or finds no
    device.
    """

    name = "onnxruntime"
    computes = True
    processor = GPU

    def __init__(self, provider: str = "cpu") -> None:
        if provider not in PROVIDERS:
            raise ConfigError(unknown("onnxruntime provider", provider, PROVIDERS))
        forks.begin()  # CUDA does not work in a fork either
        self._name, self._provider = provider, PROVIDERS[provider]
        self._target = self._find_target()
        self.hardware = self._target.hardware

    def _find_target(self) -> Target:
        provider = self._provider
        if not provider.available:
            installed = ", ".join(available_providers()) or "none"
            raise DeviceError(
                f"the installed onnxruntime has no {provider.title}: install "
                f"{provider.package}; GPU providers it has: {installed}"
            )
        for target in provider.targets:
            session = _try_open(_probe(), self._choice(target))
            # onnxruntime takes the CPU silently when a provider finds no device
            if session is not None and session.get_providers()[0] == provider.title:
                return target
        raise DeviceError(
            f"{provider.title} finds no device it can use: its driver or libraries are missing "
            "(see onnxruntime.ai/docs/execution-providers)"
        )

    def _choice(self, target: Target) -> list[tuple[str, Options]]:
        options = dict(target.options)
        if self._name == "tensorrt":
            options |= _tensorrt_options()
        rest = [*self._provider.helpers, *CPU_ONLY]
        title = self._provider.title
        return [(title, options), *((name, {}) for name in rest if name != title)]

    def load(
        self,
        graph: Graph,
        *,
        force_fallback: Collection[str] = (),
        on_progress: LoadProgress | None = None,
    ) -> OnnxRuntimeNetwork:
        """Ops are the graph's nodes, each with the activations that follow it, so that a cut
        never undoes a provider's fusion. Nodes that the provider does not take fall back."""
        check_forced(graph, force_fallback)
        choice = self._choice(self._target)
        try:
            whole = _open(graph.serialized, choice)
            taken = _taken_nodes(whole, {self._provider.title, *self._provider.helpers})
            fallback = {
                node.name
                for node in graph.nodes
                if is_forced(node, force_fallback) or (taken is not None and node.name not in taken)
            }
            groups = group_nodes(graph, fallback)
            return OnnxRuntimeNetwork(
                graph,
                graph.model,
                tuple(
                    Op.of(graph, each, each[-1].name, each[0].op_type, each[0].name in fallback)
                    for each in groups
                ),
                whole=whole,
                open_range=partial(_open, choice=choice),
                open_fallback=partial(_open, choice=[(name, {}) for name in CPU_ONLY]),
                memory=self._provider.memory,
                sizes=[len(group) for group in groups],
            )
        except ModelError:
            raise
        except Exception as error:  # onnxruntime raises a dozen types of its own
            raise ModelError(f"{self._provider.title} cannot load {graph.name}: {error}") from error

    def runs(self, network: LoadedNetwork) -> bool:
        return isinstance(network, OnnxRuntimeNetwork)

    def describe(self) -> Mapping[str, str]:
        device = cpu_name() if not self.hardware else self._target.device
        return {
            "device": f"{device} ({self._name})",
            "driver": f"onnxruntime {ort.__version__}",
            "version": "1",
            "mode": self._provider.title,
        }


_LEADERS = {"Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization"}
_FOLLOWERS = {"Relu", "LeakyRelu", "PRelu", "Clip", "Sigmoid", "Tanh", "Elu", "HardSigmoid"}
_FOLLOWERS |= {"HardSwish", "Add", "Mul", "BatchNormalization"}


def group_nodes(graph: Graph, fallback: Collection[str]) -> list[list[Node]]:
    """The nodes in order, with what a provider would fuse in one group: a convolution or matrix
    product and the elementwise nodes behind it that nothing else comes between."""
    groups: list[list[Node]] = []
    outputs = {tensor.name for tensor in graph.outputs}
    for node in graph.nodes:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and groups[-1][0].op_type in _LEADERS
            and node.op_type in _FOLLOWERS
            and not {node.name, last.name} & set(fallback)
            and last.outputs[0] in node.inputs
            and last.outputs[0] not in outputs
            and graph.consumers[last.outputs[0]] == (node,)
        ):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _open(raw: bytes, choice: Sequence[tuple[str, Options]]) -> ort.InferenceSession:
    options = session_options(1, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    options.add_session_config_entry(_ASSIGNMENT, "1")
    return ort.InferenceSession(raw, options, list(choice))


def _try_open(raw: bytes, choice: Sequence[tuple[str, Options]]) -> ort.InferenceSession | None:
    ort.set_default_logger_severity(4)  # a provider without device says so on the terminal
    try:
        return _open(raw, choice)
    except Exception:  # onnxruntime raises a dozen types of its own
        return None
    finally:
        ort.set_default_logger_severity(2)  # its default, for sessions of the app's own


def _probe() -> bytes:
    """The smallest model there is."""
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"
    )
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "probe", [x], [y])
    opset = [onnx.helper.make_opsetid("", 13)]
    model = onnx.helper.make_model(graph, opset_imports=opset, ir_version=8)
    return bytes(model.SerializeToString())


def _taken_nodes(session: ort.InferenceSession, titles: Collection[str]) -> set[str] | None:
    """The names of the nodes that these providers compute; None where it cannot be known."""
    ask = getattr(session, "get_provider_graph_assignment_info", None)
    if ask is None:
        return None
    return {node.name for part in ask() if part.ep_name in titles for node in part.get_nodes()}
