"""Makes the clip of speech that tests listen to: python -m scripts.speech_clip [--reference]

Writes assets/media/words.ogg (Opus): commands of the shopping app, then sentences, by voices that
the network of keywords has never heard, in a room with noise; and with ``--reference``
tests/models/references/speech.json: who speaks when, and what Silero's own wrapper and iterator
decide of each step of the clip, with its network in float32 on onnxruntime. For that the package
silero-vad 6.2.3 (MIT) is needed, and the PyTorch that it wants.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import av
import numpy as np

from heimdall.capture.sound import Windows
from heimdall.system.paths import ASSETS
from heimdall.vocabulary.hearing import BUNDLED
from scripts import spoken
from scripts.spoken import RATE, Voice

CLIP = ASSETS / "media" / "words.ogg"
REFERENCE = Path(__file__).resolve().parents[1] / "tests" / "models" / "references" / "speech.json"
BITS = 24000  # a second
COMMANDS = (
    ("next", Voice("en-us", "m7", 150, 45)),
    ("red", Voice("en-gb", "f5", 150, 55)),
    ("bigger", Voice("en-us", "linda", 150, 50)),
)
SENTENCES = (
    ("would you carry these flowers to the village", Voice("en-gb", "m7", 170, 40)),
    ("nothing happened in the forest that winter", Voice("en-us", "f5", 160, 60)),
    ("the doctor and the teacher remember everything", Voice("en-029", "Gene", 150, 45)),
    ("a lemon and some honey", Voice("en-gb-scotland", "Storm", 165, 50)),
)
FIRST_S, PAUSE_S, LAST_S = 0.9, 1.1, 1.5
LOUD_DB, SOFT_DB = 20.0, 8.0  # speech over noise: at first, and in the second half


def clip() -> tuple[np.ndarray, list[tuple[float, float, str]]]:
    """The samples, and when what is said: from, to (seconds), words."""
    random = np.random.default_rng(7)
    parts, labels, at = [np.zeros(round(FIRST_S * RATE))], [], FIRST_S
    for text, voice in COMMANDS + SENTENCES:
        said = spoken.unit(spoken.say(text, voice))
        labels.append((round(at, 3), round(at + len(said) / RATE, 3), text))
        parts += [said, np.zeros(round(PAUSE_S * RATE))]
        at += len(said) / RATE + PAUSE_S
    parts.append(np.zeros(round((LAST_S - PAUSE_S) * RATE)))
    samples = spoken.in_a_room(random, np.concatenate(parts))
    below_db = np.interp(np.arange(len(samples)), [0, len(samples)], [LOUD_DB, SOFT_DB])
    samples += spoken.noise(random, len(samples), 1.0) * 10 ** (-below_db / 20)
    return (0.5 * samples / np.abs(samples).max()).astype(np.float32), labels


def write(samples: np.ndarray, path: Path) -> None:
    """As Opus in Ogg; the same samples give the same file."""
    with av.open(str(path), "w", format="ogg", options={"fflags": "+bitexact"}) as container:
        stream = container.add_stream("libopus", rate=RATE)
        stream.codec_context.layout = "mono"
        stream.bit_rate = BITS
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate = RATE
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)


def read(path: Path) -> np.ndarray:
    """The samples of a clip, as a network hears them one after the other."""
    windows, found = Windows(BUNDLED["speech"]), []
    with av.open(str(path)) as container:
        floats = av.AudioResampler(format="fltp")
        for frame in container.decode(audio=0):
            for each in floats.resample(frame):
                found += windows.cut(each.to_ndarray().mean(0), each.sample_rate, 0)
    step = BUNDLED["speech"].step
    return np.concatenate([found[0].samples, *(each.samples[-step:] for each in found[1:])])


def reference(samples: np.ndarray) -> dict[str, list]:
    """Silero's probabilities and decisions, by its own code. Its first step has no samples before
    it; ours has the first of the clip."""
    import torch
    from silero_vad import VADIterator, load_silero_vad

    wanted = BUNDLED["speech"]
    samples = samples[wanted.window - wanted.step :]
    steps = torch.from_numpy(samples[: len(samples) // wanted.step * wanted.step]).split(
        wanted.step
    )
    network = load_silero_vad(onnx=True, opset_version=15)
    probabilities = [network(each[None], RATE).item() for each in steps]
    iterator = VADIterator(network)
    decisions = []
    for each in steps:
        iterator(each)
        decisions.append(int(iterator.triggered))
    return {"probabilities": [round(each, 4) for each in probabilities], "speaking": decisions}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reference", action="store_true")
    arguments = parser.parse_args()
    samples, labels = clip()
    write(samples, CLIP)
    print(f"{CLIP.name}: {len(samples) / RATE:.1f} s, {CLIP.stat().st_size / 1000:.0f} kB")
    if arguments.reference:
        found = {"labels": labels, **reference(read(CLIP))}
        rows = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items())
        REFERENCE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
