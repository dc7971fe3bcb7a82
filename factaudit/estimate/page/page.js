"use strict";
// Texts reach the page by textContent and text nodes only; nothing is ever parsed as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const key = `factaudit.labels.${data.page}`;
  const $ = (id) => document.getElementById(id);
  const answers = [...document.querySelectorAll("#answer [data-label]")];
  const words = /[\p{L}\p{N}]+(?:[.,'’:-][\p{L}\p{N}]+)*/gu;
  const common = new Set(
    ("a an and are as at be been but by for from had has have he her his i in is it its of on or our she that the " +
      "their them there they this to was we were which who will with you").split(" ")
  );

  // --- what is kept: one record per claim (label, spans, note, seconds), where we are, and what can be undone
  let state = { annotator: data.annotator, at: 0, records: {}, undo: [], highlights: false };
  try {
    const kept = JSON.parse(localStorage.getItem(key) || "null");
    if (kept && typeof kept.records === "object") state = { ...state, ...kept };
  } catch (error) {
    trouble();
  }
  state.at = Math.min(Math.max(0, state.at | 0), data.claims.length - 1);

  function trouble() {
    $("trouble").hidden = false;
    $("trouble").textContent =
      "This browser does not let the page keep your labels: download them before you close it.";
  }
  function keep() {
    try {
      localStorage.setItem(key, JSON.stringify(state));
    } catch (error) {
      trouble();
    }
  }
  const current = () => data.claims[state.at];
  const record = (id = current().id) => state.records[id] || { spans: [], note: "", seconds: 0 };
  const answered = (id) => state.records[id] !== undefined && state.records[id].label !== undefined;
  function change(values, undoable) {
    const id = current().id;
    if (undoable) {
      state.undo.push({ at: state.at, id, before: state.records[id] ? { ...state.records[id] } : null });
      state.undo.splice(0, state.undo.length - 500);
    }
    state.records[id] = { ...record(), ...values };
    keep();
  }

  // --- time: of the claim in view, while the page is in view; a break of more than two minutes is none of it
  let since = performance.now();
  function spent() {
    const now = performance.now();
    const seconds = document.hidden ? 0 : (now - since) / 1000;
    since = now;
    return seconds <= 120 ? seconds : 0;
  }
  function count() {
    const more = spent();
    const id = current().id;
    state.records[id] = { ...record(), seconds: Math.round((record().seconds + more) * 10) / 10 };
    keep();
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      const now = performance.now();
      const seconds = (now - since) / 1000;
      if (seconds <= 120) state.records[current().id] = { ...record(), seconds: record().seconds + seconds };
      keep();
    }
    since = performance.now();
  });

  // --- showing texts
  const terms = (text) => [...text.matchAll(words)].map((match) => match[0].toLowerCase());
  function mark(text, kind) {
    const element = document.createElement("mark");
    if (kind) element.className = kind;
    element.textContent = text;
    return element;
  }
  function showDocument() {
    const box = $("doc");
    const text = data.docs[current().doc];
    $("highlight").setAttribute("aria-pressed", String(state.highlights));
    // Shared words lead the eye, and the answer with it: they are marked for whoever asks for it.
    if (!text || !state.highlights) {
      box.textContent = text || "This claim has no document.";
      box.scrollTop = 0;
      return;
    }
    box.replaceChildren();
    const wanted = new Set(terms(current().claim).filter((term) => !common.has(term)));
    // Passages: lines, or where these are long their sentences.
    const passages = text.split(/(?<=\n)/).flatMap((line) => (line.length > 400 ? line.split(/(?<=[.!?]["”’)]?\s)/u) : [line]));
    const found = passages.map((passage) => terms(passage).filter((term) => wanted.has(term)));
    const times = new Map();
    for (const list of found) for (const term of new Set(list)) times.set(term, (times.get(term) || 0) + 1);
    const score = (list) => [...new Set(list)].reduce((sum, term) => sum + 1 / times.get(term) + 0.2, 0);
    let best = -1;
    let most = 0;
    found.forEach((list, at) => {
      if (score(list) > most) [best, most] = [at, score(list)];
    });
    passages.forEach((passage, at) => {
      const part = document.createElement("span");
      let end = 0;
      for (const match of passage.matchAll(words)) {
        if (!wanted.has(match[0].toLowerCase())) continue;
        part.append(passage.slice(end, match.index), mark(match[0], /\p{N}/u.test(match[0]) ? "number" : ""));
        end = match.index + match[0].length;
      }
      part.append(passage.slice(end));
      if (at === best) part.className = "best";
      box.append(part);
    });
    const target = box.querySelector(".best");
    box.scrollTop = target ? target.offsetTop - box.offsetTop - box.clientHeight / 4 : 0;
  }
  let cursor = null; // while words are marked by keys: {from, to}, places among the claim's words
  const claimWords = () => [...current().claim.matchAll(/\S+/gu)].map((m) => [m.index, m.index + m[0].length]);
  function showClaim() {
    const text = current().claim;
    const box = $("claim");
    const spans = record().spans;
    const lit = cursor ? [claimWords()[cursor.from][0], claimWords()[cursor.to][1]] : null;
    const cuts = [...new Set([0, text.length, ...spans.flat(), ...(lit || [])])].sort((a, b) => a - b);
    box.replaceChildren();
    for (let i = 0; i + 1 < cuts.length; i += 1) {
      const [from, to] = [cuts[i], cuts[i + 1]];
      const wrong = spans.some(([start, end]) => start <= from && to <= end);
      const inCursor = lit !== null && lit[0] <= from && to <= lit[1];
      const part = wrong ? mark(text.slice(from, to), "wrong") : document.createElement("span");
      if (!wrong) part.textContent = text.slice(from, to);
      if (inCursor) part.classList.add("cursor");
      box.append(part);
    }
    $("spans").replaceChildren(
      ...spans.map(([from, to], at) => {
        const item = document.createElement("li");
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = `${text.slice(from, to)} ✕`;
        button.setAttribute("aria-label", `Unmark: ${text.slice(from, to)}`);
        button.addEventListener("click", () => {
          change({ spans: spans.filter((_, i) => i !== at) }, true);
          showClaim();
        });
        item.append(button);
        return item;
      })
    );
  }
  function showState() {
    const labelled = data.claims.filter((claim) => answered(claim.id));
    const n = data.claims.length;
    $("bar").setAttribute("aria-valuenow", String(labelled.length));
    $("done").style.width = `${(100 * labelled.length) / n}%`;
    $("count").textContent = `${labelled.length} of ${n}`;
    const seconds = labelled.map((claim) => record(claim.id).seconds).sort((a, b) => a - b);
    const middle = seconds.length ? seconds[seconds.length >> 1] : 0;
    const minutes = Math.ceil((middle * (n - labelled.length)) / 60);
    $("left").textContent = labelled.length === n ? "all done" : seconds.length > 2 ? `about ${minutes || 1} min left` : "";
    for (const button of answers) {
      const label = record().label;
      const own = button.dataset.label === "?" ? null : Number(button.dataset.label);
      button.setAttribute("aria-pressed", String(answered(current().id) && label === own));
    }
    $("undo").disabled = state.undo.length === 0;
    $("back").disabled = state.at === 0;
    $("next").disabled = state.at === n - 1;
    $("open").disabled = labelled.length === n;
  }
  function show() {
    cursor = null;
    $("reasons").hidden = true;
    $("number").textContent = `${state.at + 1} of ${data.claims.length}`;
    $("note").value = record().note;
    $("claim").scrollTop = 0;
    showClaim();
    showDocument();
    showState();
  }
  const say = (text) => ($("said").textContent = text);

  // --- what can be done
  function go(to) {
    if (to < 0 || to >= data.claims.length) return;
    count();
    state.at = to;
    keep();
    show();
    say(`Claim ${to + 1} of ${data.claims.length}: ${current().claim}`);
  }
  function firstOpen(from = 0) {
    const n = data.claims.length;
    for (let i = 0; i < n; i += 1) if (!answered(data.claims[(from + i) % n].id)) return (from + i) % n;
    return -1;
  }
  function answer(text) {
    const label = text === "?" ? null : Number(text);
    change({ label, note: $("note").value }, true);
    if (label !== null) return goOn();
    showState();
    $("reasons").hidden = false;
    $("note").focus();
    $("reasons").scrollIntoView({ block: "nearest" });
    say("Why can you not tell? Enter goes on.");
  }
  function goOn() {
    const open = firstOpen(state.at + 1);
    if (open >= 0) return go(open);
    count();
    show();
    say("All claims are labelled. Download the labels.");
    $("download").focus();
  }
  function undo() {
    const last = state.undo.pop();
    if (!last) return;
    if (last.before) state.records[last.id] = last.before;
    else delete state.records[last.id];
    state.at = last.at;
    since = performance.now();
    keep();
    show();
    say("Undone.");
  }
  function highlight() {
    state.highlights = !state.highlights;
    keep();
    showDocument();
  }
  function addSpan(from, to) {
    const text = current().claim;
    while (from < to && /\s/u.test(text[from])) from += 1;
    while (to > from && /\s/u.test(text[to - 1])) to -= 1;
    if (from >= to) return;
    // Overlapping spans become one.
    let merged = [from, to];
    const apart = [];
    for (const span of record().spans) {
      if (span[0] <= merged[1] && merged[0] <= span[1]) merged = [Math.min(span[0], merged[0]), Math.max(span[1], merged[1])];
      else apart.push(span);
    }
    change({ spans: [...apart, merged].sort((a, b) => a[0] - b[0]) }, true);
    showClaim();
    showState();
    say(`Marked: ${text.slice(merged[0], merged[1])}`);
  }
  function offsetIn(box, node, offset) {
    const range = document.createRange();
    range.setStart(box, 0);
    range.setEnd(node, offset);
    return range.toString().length;
  }
  function selected() {
    const selection = getSelection();
    const box = $("claim");
    if (selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    if (!box.contains(range.startContainer) || !box.contains(range.endContainer)) return;
    const [from, to] = [
      offsetIn(box, range.startContainer, range.startOffset),
      offsetIn(box, range.endContainer, range.endOffset),
    ];
    selection.removeAllRanges();
    addSpan(from, to);
  }
  function markByKeys(event) {
    const last = claimWords().length - 1;
    if (event.key === "Escape") cursor = null;
    else if (event.key === "Enter") {
      const [from, to] = [claimWords()[cursor.from][0], claimWords()[cursor.to][1]];
      cursor = null;
      addSpan(from, to);
    } else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const step = event.key === "ArrowRight" ? 1 : -1;
      if (event.shiftKey) cursor.to = Math.min(last, Math.max(cursor.from, cursor.to + step));
      else cursor.from = cursor.to = Math.min(last, Math.max(0, cursor.to + step));
      const [from, to] = [claimWords()[cursor.from][0], claimWords()[cursor.to][1]];
      say(current().claim.slice(from, to));
    } else return false;
    event.preventDefault();
    showClaim();
    $("claim").querySelector(".cursor")?.scrollIntoView({ block: "nearest" });
    return true;
  }

  // --- annotations: a line per claim, or per span of it; positions count characters, not UTF-16 units
  function lines() {
    const rows = [];
    for (const claim of data.claims) {
      if (!answered(claim.id)) continue;
      const { label, spans, note, seconds } = record(claim.id);
      const characters = (to) => [...claim.claim.slice(0, to)].length;
      const row = { claim_id: claim.id, annotator: $("annotator").value.trim() || data.annotator, label };
      const rest = { note: note || null, seconds: Math.round(seconds * 10) / 10 };
      if (!spans.length) rows.push({ ...row, start: null, end: null, ...rest });
      for (const [from, to] of spans) rows.push({ ...row, start: characters(from), end: characters(to), ...rest });
    }
    return rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  }
  function download() {
    count();
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines()], { type: "application/x-ndjson" }));
    const names = [data.name, $("annotator").value.trim() || data.annotator];
    link.download = `${names.join("-").replace(/[^\p{L}\p{N}_-]+/gu, "-")}.jsonl`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // --- keys and mouse
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = ["TEXTAREA", "INPUT"].includes(event.target.tagName);
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      if (event.key === "Enter" && !event.shiftKey && event.target.id === "note" && !$("reasons").hidden) {
        event.preventDefault();
        event.target.blur();
        goOn();
      }
      return;
    }
    if (cursor && markByKeys(event)) return;
    const scrolls = event.target.id === "doc";
    const act = {
      1: () => answer("1"),
      0: () => answer("0"),
      "?": () => answer("?"),
      u: undo,
      n: () => $("note").focus(),
      h: highlight,
      s: () => {
        if (claimWords().length) cursor = { from: 0, to: 0 };
        showClaim();
        say("Marking: arrows choose a word, Shift and arrows more, Enter marks, Escape leaves.");
      },
      ArrowLeft: scrolls ? null : () => go(state.at - 1),
      ArrowRight: scrolls ? null : () => go(state.at + 1),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  for (const button of answers) button.addEventListener("click", () => answer(button.dataset.label));
  for (const button of document.querySelectorAll("#reasons button")) {
    button.addEventListener("click", () => {
      change({ note: [$("note").value.trim(), button.textContent].filter(Boolean).join("; ") }, false);
      goOn();
    });
  }
  $("highlight").addEventListener("click", highlight);
  $("undo").addEventListener("click", undo);
  $("back").addEventListener("click", () => go(state.at - 1));
  $("next").addEventListener("click", () => go(state.at + 1));
  $("open").addEventListener("click", () => firstOpen() >= 0 && go(firstOpen()));
  $("download").addEventListener("click", download);
  $("note").addEventListener("input", () => change({ note: $("note").value }, false));
  $("annotator").addEventListener("input", () => {
    state.annotator = $("annotator").value;
    keep();
  });
  document.addEventListener("mouseup", selected);
  document.addEventListener("touchend", () => setTimeout(selected, 300));
  $("annotator").value = state.annotator;
  show();
})();
