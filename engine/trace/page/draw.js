// SPDX-License-Identifier: Apache-2.0
// The lanes, drawn for the view [from, to).

const GUTTER = 66;   // the names of the ranks
const AXIS = 34;     // above the lanes
const NARROW = 1.5;  // spans of less pixels are merged
const LETTER = 9;    // pixels of a stripe in which a branch's letter has room
const MESSAGES_MAX = 20000;

const plot = document.getElementById("plot");
const lanes = document.getElementById("lanes");
const overlay = document.getElementById("overlay");
const view = { from: 0, to: WHOLE, messages: false };
const size = { width: 0, height: 0, plot: 0, lane: 0, stripe: 0, bar: 0, gap: 0, dpr: 1 };
let colours = {};

function measure() {
  const n = RANKS.length;
  const pitch = n <= 4 ? 62 : n <= 8 ? 48 : n <= 16 ? 28 : n <= 32 ? 17 : n <= 64 ? 14 : 10;
  size.gap = pitch >= 40 ? 8 : pitch >= 20 ? 4 : 2;
  size.lane = pitch - size.gap;
  size.stripe = size.lane >= 36 ? LETTER + 3 : Math.max(2, size.lane / 4);
  if (BRANCHES.length === 0) size.stripe = 0;
  size.bar = size.lane - (size.stripe && size.stripe + 1);  // of a task
  size.dpr = devicePixelRatio || 1;
  size.width = Math.max(300, plot.clientWidth);
  size.height = AXIS + n * pitch + size.gap;
  size.plot = size.width - GUTTER - 10;
  for (const canvas of [lanes, overlay]) {
    canvas.width = Math.round(size.width * size.dpr);
    canvas.height = Math.round(size.height * size.dpr);
    canvas.style.height = `${size.height}px`;
  }
}

const xOf = (time) => GUTTER + ((time - view.from) / (view.to - view.from)) * size.plot;
const timeOf = (x) => view.from + ((x - GUTTER) / size.plot) * (view.to - view.from);
const yOf = (rank) => AXIS + size.gap + rank * (size.lane + size.gap);
function rankOf(y) {
  const rank = Math.floor((y - AXIS - size.gap / 2) / (size.lane + size.gap));
  return rank >= 0 && rank < RANKS.length ? rank : -1;
}

// --- Colours

function isDark(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 0.3;
}

// The hatchings of the style, as tiles.
function pattern(context, id, ground, ink) {
  if (ground === ink) return ground;
  const side = id === "memory" || id === "credit" ? 6 : 5;
  const tile = element("canvas", { width: side * size.dpr, height: side * size.dpr });
  const pen = tile.getContext("2d");
  pen.scale(size.dpr, size.dpr);
  pen.fillStyle = ground;
  pen.fillRect(0, 0, side, side);
  pen.fillStyle = pen.strokeStyle = ink;
  pen.lineWidth = 1.7;
  pen.beginPath();
  if (id === "policy") pen.fillRect(0, 1, side, 2);
  if (id === "group") pen.arc(2.5, 2.5, 1.2, 0, 7);
  for (const shift of [-side, 0, side]) {
    if (id === "memory") { pen.moveTo(shift - 1, side + 1); pen.lineTo(shift + side + 1, -1); }
    if (id === "credit") { pen.moveTo(shift - 1, -1); pen.lineTo(shift + side + 1, side + 1); }
  }
  if (id === "group") pen.fill(); else pen.stroke();
  const made = context.createPattern(tile, "repeat");
  made.setTransform(new DOMMatrix().scale(1 / size.dpr));
  return made;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  const context = lanes.getContext("2d");
  colours = Object.fromEntries(["page", "panel", "line", "text", "muted", "lane", "outline",
    "message-0", "message-1"].map((name) => [name, of(name)]));
  colours.fills = [];  // by look and shade
  colours.inks = [];   // of the numbers on them
  colours.stripes = 2 * LOOKS.length;  // where the fills of branches begin
  for (const look of LOOKS) {
    const fills = look.task ? [of(look.id), of(`${look.id}-2`)]
      : Array(2).fill(pattern(context, look.id, of(look.id), of(`${look.id}-ink`)));
    colours.fills.push(...fills);
    colours.inks.push(...fills.map((f) => (look.task && isDark(f) ? "#ffffff" : "#10151c")));
  }
  for (let k = 0; k < STRIPES && k < BRANCHES.length; ++k) {
    const fill = of(`stripe-${k}`);
    colours.fills.push(fill);
    colours.inks.push(isDark(fill) ? "#ffffff" : "#10151c");
  }
}

// --- The axis

function tickStep(whole, count) {
  const power = 10 ** Math.floor(Math.log10(whole / count));
  return power * ([1, 2, 5].find((factor) => factor * power >= whole / count) || 10);
}

function drawAxis(pen) {
  const whole = view.to - view.from;
  const step = tickStep(whole, Math.max(3, size.plot / 120));
  const decimals = Math.max(0, -Math.floor(Math.log10(step / 1e6) + 1e-9));
  pen.font = "11.5px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  pen.lineWidth = 1;
  pen.strokeStyle = colours.line;
  pen.fillStyle = colours.muted;
  for (let k = Math.ceil(view.from / step); k * step <= view.to; ++k) {
    const x = xOf(k * step);
    pen.beginPath();
    pen.moveTo(x, AXIS - 8);
    pen.lineTo(x, size.height);
    pen.stroke();
    if (x < size.width - 22) pen.fillText((k * step / 1e6).toFixed(decimals), x, AXIS - 17);
  }
  pen.textAlign = "left";
  pen.fillText("ms", 12, AXIS - 17);
  // Which part of the whole is seen.
  if (whole < WHOLE * 0.9999) {
    pen.fillStyle = colours.line;
    pen.fillRect(GUTTER, 2, size.plot, 4);
    pen.fillStyle = colours.muted;
    pen.fillRect(GUTTER + (view.from / WHOLE) * size.plot, 2,
      Math.max(3, (whole / WHOLE) * size.plot), 4);
  }
}

function drawSteps(pen) {
  pen.strokeStyle = colours.muted;
  pen.fillStyle = colours.text;
  pen.font = "600 11px system-ui, sans-serif";
  pen.textAlign = "left";
  let free = -Infinity;
  for (const [step, begin] of STEPS) {
    if (begin < view.from || begin > view.to) continue;
    const x = xOf(begin);
    if (x < free) continue;
    free = x + 70;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(x, AXIS - 8);
    pen.lineTo(x, size.height);
    pen.stroke();
    pen.setLineDash([]);
    pen.fillText(`step ${step}`, x + 2, AXIS - 3);
  }
}

// --- The lanes

// Draws the wide spans of a table, as high as it is told, and adds the narrow ones to `cover`: by
// column and fill, how much of the column they take. Returns how many spans are in the view.
function drawSpans(pen, table, y, heightOf, fillOf, cover, label) {
  const scale = size.plot / (view.to - view.from);
  const fills = colours.fills.length;
  let seen = 0;
  let current = -1;
  for (let k = firstAfter(table, view.from); k < table.rows && table.begin[k] < view.to; ++k) {
    const fill = fillOf(k);
    if (fill < 0 || table.end[k] < view.from) continue;
    ++seen;
    const begin = Math.max(0, (table.begin[k] - view.from) * scale);
    const end = Math.min(size.plot, (table.end[k] - view.from) * scale);
    if (end - begin < NARROW) {
      for (let c = Math.floor(begin); c < end && c < size.plot; ++c) {
        cover[c * fills + fill] += Math.min(end, c + 1) - Math.max(begin, c);
        cover.used = true;
      }
      continue;
    }
    if (fill !== current) pen.fillStyle = colours.fills[current = fill];
    const cut = label && end - begin > 4 ? 0.7 : 0;  // tells neighbours apart
    pen.fillRect(GUTTER + begin, y, end - begin - cut, heightOf(k));
    if (label) label(k, begin, end, fill);
  }
  return seen;
}

// Columns of merged spans: every fill gets its share of the height.
function drawCover(pen, cover, y, height) {
  const fills = colours.fills.length;
  const count = Math.ceil(size.plot);
  for (let fill = 0; fill < fills; ++fill) {
    pen.fillStyle = colours.fills[fill];
    for (let c = 0; c < count; ++c) {
      const part = cover[c * fills + fill];
      if (part <= 0) continue;
      const at = c * fills;
      let before = 0;
      for (let f = 0; f < fill; ++f) before += cover[at + f];
      pen.fillRect(GUTTER + c, y + height * Math.min(1, before), 1,
        height * Math.min(1 - Math.min(1, before), part));
    }
  }
}

function drawLabels(pen, labels, y) {
  pen.textAlign = "center";
  for (const [text, x, fill] of labels) {
    pen.fillStyle = colours.inks[fill];
    pen.fillText(text, GUTTER + x, y);
  }
}

const isShown = (tasks, k) =>
  KINDS[tasks.kind[k]].shown && branchOf(tasks.stage[k])?.shown !== false;

// Which branches the tasks are of.
function drawStripes(pen, tasks, y) {
  const cover = new Float32Array(Math.ceil(size.plot + 1) * colours.fills.length);
  const labels = [];
  drawSpans(pen, tasks, y, () => size.stripe, (k) => {
    const branch = STAGES[tasks.stage[k]]?.branch ?? -1;
    return branch >= 0 && isShown(tasks, k) ? colours.stripes + branch % STRIPES : -1;
  }, cover, (k, begin, end, fill) => {
    if (size.stripe < LETTER || end - begin < LETTER + 3) return;
    labels.push([branchOf(tasks.stage[k]).letter, (begin + end) / 2, fill]);
  });
  if (cover.used) drawCover(pen, cover, y, size.stripe);
  pen.font = `700 ${LETTER + 0.5}px system-ui, sans-serif`;
  drawLabels(pen, labels, y + size.stripe / 2 + 0.5);
}

function drawLane(pen, rank, y) {
  const { tasks, idles } = RANKS[rank];
  pen.fillStyle = colours.lane;
  pen.fillRect(GUTTER, y, size.plot, size.lane);
  const cover = new Float32Array(Math.ceil(size.plot + 1) * colours.fills.length);
  const labels = [];
  const label = size.bar < 12 ? () => {} : (k, begin, end, fill) => {
    const number = tasks.microbatch[k] < 0 ? "" : `${tasks.microbatch[k]}`;
    const full = KINDS[tasks.kind[k]].letter + number;
    const text = end - begin > 7 + 7 * full.length ? full : number;
    if (text && end - begin >= 4 + 7 * text.length) labels.push([text, (begin + end) / 2, fill]);
  };
  const seen =
    drawSpans(pen, idles, y, () => size.lane, (k) => {
      const look = KINDS.length + idles.reason[k];
      return LOOKS[look].shown ? 2 * look : -1;
    }, cover, null) +
    drawSpans(pen, tasks, y, (k) => (branchOf(tasks.stage[k]) ? size.bar : size.lane),
      (k) => (isShown(tasks, k) ? 2 * tasks.kind[k] + tasks.shade[k] : -1), cover, label);
  if (cover.used) drawCover(pen, cover, y, size.bar);
  pen.font = `${Math.min(12, size.bar - 3)}px system-ui, sans-serif`;
  drawLabels(pen, labels, y + size.bar / 2 + 0.5);
  if (size.stripe) drawStripes(pen, tasks, y + size.lane - size.stripe);
  pen.fillStyle = colours.text;
  pen.textAlign = "right";
  pen.font = `${Math.min(12.5, size.lane)}px system-ui, sans-serif`;
  pen.fillText(`rank ${rank}`, GUTTER - 9, y + size.lane / 2 + 0.5);
  return seen;
}

// --- Messages

function drawMessage(pen, m, k, to, strong) {
  const sent = m.sent[k] < 0 ? m.arrived[k] : m.sent[k];
  const down = m.from[k] < to;
  const y0 = yOf(m.from[k]) + (down ? size.lane : 0);
  const y1 = yOf(to) + (down ? 0 : size.lane);
  const [x0, x1] = [xOf(sent), xOf(m.arrived[k])];
  pen.strokeStyle = pen.fillStyle = colours[`message-${m.direction[k]}`];
  pen.lineWidth = strong ? 2 : 1;
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
  pen.beginPath();
  pen.arc(x1, y1, strong ? 3 : 1.7, 0, 7);
  pen.fill();
}

// Those that are under way in the view; returns how many, or -1 if they are too many to be seen.
function drawMessages(pen) {
  const seen = [];
  RANKS.forEach(({ messages: m }, to) => {
    for (let k = 0; k < m.rows && seen.length <= MESSAGES_MAX; ++k) {
      const sent = m.sent[k] < 0 ? m.arrived[k] : m.sent[k];
      if (m.arrived[k] >= view.from && sent <= view.to) seen.push([m, k, to]);
    }
  });
  if (seen.length > MESSAGES_MAX) return -1;
  pen.globalAlpha = seen.length > 2000 ? 0.35 : 0.75;
  for (const [m, k, to] of seen) drawMessage(pen, m, k, to, false);
  pen.globalAlpha = 1;
  return seen.length;
}

function clipped(pen, draw) {
  pen.save();
  pen.beginPath();
  pen.rect(GUTTER, AXIS - 8, size.plot, size.height);
  pen.clip();
  const result = draw();
  pen.restore();
  return result;
}

function draw() {
  const pen = lanes.getContext("2d");
  pen.setTransform(size.dpr, 0, 0, size.dpr, 0, 0);
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, size.width, size.height);
  drawAxis(pen);
  let seen = 0;
  for (let rank = 0; rank < RANKS.length; ++rank) seen += drawLane(pen, rank, yOf(rank));
  drawSteps(pen);
  const state = document.body.dataset;
  state.drawn = seen;
  state.view = `${view.from},${view.to}`;
  state.messages = view.messages ? clipped(pen, () => drawMessages(pen)) : 0;
  const whole = view.to - view.from;
  document.getElementById("window").textContent = (whole < WHOLE * 0.9999
    ? `${moment(view.from, whole)} to ${moment(view.to, whole)} (${duration(whole)}).` : "") +
    (state.messages === "-1" ? " Too many messages; zoom in to see them." : "");
}
