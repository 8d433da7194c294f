// Filters of the claims page; ?paper=...&verdict=... in the address sets them.
"use strict";
(() => {
  const menus = [...document.querySelectorAll("#filters select")];
  const rows = [...document.querySelectorAll("#claim-list tbody tr")];
  const count = document.querySelector("#filters output");
  const given = new URLSearchParams(location.search);
  for (const menu of menus) if (given.has(menu.dataset.filter)) menu.value = given.get(menu.dataset.filter);
  const apply = () => {
    let shown = 0;
    for (const row of rows) {
      const fits = menus.every((menu) => {
        const [name, value] = [menu.dataset.filter, menu.value];
        return !value || row.dataset[name] === value || (name === "verdict" && row.dataset.inferred === value);
      });
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = `${shown} of ${rows.length}`;
  };
  for (const menu of menus) menu.addEventListener("change", apply);
  apply();
})();
