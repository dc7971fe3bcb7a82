"use strict";
// The browser of claims: filters, a list, and one claim in full. What it shows is in the page itself, compressed.
// Texts are data: they are only ever set as text.
(() => {
  const root = document.getElementById("claims");
  if (!root) return;
  const SIZE = 20;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const fields = ["dataset", "system", "evaluator", "kind", "text", "order"];
  const KINDS = {
    wrong: "judged wrongly", passed: "unattributable, and passed", rejected: "attributable, and rejected",
    right: "judged rightly", unscored: "without a verdict", disagree: "evaluators disagree",
    disputed: "annotators disagree", contrary: "verdict does not follow a change",
  };
  const ORDERS = {
    "": "most telling", wrong: "most evaluators wrong", disagreement: "most disagreement", lowest: "lowest score",
    highest: "highest score",
  };
  let about = null;
  let first = 0;

  function make(name, text, kind) {
    const node = document.createElement(name);
    if (text !== undefined && text !== null) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  }

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }

  // ---- what is asked of the claims that the page holds
  function isOf(kind, said, label, all) {
    const known = said.p !== null && label !== null;
    if (kind === "wrong") return known && said.p !== label;
    if (kind === "passed") return known && said.p === 1 && label === 0;
    if (kind === "rejected") return known && said.p === 0 && label === 1;
    if (kind === "right") return known && said.p === label;
    if (kind === "unscored") return said.p === null;
    return all.some((one) => one.p === 1) && all.some((one) => one.p === 0);
  }
  // Whether a verdict on a variant is not what that on its claim asks for.
  function isContrary(said, variant, label) {
    const after = variant.said.find((one) => one.e === said.e);
    if (!after || said.p === null) return false;
    return variant.expected === "changed" ? label !== 0 && said.p === 1 && after.p === 1 : said.p !== after.p;
  }
  // What claims are sorted by, the greatest first; without an order the page's stays, the most telling first.
  function orderValue(order, row, evaluator) {
    if (order === "wrong") return row.said.filter((one) => isOf("wrong", one, row.label)).length;
    if (order === "disagreement") {
      const ones = row.said.filter((one) => one.p === 1).length;
      const zeros = row.said.filter((one) => one.p === 0).length;
      return Math.min(ones, zeros) / Math.max(ones + zeros, 1);
    }
    const scores = row.said.filter((one) => (evaluator < 0 || one.e === evaluator) && one.s !== undefined).map((one) => one.s);
    const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
    return scores.length ? (order === "highest" ? mean : -mean) : -Infinity;
  }
  function hasKind(kind, row, evaluator) {
    if (kind === "disputed") return [0, 1].every((label) => (row.people || []).some((one) => one.label === label));
    const said = evaluator < 0 ? row.said : row.said.filter((one) => one.e === evaluator);
    if (kind === "contrary") return said.some((one) => (row.variants || []).some((v) => isContrary(one, v, row.label)));
    return said.some((one) => isOf(kind, one, row.label, row.said));
  }
  function find(asked) {
    const evaluator = about.evaluators.indexOf(asked.evaluator);
    const text = asked.text.toLowerCase();
    const rows = about.claims.filter((row) => {
      if (asked.dataset && row.dataset !== asked.dataset) return false;
      if (asked.system && row.system !== asked.system) return false;
      if (text && !`${row.claim || ""}\n${row.id}`.toLowerCase().includes(text)) return false;
      return !asked.kind || hasKind(asked.kind, row, evaluator);
    });
    if (asked.order) {
      const values = new Map(rows.map((row) => [row, orderValue(asked.order, row, evaluator)]));
      rows.sort((a, b) => (values.get(a) === values.get(b) ? 0 : values.get(b) - values.get(a)));
    }
    return rows;
  }

  // ---- what is shown
  function words(text) {
    return new Set((text || "").toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}'’-]{3,}|\p{N}+/gu) || []);
  }
  function marked(text, known) {
    const node = make("p", null, "doc");
    for (const piece of text.split(/([\p{L}\p{N}][\p{L}\p{N}'’-]*)/u)) {
      node.append(known.has(piece.toLowerCase()) ? make("mark", piece) : piece);
    }
    return node;
  }
  const WORDS = { 1: "attributable", 0: "unattributable" };
  const word = (value) => (value === null ? "–" : WORDS[value]);

  function verdicts(row) {
    const table = make("table");
    const head = make("tr");
    for (const name of ["evaluator", "says", "score", "", "reply"]) {
      const cell = make("th", name);
      cell.scope = "col";
      head.append(cell);
    }
    table.createTHead().append(head);
    const body = table.createTBody();
    for (const said of row.said) {
      const line = body.insertRow();
      const right = row.label === null || said.p === null ? "" : said.p === row.label ? "right" : "wrong";
      line.append(make("td", about.evaluators[said.e]), make("td", word(said.p)));
      line.append(make("td", said.s === undefined ? "–" : String(said.s), "n"));
      line.append(make("td", said.st || right, right === "wrong" ? "bad" : ""));
      const reply = make("td");
      if (said.raw) reply.append(make("pre", said.raw));
      if (said.chunks) reply.append(make("small", `chunks: ${said.chunks.map((one) => one ?? "none").join(", ")}`));
      line.append(reply);
    }
    return table;
  }

  // What people said: a line each, with the span of the claim that they marked.
  function people(row) {
    const list = make("ul", null, "people-said");
    for (const said of row.people) {
      const words = [said.label === undefined ? null : word(said.label), said.grade];
      if (said.start !== undefined) words.push(`“${Array.from(row.claim || "").slice(said.start, said.end).join("")}”`);
      words.push(said.note);
      const line = make("li");
      line.append(make("b", said.annotator), `: ${words.filter((one) => one !== null && one !== undefined).join("; ")}`);
      list.append(line);
    }
    return list;
  }

  // A text beside another one: what stands between the words that both begin and end with is marked.
  function edited(text, other) {
    const [mine, its] = [text, other].map((one) => one.split(/(\s+)/u));
    let start = 0;
    while (start < Math.min(mine.length, its.length) && mine[start] === its[start]) start++;
    let end = 0;
    while (end < Math.min(mine.length, its.length) - start && mine.at(-1 - end) === its.at(-1 - end)) end++;
    const node = make("p", mine.slice(0, start).join(""), "edited");
    node.append(make("mark", mine.slice(start, mine.length - end).join("")), mine.slice(mine.length - end).join(""));
    return node;
  }
  function clipped(text, other) {
    let start = 0;
    while (start < Math.min(text.length, other.length) && text[start] === other[start]) start++;
    const from = Math.max(0, start - 160);
    return [text, other].map((one) => (from ? "… " : "") + one.slice(from, from + 700) + (one.length > from + 700 ? " …" : ""));
  }

  // The variants of a claim: before and after beside each other, and what each evaluator says of both.
  function variantsOf(row, doc) {
    const table = make("table", null, "variants");
    const head = make("tr");
    for (const name of ["change", "before", "after", "verdicts"]) {
      const cell = make("th", name);
      cell.scope = "col";
      head.append(cell);
    }
    table.createTHead().append(head);
    const body = table.createTBody();
    for (const variant of row.variants) {
      const line = body.insertRow();
      const kind = make("td", variant.kind.replaceAll("_", " "));
      kind.append(make("small", variant.expected === "changed" ? "should turn" : "should stay"));
      const texts = variant.doc === undefined ? [row.claim || "", variant.claim] : clipped(doc || "", variant.doc);
      line.append(kind);
      for (const [text, other] of [texts, [texts[1], texts[0]]]) {
        const cell = make("td");
        if (variant.doc !== undefined) cell.append(make("small", "document: "));
        cell.append(edited(text, other));
        line.append(cell);
      }
      const said = make("td");
      for (const one of row.said) {
        const after = variant.said.find((each) => each.e === one.e);
        const text = `${about.evaluators[one.e]}: ${word(one.p)} → ${word(after ? after.p : null)}`;
        said.append(make("div", text, isContrary(one, variant, row.label) ? "bad" : ""));
      }
      line.append(said);
    }
    const scroll = make("div", null, "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "variants");
    scroll.append(table);
    return scroll;
  }

  function item(row) {
    const node = make("details", null, "claim");
    const top = make("summary");
    top.append(make("span", row.claim || "(no text)", "text"));
    const wrong = row.said.filter((one) => one.p !== null && row.label !== null && one.p !== row.label);
    // Labels that estimates rest on need not stand in the claims table: a claim without one there may have one.
    const told = [row.dataset, row.system, row.entity && `about ${row.entity}`, row.label !== null && `label: ${word(row.label)}`];
    if (wrong.length) told.push(`wrong: ${wrong.map((one) => about.evaluators[one.e]).join(", ")}`);
    top.append(make("small", told.filter(Boolean).join(" · ")));
    node.append(top);
    node.addEventListener("toggle", () => {
      if (!node.open || node.childElementCount > 1) return;
      const scroll = make("div", null, "scroll");
      scroll.tabIndex = 0;
      scroll.setAttribute("role", "region");
      scroll.setAttribute("aria-label", "verdicts");
      if (row.said.length) scroll.append(verdicts(row));
      if (row.people) node.append(people(row));
      const doc = row.doc < 0 ? null : about.docs[row.doc];
      node.prepend(top, scroll);
      if (row.variants) node.append(variantsOf(row, doc));
      node.append(doc ? marked(doc, words(row.claim)) : make("p", "No document.", "file"));
      const about_it = [row.id, row.response_id && `response ${row.response_id}`, row.topic, row.error_type];
      node.append(make("p", about_it.filter(Boolean).join(" · "), "file"));
    });
    return node;
  }

  function show() {
    const found = find(Object.fromEntries(fields.map((name) => [name, part(name).value])));
    const last = Math.min(first + SIZE, found.length);
    part("list").replaceChildren(...found.slice(first, last).map(item));
    part("count").textContent = found.length ? `${first + 1} to ${last} of ${found.length.toLocaleString("en")}` : "none";
    part("back").disabled = first === 0;
    part("on").disabled = last >= found.length;
  }
  function fill(name, choices) {
    const select = part(name);
    for (const [value, label] of choices) {
      const option = make("option", label);
      option.value = value;
      select.append(option);
    }
    select.closest("label").hidden = choices.length < 2;
  }
  function follow() {
    const hash = location.hash.slice(1); // URLSearchParams decodes it, and once is enough: "R&D" and "a+b" are names
    if (!hash.startsWith("claims?")) return;
    const given = new URLSearchParams(hash.slice(7));
    for (const name of fields) part(name).value = given.get(name) || "";
    for (const select of root.querySelectorAll("select")) if (select.selectedIndex < 0) select.selectedIndex = 0;
    first = 0;
    root.scrollIntoView();
    show();
  }

  async function start() {
    const data = document.getElementById("claims-data");
    try {
      about = await unpack(data.textContent);
    } catch (error) {
      part("count").textContent = "This browser cannot unpack the claims: they are in claims.parquet.";
      return;
    }
    for (const name of ["dataset", "system", "evaluator"]) {
      fill(name, [["", "any"], ...about[`${name}s`].map((value) => [value, value])]);
    }
    // What no claim is of is not offered.
    const kinds = Object.entries(KINDS).filter(([kind]) => about.claims.some((row) => hasKind(kind, row, -1)));
    fill("kind", [["", "all"], ...kinds]);
    fill("order", Object.entries(ORDERS).filter(([order]) => order !== "wrong" || kinds.some(([kind]) => kind === "wrong")));
    if (about.claims.length < about.total) part("held").hidden = false;
    let late = 0;
    for (const name of fields) {
      part(name).addEventListener(name === "text" ? "input" : "change", () => {
        first = 0;
        clearTimeout(late);
        late = setTimeout(show, name === "text" ? 200 : 0);
      });
    }
    part("back").addEventListener("click", () => { first = Math.max(0, first - SIZE); show(); });
    part("on").addEventListener("click", () => { first += SIZE; show(); });
    window.addEventListener("hashchange", follow);
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[data-asked]");
      if (!link) return;
      event.preventDefault();
      location.hash = `claims?${link.dataset.asked}`;
    });
    show();
    follow();
    root.dataset.ready = "yes";
  }
  start();
})();
