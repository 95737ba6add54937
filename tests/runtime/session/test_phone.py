"""A session whose camera and screen are a phone's."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from heimdall import App, Session
from heimdall.errors import ConfigError
from heimdall.system.certificate import CONFIG
from tests.phone import with_phones


class Mine(App):
    """Shows the camera."""

    size = (160, 120)


def test_the_phones_pictures_are_the_sessions_and_its_frames_the_phones(
    monkeypatch, tmp_path, capfd
):
    monkeypatch.setenv(CONFIG, str(tmp_path))
    seen: list[np.ndarray] = []
    failed: list[BaseException] = []
    options: dict[str, Any] = {
        "phone": True,
        "serve": ("127.0.0.1", 0),
        "device": "onnxruntime",
        "overlay": "off",
    }
    with Session(Mine, **options) as session:
        url = capfd.readouterr().err.splitlines()[0]

        async def body(open_):
            phone = await open_()
            phone.lens.level = 180
            assert (await phone.connect())["drives"]
            await phone.until(lambda: phone.frames and phone.frames[-1].mean() > 150)
            seen.append(phone.frames[-1])

        def hold() -> None:
            try:
                with_phones(url, body)
            except BaseException as error:
                failed.append(error)

        phone = threading.Thread(target=hold)
        phone.start()
        while phone.is_alive():
            session.step()
        phone.join()
        assert not failed
        assert abs(float(session.picture().mean()) - 180) < 10
        summary = session.summary().to_dict()
    assert seen[0].shape == (120, 160, 3)
    assert abs(float(seen[0].mean()) - 180) < 10
    assert summary["source"].startswith("phone")


def test_where_nothing_is_drawn_there_is_no_screen():
    with pytest.raises(ConfigError, match="nothing is drawn"):
        Session(Mine, phone=True, render=False)
