"use strict";
// Filters the list, and leads to the comparison of two runs that were chosen. Nothing is loaded.
(() => {
  const rows = [...document.querySelectorAll(".list tbody tr")];
  const tools = document.querySelector(".tools");
  if (!tools) return;
  const search = document.createElement("input");
  search.type = "search";
  const label = document.createElement("label");
  label.append("Find a run", search);
  const told = document.createElement("p");
  told.setAttribute("role", "status");
  tools.append(label, told);
  tools.hidden = false;
  const words = rows.map((row) => row.textContent.toLowerCase());
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, number) => {
      row.hidden = !words[number].includes(wanted);
      shown += row.hidden ? 0 : 1;
    });
    told.textContent = wanted ? `${shown} of ${rows.length}` : "";
  });
  let first = null;
  document.querySelector(".list").addEventListener("click", (event) => {
    const link = event.target.closest("a.compare");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const row = link.closest("tr");
    if (first === row) {
      first.removeAttribute("aria-current");
      first = null;
      told.textContent = "";
    } else if (first) {
      location.assign(`compare/${first.dataset.id}/${row.dataset.id}`);
    } else {
      first = row;
      row.setAttribute("aria-current", "true");
      told.textContent = "Choose the run to compare it with.";
    }
  });
  document.documentElement.dataset.ready = "1";
})();
