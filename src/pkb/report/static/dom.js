/* Elements, numbers and words. What comes from a run is only ever set as text. */

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("report-data").textContent);
const samples = data.rows.map((values, index) => {
  const sample = Object.fromEntries(data.columns.map((name, at) => [name, values[at]]));
  return Object.assign(sample, { index, words: values.join(" ").toLowerCase() });
});
const runs = data.runs;
const CPU_TIMES =
  "CPU times: the host's clock around interpreted kernels. They tell slow from equal on one machine, " +
  "and nothing about GPUs.";
const NO_LIGHT =
  "None of the samples shown has a speed of light: that needs a time on a GPU whose rates are known (pkb roofline).";
const UNTIMED = "No sample here is both correct and timed: judge with --measure-perf to fill this chart.";
const TONES = {
  CORRECT: "good",
  FASTER: "good",
  better: "good",
  SLOWER: "odd",
  ENVIRONMENT: "odd",
  WRONG: "bad",
  REJECTED: "bad",
  BUILD_FAILED: "bad",
  CRASH: "bad",
  HANG: "bad",
  CHEAT: "bad",
  worse: "bad",
};

function el(tag, attributes = {}, ...children) {
  return fillElement(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fillElement(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fillElement(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  // Strings become text nodes.
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

function colourWord(word, className = "") {
  return el("span", { class: `${className} ${Object.hasOwn(TONES, word) ? TONES[word] : ""}`.trim() }, word);
}

function formatFigure(value) {
  if (value >= 9.95) return String(Number(value.toPrecision(3)));
  return value >= 0.0995 ? value.toFixed(2) : String(Number(value.toPrecision(2)));
}

const formatRatio = (value) => `${formatFigure(value)}x`;

function formatDuration(us) {
  const [size, unit] = us >= 999500 ? [1e6, "s"] : us >= 999.5 ? [1e3, "ms"] : [1, "us"];
  return `${(us / size).toPrecision(3)} ${unit}`;
}

function formatSpeedup(sample) {
  if (sample.speedup === null) return "";
  const interval = `(${formatFigure(sample.low)}-${formatFigure(sample.high)})`;
  return `${formatRatio(sample.speedup)} ${interval}${sample.comparable ? "" : ", CPU times"}`;
}

const isTimed = (sample) => sample.verdict === "CORRECT" && sample.speedup !== null && !sample.degenerate;
const findRunClass = (run) => `run-${runs.indexOf(run) % 6}`;

/* A name may be folded behind the signs that divide it, and nowhere else unless it has none. */
function breakName(text) {
  const parts = String(text).split(/(?<=[_\-/.,:])/);
  const long = parts.some((part) => part.length > 32);
  return el(
    "span",
    { class: long ? "long" : null },
    parts.flatMap((part, at) => (at ? [el("wbr"), part] : [part])),
  );
}

/* A figure and its interval may stand in two lines, and each of them stays whole. */
const breakFigure = (text) =>
  text
    .split(/ (?!%|times|us\b|ms\b|s\b|ranked|\d+$)/)
    .flatMap((part, at) => [at ? " " : "", el("span", { class: "whole" }, part)]);
