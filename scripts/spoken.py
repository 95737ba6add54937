"""Speech that programs make, and what rooms, noise and microphones do to it.

For scripts/keywords.py, which learns from it, and scripts/speech_clip.py. Needs the programs
espeak-ng (GPL-3, which is about the program, not what it says) and flite (free for any use), both
Debian packages of that name. The first makes sound of formants, in many voices; the second of what
was recorded of a few people.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import av
import numpy as np

RATE = 16000
_HEADER = 44  # bytes of a WAV file
_QUIET = 0.02  # of the loudest sample: what is below at both ends is left out

ACCENTS = (
    *("en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-029"),
    *("en-gb-x-gbclan", "en-gb-x-gbcwmd"),
)
# Of these no voice is ever heard in training.
HELD_OUT = ("m7", "f5", "Gene", "linda", "Storm", "aunty", "quincy")
SPEAKERS = (
    *("m1", "m2", "m3", "m4", "m5", "m6", "m8", "f1", "f2", "f3", "f4", "Alex", "Alicia"),
    *("Andrea", "Andy", "Annie", "Denis", "Diogo", "Henrique", "Hugo", "Jacky", "Lee", "Marco"),
    *("Mario", "Michael", "Mike", "Nguyen", "adam", "anika", "announcer", "antonio", "belinda"),
    *("benjamin", "boris", "caleb", "david", "ed", "edward", "grandma", "grandpa", "gustave"),
    *("iven", "john", "kaukovalta", "klatt", "klatt2", "klatt4", "marcelo", "max", "michel"),
    *("miguel", "norbert", "pablo", "paul", "pedro", "rob", "robert", "sandro", "shelby", "steph"),
    *("travis", "victor", "zac"),
)
FLITE = "flite"  # instead of an accent
PEOPLE, PEOPLE_HELD_OUT = ("kal", "kal16", "awb", "rms"), ("slt",)  # its speakers
SHARE_OF_PEOPLE = 0.45
_USUAL_SPEED = 160


@dataclass(frozen=True)
class Voice:
    """Who speaks: an accent and one of espeak-ng's speakers, or ``FLITE`` and one of its; words a
    minute; pitch 0 to 99, of espeak-ng."""

    accent: str
    speaker: str
    speed: int = _USUAL_SPEED
    pitch: int = 50


def drawn_voice(
    random: np.random.Generator, speakers: Sequence[str], people: Sequence[str]
) -> Voice:
    """A voice of one of these speakers of espeak-ng, or people of flite."""
    speed, pitch = int(random.integers(105, 215)), int(random.integers(15, 85))
    if people and (not speakers or random.random() < SHARE_OF_PEOPLE):
        return Voice(FLITE, str(random.choice(people)), speed)
    return Voice(str(random.choice(ACCENTS)), str(random.choice(speakers)), speed, pitch)


def say(text: str, voice: Voice) -> np.ndarray:
    """A text, spoken: float32 samples of ``RATE`` in -1..1, without silence before and after.
    Raises FileNotFoundError without the program."""
    if voice.accent == FLITE:
        command = ["flite", "-voice", voice.speaker, "-t", text, "-o", "/dev/stdout"]
        command += ["--setf", f"duration_stretch={_USUAL_SPEED / voice.speed:.3f}"]
    else:
        command = ["espeak-ng", "--stdout", f"-v{voice.accent}+{voice.speaker}"]
        command += [f"-s{voice.speed}", f"-p{voice.pitch}", text]
    content = subprocess.run(command, capture_output=True, check=True).stdout
    rate = int.from_bytes(content[24:28], "little")
    samples = np.frombuffer(content[_HEADER:], np.int16)
    samples = resampled(samples.astype(np.float32) / 32768, rate)
    loud = np.flatnonzero(np.abs(samples) > _QUIET * np.abs(samples).max(initial=0))
    return samples[loud[0] : loud[-1] + 1] if len(loud) else samples[:0]


def resampled(samples: np.ndarray, rate: int) -> np.ndarray:
    """Samples of ``rate`` as samples of ``RATE``."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
    frame.sample_rate = rate
    frames = [*resampler.resample(frame), *resampler.resample(None)]
    return np.concatenate([each.to_ndarray()[0] for each in frames])


# --- what happens to it ----------------------------------------------------------------------


def noise(random: np.random.Generator, count: int, slope: float) -> np.ndarray:
    """Noise of mean square 1 whose power falls with frequency to the power of ``slope``: 0 is
    white, 1 pink, 2 brown."""
    spectrum = np.fft.rfft(random.standard_normal(count))
    spectrum *= np.maximum(np.arange(len(spectrum)), 20 * count / RATE) ** (-slope / 2)
    return unit(np.fft.irfft(spectrum, count))


def unit(samples: np.ndarray) -> np.ndarray:
    """As loud as has a mean square of 1; silence stays silent."""
    return samples / max(float(np.sqrt(np.mean(samples**2))), 1e-9)


def in_a_room(random: np.random.Generator, samples: np.ndarray) -> np.ndarray:
    """With an echo that decays by 60 dB within 0.1 to 0.6 s, of random walls: as long as before."""
    seconds = random.uniform(0.1, 0.6)
    time_s = np.arange(round(seconds * RATE)) / RATE
    echo = random.standard_normal(len(time_s)) * 10 ** (-3 * time_s / seconds)
    echo *= random.uniform(0.1, 0.8) / np.sqrt(np.sum(echo**2))
    echo[0] = 1.0
    return filtered(samples, echo)


def filtered(samples: np.ndarray, response: np.ndarray) -> np.ndarray:
    """Convolved, and as long as before."""
    size = 1 << (len(samples) + len(response)).bit_length()
    product = np.fft.rfft(samples, size) * np.fft.rfft(response, size)
    return np.fft.irfft(product, size)[: len(samples)]


def through_a_microphone(random: np.random.Generator, samples: np.ndarray) -> np.ndarray:
    """Without the lowest or highest frequencies, some louder than others."""
    hz = np.fft.rfftfreq(len(samples), 1 / RATE)
    low, high = random.uniform(30, 250), random.uniform(3500, 9000)
    gain = 1 / (1 + (low / np.maximum(hz, 1)) ** 4) / (1 + (hz / high) ** 8)
    knots = np.linspace(0, RATE / 2, 8)
    gain *= 10 ** (np.interp(hz, knots, random.uniform(-5, 5, len(knots))) / 20)
    return np.fft.irfft(np.fft.rfft(samples) * gain, len(samples))


def recorded(
    random: np.random.Generator, samples: np.ndarray, *, least_db: float = 3.0
) -> np.ndarray:
    """As a microphone in a room hears it, beside noise that is ``least_db`` to 40 dB softer, and
    loud or soft."""
    if random.random() < 0.6:
        samples = in_a_room(random, samples)
    below_db = random.uniform(least_db, 40)
    loudness = float(np.sqrt(np.mean(samples**2))) or 0.02
    beside = noise(random, len(samples), random.uniform(0, 2)) * loudness * 10 ** (-below_db / 20)
    samples = samples + beside
    if random.random() < 0.7:
        samples = through_a_microphone(random, samples)
    peak = 10 ** random.uniform(-2.0, 0.0)
    return (peak * samples / max(float(np.abs(samples).max()), 1e-9)).astype(np.float32)


# --- words -----------------------------------------------------------------------------------


def nonsense(random: np.random.Generator) -> str:
    """A word that there is not."""
    starts = ("b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "st", "br")
    vowels, ends = (
        ("a", "e", "i", "o", "u", "ee", "oo", "ay"),
        ("", "", "n", "t", "l", "r", "s", "k"),
    )
    parts = (starts, vowels, ends)
    count = int(random.integers(1, 4))
    return "".join(str(random.choice(part)) for _ in range(count) for part in parts)


def sentences(random: np.random.Generator, words: Sequence[str]) -> Iterator[str]:
    """Words in any order, five to ten a sentence, without end."""
    while True:
        yield " ".join(map(str, random.choice(words, int(random.integers(5, 11)))))
