"""Heimdall in somebody else's program: frames in, pictures and results out, nothing left behind."""

from __future__ import annotations

import asyncio
import ctypes
import subprocess
import sys
import textwrap
import threading
import time
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from heimdall.app import DNN, App
from heimdall.errors import AppError, ConfigError, DeviceError
from heimdall.models.results import Mask
from heimdall.render.headless import HeadlessSurface
from heimdall.runtime.session.session import Session
from heimdall.system.process import settings
from heimdall.tracking import Marker, World

SIZE = (320, 180)
# Without OpenCL: these tests are about what surrounds networks.
PLAIN: dict[str, Any] = {"device": "onnxruntime", "offload": False}
RED = np.full((180, 320, 3), (0, 0, 255), np.uint8)


class Seeing(App):
    """One network; counts what it hears."""

    dnns = (DNN("people", model="selfie"),)

    def __init__(self):
        self.results = []

    def on_result(self, dnn, result, frame):
        self.results.append((dnn, frame.sequence))


class Still(App):
    """No network at all."""


def people(**more):
    return DNN("people", model="selfie", **more)


@pytest.fixture(scope="module")
def undrawn():
    with Session([people()], **PLAIN) as session:
        yield session


@pytest.fixture
def drawn():
    with Session(Still, size=SIZE, overlay="off", **PLAIN) as session:
        yield session


# --- frames and pictures -------------------------------------------------------------------------


def test_a_step_presents_the_frame_that_was_pushed(drawn):
    drawn.push(RED)
    drawn.step()
    picture = drawn.picture()
    assert picture.shape == (180, 320, 3)
    assert (picture.mean((0, 1)) > (250, -1, -1)).all()
    assert picture[..., 1:].max() < 5


def test_an_instance_of_an_app_runs_and_hears_of_its_results():
    app = Seeing()
    heard = []
    options = {**PLAIN, "overlay": "off"}
    listen = lambda *result: heard.append(result)  # noqa: E731
    with Session(app, size=SIZE, on_result=listen, **options) as session:
        session.push(RED)
        value = session.wait(session.request("people"), 20)
        assert isinstance(value, Mask)
        assert session.latest("people") is not None
        assert session.app is app
    assert app.results[0] == ("people", 1)
    assert heard[0][0] == "people"


def test_a_source_of_its_own_is_played(assets):
    clip = str(assets / "media" / "cup.mp4")
    with Session(Still, size=SIZE, source=clip, overlay="off", **PLAIN) as session:
        session.step()
        assert session.picture().std() > 5
        with pytest.raises(AppError, match="has a source of its own"):
            session.push(RED)


def test_frames_that_were_asked_for_are_counted(assets):
    with Session(Still, size=SIZE, frames=5, overlay="off", **PLAIN) as session:
        session.push(RED)
        summary = session.until_finished()
    assert summary.frames == 5
    assert session.summary().frames == 5


def test_its_last_figures_are_there_when_it_is_closed(tmp_path):
    record = tmp_path / "out.mp4"
    with Session(Still, size=SIZE, record=record, overlay="off", **PLAIN) as session:
        for _ in range(5):
            session.step()
    assert session.summary().outputs["record"]["frames"] == 5
    with Session([people()], **PLAIN) as session:
        session.infer(RED, 20)
    assert session.summary().dnns["people"].inferences == 1
    unopened = Session(Still)
    unopened.close()
    with pytest.raises(AppError, match="the session is closed"):
        unopened.summary()


def test_its_start_is_counted_from_its_opening():
    with Session(Still, size=SIZE, overlay="off", **PLAIN) as session:
        session.step()
        summary = session.summary()
    assert 0 < summary.startup_s <= summary.wall_s


# --- results without pictures --------------------------------------------------------------------


def test_networks_run_on_pushed_frames_without_any_picture(undrawn):
    undrawn.push(RED)
    undrawn.step()
    assert isinstance(undrawn.latest("people"), Mask)
    with pytest.raises(AppError, match="nothing is drawn"):
        undrawn.picture()


def test_a_result_is_of_the_frame_that_was_pushed_before_it_was_asked_for(undrawn):
    for _ in range(3):
        undrawn.push(RED)
        future = undrawn.result("people")
        assert undrawn.wait(future, 20).values.shape


def test_a_dnn_is_adjusted_while_the_session_runs():
    with Session([people(latency_constraint_ms=20_000)], **PLAIN) as session:
        missed = []
        for constraint_ms in (20_000, 0.001, None):
            session.adjust("people", priority="high", latency_constraint_ms=constraint_ms)
            session.infer(RED, 20)
            missed.append(session.summary().dnns["people"].deadline_misses)
        assert missed == [0, 1, 1]
        with pytest.raises(AppError, match="no DNN 'nose'"):
            session.adjust("nose", rate_hz=4)
        with pytest.raises(ConfigError, match="rate_hz must be above 0"):
            session.adjust("people", rate_hz=0)
    with pytest.raises(AppError, match="closed"):
        session.adjust("people", rate_hz=2)


def test_a_step_without_anything_to_do_returns(undrawn):
    while undrawn.summary().dnns["people"].inferences == 0:
        undrawn.push(RED)
        undrawn.step()
    undrawn.step(timeout_s=5)
    undrawn.step()


def test_asyncio_awaits_results(undrawn):
    async def look():
        undrawn.serve_on(asyncio.get_running_loop())
        found = []
        for _ in range(3):
            undrawn.push(RED)
            found.append(await asyncio.wait_for(undrawn.awaited(undrawn.result("people")), 20))
        return found

    assert all(isinstance(each, Mask) for each in asyncio.run(look()))


def test_a_failing_network_fails_its_future():
    def broken(outputs, box):
        raise ValueError("no such output")

    from heimdall.models.image_input import ImageInput
    from heimdall.system import paths

    file = str(next((paths.ASSETS / "models").glob("seg_selfie*.onnx")))
    dnn = DNN("mine", model=file, preprocess=ImageInput(), decode=broken)
    with Session([dnn], **PLAIN) as session:
        session.push(RED)
        with pytest.raises(AppError, match="gave no result"):
            session.wait(session.request("mine"), 20)
        assert any("no such output" in each for each in session.summary().errors)


# --- several sessions ----------------------------------------------------------------------------


def test_two_sessions_share_the_gpu_and_keep_their_results_apart():
    first, second = Seeing(), Seeing()
    options = {**PLAIN, "overlay": "off", "size": SIZE}
    with Session(first, **options) as a, Session(second, **options) as b:
        for _ in range(200):
            a.push(RED)
            b.push(RED[:, ::-1].copy())
            a.step()
            b.step()
            if len(first.results) >= 2 and len(second.results) >= 2:
                break
        assert len(first.results) >= 2
        assert len(second.results) >= 2
        b.close()
        before = len(first.results)
        for _ in range(200):
            a.push(RED)
            a.step()
            if len(first.results) > before + 1:
                break
        assert len(first.results) > before + 1


def refuse(*_, **__):
    raise DeviceError("no outputs today")


BLUE = np.full((90, 160, 3), (255, 0, 0), np.uint8)


def test_each_session_draws_its_own_picture():
    options = {**PLAIN, "overlay": "off"}
    with Session(Still, size=SIZE, **options) as a:
        with Session(Still, size=(160, 90), **options) as b:
            a.push(RED)
            b.push(BLUE)
            for _ in range(3):
                a.step()
                b.step()
            assert (a.picture().mean((0, 1)) > (250, -1, -1)).all()
            assert (b.picture().mean((0, 1)) > (-1, -1, 250)).all()
        a.step()
        assert (a.picture().mean((0, 1)) > (250, -1, -1)).all()


def test_a_second_session_that_cannot_open_leaves_the_first_alone(tmp_path):
    options = {**PLAIN, "overlay": "off"}
    with Session(Seeing, size=SIZE, **options) as a:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("heimdall.runtime.loop.live.Outputs", refuse)
            with pytest.raises(DeviceError, match="no outputs today"):
                Session(Seeing, size=SIZE, **options).open()
        a.push(RED)
        assert isinstance(a.wait(a.request("people"), 20), Mask)


def test_networks_get_the_whole_gpu_when_drawing_has_stopped():
    options = {**PLAIN, "overlay": "off"}
    with Session(Still, size=SIZE, **options) as a, Session([people()], **PLAIN) as b:
        a.push(RED)
        a.step()  # and then no more
        b.push(RED)
        assert isinstance(b.wait(b.result("people"), 20), Mask)


def test_two_sessions_are_awaited_and_one_may_go():
    async def look():
        loop = asyncio.get_running_loop()
        with Session([people()], **PLAIN) as a:
            a.serve_on(loop)
            with Session([people()], **PLAIN) as b:
                b.serve_on(loop)
                for session in (a, b):
                    session.push(RED)
                both = [a.awaited(a.result("people")), b.awaited(b.result("people"))]
                found = await asyncio.wait_for(asyncio.gather(*both), 20)
            a.push(RED)
            return [*found, await asyncio.wait_for(a.awaited(a.result("people")), 20)]

    assert all(isinstance(each, Mask) for each in asyncio.run(look()))


def test_a_rate_cap_is_awaited():
    async def look():
        with Session([people(max_rate_hz=4)], **PLAIN) as session:
            session.serve_on(asyncio.get_running_loop())
            began_s = time.monotonic()
            for _ in range(3):
                session.push(RED)
                await asyncio.wait_for(session.awaited(session.result("people")), 20)
            return time.monotonic() - began_s

    assert asyncio.run(look()) >= 2 / 4  # from the first of three to the last


def test_networks_alone_look_at_a_source_of_their_own(assets):
    clip = str(assets / "media" / "cup.mp4")
    with Session([people()], source=clip, **PLAIN) as session:
        assert isinstance(session.wait(session.result("people"), 20), Mask)
        session.step(timeout_s=20)
        assert not session.finished


def test_a_failure_is_that_of_its_own_frame(monkeypatch):
    from heimdall.models.image_input import ImageInput
    from heimdall.system import paths

    def picky(outputs, box):
        if not seen:
            seen.append(True)
            overtaken.wait(10)
            time.sleep(0.1)  # until that result is on its way
            raise ValueError("not this one")
        overtaken.set()
        return "seen"

    seen: list[bool] = []
    overtaken = threading.Event()
    file = str(next((paths.ASSETS / "models").glob("seg_selfie*.onnx")))
    dnn = DNN("mine", model=file, preprocess=ImageInput(), decode=picky, on_event=True)
    with Session([dnn], **PLAIN) as session:
        session.push(RED)
        first = session.request("mine")
        session.push(RED)
        second = session.request("mine")
        assert session.wait(second, 20) == "seen"
        with pytest.raises(AppError, match="not this one"):
            session.wait(first, 20)


def test_the_first_session_may_end_before_the_second():
    a = Session([people()], **PLAIN).open()
    with Session([people()], **PLAIN) as b:
        a.push(RED)
        a.step()
        a.close()
        b.push(RED)
        assert isinstance(b.wait(b.result("people"), 20), Mask)


def test_a_second_session_cannot_change_the_policy_of_the_first(undrawn):
    with (
        pytest.raises(ConfigError, match="leave out gpu_cores, cpu_workers, scheduler"),
        Session([people()], scheduler="max-min", mode="static", gpu_cores=1, cpu_workers=2),
    ):
        pass


# --- the process is left as it was ---------------------------------------------------------------


@pytest.mark.parametrize("process", [False, True])
def test_after_a_session_the_process_is_as_before(process, run_python):
    same = run_python(
        f"""
        import json, os, gc, threading
        import cv2, numpy as np
        from heimdall.app import DNN, App
        from heimdall.runtime.session.session import Session
        from heimdall.system.process import settings

        class Still(App):
            dnns = (DNN("people", model="selfie"),)

        before, threads = settings(), threading.active_count()
        with Session(Still, size=(64, 64), process={process}, overlay="off") as session:
            session.push(np.zeros((64, 64, 3), np.uint8))
            for _ in range(3):
                session.step()
            during = settings()
        after = settings()
        same = {{name: getattr(before, name) == getattr(after, name) for name in vars(before)}}
        own = before.threads[threading.get_native_id()]
        # Those that a library has started are the host's to place, unless the process was given.
        there = after.threads.keys() if {process} else after.threads.keys() & before.threads.keys()
        same["threads"] = all(after.threads[tid] == own for tid in there)
        same["python threads"] = threading.active_count() == threads
        if not {process}:  # nothing was touched meanwhile, either
            changed = dict(during.environment.items() ^ before.environment.items())
            # Importing pyopencl sets that one.
            same["environment meanwhile"] = changed.keys() <= {{"PYOPENCL_HOME"}}
            same["own thread"] = during.threads[threading.get_native_id()] == own
            same["timers"] = during.switch_interval_s == before.switch_interval_s
            same["opencv"] = during.cv2_threads == before.cv2_threads
            same["collector"] = during.frozen == before.frozen
        print(json.dumps(same), flush=True)
        """
    )
    assert [name for name, value in same.items() if not value] == []


def test_a_session_that_cannot_open_leaves_nothing_behind():
    before, threads = settings(), threading.active_count()
    with pytest.raises(ConfigError, match="unknown model"):
        Session([DNN("x", model="nothing")], process=True, **PLAIN).open()
    after = settings()
    assert threading.active_count() == threads
    assert (after.environment, after.switch_interval_s) == (
        before.environment,
        before.switch_interval_s,
    )


@pytest.mark.parametrize("process", [False, True])
def test_what_the_host_sets_meanwhile_stays(process, run_python):
    assert run_python(
        f"""
        import json, os, sys
        import cv2
        from heimdall.app import DNN
        from heimdall.runtime.session.session import Session
        from heimdall.system.process import settings

        everywhere = getattr(os, "sched_getaffinity", lambda _: ())(0)
        with Session([DNN("people", model="selfie")], process={process}, device="onnxruntime",
                     offload=False):
            os.environ["MINE"] = "1"
            cv2.setNumThreads(3)
            sys.setswitchinterval(0.25)
            if everywhere:  # the least of them is the software GPU's
                os.sched_setaffinity(0, {{min(everywhere)}})
        after = settings()
        same = [after.environment["MINE"], after.cv2_threads, after.switch_interval_s]
        same.append(len(os.sched_getaffinity(0)) if everywhere else 1)
        print(json.dumps(same))
        """
    ) == ["1", 3, 0.25, 1]


NEVER_CLOSED = """
    import json, threading
    import numpy as np
    from heimdall.app import DNN, App
    from heimdall.runtime.session.session import Session
    from heimdall.system.process import settings

    class Still(App):
        pass

    options = {"device": "onnxruntime", "offload": False}

    def leave_open():
        session = Session([DNN("people", model="selfie")], process=True, **options).open()
        session.push(np.zeros((9, 16, 3), np.uint8))
        session.step()
        drawn = Session(Still, size=(64, 64), overlay="off", **options).open()
        drawn.push(np.zeros((64, 64, 3), np.uint8))
        drawn.step()
        return session, drawn
"""


@pytest.mark.parametrize("kept", ["kept = ", ""])
def test_sessions_that_were_never_closed_are_when_the_program_ends(kept):
    code = textwrap.dedent(f"{NEVER_CLOSED}\n    {kept}leave_open()")
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    assert "Exception" not in done.stderr


def test_what_a_thread_that_has_ended_left_open_is_closed_by_the_next_session(run_python):
    assert run_python(
        NEVER_CLOSED
        + """
    before = settings()
    left = []
    thread = threading.Thread(target=lambda: left.extend(leave_open()))
    thread.start()
    thread.join()
    with Session(Still, size=(64, 64), overlay="off", **options) as session:
        session.push(np.full((64, 64, 3), 255, np.uint8))
        session.step()
        shown = session.picture().mean() > 250
        after = settings()
    same = (after.switch_interval_s, after.cv2_threads) == (
        before.switch_interval_s, before.cv2_threads)
    print(json.dumps(bool(shown and same)))
    """
    )


def test_another_thread_cannot_open_one_beside_it(drawn):
    said = []

    def use():
        try:
            Session([people()], **PLAIN).open()
        except ConfigError as error:
            said.append(str(error))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "another thread has a session open" in said[0]


# --- a context of the host's ---------------------------------------------------------------------


@pytest.fixture
def host():
    try:
        context = HeadlessSurface((8, 8)).ctx
    except Exception as error:
        pytest.skip(f"no OpenGL: {error}")
    yield context
    context.release()


def test_a_picture_is_drawn_into_the_hosts_framebuffer(host):
    target = host.framebuffer([host.texture((64, 48), 4)])
    with Session(Still, context=host, framebuffer=target, overlay="off", **PLAIN) as session:
        session.push(np.full((48, 64, 3), (255, 0, 0), np.uint8))
        session.step()
        assert host.fbo is not None
    pixels = np.frombuffer(target.read(components=3), np.uint8).reshape(-1, 3)
    assert (pixels.mean(0) > (-1, -1, 250)).all()


def test_a_host_with_opengl_es_is_drawn_for_too(monkeypatch):
    monkeypatch.setenv("HEIMDALL_GL", "es")
    try:
        opened = HeadlessSurface((8, 8))
    except DeviceError as error:
        pytest.skip(f"no OpenGL ES: {error}")
    host = opened.ctx
    target = host.framebuffer([host.texture((64, 48), 4)])
    with Session(Still, context=host, framebuffer=target, overlay="off", **PLAIN) as session:
        session.push(np.full((48, 64, 3), (255, 0, 0), np.uint8))
        session.step()
    pixels = np.frombuffer(target.read(components=4), np.uint8).reshape(-1, 4)
    assert (pixels.mean(0)[:3] > (-1, -1, 250)).all()
    monkeypatch.setattr(host, "version_code", 200)
    with pytest.raises(DeviceError, match=r"version 2\.0: OpenGL ES 3\.0 is needed"):
        Session(Still, context=host, size=(64, 48), **PLAIN).open()
    opened.close()


def alive(kinds=("Texture", "Buffer", "Program", "Framebuffer", "VertexArray", "Renderbuffer")):
    """What there is in the current context, by name: GL itself is asked."""
    library = ctypes.CDLL("libGL.so.1")
    return {
        (kind, name)
        for kind in kinds
        for name in range(1, 200)
        if getattr(library, f"glIs{kind}")(name)
    }


def test_the_hosts_framebuffer_is_bound_after_every_step_and_at_the_end(host):
    def bound():
        number = ctypes.c_int()
        ctypes.CDLL("libGL.so.1").glGetIntegerv(0x8CA6, ctypes.byref(number))  # the one drawn to
        return number.value

    mine = host.framebuffer([host.texture((64, 48), 4)])
    mine.use()
    with Session(Still, context=host, size=(64, 48), overlay="off", **PLAIN) as session:
        assert bound() == mine.glo
        session.push(np.zeros((48, 64, 3), np.uint8))
        session.step()
        assert bound() == mine.glo
    assert bound() == mine.glo


def test_a_session_that_cannot_open_leaves_nothing_in_the_hosts_context(host, monkeypatch):
    before = alive()
    monkeypatch.setattr("heimdall.runtime.loop.live.Outputs", refuse)
    with pytest.raises(DeviceError, match="no outputs today"):
        Session(Still, context=host, size=(64, 48), **PLAIN).open()
    assert alive() == before


def test_the_hosts_context_lives_on_without_anything_of_the_sessions(host):
    mine = host.texture((4, 4), 4)
    before = alive()
    with Session(Still, context=host, size=(64, 48), **PLAIN) as session:
        session.push(np.zeros((48, 64, 3), np.uint8))
        session.step()
        assert len(alive()) > len(before) + 5
    assert alive() == before
    assert len(mine.read()) == 64


def test_a_context_that_is_too_old_is_refused(monkeypatch, host):
    monkeypatch.setattr(host, "version_code", 310)
    with pytest.raises(DeviceError, match=r"version 3\.1: OpenGL 3\.3 is needed"):
        Session(Still, context=host, size=(64, 48), **PLAIN).open()


def test_a_context_that_is_lost_is_named_and_the_session_closes(host):
    with Session(Still, context=host, size=(64, 48), overlay="off", **PLAIN) as session:
        session.push(np.zeros((48, 64, 3), np.uint8))
        session.step()
        host.release()
        with pytest.raises(DeviceError, match="has been released"):
            session.step()


# --- what makes no sense -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("image", "says"),
    [
        (np.zeros((4, 4), np.uint8), "BGR uint8 of shape"),
        (np.zeros((4, 4, 3), np.float32), "not float32"),
        (np.zeros((0, 4, 3), np.uint8), "not uint8 of"),
        ("picture.png", "numpy array"),
    ],
)
def test_what_is_no_frame_is_refused_and_the_session_goes_on(drawn, image, says):
    with pytest.raises(ConfigError, match=says):
        drawn.push(image)
    drawn.push(RED)
    drawn.step()


def test_a_frame_that_goes_back_in_time_is_refused(drawn):
    drawn.push(RED, 1000)
    with pytest.raises(ConfigError, match="goes back in time"):
        drawn.push(RED, 999)
    drawn.push(RED, 1001)


def test_a_closed_session_says_so(drawn):
    drawn.close()
    drawn.close()
    for use in (drawn.step, drawn.picture, lambda: drawn.push(RED), lambda: drawn.finished):
        with pytest.raises(AppError, match="the session is closed"):
            use()


def test_a_session_that_is_not_open_says_so():
    with pytest.raises(AppError, match="not open"):
        Session(Still).step()


def test_another_thread_is_refused(drawn):
    seen = SimpleNamespace(error=None)

    def use():
        try:
            drawn.step()
        except AppError as error:
            seen.error = error

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert "belongs to the thread that opened it" in str(seen.error)
    drawn.step()


def test_a_step_from_within_a_callback_is_refused_and_frames_go_on():
    session = Session([people()], on_result=lambda *_: session.step(), **PLAIN)
    with session:
        session.push(RED)
        session.step()
        assert any("step() within step()" in each for each in session.summary().errors)


def test_frames_go_on_after_one_that_was_interrupted(drawn, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    drawn.push(RED)
    drawn.step()
    with monkeypatch.context() as patch:
        patch.setattr("heimdall.render.headless.HeadlessSurface.present", interrupt)
        with pytest.raises(KeyboardInterrupt):
            drawn.step()
    for _ in range(3):
        drawn.step()
    assert drawn.summary().frames >= 3


def test_a_session_cannot_be_closed_by_its_own_callback():
    class Closing(Still):
        def draw(self, scene):
            session.close()

    session = Session(Closing, size=SIZE, overlay="off", **PLAIN)
    with session:
        session.push(RED)
        session.step()
        assert any("close() within step()" in each for each in session.summary().errors)
        session.step()


@pytest.mark.parametrize("name", ["record", "screenshot"])
def test_outputs_need_pictures(name, tmp_path):
    outputs: dict[str, Any] = {name: tmp_path / ("a.png" if name == "screenshot" else "a.mp4")}
    with pytest.raises(ConfigError, match=f"{name} is for pictures"):
        Session([people()], **outputs)


def test_what_is_waiting_when_a_session_closes_is_told():
    with Session([people(on_event=True)], **PLAIN) as session:
        future = session.result("people")
    with pytest.raises(AppError, match="closed before there was a result"):
        future.result()


def test_waiting_has_an_end():
    with Session([people()], **PLAIN) as session:
        with pytest.raises(TimeoutError, match=r"within 0\.1 s"):  # no frame has been pushed
            session.wait(session.result("people"), 0.1)
        session.push(RED)
        session.wait(session.result("people"), 20)
        session.wait(session.result("people"), 20)  # of the newest frame: it is known


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"app": 3}, "is no app"),
        ({"app": []}, "no DNN"),
        ({"app": Still, "framebuffer": SimpleNamespace(size=(1, 1))}, "needs the context"),
        ({"app": [people()], "context": object()}, "context is for drawing"),
        ({"app": Still, "context": object(), "size": (8, 8)}, r"must be a moderngl\.Context"),
    ],
)
def test_arguments_that_make_no_sense_are_named(arguments, says):
    with pytest.raises((AppError, ConfigError, DeviceError), match=says):
        Session(**arguments).open()


def test_a_dnn_that_is_not_there_is_named(undrawn):
    with pytest.raises(AppError, match="no DNN 'x' in this session; it has: people"):
        undrawn.latest("x")


class Standing(App):
    """Its world has the bundled page's marker."""

    world = World(Marker("DICT_4X4_50", 7, 0.08))


def test_pushed_frames_say_where_the_camera_is_and_each_session_begins_afresh(assets):
    app = Standing()
    for _ in range(2):
        assert not app.world.tracked
        video = cv2.VideoCapture(str(assets / "media" / "page.mp4"))
        with Session(app, size=SIZE, overlay="off", **PLAIN) as session:
            for _ in range(12):
                session.push(video.read()[1])
                session.step()
                assert app.world.thread.settle()
            assert app.world.tracked
            assert session.summary().world.pose_ms.p50 > 0
        assert app.world.thread is None
    with Session(app, render=False, **PLAIN):
        assert app.world.thread is None  # nothing is drawn there


@pytest.mark.parametrize("what", ["finish", "keep"])
def test_where_the_end_raises_the_gpu_is_left_and_all_is_closed(monkeypatch, what):
    """Else the next session of the process finds its networks there."""
    from heimdall.runtime.loop.live import LiveRun

    def fail(run):
        raise RuntimeError("no summary")

    session = Session(Seeing, size=SIZE, **PLAIN)
    session.open()
    run, shared_gpu = session._run, session._run.shared_gpu
    assert isinstance(run, LiveRun)
    session.result("people").cancel()  # its caller does not wait any more
    monkeypatch.setattr(LiveRun, what, fail)
    with pytest.raises(RuntimeError, match="no summary"):
        run.close()
    monkeypatch.undo()
    assert run.closed
    assert run._loop not in shared_gpu.loops
    assert run not in shared_gpu.router._owners.values()
    session.close()
