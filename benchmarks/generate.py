"""A language model beside frames: ``python -m benchmarks.generate --parameters 135M --seconds 30``.

A decoder of SmolLM's sizes with random weights writes beside the app ``shopping`` and its four
networks, question after question, each of ``--prompt`` tokens. ``alone_tokens_per_s``: the same
decoder in the same way with nothing drawn and no other network; ``uncoordinated``: shopping's
networks in a thread each of onnxruntime (``multithread-onnxruntime``), and the decoder in a process
that calls onnxruntime as fast as it answers. ``--dnns 0`` leaves shopping's networks out,
``--bits 4`` takes weights of four bits, as onnxruntime-genai writes them; ``--json`` prints one
object, else there are lines for people.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from apps.shopping import Shopping
from heimdall import App, run
from heimdall.app import Generate
from heimdall.engine import Engine
from heimdall.graph.graph import load_graph
from heimdall.lab.bench.runner import compare, machine
from heimdall.lab.standins.decoder import (
    SMOLLM_135M,
    SMOLLM_360M,
    exported_decoder,
    fused_decoder,
)
from heimdall.models.generation.decoder import Decoder
from heimdall.models.generation.writer import Kind
from heimdall.runtime.execution.processors import open_processors
from heimdall.system import paths

SHAPES = {"135M": SMOLLM_135M, "360M": SMOLLM_360M}
CONTEXT, ROWS, ANSWER = 1536, 32, 128  # tokens
DRAWN = (640, 480)


class Numbers:
    """Tokens as their numbers: random weights write no text."""

    size = SMOLLM_135M.vocabulary

    def encode(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f" {token}" for token in tokens)

    def token(self, name: str) -> int | None:
        return None


def model_of(parameters: str, bits: int) -> Path:
    """The decoder's file, written the first time."""
    path = paths.cache_dir() / "decoders" / f"{parameters}-{bits}.onnx"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".part")
        shape = SHAPES[parameters]
        onnx.save(exported_decoder(shape) if bits == 32 else fused_decoder(shape, bits=bits), half)
        half.replace(path)
    return path


def prompts(count: int) -> list[int]:
    """A question that is no other's: nothing of it is in the cache."""
    random = np.random.default_rng()
    return random.integers(0, SMOLLM_135M.vocabulary, count).tolist()


class Asking:
    """Mixed into an app with ``answer``: puts a question as soon as the one before is answered."""

    answers: list[Any]
    prompt = 16

    def ask(self: Any) -> None:
        self.answers.append(self.answer.ask(prompts(self.prompt), most=ANSWER))

    def look(self: Any) -> None:
        if self.answers[-1].done:
            self.ask()


def app_of(model: Path, prompt: int, *, dnns: bool) -> type[App]:
    """Shopping with a decoder; or an app that shows its pictures, and has nothing but the
    decoder."""
    writer = Generate(model, context=CONTEXT, rows=ROWS, tokenizer=Numbers())
    base: type[App] = Shopping if dnns else App

    class Talking(Asking, base):  # type: ignore[misc, valid-type]
        answer = writer

        def __init__(self) -> None:
            super().__init__()
            self.answers, self.prompt = [], prompt

        def on_start(self) -> None:
            super().on_start()
            self.ask()

        def on_result(self, dnn: str, result: Any, frame: Any) -> None:
            if dnn.startswith("answer"):
                self.look()
            else:
                super().on_result(dnn, result, frame)

    return Talking


def written(app: Any, since_ns: int, until_ns: int) -> dict[str, Any]:
    """Tokens a second in between, the time of questions among it."""
    times = [t for answer in app.answers for t in answer.times_ns if since_ns <= t <= until_ns]
    failed = [answer.error for answer in app.answers if answer.reason == "failed"]
    return {
        "tokens_per_s": round(1e9 * len(times) / (until_ns - since_ns), 2),
        "questions": len(app.answers),
        "failed": [each for each in failed if "over" not in each],
    }


def live(app_class: type[App], seconds: float, **options: Any) -> dict[str, Any]:
    """A run, of which all counts but its first second."""
    app = app_class()
    summary = run(app, headless=True, seconds=seconds, build_first=True, **options)
    until_ns = time.perf_counter_ns()
    found = summary.to_dict()
    since_ns = until_ns - round(1e9 * seconds)
    return {
        "fps": found["fps"],
        "frame_interval_ms": found["frame_interval_ms"],
        **written(app, since_ns, until_ns),
        "gpu": found.get("gpu"),
        "dnns": {name: each["inferences"] for name, each in found["dnns"].items()},
        "errors": found["errors"],
    }


def alone(model: Path, prompt: int, seconds: float) -> float:
    """Tokens a second of the same networks on the same core, one step right after the other."""
    decoder = Decoder(model, Numbers, CONTEXT, ROWS, ())
    asked: deque[Kind] = deque()
    with open_processors() as processors:
        ways = {kind: _Way(decoder, kind, processors.gpu) for kind in Kind}
        for kind in Kind:
            decoder.writer.attach(kind, partial(asked.append, kind))
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            answer = decoder.writer.ask(prompts(prompt), most=ANSWER)
            while not answer.done and time.perf_counter() - began < seconds:
                ways[asked.popleft()].step()
            tokens += len(answer.tokens)
            answer.cancel()
        return round(tokens / (time.perf_counter() - began), 2)


class _Way:
    """One network of a decoder, and its steps."""

    def __init__(self, decoder: Decoder, kind: Kind, engine: Engine) -> None:
        self._pipeline, self._writer = decoder.pipeline(kind), decoder.writer
        (network,) = self._pipeline.networks
        graph = load_graph(network.path, network.shapes)
        self._pipeline.bind([graph])
        self._memory = self._pipeline.memory([graph])
        self._network = engine.load(graph)
        self._state = self._network.new_state()

    def step(self) -> None:
        network, state, memory = self._network, self._state, self._memory
        step = self._writer.begin(self._pipeline.kind)
        assert step is not None
        (task,) = self._pipeline.prepare(0, step, [], {})
        past, begun, _ = memory.recall()
        network.write(state, {**task.inputs, **past})
        network.run_any(state, 0, len(network.ops))
        outputs = network.read(state, leave=memory.outputs)
        memory.keep(network.keep(state, memory.outputs), begun)
        self._writer.took(step, self._pipeline.decode(0, outputs, step))


# --- uncoordinated --------------------------------------------------------------------------------


def write_alone(path: str, width: int, prompt: int, seconds: float, count: Any) -> None:
    """As fast as onnxruntime answers, on all cores, until the time is over."""
    import onnxruntime as ort

    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names, inputs = [each.name for each in session.get_outputs()], session.get_inputs()
    empty = {
        each.name: np.zeros((1, each.shape[1], 0, width), np.float32)
        for each in inputs
        if each.name.startswith("past")
    }
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        past, tokens, seen = empty, prompts(prompt), 0
        for _ in range(ANSWER):
            whole = seen + len(tokens)
            more = {
                "input_ids": np.array([tokens], np.int64),
                "attention_mask": np.ones((1, whole), np.int64),
                "position_ids": np.arange(seen, whole, dtype=np.int64)[None],
            }
            given = {each.name: more[each.name] for each in inputs if each.name in more}
            made = dict(zip(names, session.run(names, {**given, **past}), strict=True))
            past = {
                name.replace("present", "past_key_values"): each
                for name, each in made.items()
                if name != "logits"
            }
            seen, tokens = whole, [int(made["logits"][0, -1].argmax())]
            count.value += 1
            if time.monotonic() > end:
                break


def uncoordinated(model: Path, width: int, prompt: int, seconds: float) -> dict[str, Any]:
    """Frames while nobody coordinates; tokens a second over all of that time."""
    spawn = multiprocessing.get_context("spawn")
    count = spawn.Value("i", 0)
    most_s = seconds + 60  # it is ended when the frames are
    args = (str(model), width, prompt, most_s, count)
    writer = spawn.Process(target=write_alone, args=args, daemon=True)
    writer.start()
    while count.value == 0 and writer.is_alive():
        time.sleep(0.2)
    began, before = time.monotonic(), count.value
    found = compare("shopping", "multithread-onnxruntime", seconds=seconds, size=DRAWN)
    took, tokens = time.monotonic() - began, count.value - before
    writer.terminate()
    summary = found["systems"]["multithread-onnxruntime"]
    return {
        "fps": summary["fps"],
        "frame_interval_ms": summary["frame_interval_ms"],
        "tokens_per_s": round(tokens / took, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parameters", choices=SHAPES, default="135M")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--prompt", type=int, default=16, help="tokens of a question")
    parser.add_argument("--dnns", type=int, choices=(0, 1), default=1, help="shopping's networks")
    parser.add_argument("--bits", type=int, choices=(32, 4), default=32, help="of a weight")
    parser.add_argument("--only", choices=("beside", "alone", "uncoordinated"), nargs="+")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    wanted = arguments.only or ("beside", "alone", "uncoordinated")
    about = model_of(arguments.parameters, arguments.bits), arguments.prompt
    asked = {name: vars(arguments)[name] for name in ("parameters", "bits", "prompt")}
    found: dict[str, Any] = {"machine": machine(), **asked}
    if "beside" in wanted:
        beside = app_of(*about, dnns=bool(arguments.dnns))
        found |= live(beside, arguments.seconds, size=DRAWN)
    if "alone" in wanted:  # in a process of its own: cores and priorities are as in a run
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            found["alone_tokens_per_s"] = pool.apply(alone, (*about, arguments.seconds))
    if "uncoordinated" in wanted:
        width = SHAPES[arguments.parameters].head_width
        found["uncoordinated"] = uncoordinated(about[0], width, about[1], arguments.seconds)
    if arguments.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main()
