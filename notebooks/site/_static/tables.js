// Tables, programs and formulas wider than their box: tables in smaller letters, and a mark where it goes on.
"use strict";
addEventListener("load", () => {
  const edge = (box) => box.classList.toggle("more-right", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
  const wide = (boxes, by = 6) => [...document.querySelectorAll(boxes)].filter((box) => box.scrollWidth > box.clientWidth + by);
  const mark = (boxes, by) => {
    for (const box of wide(boxes, by).filter((b) => b.clientWidth > 200 && /auto|scroll/.test(getComputedStyle(b).overflowX))) {
      edge(box);
      box.addEventListener("scroll", () => edge(box), { passive: true });
    }
  };
  for (const box of wide("article div:has(> table.dagsvm), article .cell_output div:has(> table)")) {
    for (const table of box.querySelectorAll(":scope > table")) table.classList.add("tight");
  }
  mark("article .cell_output, article div:has(> table), article .scroll, article figure.report, article table.table, article pre");
  const typeset = window.MathJax && MathJax.startup && MathJax.startup.promise;
  if (typeset) typeset.then(() => mark("article div.math", 24));
});
