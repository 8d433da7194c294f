// Move a point in the plane: which machines it meets, and what every system answers where.
"use strict";
(() => {
const { make, menu, INK } = dagsvm;

const SIDE = 440, GRID = 110;

function output(model, t, x, y) {
  const machine = model.machines[t];
  let sum = machine.bias;
  machine.sv.forEach((k, n) => {
    const [a, b] = model.sv[k];
    sum += machine.beta[n] * Math.exp(-model.gamma * ((a - x) ** 2 + (b - y) ** 2));
  });
  return sum;
}

const pair = (i, j, n) => (i * (2 * n - i - 1)) / 2 + j - i - 1;

// how far each class stands behind the best in the filter of a filtered DAG
function leads(model, filter, x, y) {
  const k = filter.sv.map((v) => Math.exp(-model.gamma * ((model.sv[v][0] - x) ** 2 + (model.sv[v][1] - y) ** 2)));
  const g = filter.bias.map((b, c) => filter.coef[c].reduce((sum, w, m) => sum + w * k[m], b));
  return g.map((v) => Math.max(...g) - v);
}

// what a system answers at a point, and the machines that it asked on the way
function answer(model, system, order, x, y) {
  const n = model.classes.length, met = [];
  const ask = (t) => {
    const known = met.find(([machine]) => machine === t);
    if (known) return known[1]; // asked before: costs nothing
    const f = output(model, t, x, y);
    met.push([t, f]);
    return f;
  };
  if (system === "Max Wins") {
    const votes = Array(n).fill(0);
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) votes[ask(pair(i, j, n)) >= 0 ? i : j]++;
    return { label: votes.indexOf(Math.max(...votes)), met };
  }
  const filter = model.filters[system];
  if (system === "DDAG" || filter) {
    const lead = filter && leads(model, filter, x, y);
    const list = (filter ? filter.list : order).filter((c) => !filter || lead[c] <= filter.bound);
    while (list.length > 1) {
      const [a, b] = [list[0], list[list.length - 1]], i = Math.min(a, b), j = Math.max(a, b);
      const winner = ask(pair(i, j, n)) >= 0 ? i : j;
      if (winner === a) list.pop(); else list.shift();
    }
    return { label: list[0], met, lead };
  }
  const graph = model.graphs[system];
  let node = 0;
  while (graph.machine[node] >= 0) node = ask(graph.machine[node]) >= 0 ? graph.right[node] : graph.left[node];
  return { label: graph.label[node], met };
}

// the set of a filtered DAG at level alpha: its answer, and the classes whose score is at most the threshold
function uncertain(model, system, alpha, { label, lead }, x, y) {
  const filter = model.filters[system], m = filter.calibration.length, n = model.classes.length;
  const k = Math.ceil((1 - alpha) * (m + 1) - 1e-9), limit = k <= m ? filter.calibration[k - 1] : Infinity;
  const score = (c) => {
    if (lead[c] > filter.bound) return 1000 + lead[c];
    const f = output(model, pair(Math.min(c, label), Math.max(c, label), n), x, y);
    return label < c ? f : -f;
  };
  return model.classes.map((_, c) => c).filter((c) => c === label || score(c) <= limit);
}

function plane(box, given) {
  const model = { filters: {}, ...given };
  const named = Object.keys(model.filters).filter((name) => model.filters[name].calibration.length);
  const n = model.classes.length, xs = model.points.map((p) => p[0]), ys = model.points.map((p) => p[1]);
  const [left, right, low, high] = [Math.min(...xs) - 0.4, Math.max(...xs) + 0.4, Math.min(...ys) - 0.4, Math.max(...ys) + 0.4];
  const state = { system: "DDAG", order: model.classes.map((_, k) => k), x: (left + right) / 2, y: (low + high) / 2 };
  const canvas = make("canvas", { width: SIDE, height: SIDE, tabindex: 0, role: "img", "aria-label": "the plane; arrow keys move the point" });
  const told = make("div", { class: "told", "aria-live": "polite" });
  const systems = ["Max Wins", "DDAG", ...Object.keys(model.graphs).filter((name) => name !== "DDAG"), ...Object.keys(model.filters)];
  const choose = menu("system", systems.map((s) => [s, s]), (value) => { state.system = value; paint(); });
  choose.select.value = state.system;
  const order = make("output");
  const moved = make("output");
  const hint = make("p", { class: "hint" }, "Try: press “another list”, then put the circle on a border, with a click or the arrow keys. Which machines are asked changes everywhere; the answer changes near borders, if at all.");
  const alpha = make("input", { type: "range", min: 0.0025, max: 0.1, step: 0.0025, value: 0.01, oninput: () => { [state.system] = named; choose.select.value = state.system; paint(); } });
  const level = make("output");
  const sets = (found, x, y) => (named.includes(state.system) ? uncertain(model, state.system, +alpha.value, found, x, y) : [found.label]);
  const shuffle = (act) => () => { act(); state.system = choose.select.value = "DDAG"; paint(); };
  const buttons = [["natural list", () => state.order.sort((a, b) => a - b)],
    ["reverse half", () => { state.order = [...state.order.slice(n / 2), ...state.order.slice(0, n / 2)]; }],
    ["another list", () => { for (let k = n - 1; k > 0; k--) { const o = Math.floor(Math.random() * (k + 1)); [state.order[k], state.order[o]] = [state.order[o], state.order[k]]; } }]];
  box.replaceChildren(hint,
    make("div", {}, choose.label, ...buttons.map(([text, act]) => make("button", { type: "button", onclick: shuffle(act) }, text)), " list: ", order, moved, " ", ...(named.length ? [make("label", {}, "α of the filtered DAG's sets ", alpha, " ", level)] : [])),
    make("div", { class: "side" }, canvas, told));
  const paper = canvas.getContext("2d");
  const sx = (x) => (SIDE * (x - left)) / (right - left), sy = (y) => SIDE * (1 - (y - low) / (high - low));
  let regions = null;

  const natural = model.classes.map((_, k) => k);

  // where the circle starts: where systems or lists disagree, as near to the middle as can be
  function open() {
    const lists = [state.order, [...natural].reverse(), [...natural.slice(n / 2), ...natural.slice(0, n / 2)]];
    let best = [1, 0];
    for (let r = 1; r < 40; r++) for (let c = 1; c < 40; c++) {
      const [x, y] = [left + (c * (right - left)) / 40, low + (r * (high - low)) / 40];
      const labels = new Set(systems.filter((s) => s !== "DDAG").map((s) => answer(model, s, natural, x, y).label));
      lists.forEach((list) => labels.add(answer(model, "DDAG", list, x, y).label));
      const far = Math.hypot(c - 20, r - 20);
      if (labels.size > best[0] || (labels.size === best[0] && labels.size > 1 && far < best[1])) { best = [labels.size, far]; [state.x, state.y] = [x, y]; }
    }
  }

  // the share of the plane that this list answers otherwise than the natural one
  function share() {
    let other = 0;
    for (let r = 0; r < 55; r++) for (let c = 0; c < 55; c++) {
      const [x, y] = [left + ((c + 0.5) * (right - left)) / 55, high - ((r + 0.5) * (high - low)) / 55];
      other += answer(model, "DDAG", state.order, x, y).label !== answer(model, "DDAG", natural, x, y).label;
    }
    return (100 * other) / 55 ** 2;
  }

  function paint() {
    moved.textContent = state.order.every((c, k) => c === k) ? "" : ` (another answer than by the natural list on ${share().toFixed(1)} % of this square)`;
    level.textContent = alpha.value;
    order.textContent = state.order.map((c) => model.classes[c]).join(" ");
    regions = document.createElement("canvas");
    regions.width = regions.height = GRID;
    const image = regions.getContext("2d").createImageData(GRID, GRID);
    for (let r = 0; r < GRID; r++) for (let c = 0; c < GRID; c++) {
      const [x, y] = [left + ((c + 0.5) * (right - left)) / GRID, high - ((r + 0.5) * (high - low)) / GRID];
      const held = sets(answer(model, state.system, state.order, x, y), x, y); // stripes where several classes are left
      const ink = INK[held[Math.floor((r + c) / 3) % held.length]], at = 4 * (r * GRID + c);
      for (let k = 0; k < 3; k++) image.data[at + k] = (255 + parseInt(ink.slice(1 + 2 * k, 3 + 2 * k), 16)) / 2;
      image.data[at + 3] = 255;
    }
    regions.getContext("2d").putImageData(image, 0, 0);
    draw();
  }

  function draw() {
    paper.imageSmoothingEnabled = false;
    paper.drawImage(regions, 0, 0, SIDE, SIDE);
    for (const [x, y, c] of model.points) { paper.fillStyle = INK[c]; paper.beginPath(); paper.arc(sx(x), sy(y), 2.2, 0, 7); paper.fill(); }
    for (let c = 0; c < n; c++) {
      const own = model.points.filter((p) => p[2] === c), mean = (k) => own.reduce((s, p) => s + p[k], 0) / own.length;
      paper.fillStyle = "#000"; paper.font = "bold 15px sans-serif"; paper.fillText(model.classes[c], sx(mean(0)), sy(mean(1)));
    }
    paper.strokeStyle = "#000"; paper.lineWidth = 3; paper.beginPath(); paper.arc(sx(state.x), sy(state.y), 7, 0, 7); paper.stroke();
    const rows = systems.map((system) => {
      const found = answer(model, system, state.order, state.x, state.y), own = (model.filters[system] || { sv: [] }).sv;
      const used = new Set([...own, ...found.met.flatMap(([t]) => model.machines[t].sv)]);
      return make("tr", { "data-system": system }, ...[system, model.classes[found.label], found.met.length + (own.length > 0), used.size].map((v) => make("td", {}, String(v))));
    });
    const sides = [];
    for (let i = 0; i < n; i++) for (let j = i + 1; j < n; j++) sides.push(`${model.classes[i]} vs ${model.classes[j]}`);
    const here = answer(model, state.system, state.order, state.x, state.y);
    const met = here.met.map(([t, f]) => make("li", {}, `${sides[t]}: ${f.toFixed(3)}`));
    const held = named.includes(state.system) ? ` At α = ${alpha.value} its set is {${sets(here, state.x, state.y).map((c) => model.classes[c]).join(", ")}}.` : "";
    told.replaceChildren(
      make("p", {}, `Point (${state.x.toFixed(2)}, ${state.y.toFixed(2)}). ${state.system} answers ${model.classes[here.label]}.${held} It asks:`), make("ol", {}, ...met),
      make("table", {}, make("tr", {}, ...["system", "answer", "machines", "kernel values"].map((h) => make("th", { scope: "col" }, h))), ...rows));
  }

  canvas.addEventListener("click", (event) => {
    const at = canvas.getBoundingClientRect();
    state.x = left + ((event.clientX - at.left) / at.width) * (right - left);
    state.y = high - ((event.clientY - at.top) / at.height) * (high - low);
    draw();
  });
  canvas.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!by) return;
    event.preventDefault();
    state.x = Math.min(right, Math.max(left, state.x + (by[0] * (right - left)) / 60));
    state.y = Math.min(high, Math.max(low, state.y + (by[1] * (high - low)) / 60));
    draw();
  });
  const plain = (system, x, y) => answer(model, system, natural, x, y);
  box.dagsvm = { answer: plain, uncertain: (system, level, x, y) => uncertain(model, system, level, plain(system, x, y), x, y) };
  open();
  paint();
}
Object.assign(dagsvm, { output, pair, answer, uncertain, plane });
})();
