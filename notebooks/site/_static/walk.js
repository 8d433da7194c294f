// Walk a graph: one row through two systems, question by question.
"use strict";
(() => {
const { make, menu, svg, INK } = dagsvm;

const names = (side, classes) => side.split(",").map((c) => classes[c]).join(" ");

function walk(box, sets) {
  const state = { set: Object.keys(sets)[0], row: 0, step: 0, left: "", right: "" };
  const set = () => sets[state.set];
  const choose = menu("data set", Object.keys(sets).map((s) => [s, s]), (value) => start(value));
  const head = make("div");
  const stage = make("div", { class: "side" });
  const button = (text, act, key) => make("button", { type: "button", onclick: act, "data-key": key }, text);
  const move = (by) => () => { state.row = (state.row + by + set().rows.length) % set().rows.length; state.step = 0; draw(); };
  const go = (by) => () => { state.step = Math.max(0, Math.min(longest(), state.step + by)); draw(); };
  const longest = () => Math.max(...[state.left, state.right].map((s) => set().systems[s].rows[state.row].steps.length));
  const said = make("p", { "aria-live": "polite" });
  box.replaceChildren(head, said, stage);

  function start(name) {
    state.set = name; state.row = 0; state.step = 0;
    const systems = Object.keys(set().systems);
    state.left = systems.includes("DDAG") ? "DDAG" : systems[0];
    state.right = systems[systems.length - 1];
    const sides = ["left", "right"].map((side) => {
      const m = menu(side, systems.map((s) => [s, s]), (value) => { state[side] = value; state.step = 0; draw(); });
      m.select.value = state[side];
      return m.label;
    });
    head.replaceChildren(choose.label, ...sides, button("◀ row", move(-1), "previous-row"), button("row ▶", move(1), "next-row"),
      " ", button("◀ question", go(-1), "back"), button("question ▶", go(1), "next"), button("to the end", go(1e6), "end"));
    choose.select.value = name;
    draw();
  }

  function picture() {
    const row = set().rows[state.row];
    if (set().picture) {
      const [w, h, top] = set().picture;
      const out = svg("svg", { viewBox: `0 0 ${w} ${h}`, width: 120, height: 120, role: "img", "aria-label": `picture of a ${row.truth}` });
      row.x.forEach((v, k) => out.append(svg("rect", { x: k % w, y: Math.floor(k / w), width: 1, height: 1, fill: `rgb(${Array(3).fill(Math.round(255 * (1 - v / top))).join()})` })));
      return out;
    }
    const title = set().features || row.x.map((_, k) => `x${k + 1}`);
    return make("p", { class: "features" }, row.x.map((v, k) => `${title[k]} ${v}`).join(", "));
  }

  function ranges(step) {
    const limits = set().ranges[step.machine], classes = set().classes, tall = 13 * classes.length + 18;
    const low = Math.min(step.f, ...limits.map((r) => r[0])), high = Math.max(step.f, ...limits.map((r) => r[1]));
    const x = (v) => 28 + (262 * (v - low)) / (high - low || 1);
    const out = svg("svg", { viewBox: `0 0 300 ${tall}`, width: 300, height: tall, role: "img", "aria-label": `value ${step.f} beside the ranges of all classes` });
    limits.forEach(([a, b], c) => {
      const y = 13 * c + 8, inside = step.f >= a && step.f <= b;
      out.append(svg("text", { x: 22, y: y + 4, "text-anchor": "end", "font-size": 11, fill: "#222" }, String(classes[c])));
      out.append(svg("rect", { x: x(a), y: y - 3, width: Math.max(1, x(b) - x(a)), height: 7, fill: INK[c % INK.length], opacity: inside ? 1 : 0.3 }));
    });
    out.append(svg("line", { x1: x(0), x2: x(0), y1: 0, y2: tall - 14, stroke: "#222", "stroke-dasharray": "3 3" }));
    out.append(svg("line", { x1: x(step.f), x2: x(step.f), y1: 0, y2: tall - 14, stroke: "#000", "stroke-width": 3 }));
    out.append(svg("text", { x: x(step.f), y: tall - 3, "text-anchor": "middle", "font-size": 11, fill: "#222" }, step.f.toFixed(3)));
    return out;
  }

  function column(name) {
    const classes = set().classes, system = set().systems[name], row = system.rows[state.row];
    const done = row.steps.slice(0, state.step), struck = new Set(done.flatMap((s) => s.struck));
    const left = classes.filter((_, c) => !struck.has(c));
    const out = make("div", { "data-system": name }, make("h3", {}, `${name}: ${new Set(row.steps.map((s) => s.machine)).size} of ${system.machines} machines`));
    const here = done[done.length - 1];
    if (here && here.machine === "filter") {
      out.append(make("p", {}, `The filter${here.struck.length ? ` rejects: ${here.struck.map((c) => classes[c]).join(" ")}` : " rejects no class"}. Kernel values so far: ${here.kernel}.`));
    } else if (here) {
      const [plus, minus] = here.machine.split("|");
      out.append(make("p", {}, `Question ${done.length}: ${names(plus, classes)} against ${names(minus, classes)}? Value ${here.f.toFixed(3)}. `
        + (here.struck.length ? `Struck off: ${here.struck.map((c) => classes[c]).join(" ")}. ` : "")
        + `Kernel values so far: ${here.kernel}.`), ranges(here));
    } else out.append(make("p", {}, "No question asked yet."));
    out.append(make("p", {}, done.length >= row.steps.length ? `Answer: ${row.answer}.` : `Still possible: ${left.join(" ")}`));
    return out;
  }

  function draw() {
    const row = set().rows[state.row];
    said.textContent = `Row ${state.row + 1} of ${set().rows.length}, of class ${row.truth}; question ${state.step} of ${longest()}`;
    stage.replaceChildren(make("div", { style: "flex:0 0 8rem" }, picture()), column(state.left), column(state.right));
  }
  start(state.set);
}
Object.assign(dagsvm, { walk });
})();
