// SPDX-License-Identifier: Apache-2.0
// What the reader of the page can do, and what stands around the lanes.

const VIEW_MIN_NS = 20;
const tip = document.getElementById("tip");
let scheduled = false;

function redraw() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; draw(); });
}

function show(from, to) {
  const whole = Math.min(WHOLE, Math.max(VIEW_MIN_NS, to - from));
  view.from = Math.min(Math.max(0, from), WHOLE - whole);
  view.to = view.from + whole;
  unhover();
  redraw();
}
// Keeps the time at `at`, a part of the width, where it is.
function zoom(factor, at = 0.5) {
  const whole = Math.min(WHOLE, Math.max(VIEW_MIN_NS, (view.to - view.from) * factor));
  const from = view.from + (view.to - view.from - whole) * at;
  show(from, from + whole);
}
function move(part) {
  const shift = (view.to - view.from) * part;
  show(view.from + shift, view.to + shift);
}
function toggleMessages() {
  view.messages = !view.messages;
  document.getElementById("messages").setAttribute("aria-pressed", view.messages);
  redraw();
}

// --- Hovering

// What the rank did at a time: a task, an idle interval, or what lies between.
function spanAt(rank, time) {
  const { tasks, idles } = RANKS[rank];
  let before = 0;
  let after = WHOLE;
  for (const [table, isTask] of [[tasks, true], [idles, false]]) {
    const k = firstAfter(table, time);
    if (k < table.rows && table.begin[k] <= time) {
      return { rank, table, k, look: isTask ? KINDS[table.kind[k]] : REASONS[table.reason[k]],
        begin: table.begin[k], end: table.end[k] };
    }
    if (k < table.rows) after = Math.min(after, table.begin[k]);
    if (k > 0) before = Math.max(before, table.reached[k - 1]);
  }
  return { rank, table: null, k: -1, look: ENGINE, begin: before, end: after };
}

// The messages that a task took and sent: [rank, row] each.
function messagesOf({ table, k, look }) {
  if (!look.task || "FBI".indexOf(look.letter) < 0) return [];
  const direction = look.letter === "F" ? 0 : 1;
  const found = [];
  RANKS.forEach(({ messages: m }, to) => {
    for (let r = 0; r < m.rows; ++r) {
      if (m.microbatch[r] === table.microbatch[k] && m.step[r] === table.step[k] &&
          m.direction[r] === direction &&
          (m.fromStage[r] === table.stage[k] || m.toStage[r] === table.stage[k])) {
        found.push([to, r]);
      }
    }
  });
  return found;
}

const mark = (branch) =>
  element("span", { className: `letter ${branch.id}`, title: branch.text }, branch.letter);

// Rows about what the branch computes there.
function branchRows(stage) {
  const branch = branchOf(stage);
  const text = STAGES[stage]?.text;
  return [...(text ? [["blocks", text]] : []),
    ...(branch ? [["branch", `${branch.letter} ${branch.text}`]] : [])];
}

function tipRows(span) {
  const { look, table, k } = span;
  const whole = view.to - view.from;
  const rows = [["rank", `${span.rank}`]];
  if (look.task) {
    if (table.stage[k] >= 0) {
      rows.push(["stage", `${table.stage[k]}`], ...branchRows(table.stage[k]));
    }
    if (table.microbatch[k] >= 0) rows.push(["microbatch", `${table.microbatch[k]}`]);
  }
  if (table) rows.push(["step", `${table.step[k]}`]);
  const wait = look.task ? table.wait[k] : -1;
  if (wait >= 0) rows.push(["ready", moment(span.begin - wait, whole)]);
  rows.push(["start", moment(span.begin, whole)], ["end", moment(span.end, whole)],
    ["duration", duration(span.end - span.begin)]);
  if (wait >= 0) rows.push(["waited when ready", duration(wait)]);
  return rows;
}

function hover(x, y) {
  const rank = rankOf(y);
  const time = timeOf(x);
  if (rank < 0 || x < GUTTER || time > view.to) return unhover();
  const span = spanAt(rank, time);
  const { look } = span;
  tip.replaceChildren(
    element("strong", {}, element("span", { className: `swatch ${look.id}` }), look.text),
    element("dl", {}, ...tipRows(span).flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, value)])));
  tip.hidden = false;
  const left = x + 16 + tip.offsetWidth > size.width ? x - 16 - tip.offsetWidth : x + 16;
  // The lanes may be too few for it: then it may cover them, but stays in the page.
  const top = Math.min(y + 14, size.height - tip.offsetHeight - 4);
  tip.style.left = `${Math.max(2, left)}px`;
  tip.style.top = `${Math.max(2, top)}px`;
  const pen = overlay.getContext("2d");
  pen.setTransform(size.dpr, 0, 0, size.dpr, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  const messages = messagesOf(span);
  clipped(pen, () => {
    for (const [to, k] of messages) drawMessage(pen, RANKS[to].messages, k, to, true);
    pen.strokeStyle = colours.outline;
    pen.lineWidth = 1.5;
    const begin = Math.max(xOf(span.begin), GUTTER + 0.75);
    const end = Math.min(xOf(span.end), GUTTER + size.plot - 0.75);
    pen.strokeRect(begin, yOf(rank), Math.max(1, end - begin), size.lane);
  });
  document.body.dataset.hover = tip.innerText;
  document.body.dataset.hoverMessages = messages.length;
  return span;
}
function unhover() {
  tip.hidden = true;
  overlay.getContext("2d").clearRect(0, 0, overlay.width, overlay.height);
  delete document.body.dataset.hover;
}

function listen() {
  const at = (event) => {
    const box = plot.getBoundingClientRect();
    return [event.clientX - box.left - plot.clientLeft, event.clientY - box.top - plot.clientTop];
  };
  let dragged = null;  // where it began
  plot.addEventListener("wheel", (event) => {
    const [x] = at(event);
    if (x < GUTTER) return;  // there the page scrolls
    event.preventDefault();
    const pixels = (delta) => delta * (event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 400 : 1);
    const aside = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
    if (event.shiftKey || Math.abs(aside) > Math.abs(event.deltaY)) {
      move(pixels(aside) / size.plot);
    } else {
      zoom(Math.exp(Math.max(-1, Math.min(1, pixels(event.deltaY) / 400))),
        Math.min(1, (x - GUTTER) / size.plot));
    }
  }, { passive: false });
  plot.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    dragged = { x: event.clientX, from: view.from, to: view.to };
  });
  addEventListener("pointermove", (event) => {
    if (!dragged) return;
    const shift = ((dragged.x - event.clientX) / size.plot) * (dragged.to - dragged.from);
    if (Math.abs(dragged.x - event.clientX) < 3 && !plot.classList.contains("dragging")) return;
    plot.classList.add("dragging");
    show(dragged.from + shift, dragged.to + shift);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    addEventListener(name, () => { dragged = null; plot.classList.remove("dragging"); });
  }
  plot.addEventListener("pointermove", (event) => {
    if (!plot.classList.contains("dragging")) hover(...at(event));
  });
  plot.addEventListener("pointerleave", unhover);
  plot.addEventListener("dblclick", (event) => {
    const span = hover(...at(event));
    const around = span ? (span.end - span.begin) / 2 : 0;
    if (span) show(span.begin - around, span.end + around);
  });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      0: () => show(0, WHOLE), Escape: () => show(0, WHOLE), Home: () => show(0, WHOLE),
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2), m: toggleMessages, M: toggleMessages,
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
  const press = (id, action) => document.getElementById(id).addEventListener("click", action);
  press("messages", toggleMessages);
  press("zoom-in", () => zoom(0.6));
  press("zoom-out", () => zoom(1 / 0.6));
  press("reset", () => show(0, WHOLE));
  const fit = () => { measure(); readColours(); unhover(); draw(); };
  new ResizeObserver(() => { if (plot.clientWidth !== size.width) fit(); }).observe(plot);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fit);
}

// --- Around the lanes

const sums = LOOKS.concat(ENGINE).map((_, c) => RANKS.reduce((sum, r) => sum + r.totals[c], 0));
const allTime = Math.max(1, WHOLE * RANKS.length);

function fillHead() {
  const spans = RANKS.reduce((sum, r) => sum + r.tasks.rows + r.idles.rows, 0);
  const computing = KINDS.reduce((sum, _, k) => sum + sums[k], 0);
  for (const [name, value] of [["makespan", duration(packed.makespan)],
    ["idle share", percent(packed.idleShare)], ["ranks", `${RANKS.length}`],
    ["tasks", `${RANKS.reduce((sum, r) => sum + r.tasks.rows, 0)}`]]) {
    document.getElementById("tiles").append(
      element("div", {}, element("dt", {}, name), element("dd", {}, value)));
  }
  for (const [name, value] of [["", packed.source], ...packed.facts]) {
    if (!value && !name) continue;
    document.getElementById("facts").append(
      element("span", {}, name ? `${name} ` : "", element("b", {}, value)));
  }
  plot.setAttribute("aria-label", `Timeline of ${RANKS.length} ranks, ${spans} spans, ` +
    `${percent(computing / allTime)} computing. The table below has the totals.`);
  document.getElementById("shades").hidden = RANKS.every(({ stages }) => stages.length < 2);
  document.body.dataset.spans = spans;
}

function fillLegend() {
  LOOKS.concat(ENGINE).forEach((look, c) => {
    if (sums[c] <= 0) return;
    const button = element("button", { type: "button" },
      element("span", { className: `swatch ${look.id}` }), look.text,
      element("small", {}, percent(sums[c] / allTime)));
    button.dataset.look = look.id;
    document.getElementById("legend").append(button);
    if (look === ENGINE) {
      button.disabled = true;  // it is where nothing is drawn
      return;
    }
    button.setAttribute("aria-pressed", "true");
    button.title = `Show or hide: ${look.text}`;
    button.addEventListener("click", () => {
      look.shown = !look.shown;
      button.setAttribute("aria-pressed", look.shown);
      redraw();
    });
  });
}

// Of what a file may say: models have a few branches.
const BRANCHES_MAX = 100;
const STAGES_MAX = 100;

function fillBranchLegend() {
  const legend = document.getElementById("branch-legend");
  legend.hidden = BRANCHES.length === 0;
  for (const branch of BRANCHES.slice(0, BRANCHES_MAX)) {
    const button = element("button", { type: "button", title: `Show or hide: ${branch.text}` },
      mark(branch), branch.text, element("small", {}, `${percent(branch.share)} of computing`));
    button.setAttribute("aria-pressed", "true");
    button.addEventListener("click", () => {
      branch.shown = !branch.shown;
      button.setAttribute("aria-pressed", branch.shown);
      redraw();
    });
    legend.append(button);
  }
  const more = BRANCHES.length - BRANCHES_MAX;
  if (more > 0) legend.append(element("small", {}, `and ${more} more branches`));
}

// A row of each branch and, if they are not too many, of its stages.
function fillBranchTotals() {
  document.getElementById("branch-totals").hidden = BRANCHES.length === 0;
  if (BRANCHES.length === 0) return;
  const used = KINDS.map((kind, k) => ({ kind, k }))
    .filter(({ k }) => BRANCHES.some(({ totals }) => totals[k] > 0));
  const all = Math.max(1, KINDS.reduce((sum, _, k) => sum + sums[k], 0));
  const ms = (ns) => element("td", { className: ns > 0 ? "" : "zero" },
    (ns / 1e6).toFixed(WHOLE < 1e8 ? 3 : 1));
  const row = (name, stage, { tasks, totals }) => {
    const computing = totals.reduce((sum, ns) => sum + ns, 0);
    return element("tr", { className: stage ? "stage" : "" },
      element("th", { scope: "row" }, ...name), element("td", {}, `${stage}`),
      element("td", {}, `${tasks}`), ms(computing),
      element("td", { className: "share" }, percent(computing / all)),
      ...used.map(({ k }) => ms(totals[k])));
  };
  const stageRows = (b) => STAGES.flatMap((stage, s) =>
    (stage.branch === b ? [row([stage.text], `${s}`, stage)] : []));
  const rows = BRANCHES.slice(0, BRANCHES_MAX).flatMap((branch, b) =>
    [row([mark(branch), branch.text], "", branch),
      ...(STAGES.length > STAGES_MAX ? [] : stageRows(b))]);
  const heads = ["branch", "stage", "tasks", "computing", "share of computing",
    ...used.map(({ kind }) => kind.text)];
  document.getElementById("branches").append(
    element("thead", {}, element("tr", {}, ...heads.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...rows));
  document.body.dataset.branches = BRANCHES.length;
}

function fillTotals() {
  const used = LOOKS.concat(ENGINE).map((look, c) => ({ look, c })).filter(({ c }) => sums[c] > 0);
  const row = (name, stages, totals, whole) => {
    const computing = KINDS.reduce((sum, _, k) => sum + totals[k], 0);
    const mix = element("div", {}, ...used.map(({ look, c }) => {
      const part = element("i", { className: look.id, title: look.text });
      part.style.width = `${(totals[c] / whole) * 100}%`;
      return part;
    }));
    return element("tr", {},
      element("th", { scope: "row" }, name), element("td", {}, ...stages),
      element("td", { className: "mix" }, mix),
      element("td", { className: "share" }, percent(Math.max(0, 1 - computing / whole))),
      ...used.map(({ c }) => element("td", { className: totals[c] > 0 ? "" : "zero" },
        (totals[c] / 1e6).toFixed(WHOLE < 1e8 ? 3 : 1))));
  };
  const heads = ["", "stages", "", "idle share", ...used.map(({ look }) => look.text)];
  const numbers = (stages) => (stages.length > 6
    ? `${stages.slice(0, 5).join(", ")}, …, ${stages[stages.length - 1]}` : stages.join(", "));
  const stagesOf = (stages) => {
    const branches = [...new Set(stages.map(branchOf))].filter((branch) => branch).slice(0, 6);
    return [numbers(stages), ...branches.flatMap((branch) => [" ", mark(branch)])];
  };
  document.getElementById("totals").append(
    element("thead", {}, element("tr", {}, ...heads.map((h) => element("th", { scope: "col" }, h)))),
    element("tbody", {}, ...RANKS.map((rank, r) =>
      row(`rank ${r}`, stagesOf(rank.stages), rank.totals, WHOLE))),
    element("tfoot", {}, row("all", [], sums, allTime)));
  document.body.dataset.rows = RANKS.length;
}

fillHead();
fillLegend();
fillBranchLegend();
fillTotals();
fillBranchTotals();
measure();
readColours();
listen();
draw();
