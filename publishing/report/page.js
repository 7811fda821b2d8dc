"use strict";
// One row at a time, marks kept in this browser until they are saved to a file. Nothing leaves the page.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const keyOf = (item) => item.testbed + "/" + item.row_id;
  const known = new Set(data.items.map(keyOf));
  const storage = "postquem-review/" + data.release.manifest_sha256;
  let marks = {};
  let shown = data.items;
  let index = 0;

  const say = (text) => { at("message").textContent = text; };
  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    if (name) element.className = name;
    return element;
  };

  function remember() {
    try {
      localStorage.setItem(storage, JSON.stringify({ reviewer: at("reviewer").value, marks }));
    } catch (error) {
      say("This browser keeps nothing for the page (" + error.name + "): save the marks before you close it.");
    }
  }

  function recall() {
    try {
      const kept = JSON.parse(localStorage.getItem(storage) || "null");
      if (!kept) return;
      at("reviewer").value = kept.reviewer || "";
      for (const [key, mark] of Object.entries(kept.marks || {})) if (known.has(key)) marks[key] = mark;
    } catch (error) {
      say("The marks that this browser kept cannot be read (" + error.name + ").");
    }
  }

  function choose() {
    const current = shown[index];
    const testbed = at("testbed").value;
    const state = at("state").value;
    const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
    shown = data.items.filter((item) => {
      const mark = marks[keyOf(item)];
      if (testbed && item.testbed !== testbed) return false;
      if (state === "open" && mark) return false;
      if (state === "valid" && !(mark && mark.valid)) return false;
      if (state === "invalid" && !(mark && !mark.valid)) return false;
      const text = (item.title + " " + item.facts.slice(0, 2).map((fact) => fact[1]).join(" ")).toLowerCase();
      return words.every((word) => text.includes(word));
    });
    index = Math.max(0, shown.indexOf(current));
    draw();
  }

  function list(pairs, name) {
    const box = make("dl", undefined, name);
    for (const [term, value] of pairs) {
      const line = name ? make("div") : box;
      line.append(make("dt", term), make("dd", value));
      if (name) box.append(line);
    }
    return box;
  }

  function drawRow(item) {
    const row = at("row");
    row.replaceChildren();
    if (!item) return;
    const title = make("h3");
    const name = make(item.url ? "a" : "span", item.title);
    if (item.url) {
      name.href = item.url;
      name.rel = "noreferrer";
      name.target = "_blank";
    }
    title.append(name);
    row.append(title, make("div", item.testbed + " · " + item.row_id, "numbers"), list(item.facts));
    for (const panel of item.panels) {
      const box = make("div", undefined, panel.asked ? "panel asked" : "panel");
      const code = make("pre", undefined, "code");
      code.innerHTML = panel.html; // escaped by the highlighter
      code.tabIndex = 0;
      code.setAttribute("aria-label", panel.title);
      box.append(make("h4", panel.title + (panel.asked ? " (asked for)" : "")), code);
      row.append(box);
    }
    const more = make("details");
    more.append(make("summary", "Features"), list(item.features, "features"));
    row.append(more);
  }

  function draw() {
    const item = shown[index];
    drawRow(item);
    const done = data.items.filter((each) => marks[keyOf(each)]).length;
    at("progress").textContent = item
      ? `Row ${index + 1} of ${shown.length}; ${done} of ${data.items.length} marked.`
      : `No such row; ${done} of ${data.items.length} marked.`;
    const mark = item && marks[keyOf(item)];
    at("valid").setAttribute("aria-pressed", String(Boolean(mark && mark.valid)));
    at("invalid").setAttribute("aria-pressed", String(Boolean(mark && !mark.valid)));
    at("reason-label").hidden = !(mark && !mark.valid);
    at("reason").value = (mark && mark.reason) || "other";
    at("note").value = (mark && mark.note) || "";
    at("note-label").hidden = !mark;
    for (const id of ["valid", "invalid"]) at(id).disabled = !item;
    at("previous").disabled = index === 0;
    at("next").disabled = index + 1 >= shown.length;
  }

  function step(by) {
    const to = index + by;
    if (to < 0 || to >= shown.length) return;
    index = to;
    draw();
    at("row").scrollIntoView({ block: "nearest" });
  }

  function mark(valid) {
    const item = shown[index];
    if (!item) return;
    const former = marks[keyOf(item)] || {};
    marks[keyOf(item)] = { valid, reason: valid ? null : former.reason || at("reason").value || "other", note: former.note || "" };
    remember();
    draw();
    if (!valid) at("reason").focus();
  }

  function amend() {
    const item = shown[index];
    const former = item && marks[keyOf(item)];
    if (!former) return;
    former.note = at("note").value;
    if (!former.valid) former.reason = at("reason").value;
    remember();
  }

  function save() {
    const reviewer = at("reviewer").value.trim();
    if (!reviewer) {
      say("Give your name first: marks of two reviewers are compared by it.");
      at("reviewer").focus();
      return;
    }
    const given = data.items.filter((item) => marks[keyOf(item)]);
    if (!given.length) return say("There is no mark to save yet.");
    const file = {
      format: data.format, release: data.release, sample: data.sample, reviewer,
      marks: given.map((item) => ({ testbed: item.testbed, row_id: item.row_id, ...marks[keyOf(item)] })),
    };
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(file, null, 1) + "\n"], { type: "application/json" }));
    link.download = `marks-${data.release.version}-${reviewer.replace(/[^\p{L}\p{N}]+/gu, "-")}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    say("");
  }

  async function load(file) {
    if (!file) return;
    try {
      const read = JSON.parse(await file.text());
      if (read.format !== data.format) throw new Error("it is no file of marks");
      if (read.release.manifest_sha256 !== data.release.manifest_sha256) throw new Error("it belongs to another release");
      at("reviewer").value = read.reviewer;
      marks = {};
      for (const { testbed, row_id, ...rest } of read.marks) marks[testbed + "/" + row_id] = rest;
      remember();
      choose();
      say("");
    } catch (error) {
      say(`${file.name} was not loaded: ${error.message}.`);
    }
  }

  for (const name of new Set(data.items.map((item) => item.testbed))) at("testbed").append(new Option(name, name));
  for (const [reason, text] of Object.entries(data.reasons)) at("reason").append(new Option(text, reason));
  at("testbed").addEventListener("change", choose);
  at("state").addEventListener("change", choose);
  at("find").addEventListener("input", choose);
  at("reviewer").addEventListener("change", remember);
  at("valid").addEventListener("click", () => mark(true));
  at("invalid").addEventListener("click", () => mark(false));
  at("previous").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  at("reason").addEventListener("change", amend);
  at("note").addEventListener("input", amend);
  at("save").addEventListener("click", save);
  at("load").addEventListener("change", (event) => load(event.target.files[0]));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return at("row").focus({ preventScroll: true });
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const act = { j: () => step(1), k: () => step(-1), v: () => mark(true), x: () => mark(false), s: save }[event.key.toLowerCase()];
    if (act) {
      event.preventDefault();
      act();
    }
  });
  recall();
  draw();
})();
