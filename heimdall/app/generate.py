"""A language model of an app, as a declaration, and the door to ask it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from heimdall.app.dnn import DNN, is_number, shown
from heimdall.app.feed import Feed
from heimdall.errors import ConfigError, ModelError
from heimdall.system import paths
from heimdall.vocabulary.enums import Precision, Priority

if TYPE_CHECKING:
    from typing import Self

    from heimdall.models.generation.answer import Answer, OnToken
    from heimdall.models.generation.sampling import Sampling
    from heimdall.models.generation.tokens import Tokenizer
    from heimdall.vocabulary.enums import PrecisionName, PriorityName

MOST_TOKENS = 256


class Generate:
    """A language model that answers between frames, token by token.

    ``answer = Generate("model.onnx")`` as an attribute of an App; then ``self.answer.ask("...")``
    gives an Answer, whose text grows. ``model``: an ONNX decoder with a cache, as optimum
    (text-generation-with-past) and onnxruntime-genai write it; ``tokenizer``: its file, by default
    tokenizer.json beside the model, or a Tokenizer. ``context``: how many tokens question and
    answer may have together; ``rows``: how many of a question go through the network at once.
    ``ends``: tokens that end a text, by name. ``precision``: "fp32", or "fp16" where the GPU has
    it: weights and cache take half the memory, and half the time to read.

    It is two DNNs to whoever schedules, NAME and NAME-prompt, of low priority: what frames and
    other DNNs leave is theirs. Raises ModelError without such a file.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        name: str = "",
        tokenizer: str | Path | Tokenizer | None = None,
        context: int = 1024,
        rows: int = 32,
        ends: Sequence[str] = (),
        priority: PriorityName = "low",
        precision: PrecisionName = "fp32",
    ) -> None:
        from heimdall.models.generation.decoder import (
            Decoder,  # here: the command line needs none of it
        )

        self.name, self.priority, self.precision = name, priority, precision
        where = f"Generate({str(model)!r})"
        for figure, value, least in (("context", context, 2), ("rows", rows, 2)):
            if not is_number(value) or int(value) != value or value < least:
                raise ConfigError(
                    f"{where}: {figure} must be a whole number from {least} on, not {shown(value)}"
                )
        if 2 * rows > context:
            raise ConfigError(
                f"{where}: a context of {context} needs rows of {context // 2} or less"
            )
        if priority not in Priority.values():
            raise ConfigError(f"{where}: priority must be one of {', '.join(Priority.values())}")
        if precision not in (Precision.FP32, Precision.FP16):  # the same for both networks
            raise ConfigError(f"{where}: precision must be fp32 or fp16, not {shown(precision)}")
        path = found_model(model)
        self._decoder = Decoder(
            path,
            lambda: _opened(tokenizer, path),
            context,
            rows,
            tuple(ends),
            half=precision == Precision.FP16,
        )

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    @overload
    def __get__(self, app: None, owner: type) -> Self: ...
    @overload
    def __get__(self, app: object, owner: type) -> Replies: ...
    def __get__(self, app: object | None, owner: type) -> Self | Replies:
        return self if app is None else Replies(app, self.name)

    @property
    def dnns(self) -> tuple[DNN[Any], DNN[Any]]:
        """What is scheduled: steps, and pieces of prompts."""
        from heimdall.models.generation.writer import Kind

        settings: dict[str, Any] = {
            "on_event": True,
            "priority": self.priority,
            "precision": self.precision,
        }
        return (
            DNN(self.name, model=self._decoder.pipeline(Kind.STEP), **settings),
            DNN(f"{self.name}-prompt", model=self._decoder.pipeline(Kind.PROMPT), **settings),
        )


class Replies(Feed["Answer"]):
    """A language model of a running app: ``ask`` it; ``latest`` is the answer that grows."""

    __slots__ = ()

    def ask(
        self,
        prompt: str | Sequence[int],
        *,
        most: int = MOST_TOKENS,
        stop: str | Sequence[str] = (),
        sampling: Sampling | None = None,
        on_token: OnToken | None = None,
    ) -> Answer:
        """Have it go on with a text, behind what was asked before. ``most``: tokens of the answer;
        ``stop``: texts that end it, and are left out. ``on_token(piece)`` is called in a pool
        thread; ``App.on_result`` hears of each token, too, with the Answer.

        Raises ConfigError for a prompt that has no room in the cache, AppError before the run.
        """
        (pipeline,) = (dnn.model for dnn in self._app.dnns if dnn.name == self.name)
        return pipeline.decoder.writer.ask(  # type: ignore[no-any-return]
            prompt, most=most, stop=stop, sampling=sampling, on_token=on_token
        )


def _opened(tokenizer: str | Path | Tokenizer | None, model: Path) -> Tokenizer:
    from heimdall.models.generation.tokens import TokenizerFile

    if tokenizer is None or isinstance(tokenizer, str | Path):
        return TokenizerFile(Path(tokenizer or model.with_name("tokenizer.json")))
    return tokenizer


def found_model(model: str | Path) -> Path:
    """An ONNX decoder by its path, or by the name of a bundled one."""
    for path in (Path(model).expanduser(), paths.ASSETS / "models" / model):
        if path.is_file():
            return path.absolute()
    raise ModelError(
        f"no language model at {model}; make one with optimum (optimum-cli export onnx --task "
        "text-generation-with-past --model NAME FOLDER), or with onnxruntime-genai's model "
        "builder, and give the path of its .onnx file"
    )
