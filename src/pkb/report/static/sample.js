/* One sample: the reference next to the candidate, and the reasons for the verdict. */

const KEYWORDS =
  "False None True and as assert async await break case class continue def del elif else except finally " +
  "for from global if import in is lambda match nonlocal not or pass raise return try while with yield";
const TOKEN = new RegExp(
  [
    /(?<string>"""[^]*?(?:"""|$)|'''[^]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)/,
    /(?<comment>#[^\n]*)/,
    /(?<decorator>@[A-Za-z_][\w.]*)/,
    new RegExp(`(?<keyword>\\b(?:${KEYWORDS.replaceAll(" ", "|")})\\b)`),
    /(?<number>\b\d[\w.]*)/,
  ]
    .map((part) => part.source)
    .join("|"),
  "g",
);

/* [kind or null, text] of each piece of Python. */
function* splitTokens(source) {
  let done = 0;
  for (const found of source.matchAll(TOKEN)) {
    if (found.index > done) yield [null, source.slice(done, found.index)];
    yield [Object.keys(found.groups).find((kind) => found.groups[kind] !== undefined), found[0]];
    done = found.index + found[0].length;
  }
  if (done < source.length) yield [null, source.slice(done)];
}

function makeCode(source, name, marked = new Set()) {
  const lines = [[]];
  for (const [kind, text] of splitTokens(source.replace(/\r\n?/g, "\n").replace(/\n$/, ""))) {
    text.split("\n").forEach((part, at) => {
      if (at) lines.push([]);
      if (part) lines.at(-1).push(kind ? el("span", { class: `tok-${kind}` }, part) : part);
    });
  }
  const rows = lines.map((parts, at) => el("span", { class: marked.has(at + 1) ? "row marked" : "row" }, parts, "\n"));
  return [
    el(
      "p",
      { class: "tools" },
      makeCopyButton(() => source, `Copy the source: ${name}`),
      makeDownloadButton(findFileName(name, "py"), () => source, "text/x-python"),
    ),
    el("pre", { class: "code", tabindex: 0, role: "region", "aria-label": name }, el("code", {}, rows)),
  ];
}

/* The lines of the candidate that its evidence and warnings name. */
function findNamedLines(part) {
  const text = JSON.stringify([part.evidence, part.warnings]);
  const patterns = [
    /candidate\.py:(\d+)/g,
    /line (\d+) of candidate\.py/g,
    /candidate\.py, line (\d+)/g,
    /"line":(\d+)/g,
  ];
  return new Set(patterns.flatMap((pattern) => [...text.matchAll(pattern)].map((found) => Number(found[1]))));
}

function makeTree(value) {
  if (Array.isArray(value)) return makeList(value);
  if (value !== null && typeof value === "object" && !isEmpty(value)) {
    return el(
      "dl",
      { class: "tree" },
      Object.entries(value).flatMap(([name, inside]) => [
        el("dt", {}, name.replaceAll("_", " ")),
        el("dd", {}, makeTree(inside)),
      ]),
    );
  }
  if (typeof value === "string" && value.includes("\n")) return el("pre", { class: "plain" }, value);
  return typeof value === "number" && !Number.isInteger(value)
    ? String(Number(value.toPrecision(6)))
    : typeof value === "object"
      ? "none"
      : String(value);
}

function makeList(values) {
  if (values.some((value) => value !== null && typeof value === "object" && !Array.isArray(value)))
    return values.map(makeTree);
  if (values.some((value) => typeof value === "string")) return el("pre", { class: "plain" }, values.join("\n"));
  return JSON.stringify(values);
}

const makePart = (title, ...inside) => [el("h3", {}, title), ...inside];
const makeFold = (title, inside) => el("details", {}, el("summary", {}, title), inside);
const isEmpty = (value) => value === null || Object.keys(value).length === 0;

function makeSources(sample, part) {
  const place = Object.hasOwn(data.references, sample.problem) ? data.references[sample.problem] : null;
  const reference = place === null ? null : JSON.parse(byId(`reference-${place}`).textContent);
  const ours =
    reference === null
      ? makeEmptyNote("The reference is not in the suite; name its folder with --suite.")
      : makeCode(reference, "Reference");
  const theirs =
    part.source === null
      ? makeEmptyNote("The candidate's source is not in the run.")
      : makeCode(part.source, "Candidate", findNamedLines(part));
  return el(
    "div",
    { class: "sources" },
    el("div", {}, el("h3", {}, "Reference"), ours),
    el("div", {}, el("h3", {}, "Candidate"), theirs),
  );
}

function makeTimes(sample, part) {
  if (!part.timing) return [];
  if (!part.ranks) return makePart("Times", makeTree(part.timing));
  const ranks = part.ranks.reference.map((us, rank) => [String(rank), us, part.ranks.candidate[rank]]);
  const rows = [...ranks, ["slowest of each call", part.timing.reference_us, part.timing.candidate_us]];
  const columns = ["rank", "reference", "candidate"].map((name, at) => ({
    name,
    number: at > 0,
    value: (row) => row[at],
    cell: (row) => (at ? formatDuration(row[at]) : row[0]),
  }));
  const box = el("div", { class: "box" });
  new Grid(box, "Median time by rank", columns, { sortable: false, total: rows.at(-1) }).show(ranks);
  const plot = el("div", { class: "chart" });
  requestAnimationFrame(() => showChart(plot, plotBlocks(part.blocks)));
  const label = sample.comparable ? null : el("p", { class: "note" }, CPU_TIMES);
  return makePart(
    "Times by rank",
    label,
    el("div", { class: "columns" }, box, plot),
    makeFold("How it was timed", makeTree(part.timing)),
  );
}

function makeTurns(sample, part) {
  if (!part.turns.length) return [];
  return makePart(
    "Turns",
    part.turns.map((turn) => {
      const clock = sample.comparable ? "" : ", CPU times";
      const pace = turn.speedup === null ? "" : `, ${formatRatio(turn.speedup)}${clock}`;
      const said = el("p", {}, turn.reason);
      return makeFold(`Turn ${turn.turn}: ${turn.verdict}${pace}`, [
        said,
        turn.source === null
          ? makeEmptyNote("It has no candidate.")
          : makeCode(turn.source, `Candidate of turn ${turn.turn}`),
      ]);
    }),
  );
}

function makeLogs(part) {
  const written = Object.entries(part.logs).filter(([, text]) => text);
  if (!written.length) return [];
  return makePart(
    "What the ranks printed",
    written.map(([rank, text]) => [el("p", { class: "muted" }, `rank ${rank}`), el("pre", { class: "plain" }, text)]),
  );
}

function makePace(sample) {
  if (sample.speedup === null) return null;
  return el(
    "p",
    { class: "reason" },
    colourWord(sample.pace, "verdict"),
    ` ${formatSpeedup(sample)} as fast as the reference`,
  );
}

function makeFacts(sample) {
  const said = [
    `run ${sample.run}`,
    sample.model === sample.run ? null : `model ${sample.model}`,
    `backend ${sample.backend}`,
    sample.category,
    `${sample.world} ranks on ${sample.platform}`,
    sample.dtype,
    sample.size ? `size ${sample.size}` : `M=${sample.m} N=${sample.n}`,
    sample.inputs ? `${sample.inputs} inputs` : null,
    sample.degenerate ? `counts for nothing: ${sample.degenerate}` : null,
    sample.when,
  ];
  return el(
    "ul",
    { class: "facts" },
    said.filter(Boolean).map((fact) => el("li", {}, fact)),
  );
}

function makeInside(sample) {
  const found = byId(`detail-${sample.index}`);
  const head = [
    el("p", { class: "reason" }, colourWord(sample.verdict, "verdict"), ` ${sample.reason}`),
    makePace(sample),
    makeFacts(sample),
  ];
  if (!found)
    return [
      ...head,
      makeEmptyNote(
        `This page holds the sources of ${data.most_details} samples, the fastest first; others are in the run.`,
      ),
    ];
  const part = JSON.parse(found.textContent);
  return [
    ...head,
    ...(isEmpty(part.evidence) ? [] : makePart("Evidence", makeTree(part.evidence))),
    ...(isEmpty(part.warnings) ? [] : makePart("What the screen warns of", makeTree(part.warnings))),
    makeSources(sample, part),
    ...makeTurns(sample, part),
    ...makeTimes(sample, part),
    ...(part.profile ? makePart("Profile", makeTree(part.profile)) : []),
    ...makeLogs(part),
    el(
      "div",
      { class: "columns" },
      el("div", {}, makePart("Environment", makeTree(part.environment))),
      el(
        "div",
        {},
        makePart("Settings", makeTree({ ...part.setup, candidate: part.candidate, seconds: part.seconds })),
      ),
    ),
  ];
}

const dialog = byId("sample");

/* All that the page holds of a sample, as JSON. */
function writeRecord(sample) {
  const { index, words, ...facts } = sample;
  return `${JSON.stringify({ ...facts, ...JSON.parse(byId(`detail-${index}`).textContent) }, null, 1)}\n`;
}

function openSample(sample, list) {
  const at = list.indexOf(sample);
  const step = (by, name, title) => {
    const there = list[at + by];
    const button = el("button", { type: "button", title, disabled: there && at >= 0 ? null : "" }, name);
    button.addEventListener("click", () => location.replace(linkTo(there)));
    return button;
  };
  const close = el("button", { type: "button", title: "Esc", id: "close" }, "Close");
  close.addEventListener("click", () => dialog.close());
  const title = el("h2", { id: "sample-title", tabindex: -1 }, `${sample.problem} · ${sample.sample}`);
  const link = makeButton("Copy link", "Copy the address of this sample", () =>
    copy(location.href.replace(/#.*/, "") + linkTo(sample)),
  );
  const save = byId(`detail-${sample.index}`)
    ? makeDownloadButton(`${sample.problem}-${findFileName(sample.sample, "json")}`, () => writeRecord(sample), "application/json")
    : null;
  dialog.replaceChildren(
    el("header", {}, title, link, save, step(-1, "Previous", "k"), step(1, "Next", "j"), close),
    el("div", { class: "inside" }, makeInside(sample)),
  );
  dialog.dataset.index = sample.index;
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
}
