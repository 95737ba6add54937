"""Seconds of sound that the network of keywords learns from: one of its words, other speech, none.

For scripts/keywords.py. Speech is made by programs (scripts/spoken.py); what is tested on is a Pool
of other voices, which say other words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from heimdall.models.keywords import NO_WORDS
from scripts import spoken
from scripts.spoken import RATE

WINDOW = 16000  # samples
LEAST_SEEN, MOST_UNSEEN = 0.95, 0.5  # of a word in the window: so much is it, so little is not
TONES = ("", "", ".", "!", "?")
KEYWORDS = (
    *("next", "away", "bigger", "smaller", "left", "right"),
    *("red", "green", "blue", "yellow"),
)
CLASSES = (*KEYWORDS, *NO_WORDS)
OTHER, SILENCE = (CLASSES.index(name) for name in NO_WORDS)
# Many of these sound like one of the ten.
_OTHERS = """
text nest neck vexed necks nick expect bread bed said head rod raid rid ten dead led bet grin
grain grease queen cream clean ring grim blow brew glue loop few view boom clue do digger trigger
figure beggar bitter begin finger vigor litter baker taller small smell mauler stall malt tall
wall dollar lift laugh lest theft loft lived lent light ride night ripe rice bright kite line
white wait weigh await always hooray today play way again say hello fellow mellow jello belly yell
yes allow pillow window no up down on off go stop one two three four five six seven eight nine
zero house tree happy water table chair room door music people about would there their which could
other after first never these think where being every great might shall still those while found
world think hand high keep last long made many most move much must name need number old only open
order over part place point read real same school seem show side since some start state story such
take tell than that them then they thing this time turn under use very want well went were what
when will with woman word work year young coffee morning evening kitchen garden picture phone
camera video sofa lamp shelf carpet fabric colour price please thank you sorry maybe really
"""
_UNHEARD = """
lunch bucket paper marble engine forest silver orange purple button letter river mountain summer
winter doctor teacher market bottle candle pencil basket ladder rocket tunnel vacuum
wedding yogurt zipper album bridge castle dragon elbow flower guitar hammer island jacket kettle
lemon mirror needle oyster parrot quarter ribbon saddle ticket umbrella velvet whisper apple
banana cotton desert eagle friend ghost honey insect juice knee lion moon nothing ocean planet
question rain snow thunder uncle village weather box bring carry finish follow gather happen
imagine listen manage notice offer prepare remember suggest travel understand visit wonder between
against without around because before through another together something anything children country
father mother brother sister
"""
OTHERS = tuple(_OTHERS.split())
UNHEARD = tuple(_UNHEARD.split())  # never in training


class Pool:
    """What is said, to cut windows from: words by class, and other speech."""

    def __init__(
        self,
        speakers: Sequence[str],
        people: Sequence[str],
        others: Sequence[str],
        size: int,
        seed: int,
    ) -> None:
        """``size``: utterances of each word."""
        random = np.random.default_rng(seed)
        running = spoken.sentences(random, others)
        said = [(word, word) for word in KEYWORDS for _ in range(size)]
        said += [("", str(random.choice(others))) for _ in range(3 * size)]
        said += [("", spoken.nonsense(random)) for _ in range(size)]
        said += [("", next(running)) for _ in range(size)]
        said = [(word, text + str(random.choice(TONES))) for word, text in said]
        voices = [spoken.drawn_voice(random, speakers, people) for _ in said]
        with ThreadPoolExecutor() as threads:
            spoke = list(threads.map(spoken.say, (text for _, text in said), voices))
        self.words: dict[str, list[np.ndarray]] = {word: [] for word in (*KEYWORDS, "")}
        for (word, _), samples in zip(said, spoke, strict=True):
            if len(samples) > RATE // 10 and (not word or len(samples) < WINDOW):
                self.words[word].append(samples)

    def draw(self, random: np.random.Generator, word: str) -> np.ndarray:
        """An utterance, faster and higher or slower and lower, as of a smaller or larger person."""
        those = self.words[word]
        samples = those[int(random.integers(len(those)))]
        pace = random.uniform(0.82, 1.22)
        places = np.arange(0, len(samples) - 1, pace)
        return np.interp(places, np.arange(len(samples)), samples)


def window(random: np.random.Generator, pool: Pool) -> tuple[np.ndarray, int]:
    """A second of sound and its class: every second one has a keyword."""
    kind = random.random()
    if kind < 0.5:
        word = str(random.choice(KEYWORDS))
        samples, number = _with_word(random, pool, word), CLASSES.index(word)
    elif kind < 0.62:
        samples, number = _with_part(random, pool), OTHER
    elif kind < 0.92:
        samples, number = _running(random, pool), OTHER
    else:
        samples, number = _without_speech(random), SILENCE
    return spoken.recorded(random, samples), number


def _with_word(random: np.random.Generator, pool: Pool, word: str) -> np.ndarray:
    """A word that is seen whole, or nearly; at times between others."""
    said, samples = pool.draw(random, word)[: WINDOW - 1], np.zeros(WINDOW)
    slack = round((1 - LEAST_SEEN) * len(said))
    start = int(random.integers(-slack, WINDOW - len(said) + slack + 1))
    _put(samples, said, start)
    if random.random() < 0.4:
        _surround(random, pool, samples, start, start + len(said))
    return samples


def _with_part(random: np.random.Generator, pool: Pool) -> np.ndarray:
    """A keyword of which too little is seen."""
    said, samples = pool.draw(random, str(random.choice(KEYWORDS))), np.zeros(WINDOW)
    seen = round(random.uniform(0.05, MOST_UNSEEN) * len(said))
    start = int(random.choice([seen - len(said), WINDOW - seen]))
    _put(samples, said, start)
    if random.random() < 0.4:
        _surround(random, pool, samples, start, start + len(said))
    return samples


def _running(random: np.random.Generator, pool: Pool) -> np.ndarray:
    """Other words, anywhere in the window."""
    samples = np.zeros(WINDOW)
    said = pool.draw(random, "")
    start = int(random.integers(-len(said) + RATE // 8, WINDOW - RATE // 8))
    _put(samples, said, start)
    if random.random() < 0.5:
        _surround(random, pool, samples, start, start + len(said))
    return samples


def _without_speech(random: np.random.Generator) -> np.ndarray:
    """Silence, hum, or knocks."""
    samples, kind = np.zeros(WINDOW), random.random()
    if kind < 0.2:
        samples += np.sin(2 * np.pi * random.uniform(50, 2000) * np.arange(WINDOW) / RATE) * 0.1
    elif kind < 0.5:
        for _ in range(int(random.integers(1, 6))):
            knock = random.standard_normal(800) * np.exp(-np.arange(800) / random.uniform(20, 300))
            _put(samples, knock, int(random.integers(-400, WINDOW)))
    return samples


def _surround(
    random: np.random.Generator, pool: Pool, samples: np.ndarray, start: int, end: int
) -> None:
    """Other words before and after, with a gap."""
    gap = int(random.integers(RATE // 20, RATE // 4))
    if random.random() < 0.7:
        before = pool.draw(random, "")
        _put(samples, before, start - gap - len(before))
    if random.random() < 0.7:
        _put(samples, pool.draw(random, ""), end + gap)


def _put(samples: np.ndarray, said: np.ndarray, start: int) -> None:
    """Add what lies within."""
    first, last = max(0, start), min(len(samples), start + len(said))
    if first < last:
        samples[first:last] += said[first - start : last - start]


def windows_of(pool: Pool, count: int, seed: int) -> Iterator[tuple[np.ndarray, int]]:
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield window(random, pool)
