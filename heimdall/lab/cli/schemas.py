"""What ``--json`` prints, as JSON schemas: of each command the shape of its one value.

Times are in ms where a name does not say otherwise; null is a figure that could not be taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from heimdall.lab.cli.fault_schemas import Faults, ListedFaults, Soak
from heimdall.runtime.opening.doctor import Finding
from heimdall.runtime.telemetry.summary import (
    Device,
    Latency,
    ProcessorSummary,
    Quantiles,
    RequestSummary,
    RunSummary,
    Spread,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


# --- models, profile, partition, check ----------------------------------------------------------


@dataclass
class Model:
    """One bundled network, or several in stages. ``size_mb``: of its files (null: not there)."""

    name: str
    title: str
    task: str
    licence: str
    files: list[str]
    size_mb: float | None


@dataclass
class Models:
    """``heimdall models``."""

    schema: Literal[1]
    models: list[Model]


@dataclass
class ProfiledOp:
    """One op, alone on the GPU; ``fallback``: the CPU runs it."""

    index: int
    name: str
    kind: str
    ms: float
    fallback: bool
    flops: int
    bytes: int


@dataclass
class ProfiledNetwork:
    """``gpu_ms`` and ``cpu_ms``: the whole network there; ``chunk_cost_ms``: what one chunk more
    adds; ``mode``: how the GPU was confined."""

    network: str
    device: str
    driver: str
    mode: str
    gpu_ms: float
    cpu_ms: float
    chunk_cost_ms: float
    ops: list[ProfiledOp]


@dataclass
class Tuned:
    """Sums over the layers that ``--tune`` looked at. ``wrong_kernels`` computed something else
    than the default and were not considered."""

    network: str
    layers: int
    changed: int
    before_ms: float
    after_ms: float
    wrong_kernels: int


@dataclass
class Profile:
    """``heimdall profile``; ``tuned``: null without ``--tune``."""

    schema: Literal[1]
    model: str
    networks: list[ProfiledNetwork]
    tuned: list[Tuned] | None


@dataclass
class PartitionedChunk:
    """Ops from ``start`` up to ``end``, which is not in it; ``state_kb``: what is kept of those
    before where the network stops ahead of it (null: an older profile does not tell)."""

    network: str
    start: int
    end: int
    ms: float
    fallback: bool
    fallback_ops: int
    state_kb: float | None


@dataclass
class Partition:
    """``heimdall partition``; ``pictures``: the files of ``--png``."""

    schema: Literal[1]
    model: str
    strategy: str
    gap_ms: float
    chunks: list[PartitionedChunk]
    pictures: list[str]


@dataclass
class CompiledOp:
    """An op after a pass of the compiler, and the ONNX nodes it is made of."""

    kind: str
    output: str
    shape: list[int]
    nodes: list[str]


@dataclass
class Pass:
    """The ops after a pass that changed something."""

    network: str
    pass_: str
    ops: list[CompiledOp]


@dataclass
class Passes:
    """``heimdall partition --passes``."""

    schema: Literal[1]
    model: str
    passes: list[Pass]


@dataclass
class Checked:
    """One model on the GPU's engine beside onnxruntime. Errors are the largest over all outputs, of
    the whole network, in chunks and op by op; ``max_rel_error`` is a share of the output's largest
    value. ``longest_enqueue_ms``: what the GPU does at most without a chance to do something else;
    ``activations_mb``: the peak of one job. ``error``: why it could not be checked."""

    model: str
    ops: int | None
    fallback_ops: list[str]
    max_abs_error: float | None
    max_rel_error: float | None
    gpu_ms: float | None
    chunked_ms: float | None
    onnxruntime_ms: float | None
    chunks: int | None
    longest_enqueue_ms: float | None
    weights_mb: float | None
    activations_mb: float | None
    cores: int
    precision: str | None
    error: str | None


@dataclass
class Checks:
    """``heimdall check``."""

    schema: Literal[1]
    models: list[Checked]


# --- devices ------------------------------------------------------------------------------------


@dataclass
class Given:
    """What a driver makes of networks, or of rendering beside them; ``level``: null: it says
    nothing, and that is the usual; ``why``: it is not low, or not high."""

    level: Literal["low", "medium", "high", "realtime"] | None
    why: str


@dataclass
class OpenclDevice:
    """``half``: it computes in half precision; ``lacks``: what it failed at, and why; ``refused``:
    why it is not used. ``priority``: of networks; ``hints``: what its driver has for that, or for
    power."""

    name: str
    platform: str
    driver: str
    version: str
    type: Literal["CPU", "GPU", "ACCELERATOR", "OTHER"]
    compute_units: int
    memory_mb: int
    half: bool
    lacks: Mapping[str, str]
    refused: str | None
    priority: Given
    hints: list[str]


@dataclass
class Thread:
    """One thread of the process: where and how the system schedules it."""

    tid: int
    name: str
    cores: list[int]
    realtime: bool


@dataclass
class SoftwareGpu:
    """How the cores that play the GPU are confined, and the threads on them."""

    mode: str
    realtime: bool
    policy: str
    gpu_cores: list[int]
    cpu_cores: list[int]
    load_limit: float
    description: str
    threads: list[Thread]


@dataclass
class OpenGl:
    """What draws without a window, what was tried and refused before, and as ``error`` why nothing
    does."""

    renderer: str | None
    version: str | None
    es: bool | None
    refused: list[str]
    priority: Given | None
    error: str | None


@dataclass
class Cpu:
    """The CPU, and the cores of it that a run uses."""

    name: str
    cores: list[int]


@dataclass
class NamedProcessor:
    """What ``--processors`` takes; ``lanes``: how many chunks it runs at once."""

    name: str
    device: str
    lanes: int


@dataclass
class OnnxRuntime:
    """onnxruntime, and what it can use."""

    version: str | None
    providers: list[str]
    gpu_devices: list[str]
    error: str | None


@dataclass
class CameraSize:
    """One size, with all its rates."""

    width: int
    height: int
    fps: list[float]


@dataclass
class CameraFormat:
    """One pixel format of a camera."""

    format: str
    compressed: bool
    sizes: list[CameraSize]


@dataclass
class ListedCamera:
    """``source`` is what ``--source`` takes; ``error``: why it cannot be used; ``note``: what may
    be in the way; ``formats``: null where they are unknown."""

    source: str
    index: int
    name: str
    error: str | None
    note: str | None
    formats: list[CameraFormat] | None


@dataclass
class Devices:
    """``heimdall devices``. ``gpu``: the OpenCL device that a run uses; null: there is none."""

    schema: Literal[1]
    gpu: OpenclDevice | None
    opencl: list[OpenclDevice]
    opencl_error: str | None
    software_gpu: SoftwareGpu | None
    gl: OpenGl
    cpu: Cpu
    processors: list[NamedProcessor]
    onnxruntime: OnnxRuntime
    cameras: list[ListedCamera]


# --- bench and simulate -------------------------------------------------------------------------


@dataclass
class Rounds:
    """The rounds of a closed loop."""

    finished: int
    fps: float | None
    latency_ms: Latency


@dataclass
class QueueVariance:
    """Of how many requests waited for each model."""

    mean: float | None
    most: float | None
    last: float | None


@dataclass
class Together:
    """Of a simulated GPU that runs operators together: how full it was."""

    occupancy: float | None
    queue_variance: QueueVariance


@dataclass
class DnnWindow:
    """A DNN within a window of time."""

    latency_ms: float | None
    achieved_hz: float
    miss_rate: float


@dataclass
class Window:
    """A run on a GPU that gets hot, before and after."""

    fps: float
    late_rate: float
    dnns: Mapping[str, DnnWindow]


@dataclass
class Load:
    """The input that a DNN got for its ``alone_ms``: (height, width), and what it takes alone."""

    size: tuple[int, int]
    alone_ms: float
    fallback_ms: float
    wanted_ms: float


@dataclass
class ModelScore:
    """XRBench's scores of one model's requests, from 0 to 1, and ``overall`` to 100. ``real_time``:
    of those that were finished; ``energy``: null where there is no counter."""

    real_time: float | None
    energy: float | None
    qoe: float
    overall: float


@dataclass
class Score(ModelScore):
    """The means over ``models``, those that have an SLO."""

    models: Mapping[str, ModelScore]


@dataclass(kw_only=True, frozen=True)
class SimulatedRun(RunSummary):
    """A simulation of an app, with requests beside it or without."""

    simulated: Literal[True]
    scenario: str
    system: str
    seed: int
    times_real_time: float | None
    windows: Mapping[str, Window] = field(default_factory=dict)
    violations: Mapping[str, float | None] = field(default_factory=dict)
    accuracy: float | None = None
    score: Score | None = None


@dataclass(kw_only=True, frozen=True)
class LiveRun(RunSummary):
    """A live run of an app under a system. ``power_w``: the processor's, on average."""

    system: str
    loads: Mapping[str, Load]
    power_w: float | None
    violations: Mapping[str, float | None] = field(default_factory=dict)
    score: Score | None = None


@dataclass(kw_only=True)
class _RequestRun:
    schema: Literal[1]
    scenario: str
    system: str
    scheduler: str
    device: Device
    seconds: float
    requests: Mapping[str, RequestSummary]
    violations: Mapping[str, float | None]
    score: Score | None
    throughput_hz: float | None
    processors: Mapping[str, ProcessorSummary]
    errors: list[str]
    seed: int
    wall_s: float
    frames: Mapping[str, Rounds] = field(default_factory=dict)


@dataclass(kw_only=True)
class SimulatedRequests(_RequestRun):
    """A simulation of requests alone; ``frames``: the rounds of closed loops."""

    simulated: Literal[True]
    accuracy: float | None
    times_real_time: float | None
    together: Together | None = None


@dataclass(kw_only=True)
class LiveRequests(_RequestRun):
    """A live run of requests alone. ``faster``: by how much a scenario's ``load`` made streams."""

    decision_us: Quantiles
    faster: float


@dataclass
class Machine:
    """What the figures were taken on."""

    platform: str
    processor: str
    cores: int | None
    memory_mb: int
    python: str


@dataclass(kw_only=True)
class _Comparison:
    schema: Literal[1]
    scenario: str
    title: str
    device: Device | None
    seeds: list[int]
    over_runs: Mapping[str, dict[str, Any]]
    failures: list[str]
    interrupted: bool


@dataclass(kw_only=True)
class Bench(_Comparison):
    """``heimdall bench``. By system: ``systems`` its first run, ``runs`` all of them, ``over_runs``
    for each of their figures, at its place: ``mean``, ``low``, ``high`` (the 95% interval of the
    mean), ``least``, ``most`` and ``n``."""

    machine: Machine
    systems: Mapping[str, LiveRun | LiveRequests]
    runs: Mapping[str, list[LiveRun | LiveRequests]]


@dataclass(kw_only=True)
class SimulatedSystems(_Comparison):
    """``heimdall simulate --systems``; as ``heimdall bench``, simulated."""

    simulated: Literal[True]
    machine: None
    variations: dict[str, Any]
    systems: Mapping[str, SimulatedRun | SimulatedRequests]
    runs: Mapping[str, list[SimulatedRun | SimulatedRequests]]


@dataclass
class SimulatedSeeds:
    """``heimdall simulate --seeds``."""

    schema: Literal[1]
    simulated: Literal[True]
    scenario: str
    system: str
    device: Device
    variations: dict[str, Any]
    seeds: list[int]
    runs: list[SimulatedRun | SimulatedRequests]
    over_runs: dict[str, Any]


@dataclass
class SweptPoint:
    """One combination of values under one system."""

    system: str
    values: dict[str, Any]
    seeds: list[int]
    over_runs: dict[str, Any]


@dataclass
class Sweep:
    """``heimdall simulate --sweep``: ``done`` of ``runs`` are made and kept in ``output``."""

    schema: Literal[1]
    simulated: Literal[True]
    title: str
    scenario: str
    device: str
    seeds: list[int]
    seconds: float
    runs: int
    done: int
    points: list[SweptPoint]
    output: str
    interrupted: bool


# --- machine, camera, files ---------------------------------------------------------------------


@dataclass
class Doctor:
    """``heimdall doctor``: what matters most comes first. ``line``: what to type to mend it."""

    schema: Literal[1]
    findings: list[Finding]


@dataclass
class NewApp:
    """``heimdall new``: the files that it wrote."""

    schema: Literal[1]
    app: str
    test: str


@dataclass
class Board:
    """``heimdall calibrate --board``: its file, and how many columns and rows of squares."""

    schema: Literal[1]
    board: str
    squares: tuple[int, int]


@dataclass
class Intrinsics:
    """In pixels of a picture of this size; ``distortion``: k1, k2, p1, p2, k3 as OpenCV has it."""

    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: list[float]


@dataclass
class CalibratedCamera:
    """``heimdall calibrate``. ``file`` keeps the camera; ``focal_sd_px``: the standard deviation of
    its focal length; ``seen``: frames with the board; ``views``: those that it is from, but for
    those that did ``not_fit``; ``covered``: the share of the picture with corners."""

    schema: Literal[1]
    source: str
    file: str
    camera: Intrinsics
    reprojection_px: float
    focal_sd_px: float
    frames: int
    seen: int
    views: int
    not_fit: int
    covered: float


@dataclass
class FramePose:
    """From the world to the camera: a rotation vector, and metres; null where it is lost."""

    sequence: int
    state: Literal["tracked", "lost"]
    rotation: tuple[float, float, float] | None
    translation: tuple[float, float, float] | None
    reprojection_px: float | None


@dataclass
class Poses:
    """``heimdall pose``; ``ms``: what a look at a frame took."""

    schema: Literal[1]
    frames: list[FramePose]
    ms: Quantiles


@dataclass
class RoomPose:
    """From the world to the camera; null where it is lost, and then ``reason`` says why, unless
    targets are looked for. ``source``: by what it was found, a target, the room, or what is
    remembered around targets (``views``)."""

    sequence: int
    state: Literal["tracked", "lost"]
    reason: Literal["", "initializing", "excessive motion", "insufficient features", "relocalizing"]
    source: Literal["", "target", "room", "views"]
    rotation: tuple[float, float, float] | None
    translation: tuple[float, float, float] | None
    reprojection_px: float | None


@dataclass
class RoomPlane:
    """A plane: its middle, its normal to the side from which it was seen, and the two sides of the
    box around its points. ``kind``: as far as the vertical is known."""

    point: tuple[float, float, float]
    normal: tuple[float, float, float]
    extent: tuple[float, float]
    kind: Literal["horizontal", "vertical", "unknown"]


@dataclass
class RoomPoses:
    """``heimdall pose --world``. A frame's pose is as the map had it at that moment; once one is
    ``initializing`` after others were tracked, another world has begun. ``planes``: of the last
    one, at its end. ``metres``: whether targets say lengths; else they are in a unit of the
    world's own. ``ms``: what a look at a frame took, mapping included."""

    schema: Literal[1]
    frames: list[RoomPose]
    metres: bool
    planes: list[RoomPlane]
    ms: Quantiles


@dataclass
class Model3d:
    """``heimdall model3d``. ``gpu_ms`` and ``cpu_ms``: what it adds to a frame; ``error``: why it
    cannot be drawn, and then figures are null."""

    file: str
    triangles: int | None
    materials: int | None
    animations: list[str] | None
    size_m: tuple[float, float, float] | None
    gpu_ms: float | None
    cpu_ms: float | None
    first_ms: float | None
    load_ms: float | None
    notes: list[str]
    error: str | None


@dataclass
class Exported:
    """``heimdall export``; ``messages``: how many of each topic."""

    schema: Literal[1]
    output: str
    messages: Mapping[str, int]


@dataclass
class Difference:
    """A step at which a fresh coordinator did something else than was recorded."""

    step: int
    now_ms: float
    recorded: list[str]
    replayed: list[str]


@dataclass
class Replay:
    """``heimdall trace``; ``stopped``: why the replay could not go on."""

    schema: Literal[1]
    steps: int
    differences: list[Difference]
    stopped: str | None


@dataclass
class ServedModel:
    """What became of the requests for it; ``latency_ms``: the mean of those ``answered``."""

    answered: int
    failed: int
    latency_ms: float | None


@dataclass
class Served:
    """``heimdall serve``; ``refused``: requests that found the line full; ``app``: the figures of
    the app beside."""

    schema: Literal[1]
    addresses: list[str]
    models: Mapping[str, ServedModel]
    refused: int
    app: RunSummary | None


# --- exits and train-top ------------------------------------------------------------------------


@dataclass
class Exit:
    """An exit, or last the whole network (``after``: null); ``kept``: it is in the file."""

    name: str
    after: str | None
    accuracy: float
    delay_ms: float
    delay_p10_ms: float
    delay_p90_ms: float
    head_kb: float
    chunk_kb: float
    kept: bool


@dataclass
class Exits:
    """``heimdall exits``; ``trained_on`` and ``tested_on``: how many pictures."""

    schema: Literal[1]
    model: str
    file: str | None
    size_kb: float
    sha256: str
    judged_by: str
    classes: list[str]
    trained_on: int
    tested_on: int
    epochs: int
    seed: int
    engine: Mapping[str, str]
    exits: list[Exit]


@dataclass
class TrainedTop:
    """``heimdall train-top``: what was asked for, the files, and ``score``: 2 is all requests of
    all models in time."""

    scenario: str
    device: str
    steps: int
    stage_steps: int
    seed: int
    search: bool
    actor: str
    actor_sha256: str
    stages: str
    stages_sha256: str
    curves: str
    score: float


# --- measure ------------------------------------------------------------------------------------


@dataclass
class NotMeasured:
    """Why something is missing."""

    not_measured: str


@dataclass
class MeasuredMachine:
    """``measured_s``: how long it took, after ``warm_up_s``; ``stolen_percent``: of the cores'
    time, by the host of a virtual machine."""

    cpu: str
    cores: int | None
    memory_mb: int
    engine: str
    gpu: str
    driver: str
    software_gpu: bool
    mode: str
    renderer: str
    os: str
    python: str
    onnxruntime: str | None
    heimdall: str
    date: str
    warm_up_s: float
    measured_s: float
    stolen_percent: float | None = None


@dataclass
class ComparedNetwork:
    """One network in one call. Of each rival, too: ``RIVAL_ms``, ``RIVAL_spread`` and
    ``RIVAL_ratio`` (its time over ours), or ``RIVAL_not_measured``."""

    __pydantic_config__ = ConfigDict(extra="allow")

    ms: float
    spread: float


@dataclass
class ComparedEngine:
    """Our engine and its rivals; ``geometric_mean``: of each rival's ratios. Why a rival is
    missing: ``RIVAL_not_measured``."""

    __pydantic_config__ = ConfigDict(extra="allow")

    cores: int
    geometric_mean: Mapping[str, float]
    networks: Mapping[str, ComparedNetwork | NotMeasured]


@dataclass
class CutNetwork:
    """One network in chunks; ``ratio``: their time over the whole network's."""

    chunks: int
    ratio: float
    ns_a_chunk: int


@dataclass
class Cutting:
    """What it costs to cut networks into ``pieces``."""

    pieces: int
    ratio: float
    ns_a_chunk: int
    networks: Mapping[str, CutNetwork | NotMeasured]


@dataclass
class Preemption:
    """How soon after a network was told to yield the GPU is free, and a frame drawn."""

    network_ms: float
    times: int
    gpu_free_ms: Spread
    frame_drawn_ms: Spread
    frame_alone_ms: float


@dataclass
class MeasuredDnn:
    """A DNN in a scenario; ``missed``: inferences after their deadline."""

    inferences: int
    mean_ms: float | None
    p50_ms: float | None
    p99_ms: float | None
    worst_ms: float | None
    missed: int


@dataclass
class MeasuredRun:
    """A scenario, live."""

    seconds: float
    frames: int
    fps_mean: float | None
    fps_min: float | None
    interval_p99_ms: float | None
    late_share: float
    render_p50_ms: float | None
    render_p99_ms: float | None
    gap_utilization: float | None
    decision_p50_us: float | None
    decision_p99_us: float | None
    dnns: Mapping[str, MeasuredDnn]


@dataclass
class MeasuredWay:
    """One way to use the GPU. ``energy``: watts while idle (``idle_w``) and in each scenario."""

    title: str
    machine: MeasuredMachine
    engine: ComparedEngine | NotMeasured
    chunks: Cutting | NotMeasured
    preemption: Preemption | NotMeasured
    scenarios: Mapping[str, MeasuredRun | NotMeasured] | NotMeasured
    energy: Mapping[str, float] | NotMeasured


@dataclass
class Measured:
    """``heimdall measure``: each way to use the GPU, and its file."""

    schema: Literal[1]
    rows: list[MeasuredWay]
    files: list[str]
    interrupted: bool


_KINDS: Mapping[str, Any] = {
    "run": RunSummary,
    "bench": Bench,
    "simulate": SimulatedRun | SimulatedRequests,
    "simulate-seeds": SimulatedSeeds,
    "simulate-systems": SimulatedSystems,
    "simulate-sweep": Sweep,
    "devices": Devices,
    "models": Models,
    "profile": Profile,
    "partition": Partition,
    "partition-passes": Passes,
    "check": Checks,
    "doctor": Doctor,
    "new": NewApp,
    "calibrate": CalibratedCamera | Board,
    "pose": Poses | RoomPoses,
    "model3d": Model3d,
    "export": Exported,
    "trace": Replay,
    "serve": Served,
    "exits": Exits,
    "train-top": TrainedTop,
    "measure": Measured,
    "faults": Faults,
    "faults-list": ListedFaults,
    "soak": Soak,
}


def schema_names() -> tuple[str, ...]:
    """What there are schemas of: a command, and what it is asked for where that matters."""
    return tuple(_KINDS)


def json_schema(name: str) -> dict[str, Any]:
    """The schema of what a command prints with ``--json``."""
    schema = _renamed(TypeAdapter(_KINDS[name]).json_schema())
    option = name.partition("-")[0] in _KINDS  # else the command's own name has a dash
    asked = name.replace("-", " --", 1) if option else name
    return {"$schema": DIALECT, **schema, "title": f"heimdall {asked} --json"}


def _renamed(value: Any) -> Any:
    """Without the underscores that names need in Python."""
    if isinstance(value, dict):
        return {key.rstrip("_"): _renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    return value.rstrip("_") if isinstance(value, str) else value
