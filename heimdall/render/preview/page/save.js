"use strict";
// Keeps what is shown, as a picture or as a video, in the browser's downloads.

(() => {
  const FPS = 30, KINDS = ["video/mp4;codecs=avc1.42E01E", "video/webm;codecs=vp9", "video/webm"];
  const sheet = document.createElement("canvas"), paint = sheet.getContext("2d", {alpha: false});
  let recorder = null, timer = 0;

  const wide = (view) => view.videoWidth || view.width, high = (view) => view.videoHeight || view.height;

  // What is shown now, an overlay's two parts together; false while there is nothing.
  function copy() {
    const view = shown(), camera = find("camera");
    if (!hasPicture || !wide(view)) return false;
    if (sheet.width !== wide(view) || sheet.height !== high(view)) {
      [sheet.width, sheet.height] = [wide(view), high(view)];
    }
    paint.fillRect(0, 0, sheet.width, sheet.height);
    if (view === content && !camera.hidden) paint.drawImage(camera, 0, 0, sheet.width, sheet.height);
    paint.drawImage(view, 0, 0);
    return true;
  }

  function keep(blob, ending) {
    const link = document.createElement("a");
    const now = new Date(Date.now() - 60000 * new Date().getTimezoneOffset()).toISOString();
    link.download = `heimdall ${now.slice(0, 19).replace("T", " ").replaceAll(":", ".")}.${ending}`;
    link.href = URL.createObjectURL(blob);
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    toast(`Saved as ${link.download}`);
  }

  function picture() {
    if (!copy()) return toast("There is no picture yet");
    sheet.toBlob((blob) => keep(blob, "png"));
  }

  function begin() {
    const kind = window.MediaRecorder && KINDS.find((each) => MediaRecorder.isTypeSupported(each));
    if (!kind) return toast("This browser records no video");
    if (!copy()) return toast("There is no picture yet");
    const parts = [];
    recorder = new MediaRecorder(sheet.captureStream(FPS), {mimeType: kind, videoBitsPerSecond: 6000000});
    recorder.ondataavailable = (event) => { if (event.data.size) parts.push(event.data); };
    recorder.onstop = () => {
      clearInterval(timer);
      recorder = null;
      tell(false);
      if (parts.length) keep(new Blob(parts, {type: kind}), kind.slice(6).split(";")[0]);
      else toast("Nothing was recorded");
    };
    recorder.start(1000);
    timer = setInterval(copy, 1000 / FPS);
    tell(true);
  }

  function tell(records) {
    find("save-video").textContent = records ? "Stop and save" : "Record";
    find("save-video").setAttribute("aria-pressed", String(records));
    find("show-figures").classList.toggle("records", records);
  }

  find("save-picture").addEventListener("click", picture);
  find("save-video").addEventListener("click", () => recorder ? recorder.stop() : begin());
  document.addEventListener("run-ended", () => { if (recorder) recorder.stop(); });
})();
