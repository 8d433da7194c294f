// Walk a graph: one sample through two systems, question by question.
"use strict";
(() => {
const { make, menu, svg, INK } = dagsvm;

const WIDE = 300, TEXT = { "font-size": 12, fill: "currentColor" };
const names = (side, classes) => side.split(",").map((c) => classes[c]).join(" ");

// bars of all classes on one axis, with lines at given values
function bars(classes, low, high, spans, lines, label) {
  const tall = 14 * classes.length + 20;
  const x = (v) => 28 + (262 * (v - low)) / (high - low || 1);
  const out = svg("svg", { viewBox: `0 0 ${WIDE} ${tall}`, width: WIDE, height: tall, role: "img", "aria-label": label });
  spans.forEach(({ from, to, bold }, c) => {
    const y = 14 * c + 8;
    out.append(svg("text", { ...TEXT, x: 22, y: y + 4, "text-anchor": "end" }, String(classes[c])));
    out.append(svg("rect", { x: x(from), y: y - 4, width: Math.max(2, x(to) - x(from)), height: 8, fill: INK[c % INK.length], opacity: bold ? 1 : 0.35 }));
  });
  for (const { at, dashed, text } of lines) {
    const stroke = dashed ? { "stroke-dasharray": "3 3" } : { "stroke-width": 3 };
    out.append(svg("line", { x1: x(at), x2: x(at), y1: 0, y2: tall - 16, stroke: "currentColor", ...stroke }));
    const anchor = x(at) > 260 ? "end" : "middle";
    if (text) out.append(svg("text", { ...TEXT, x: x(at), y: tall - 3, "text-anchor": anchor }, text));
  }
  return out;
}

function walk(box, sets) {
  const state = { set: Object.keys(sets)[0], row: 0, step: 0, left: "", right: "" };
  const set = () => sets[state.set];
  const choose = menu("data set", Object.keys(sets).map((s) => [s, s]), (value) => start(value));
  const head = make("div");
  const stage = make("div", { class: "side" });
  const button = (text, act, key) => make("button", { type: "button", onclick: act, "data-key": key }, text);
  const move = (by) => () => { state.row = (state.row + by + set().rows.length) % set().rows.length; state.step = 1; draw(); };
  const go = (by) => () => { state.step = Math.max(0, Math.min(longest(), state.step + by)); draw(); };
  const longest = () => Math.max(...[state.left, state.right].map((s) => set().systems[s].rows[state.row].steps.length));
  const said = make("p", { "aria-live": "polite" });
  const hint = make("p", { class: "hint" }, "Try: press “question ▶” until both systems have answered, and compare what they computed; then take the next sample.");
  box.replaceChildren(hint, head, said, stage);

  // the sample for which the right system still asks most, which shows what each does
  function open() {
    const lengths = set().systems[state.right].rows.map((row) => row.steps.length);
    state.row = lengths.indexOf(Math.max(...lengths));
    state.step = 1;
  }

  function start(name) {
    state.set = name;
    const systems = Object.keys(set().systems);
    state.left = systems.includes("DDAG") ? "DDAG" : systems[0];
    state.right = systems[systems.length - 1];
    open();
    const sides = ["left", "right"].map((side) => {
      const m = menu(side, systems.map((s) => [s, s]), (value) => { state[side] = value; state.step = 1; draw(); });
      m.select.value = state[side];
      return m.label;
    });
    head.replaceChildren(choose.label, ...sides, button("◀ sample", move(-1), "previous-row"), button("sample ▶", move(1), "next-row"),
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
    const limits = set().ranges[step.machine];
    const low = Math.min(step.f, 0, ...limits.map((r) => r[0])), high = Math.max(step.f, 0, ...limits.map((r) => r[1]));
    const spans = limits.map(([from, to]) => ({ from, to, bold: step.f >= from && step.f <= to }));
    const lines = [{ at: 0, dashed: true }, { at: step.f, text: step.f.toFixed(3) }];
    return bars(set().classes, low, high, spans, lines, `value ${step.f} beside the ranges of all classes`);
  }

  function filter(step) {
    if (!step.lead) return [];
    const spans = step.lead.map((to, c) => ({ from: 0, to, bold: !step.struck.includes(c) }));
    const high = 1.1 * Math.max(...step.lead, step.bound < 1e9 ? step.bound : 0);
    const lines = step.bound < 1e9 ? [{ at: step.bound, dashed: true, text: `threshold ${step.bound.toFixed(2)}` }] : [];
    return [bars(set().classes, 0, high, spans, lines, "how far each class is behind the best, beside the threshold"),
      make("p", { class: "key" }, "Bars: how far a class is behind the filter's best one. Beyond the dashed threshold it is rejected.")];
  }

  function column(name) {
    const classes = set().classes, system = set().systems[name], row = system.rows[state.row];
    const done = row.steps.slice(0, state.step), struck = new Set(done.flatMap((s) => s.struck));
    const left = classes.filter((_, c) => !struck.has(c));
    const filtered = row.steps.some((s) => s.machine === "filter");
    const asked = new Set(row.steps.map((s) => s.machine)).size - filtered;
    const out = make("div", { "data-system": name }, make("h3", {}, `${name}: ${filtered ? "the filter and " : ""}${asked} of ${system.machines} machines`));
    const here = done[done.length - 1];
    if (here && here.machine === "filter") {
      out.append(make("p", {}, `The filter ${here.struck.length ? `rejects ${here.struck.map((c) => classes[c]).join(" ")}` : "rejects no class"}. Kernel values so far: ${here.kernel}.`), ...filter(here));
    } else if (here) {
      const [plus, minus] = here.machine.split("|");
      out.append(make("p", {}, `Question ${done.length - filtered}: ${names(plus, classes)} against ${names(minus, classes)}? Value ${here.f.toFixed(3)}. `
        + (here.struck.length ? `Eliminated: ${here.struck.map((c) => classes[c]).join(" ")}. ` : "")
        + `Kernel values so far: ${here.kernel}.`), ranges(here),
      make("p", { class: "key" }, "Bars: the middle 90 % of this machine's values for training samples of each class. Line: this sample; dashed: the threshold, 0."));
    } else out.append(make("p", {}, "No question asked yet."));
    out.append(make("p", {}, done.length >= row.steps.length ? `Answer: ${row.answer}.` : `Still possible: ${left.join(" ")}`));
    return out;
  }

  function draw() {
    const row = set().rows[state.row];
    said.textContent = `Sample ${state.row + 1} of ${set().rows.length}, of class ${row.truth}; question ${state.step} of ${longest()}`;
    stage.replaceChildren(make("div", { class: "sample" }, picture()), column(state.left), column(state.right));
  }
  start(state.set);
}
Object.assign(dagsvm, { walk });
})();
