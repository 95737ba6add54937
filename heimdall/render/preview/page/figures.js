"use strict";
// The run's figures as charts of the last minute: the intervals between frames, and how late each
// network's results are.

const charts = (() => {
  const LONG = 120, WIDE = 240, HIGH = 36; // figures kept, two a second; a chart's own units
  const COLORS = ["#56b4e9", "#e69f00", "#cc79a7", "#00b894", "#f0e442", "#b197fc", "#ff8787", "#a3e635"];
  const rows = new Map(); // by name
  const panel = find("figures");

  const svg = (name, attributes) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };

  function row(name, color) {
    const known = rows.get(name);
    if (known) return known;
    const figure = document.createElement("figure");
    const title = document.createElement("figcaption"), label = document.createElement("strong");
    const said = document.createElement("span");
    label.textContent = name;
    title.append(label, said);
    const picture = svg("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, preserveAspectRatio: "none", role: "img"});
    const bound = svg("line", {x1: 0, x2: WIDE, class: "bound"});
    const line = svg("polyline", {fill: "none", stroke: color});
    for (const each of [bound, line]) each.setAttribute("vector-effect", "non-scaling-stroke");
    picture.append(bound, line);
    figure.append(title, picture);
    find("charts").append(figure);
    const made = {said, picture, bound, line, values: []};
    rows.set(name, made);
    return made;
  }

  // Appends a value (null: there is none) and draws what is kept; `most` is what it should not exceed.
  function plot(name, color, value, most, words) {
    const into = row(name, color);
    into.values.push(value);
    if (into.values.length > LONG) into.values.shift();
    into.said.textContent = words;
    into.picture.setAttribute("aria-label", `${name}: ${words}`);
    const top = Math.max(1.25 * most, ...into.values.filter((each) => each !== null)) || 1;
    const y = (at) => (HIGH - 1 - (HIGH - 2) * Math.min(at / top, 1)).toFixed(1);
    into.bound.setAttribute("y1", y(most));
    into.bound.setAttribute("y2", y(most));
    const first = LONG - into.values.length;
    const points = into.values.flatMap((each, at) =>
      each === null ? [] : [`${((first + at) * WIDE / (LONG - 1)).toFixed(1)},${y(each)}`]);
    into.line.setAttribute("points", points.join(" "));
  }

  const ms = (value) => value === null ? "none yet" : `${Math.round(value)} ms`;

  // Under a preview that is held upright there is room for them.
  const upright = matchMedia("(orientation: portrait)");
  let chosen = false; // by the user

  function open(on) {
    panel.hidden = !on;
    document.body.classList.toggle("figures", on);
    find("show-figures").setAttribute("aria-expanded", String(on));
  }

  find("show-figures").addEventListener("click", () => {
    chosen = true;
    open(panel.hidden);
    shown().focus();
  });

  return {
    add(said) {
      if (!chosen) open(upright.matches && !phone.is);
      const longest = said.intervals.length ? Math.max(...said.intervals.slice(-15)) : null;
      plot("Frames", "#34d399", longest, 1000 / said.target,
           `${said.fps} of ${said.target} fps, ${said.late} late`);
      said.dnns.forEach((dnn, at) => {
        const where = dnn.processor.toUpperCase();
        plot(dnn.name, COLORS[at % COLORS.length], dnn.latency, dnn.allowed,
             `${ms(dnn.latency)} of ${ms(dnn.allowed)}, ${dnn.rate}/s, ${where}`);
      });
      const parts = [`Policy ${said.scheduler}`, said.device];
      if (said.gaps !== null) parts.splice(1, 0, `gaps ${Math.round(100 * said.gaps)}% used`);
      if (said.age !== null) parts.push(`camera picture ${Math.round(said.age)} ms old when drawn`);
      find("summary").textContent = said.problem || `${parts.join(" · ")}.`;
    },
  };
})();
