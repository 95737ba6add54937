"""Faults of an app's own code: what goes before and after its networks, and its callbacks."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from heimdall.lab.faults.fault import Excuse, Fault
from heimdall.lab.faults.moment import Moment
from heimdall.models.base import Prepared
from heimdall.runtime.execution.deployment import Deployment

BLOCKS_S = 3.0

Call = Callable[[], Any]
Act = Callable[[Moment, Call], Any]  # what is done instead of a call, while the fault is there


class ForeignError(BaseException):
    """What code may raise that is no Exception."""


def around_pipelines(step: str, around: Callable[[str, Call], Any]) -> None:
    """Have ``around(dnn, call)`` called at a step ("prepare" or "decode") of all DNNs."""
    made = Deployment.__init__

    def begun(self: Deployment, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        method = getattr(self.pipeline, step)

        def called(*args: Any, **more: Any) -> Any:
            return around(self.name, partial(method, *args, **more))

        setattr(self.pipeline, step, called)

    Deployment.__init__ = begun  # type: ignore[method-assign]


def _in_pipeline(
    step: str, act: Act, once: bool = False, of_all: bool = False
) -> Callable[[Moment], None]:
    """``act`` at a step of one DNN or ``of_all``, each time or only the first."""

    def inject(moment: Moment) -> None:
        def around(dnn: str, call: Call) -> Any:
            if (of_all or dnn == moment.dnn) and (moment.first() if once else moment.active):
                moment.acted(dnn)
                return act(moment, call)
            return call()

        around_pipelines(step, around)

    return inject


def _in_callback(name: str, act: Act, once: bool = False) -> Callable[[Moment], None]:
    """``act`` in a method of the app."""

    def inject(moment: Moment) -> None:
        method = getattr(moment.app, name)

        @wraps(method)
        def called(*args: Any) -> Any:
            call = partial(method, *args)
            if moment.first() if once else moment.active:
                moment.acted()
                return act(moment, call)
            return call()

        setattr(moment.app, name, called)

    return inject


def _raise(error: type[BaseException], *args: Any) -> Act:
    def act(moment: Moment, call: Call) -> Any:
        raise error(*args)

    return act


def _wait(moment: Moment, call: Call) -> Any:
    moment.wait_until_over()
    return call()


def _hang(moment: Moment, call: Call) -> Any:
    moment.hang()


def _block(moment: Moment, call: Call) -> Any:
    time.sleep(min(BLOCKS_S, moment.lasts_s))
    return call()


def _tensors(change: Callable[[str, np.ndarray], tuple[str, np.ndarray]]) -> Act:
    """Other input tensors than were prepared."""

    def act(moment: Moment, call: Call) -> Any:
        return [
            Prepared(dict(change(*each) for each in task.inputs.items()), task.context)
            for task in call()
        ]

    return act


def _no_numbers(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    return name, np.full(array.shape, np.nan, np.float32)


def _one_row_more(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    return name, np.repeat(array, 2, axis=-1)


def _another_name(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
    return f"not-{name}", array


INJECTED = "injected: a mistake of the app"
_pre, _post = partial(_in_pipeline, "prepare"), partial(_in_pipeline, "decode")

FAULTS = (
    Fault("preprocess-raises", "preprocess raises.", _pre(_raise(ValueError, INJECTED))),
    Fault("preprocess-hangs", "preprocess hangs as long as the fault lasts.", _pre(_wait, True)),
    Fault("preprocess-never", "preprocess never returns.", _pre(_hang, True)),
    Fault("preprocess-nan", "preprocess gives NaN.", _pre(_tensors(_no_numbers))),
    Fault("preprocess-shape", "preprocess gives another shape.", _pre(_tensors(_one_row_more))),
    Fault("preprocess-names", "preprocess gives other names.", _pre(_tensors(_another_name))),
    Fault("decode-raises", "decode raises.", _post(_raise(ValueError, INJECTED))),
    Fault("decode-hangs", "decode hangs as long as the fault lasts.", _post(_wait, True)),
    Fault("decode-exits", "decode calls sys.exit.", _post(_raise(SystemExit, 3))),
    Fault("pool-exception", "A BaseException in the pool.", _pre(_raise(ForeignError), True)),
    Fault(
        "pool-dead",
        "BaseExceptions in every preprocess, which would end each thread of the pool.",
        _pre(_raise(ForeignError), of_all=True),
    ),
    Fault(
        "on_result-raises", "on_result raises.", _in_callback("on_result", _raise(ValueError, "no"))
    ),
    Fault(
        "on_result-exits",
        "on_result calls sys.exit.",
        _in_callback("on_result", _raise(SystemExit)),
    ),
    Fault(
        "on_result-blocks",
        f"on_result blocks for {BLOCKS_S:g} s.",
        _in_callback("on_result", _block, True),
        excuse=Excuse.CALLBACK,
    ),
    Fault("draw-raises", "draw raises.", _in_callback("draw", _raise(ValueError, "no"))),
    Fault("draw-exits", "draw calls sys.exit.", _in_callback("draw", _raise(SystemExit))),
    Fault(
        "draw-blocks",
        f"draw blocks for {BLOCKS_S:g} s.",
        _in_callback("draw", _block, True),
        excuse=Excuse.CALLBACK,
    ),
)
