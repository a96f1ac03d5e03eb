// The filter over the rows of the matrix, and the copy buttons. Without this script everything else stays.
"use strict";

function words(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

function filterRows() {
  const input = document.getElementById("rows.filter");
  if (!input) return;
  const count = document.getElementById("rows.count");
  const rows = [...document.querySelectorAll("tr.row")];
  const jumps = new Map([...document.querySelectorAll(".jump [data-row]")].map((each) => [each.dataset.row, each]));
  const groups = [...document.querySelectorAll("table.matrix tbody")];

  function apply() {
    const wanted = words(input.value);
    let shown = 0;
    for (const row of rows) {
      const hit = wanted.every((word) => row.dataset.words.includes(word));
      row.hidden = !hit;
      const jump = jumps.get(row.id);
      if (jump) jump.hidden = !hit;
      shown += hit;
    }
    for (const group of groups) group.hidden = !group.querySelector("tr.row:not([hidden])");
    count.textContent = wanted.length ? `${shown} of ${rows.length} rows` : "";
  }

  input.addEventListener("input", apply);
  input.closest(".filter").hidden = false;
  apply(); // a browser may have kept the words of an earlier visit

  // A link into a row that is filtered out must find it.
  window.addEventListener("hashchange", () => {
    const row = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (row && row.hidden) {
      input.value = "";
      apply();
      row.scrollIntoView();
    }
  });
}

async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  // file:// is no secure context everywhere: select and copy the old way
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("readonly", "");
  area.className = "hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("the browser does not allow it");
}

function copyButtons() {
  for (const button of document.querySelectorAll("button.copier")) {
    button.hidden = false;
    const name = button.getAttribute("aria-label");
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("code").textContent;
      let said = "Copied";
      try {
        await copy(text);
      } catch {
        said = "Select and copy by hand";
      }
      button.textContent = said;
      button.setAttribute("aria-label", `${said}. ${name}`);
      button.focus();
    });
  }
}

filterRows();
copyButtons();
