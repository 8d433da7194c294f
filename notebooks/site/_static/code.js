// One switch for all code of a chapter: folded at first, unfolded together; the choice is kept while one reads.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const folded = [...document.querySelectorAll(".cell details.hide")];
  const title = document.querySelector("article h1");
  if (folded.length < 3 || !title) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "code-switch";
  const show = (open) => {
    for (const part of folded) part.open = open;
    button.textContent = open ? "Hide all code" : "Show all code";
    button.setAttribute("aria-pressed", String(open));
  };
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-pressed") !== "true";
    try { sessionStorage.setItem("code", open ? "open" : ""); } catch (e) { /* a page from disk may have none */ }
    show(open);
  });
  let kept = "";
  try { kept = sessionStorage.getItem("code"); } catch (e) { /* as above */ }
  title.after(button);
  show(kept === "open");
});
