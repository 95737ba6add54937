"use strict";
// What fingers do, as the mouse would: a tap is a click, a finger that moves drags, a long press is
// a right click; two fingers turn the wheel: apart or together up and down, round left and right.

const LONG_MS = 500, FAR_PX = 10;
const PINCH = Math.log(1.1), TWIST = Math.PI / 24; // a notch

const touch = (() => {
  const fingers = new Map(); // by pointer: where it is now
  let first = null, timer = 0, doing = ""; // "", "waiting", "dragging", "two", "done"
  let apart = 0, angle = 0;

  function measure() {
    const [one, two] = fingers.values();
    const x = two.clientX - one.clientX, y = two.clientY - one.clientY;
    return [Math.hypot(x, y) || 1, Math.atan2(y, x)];
  }

  function click(place, button) {
    point(place, 0); // as a mouse comes before it presses
    point(place, button);
    point(place, 0);
  }

  const place = (event) => ({clientX: event.clientX, clientY: event.clientY});

  return {
    down(event) {
      fingers.set(event.pointerId, place(event));
      if (fingers.size === 1) {
        first = place(event);
        doing = "waiting";
        timer = setTimeout(() => {
          doing = "done";
          if (navigator.vibrate) navigator.vibrate(15);
          click(first, 2);
        }, LONG_MS);
      } else if (fingers.size === 2) {
        clearTimeout(timer);
        if (doing === "dragging") point(first, 0);
        doing = "two";
        [apart, angle] = measure();
      }
    },

    move(event) {
      if (!fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, place(event));
      if (doing === "waiting"
          && Math.hypot(event.clientX - first.clientX, event.clientY - first.clientY) > FAR_PX) {
        clearTimeout(timer);
        doing = "dragging";
        point(first, 0);
        point(first, 1);
      }
      if (doing === "dragging") {
        first = place(event);
        point(first, 1);
      } else if (doing === "two" && fingers.size === 2) {
        const [now, turned] = measure();
        let twist = turned - angle;
        twist -= 2 * Math.PI * Math.round(twist / (2 * Math.PI));
        const dx = twist / TWIST, dy = Math.log(now / apart) / PINCH;
        if (Math.abs(dx) < 0.1 && Math.abs(dy) < 0.1) return;
        scroll(dx, dy);
        [apart, angle] = [now, turned];
      }
    },

    up(event) {
      fingers.delete(event.pointerId);
      clearTimeout(timer);
      if (doing === "waiting") click(first, 1);
      else if (doing === "dragging") point(first, 0);
      doing = fingers.size ? "done" : ""; // a finger that is left does nothing by itself
    },

    cancel(event) {
      fingers.delete(event.pointerId);
      clearTimeout(timer);
      if (doing === "dragging") point(first, 0);
      doing = fingers.size ? "done" : "";
    },
  };
})();
