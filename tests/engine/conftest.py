"""Every engine that can be opened here, for contract tests."""

from collections.abc import Iterator

import pytest

from heimdall.engine import ENGINES, Engine, open_engine
from heimdall.engine.providers import available_providers
from heimdall.errors import DeviceError

GPU_PROVIDERS = tuple(available_providers())  # of the onnxruntime that is installed


@pytest.fixture(scope="module", params=[*ENGINES, *GPU_PROVIDERS])
def every_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    options = {"provider": request.param} if request.param in GPU_PROVIDERS else {}
    try:
        opened = open_engine("provider" if options else request.param, **options)
    except DeviceError as error:
        pytest.skip(f"no {request.param} engine here: {error}")
    yield opened
    opened.close()
