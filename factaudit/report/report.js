"use strict";
// Click a heading to sort its table by that column, again for the other way round. Undefined figures stay last.
function figureOf(cell) {
  const node = cell.firstChild;
  const text = node ? node.textContent.trim() : "";
  if (text === "–" || text === "") return null;
  const number = Number(text.replace(/,/g, "").replace("−", "-").replace(/^[<+]/, ""));
  return Number.isNaN(number) ? text : number;
}
function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const figures = heading.classList.contains("n");
    const before = heading.getAttribute("aria-sort");
    // Of figures, the greatest are looked for first.
    const way = before === null ? (figures ? -1 : 1) : before === "ascending" ? -1 : 1;
    for (const other of heading.parentElement.children) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
    const rows = Array.from(body.rows, (row) => [figureOf(row.cells[column]), row]);
    rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : way * compare(a, b)));
    body.append(...rows.map(([, row]) => row));
  });
}
