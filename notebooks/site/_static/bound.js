// The bound: Theorem 1 and 2 as printed, a held-out binomial bound and a conformal one, on one axis.
"use strict";
(() => {
const { make, svg } = dagsvm;

// Theorem 1 with K nodes of equal margin gamma: 130 R^2/m (D' log(4em) log(4m) + log(2 (2m)^K / delta)), base-2 logarithms
function theorem(K, gamma, R, m, delta) {
  const log = Math.log2, D = K / gamma ** 2;
  return ((130 * R * R) / m) * (D * log(4 * Math.E * m) * log(4 * m) + log(2 / delta) + K * log(2 * m));
}

function logGamma(z) {
  const g = [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  let x = 0.99999999999980993;
  g.forEach((c, k) => { x += c / (z + k); });
  const t = z + 6.5;
  return 0.5 * Math.log(2 * Math.PI) + (z - 0.5) * Math.log(t) - t + Math.log(x);
}

// P(at most k wrong in n) when each is wrong with chance p
function below(k, n, p) {
  let sum = 0;
  for (let i = 0; i <= k; i++) sum += Math.exp(logGamma(n + 1) - logGamma(i + 1) - logGamma(n - i + 1) + i * Math.log(p) + (n - i) * Math.log(1 - p));
  return sum;
}

// the largest error with which so few as k wrong of n still have chance delta (Clopper and Pearson, one-sided)
function binomial(k, n, delta) {
  let [low, high] = [k / n, 1];
  for (let step = 0; step < 60; step++) {
    const middle = (low + high) / 2;
    if (below(k, n, middle) > delta) low = middle; else high = middle;
  }
  return high;
}

const conformal = (n, alpha) => (alpha * (n + 1) >= 1 ? alpha : 1);

const SLIDERS = [
  ["m", "training samples m", 2, 9, 0.1, 4.2, (v) => Math.round(10 ** v)],
  ["N", "classes N", 2, 30, 1, 10, (v) => +v],
  ["gamma", "margin γ of every node", -2, 0, 0.02, 0, (v) => +(10 ** v).toFixed(3)],
  ["delta", "δ", -4, -1, 0.1, -1.3, (v) => +(10 ** v).toFixed(4)],
  ["n", "held-out samples n", 1, 5, 0.1, 3.3, (v) => Math.round(10 ** v)],
  ["wrong", "share wrong on them", 0, 0.3, 0.005, 0.03, (v) => +v],
  ["alpha", "conformal α", 0.005, 0.2, 0.005, 0.02, (v) => +v],
];
const TEXT = { "font-size": 13, fill: "currentColor" };

function bound(box) {
  const at = {}, inputs = SLIDERS.map(([name, text, low, high, step, value, read]) => {
    const shown = make("output"), slider = make("input", { type: "range", min: low, max: high, step, value, name, oninput: () => { at[name] = read(slider.value); shown.textContent = at[name].toLocaleString("en"); draw(); } });
    at[name] = read(value); shown.textContent = at[name].toLocaleString("en");
    return make("label", {}, make("span", {}, text), slider, shown);
  });
  const hint = make("p", { class: "hint" }, "Try: the margins stand at their largest; how many training samples does Theorem 1 need before it says anything, that is, before it falls below 1?");
  const picture = svg("svg", { role: "img", "aria-label": "the four bounds on a logarithmic axis" });
  box.replaceChildren(hint, make("div", { class: "sliders" }, ...inputs), picture);

  function draw() {
    const K = (at.N * (at.N - 1)) / 2, R = 1, k = Math.round(at.wrong * at.n);
    const bounds = [["Theorem 1", theorem(K, at.gamma, R, at.m, at.delta)], ["Theorem 2, one class", theorem(at.N - 1, at.gamma, R, at.m, at.delta)],
      [`held out: ${k} of ${at.n} wrong`, binomial(k, at.n, at.delta)], ["conformal: true class rejected", conformal(at.n, at.alpha)]];
    // as wide as its box, so that letters keep their size; names stand above their dots
    const wide = Math.max(280, Math.min(640, (box.clientWidth || 670) - 28)), tall = 46 * bounds.length + 34, foot = tall - 24;
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall })) picture.setAttribute(name, value);
    const x = (v) => 16 + ((wide - 32) * (Math.log10(Math.min(Math.max(v, 1e-4), 1e8)) + 4)) / 12;
    picture.replaceChildren();
    for (let d = -4; d <= 8; d += 2) {
      picture.append(svg("line", { x1: x(10 ** d), x2: x(10 ** d), y1: 4, y2: foot, stroke: "currentColor", opacity: 0.2 }));
      picture.append(svg("text", { ...TEXT, x: x(10 ** d), y: tall - 6, "text-anchor": "middle" }, d === 0 ? "1" : `1e${d}`));
    }
    picture.append(svg("line", { x1: x(1), x2: x(1), y1: 4, y2: foot, stroke: "currentColor", "stroke-dasharray": "4 3" }));
    bounds.forEach(([name, value], row) => {
      const y = 40 + 46 * row, says = value < 1, back = x(value) > wide - 170;
      picture.append(svg("text", { ...TEXT, x: 4, y: y - 20, "font-weight": "bold" }, name));
      picture.append(svg("circle", { cx: x(value), cy: y, r: 6, fill: says ? "#3b8fd6" : "#d55e00" }));
      picture.append(svg("text", { ...TEXT, x: x(value) + (back ? -11 : 11), y: y + 4, "text-anchor": back ? "end" : "start", "data-bound": name, "data-value": value }, value.toPrecision(3) + (says ? "" : " (says nothing)")));
    });
  }
  box.dagsvm = { theorem, binomial, conformal };
  window.addEventListener("resize", draw);
  draw();
}
Object.assign(dagsvm, { theorem, binomial, conformal, bound });
})();
