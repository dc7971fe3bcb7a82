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
// A long table opens with its first rows; the button shows all.
for (const button of document.querySelectorAll("button.whole")) {
  button.addEventListener("click", () => {
    const box = button.closest("figure").querySelector(".scroll");
    box.className = box.querySelectorAll("tbody tr").length > 24 ? "scroll tall" : "scroll";
    button.parentElement.remove();
    box.focus();
  });
}
// Points of a figure lead to their claims: the drawing's links are laid over the picture. One of them can be reached by
// the tabulator, the others from it by the arrow keys.
function linkPoints(image) {
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (letter) => letter.charCodeAt(0));
  const drawing = new TextDecoder().decode(bytes);
  const svg = new DOMParser().parseFromString(drawing, "image/svg+xml").documentElement;
  const [, , width, height] = (svg.getAttribute("viewBox") || "").split(/\s+/).map(Number);
  const layer = document.createElement("div");
  layer.className = "points";
  layer.setAttribute("role", "group");
  layer.setAttribute("aria-label", "Points of the figure: to their claims");
  for (const anchor of svg.getElementsByTagName("a")) {
    const disc = anchor.querySelector("circle");
    const asked = (anchor.getAttribute("href") || "").split("#claims?")[1];
    if (!disc || !asked) continue;
    const link = document.createElement("a");
    link.href = "#claims";
    link.dataset.asked = asked;
    link.title = anchor.querySelector("title").textContent;
    link.setAttribute("aria-label", link.title);
    link.tabIndex = layer.children.length ? -1 : 0;
    link.style.left = `${(100 * disc.getAttribute("cx")) / width}%`;
    link.style.top = `${(100 * disc.getAttribute("cy")) / height}%`;
    layer.append(link);
  }
  if (!layer.children.length) return;
  layer.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const links = Array.from(layer.children);
    const next = links[links.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    for (const link of links) link.tabIndex = link === next ? 0 : -1;
    next.focus();
  });
  const frame = document.createElement("div");
  frame.className = "drawing";
  image.replaceWith(frame);
  frame.append(image, layer);
}
if (document.getElementById("claims")) {
  for (const image of document.querySelectorAll('.picture img[src^="data:image/svg+xml"]')) linkPoints(image);
}
// The appendix is folded: what a link leads to is unfolded, and "Unfold all" opens everything (to print it, say).
function unfold(hash) {
  const target = hash.length > 1 && !hash.includes("?") ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
  for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  if (target) target.scrollIntoView();
}
window.addEventListener("hashchange", () => unfold(location.hash));
unfold(location.hash);
for (const link of document.querySelectorAll('nav a[href^="#"]')) {
  link.addEventListener("click", () => unfold(link.getAttribute("href")));
}
const all = document.getElementById("unfold");
if (all) {
  all.addEventListener("click", () => {
    const folded = Array.from(document.querySelectorAll("details.section, #findings details"));
    const open = folded.some((details) => !details.open);
    for (const details of folded) details.open = open;
    all.textContent = open ? "Fold all" : "Unfold all";
  });
}
