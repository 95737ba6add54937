"use strict";
// The picture comes through a WebSocket as 6 bytes (number, latency in ms) and a JPEG; each is
// shown as it arrives and then acknowledged: the server never sends more than can be shown.

const RETRY_FIRST_MS = 500, RETRY_MOST_MS = 10000;
const ENDED = 4000; // the code of closing that means it: the run has ended
const WINDOW_MS = 1000; // over which pictures are counted
const TWICE_MS = 3000; // within which Escape ends the run when pressed again
const NOTCH_PX = 100; // of the wheel
const MOST_BUFFERED = 65536; // bytes on their way out: then moves are left out
const CAPS = {left: "←", right: "→", up: "↑", down: "↓", escape: "Esc", space: "Space",
              enter: "Enter", tab: "Tab", page_up: "PgUp", page_down: "PgDn"};
const KEYS = {left: "ArrowLeft", right: "ArrowRight", up: "ArrowUp", down: "ArrowDown",
              escape: "Escape", space: " ", enter: "Enter", tab: "Tab", backspace: "Backspace",
              insert: "Insert", delete: "Delete", home: "Home", end: "End",
              page_up: "PageUp", page_down: "PageDown"};

const find = (id) => document.getElementById(id);
const canvas = find("picture"), paper = canvas.getContext("bitmaprenderer", {alpha: false});
let socket = null, retryMs = RETRY_FIRST_MS, ended = false;
let hasPicture = false, drawn = 0, escapedAt = -Infinity, toastTimer = 0;
const times = []; // when pictures were shown, within the window

// --- words ------------------------------------------------------------------------------------

function card(headline, details = "", share = null) {
  find("card").hidden = headline === "";
  find("start").hidden = find("start-ar").hidden = true;
  find("headline").textContent = headline;
  find("details").textContent = details;
  find("share").hidden = share === null;
  if (share !== null) find("share").value = share;
}

function toast(text) {
  clearTimeout(toastTimer);
  find("toast").textContent = text;
  find("toast").hidden = text === "";
  toastTimer = setTimeout(() => { find("toast").hidden = true; }, TWICE_MS);
}

function state(word, says) {
  find("state").className = word;
  find("state").title = says;
  find("stage").classList.toggle("stale", word === "lost");
  if (word !== "live") find("rate").textContent = find("latency").textContent = "";
}

function figures(now, latency) {
  times.push(now);
  while (times[0] < now - WINDOW_MS) times.shift();
  find("rate").textContent = `${times.length} fps`;
  if (latency > 0) find("latency").textContent = `${Math.round(latency)} ms delay`;
}

// --- the socket -------------------------------------------------------------------------------

function connect() {
  state("waiting", "Connecting");
  if (!hasPicture) card("Connecting …");
  socket = new WebSocket(new URL("socket", location.href.replace(/^http/, "ws")));
  socket.binaryType = "arraybuffer";
  socket.onmessage = (message) => {
    if (typeof message.data === "string") listen(JSON.parse(message.data));
    else show(socket, message.data);
  };
  socket.onopen = () => { drawn = 0; watch(); };
  socket.onclose = (event) => closed(event);
}

function say(message) {
  if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
}

function listen(said) {
  retryMs = RETRY_FIRST_MS;
  if (said.type === "hello") {
    document.title = `${said.title} · Heimdall`;
    find("title").textContent = said.title;
    fillKeys(said.keys);
    state("live", "Connected");
    if (said.phone) phone.greet(said.phone);
    else if (!hasPicture) card(said.title, "waiting for the first picture");
  } else if (said.type === "progress" && !hasPicture) {
    if (find("start").hidden) card(find("title").textContent, said.what, said.share);
  } else if (said.type === "status") {
    charts.add(said);
  } else {
    phone.hear(said);
  }
}

function end() {
  ended = true;
  document.dispatchEvent(new Event("run-ended"));
}

async function closed(event) {
  if (event.code === ENDED) {
    end();
    state("lost", "Ended");
    card("The run has ended", "Start it again and open its new address.");
    return;
  }
  if (!phone.flows()) state("lost", "Not connected");
  const reason = event.reason || await refusal();
  if (ended) return;
  const wait = retryMs * (0.8 + 0.4 * Math.random()); // pages must not all come back at once
  retryMs = Math.min(2 * retryMs, phone.is ? RETRY_FIRST_MS : RETRY_MOST_MS);
  if (!phone.flows()) card("Not connected", `${reason || "The machine cannot be reached."} Trying again …`);
  setTimeout(connect, wait);
}

// A browser does not tell why a WebSocket was refused; a plain request does.
async function refusal() {
  try {
    const answer = await fetch(location.pathname, {cache: "no-store"});
    if (answer.ok) return "The connection was lost.";
    const words = (await answer.text()).trim();
    if (answer.status === 403) { // another run has come in this one's place
      end();
      card("This address is no longer valid", words);
    }
    return words;
  } catch {
    return "";
  }
}

async function show(from, data) {
  const came = performance.now();
  const header = new DataView(data), number = header.getUint32(0), latency = header.getUint16(4);
  try {
    const jpeg = new Blob([new Uint8Array(data, 6)], {type: "image/jpeg"});
    const bitmap = await createImageBitmap(jpeg);
    const late = from !== socket || from.readyState !== WebSocket.OPEN || number <= drawn;
    if (late) { // the connection is lost, or the picture after it was decoded first
      bitmap.close();
    } else {
      drawn = number;
      if (canvas.width !== bitmap.width || canvas.height !== bitmap.height) {
        canvas.width = bitmap.width;
        canvas.height = bitmap.height;
      }
      paper.transferFromImageBitmap(bitmap);
      if (find("start").hidden) card(""); // else it asks for something
      canvas.hidden = false;
      hasPicture = true;
      figures(performance.now(), latency);
    }
  } catch (error) {
    toast(`A picture could not be shown: ${error.message}`);
  }
  if (from === socket) say({type: "shown", number, took: Math.round(performance.now() - came)});
}

// --- pointer ----------------------------------------------------------------------------------

const video = find("video");
const content = find("content"); // of an overlay: over the camera
const shown = () => [content, video].find((view) => !view.hidden) || canvas;

function point(place, buttons) {
  if (!hasPicture) return;
  const view = shown(), box = view.getBoundingClientRect();
  const wide = view.videoWidth || view.width, high = view.videoHeight || view.height;
  const scale = Math.min(box.width / wide, box.height / high);
  const x = (place.clientX - box.left - box.width / 2) / (scale * wide) + 0.5;
  const y = (place.clientY - box.top - box.height / 2) / (scale * high) + 0.5;
  const inside = (value) => Math.min(Math.max(value, 0), 1);
  say({type: "pointer", x: inside(x), y: inside(y), buttons: buttons & 7});
}

function scroll(dx, dy) {
  const notches = (count) => Math.min(Math.max(count, -20), 20) || 0;
  say({type: "scroll", dx: notches(dx), dy: notches(dy)});
}

for (const view of [canvas, video, content]) {
  view.addEventListener("pointerdown", (event) => {
    view.focus();
    view.setPointerCapture(event.pointerId); // a drag may leave the picture
    event.preventDefault();
    if (event.pointerType === "touch") touch.down(event);
    else point(event, event.buttons);
  });
  view.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") touch.move(event);
    else if (!socket || socket.bufferedAmount < MOST_BUFFERED) point(event, event.buttons);
  });
  view.addEventListener("pointerup", (event) => {
    if (event.pointerType === "touch") touch.up(event);
    else point(event, event.buttons);
  });
  view.addEventListener("pointercancel", (event) => {
    if (event.pointerType === "touch") touch.cancel(event);
    else point(event, 0);
  });
  view.addEventListener("contextmenu", (event) => event.preventDefault());
  view.addEventListener("wheel", (event) => {
    event.preventDefault();
    const notch = [NOTCH_PX, 3, 1][event.deltaMode]; // pixels, lines, pages
    scroll(-event.deltaX / notch, -event.deltaY / notch);
  }, {passive: false});
}

// --- keys -------------------------------------------------------------------------------------

function key(key, code, down, mods = []) {
  say({type: "key", key: key.slice(0, 32), code: code.slice(0, 32), down, mods});
}

// Ends the run, so one press is not enough.
function escape() {
  const now = performance.now();
  if (now - escapedAt > TWICE_MS) {
    escapedAt = now;
    toast("Once more to end the run");
    return;
  }
  escapedAt = -Infinity;
  toast("");
  key("Escape", "Escape", true);
  key("Escape", "Escape", false);
}

// The browser's own shortcuts stay the browser's: with Control, Alt or Meta, F11, and Shift+Tab,
// which leads to the buttons below.
function isOurs(event) {
  const printed = event.getModifierState("AltGraph");
  const held = event.metaKey || ((event.ctrlKey || event.altKey) && !printed);
  const button = event.target instanceof HTMLButtonElement && ["Enter", " ", "Tab"].includes(event.key);
  return !held && !button && !event.isComposing && event.key !== "F11"
    && !(event.key === "Tab" && event.shiftKey);
}

window.addEventListener("keydown", (event) => {
  if (!isOurs(event)) return;
  event.preventDefault();
  if (event.repeat) return;
  if (event.key === "Escape") escape();
  else key(event.key, event.code || event.key, true, event.shiftKey ? ["shift"] : []);
});
window.addEventListener("keyup", (event) => {
  if (event.key !== "Escape") key(event.key, event.code || event.key, false, event.shiftKey ? ["shift"] : []);
});

function fillKeys(keys) {
  find("keys").replaceChildren(...keys.map(([name, does]) => {
    const button = document.createElement("button"), cap = document.createElement("kbd");
    button.type = "button";
    cap.textContent = CAPS[name] || name.toUpperCase();
    button.append(cap, does);
    const typed = KEYS[name] || (/^f\d+$/.test(name) ? name.toUpperCase() : name);
    const press = (down) => {
      if (down === button.classList.contains("down")) return;
      button.classList.toggle("down", down);
      key(typed, `button ${name}`, down);
    };
    button.addEventListener("pointerdown", () => press(true));
    for (const over of ["pointerup", "pointercancel", "pointerleave"]) {
      button.addEventListener(over, () => press(false));
    }
    button.addEventListener("click", (event) => { // by the keyboard: detail is 0
      if (event.detail === 0) { press(true); press(false); }
    });
    return button;
  }));
}

// --- the window -------------------------------------------------------------------------------

function watch() {
  say({type: "watch", on: !document.hidden});
}

window.addEventListener("blur", () => say({type: "blur"}));
document.addEventListener("visibilitychange", () => {
  if (document.hidden) say({type: "blur"});
  watch();
  if (!document.hidden) phone.wake();
});

find("end").addEventListener("click", escape);
find("fill").addEventListener("click", () => {
  if (document.fullscreenElement) document.exitFullscreen();
  else if (document.body.requestFullscreen) document.body.requestFullscreen().catch(() => {});
  shown().focus();
});
if (!document.body.requestFullscreen) find("fill").hidden = true; // iPhones
find("show-keys").addEventListener("click", (event) => {
  const keys = find("keys");
  keys.hidden = !keys.hidden;
  event.currentTarget.setAttribute("aria-expanded", String(!keys.hidden));
});
