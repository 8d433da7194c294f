// Small helpers that the interactive figures share.
"use strict";
window.dagsvm = (() => {
const INK = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b5a800", "#777777", "#5d3a9b", "#994f00"];

function make(tag, about = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...inside);
  return node;
}

function menu(label, options, change) {
  const select = make("select", { onchange: () => change(select.value) });
  for (const [value, text] of options) select.append(make("option", { value }, text));
  return { select, label: make("label", {}, `${label} `, select) };
}

function svg(tag, about = {}, text = "") {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(about)) node.setAttribute(name, value);
  if (text) node.textContent = text;
  return node;
}
return { INK, make, menu, svg, data: {} };
})();
