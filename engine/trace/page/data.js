// SPDX-License-Identifier: Apache-2.0
// What the page shows: the timeline, unpacked, and words for it. Times are nanoseconds from the
// beginning of the timeline.

addEventListener("error", (event) => { document.body.dataset.error = event.message; });

const packed = JSON.parse(document.getElementById("timeline").textContent);

// By index, as in the data. An id is a class of the style and a name of its colours.
const KINDS = packed.kinds.map((text, k) => ({
  text, task: true, letter: "FBIWU"[k], id: text.replace(" ", "-"), shown: true,
}));
const REASONS = packed.reasons.map(([id, text]) => ({ text, task: false, id, shown: true }));
const ENGINE = { text: packed.engine, task: false, id: "engine", shown: true };
const LOOKS = [...KINDS, ...REASONS];

// Of branches that can be told apart, or none. Stripes of their colours lie under their tasks.
const STRIPES = 6;
const BRANCHES = packed.branches.map(([text, letter, share, tasks, ...totals], b) => ({
  text, letter, share, tasks, totals, id: `stripe-${b % STRIPES}`, shown: true,
}));
// By number; a stage past the end, or of branch -1, has none.
const STAGES = packed.stages.map(([text, branch, tasks, ...totals]) => ({
  text, branch, tasks, totals,
}));
const branchOf = (stage) => BRANCHES[STAGES[stage]?.branch];

// Rows of numbers in one flat array: the columns of one name each, as typed arrays. A name that
// begins with "+" holds differences from the row before.
function columns(flat, names) {
  const rows = flat.length / names.length;
  const table = { rows };
  names.forEach((name, c) => {
    const sums = name[0] === "+";
    const column = new Float64Array(rows);
    for (let r = 0, sum = 0; r < rows; ++r) {
      sum = (sums ? sum : 0) + flat[r * names.length + c];
      column[r] = sum;
    }
    table[sums ? name.slice(1) : name] = column;
  });
  return table;
}

// Adds the ends, and the greatest end so far, by which what is seen can be found even if spans
// overlap.
function withEnds(table) {
  table.end = table.begin.map((begin, r) => begin + table.length[r]);
  let most = 0;
  table.reached = table.end.map((end) => (most = Math.max(most, end)));
  return table;
}

const RANKS = packed.ranks.map((rank) => {
  const tasks = withEnds(
    columns(rank.tasks, ["kind", "stage", "microbatch", "step", "wait", "+begin", "length"]));
  const stages = [...new Set(tasks.stage)].filter((stage) => stage >= 0).sort((a, b) => a - b);
  // A rank's stages take turns with two shades.
  const shades = new Map(stages.map((stage, k) => [stage, k % 2]));
  tasks.shade = Uint8Array.from(tasks.stage, (stage) => shades.get(stage) || 0);
  return {
    tasks, stages,
    idles: withEnds(columns(rank.idles, ["reason", "step", "+begin", "length"])),
    messages: columns(rank.messages, ["direction", "fromStage", "toStage", "microbatch", "from",
      "step", "sent", "arrived"]),
    totals: rank.totals,
  };
});
const WHOLE = Math.max(1, packed.makespan);

// Where each step begins, if there are several.
const STEPS = (() => {
  const begins = new Map();
  for (const { tasks } of RANKS) {
    for (let k = 0; k < tasks.rows; ++k) {
      const begin = begins.get(tasks.step[k]);
      if (begin === undefined || tasks.begin[k] < begin) begins.set(tasks.step[k], tasks.begin[k]);
    }
  }
  return begins.size > 1 ? [...begins].sort((a, b) => a[1] - b[1]) : [];
})();

// The first row that ends after a time.
function firstAfter(table, time) {
  let low = 0;
  let high = table.rows;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (table.reached[middle] > time) high = middle; else low = middle + 1;
  }
  return low;
}

// --- Words

function duration(ns) {
  for (const [unit, name] of [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]]) {
    if (Math.abs(ns) >= unit) return `${(ns / unit).toPrecision(4)} ${name}`;
  }
  return `${Math.round(ns)} ns`;
}
// Enough digits to tell the two ends of a view apart.
function moment(ns, view) {
  const decimals = Math.min(6, Math.max(3, 4 - Math.floor(Math.log10(view / 1e6))));
  return `${(ns / 1e6).toFixed(decimals)} ms`;
}
const percent = (share) => `${(share * 100).toFixed(1)} %`;

function element(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}
