/* One sample: the reference and the candidate beside each other, and why the verdict is what it is. */

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
function* tokens(source) {
  let done = 0;
  for (const found of source.matchAll(TOKEN)) {
    if (found.index > done) yield [null, source.slice(done, found.index)];
    yield [Object.keys(found.groups).find((kind) => found.groups[kind] !== undefined), found[0]];
    done = found.index + found[0].length;
  }
  if (done < source.length) yield [null, source.slice(done)];
}

function code(source, name, marked = new Set()) {
  const lines = [[]];
  for (const [kind, text] of tokens(source.replace(/\r\n?/g, "\n").replace(/\n$/, ""))) {
    text.split("\n").forEach((part, at) => {
      if (at) lines.push([]);
      if (part) lines.at(-1).push(kind ? el("span", { class: `tok-${kind}` }, part) : part);
    });
  }
  const rows = lines.map((parts, at) => el("span", { class: marked.has(at + 1) ? "row marked" : "row" }, parts, "\n"));
  return el("pre", { class: "code", tabindex: 0, role: "region", "aria-label": name }, el("code", {}, rows));
}

/* The lines of the candidate that its evidence and warnings speak of. */
function spokenOf(part) {
  const told = JSON.stringify([part.evidence, part.warnings]);
  const patterns = [
    /candidate\.py:(\d+)/g,
    /line (\d+) of candidate\.py/g,
    /candidate\.py, line (\d+)/g,
    /"line":(\d+)/g,
  ];
  return new Set(patterns.flatMap((pattern) => [...told.matchAll(pattern)].map((found) => Number(found[1]))));
}

function tree(value) {
  if (Array.isArray(value)) return listed(value);
  if (value !== null && typeof value === "object" && !isEmpty(value)) {
    return el(
      "dl",
      { class: "tree" },
      Object.entries(value).flatMap(([name, inside]) => [
        el("dt", {}, name.replaceAll("_", " ")),
        el("dd", {}, tree(inside)),
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

function listed(values) {
  if (values.some((value) => value !== null && typeof value === "object" && !Array.isArray(value)))
    return values.map(tree);
  if (values.some((value) => typeof value === "string")) return el("pre", { class: "plain" }, values.join("\n"));
  return JSON.stringify(values);
}

const titledPart = (title, ...inside) => [el("h3", {}, title), ...inside];
const folded = (title, inside) => el("details", {}, el("summary", {}, title), inside);
const isEmpty = (value) => value === null || Object.keys(value).length === 0;

function sides(sample, part) {
  const place = Object.hasOwn(data.references, sample.problem) ? data.references[sample.problem] : null;
  const reference = place === null ? null : JSON.parse(byId(`reference-${place}`).textContent);
  const ours =
    reference === null
      ? nothing("The reference is not in the suite; name its folder with --suite.")
      : code(reference, "Reference");
  const theirs =
    part.source === null
      ? nothing("The candidate's source is not in the run.")
      : code(part.source, "Candidate", spokenOf(part));
  return el(
    "div",
    { class: "sides" },
    el("div", {}, el("h3", {}, "Reference"), ours),
    el("div", {}, el("h3", {}, "Candidate"), theirs),
  );
}

function times(sample, part) {
  if (!part.timing) return [];
  if (!part.ranks) return titledPart("Times", tree(part.timing));
  const ranks = part.ranks.reference.map((us, rank) => [String(rank), us, part.ranks.candidate[rank]]);
  const rows = [...ranks, ["slowest of each call", part.timing.reference_us, part.timing.candidate_us]];
  const columns = ["rank", "reference", "candidate"].map((name, at) => ({
    name,
    number: at > 0,
    value: (row) => row[at],
    cell: (row) => (at ? duration(row[at]) : row[0]),
  }));
  const box = el("div", { class: "box" });
  new Grid(box, "Median time by rank", columns, { sortable: false, total: rows.at(-1) }).show(ranks);
  const plot = el("div", { class: "chart" });
  requestAnimationFrame(() => chart(plot, blocksPlot(part.blocks)));
  const label = sample.platform === ON_CPU ? el("p", { class: "note" }, CPU_TIMES) : null;
  return titledPart(
    "Times by rank",
    label,
    el("div", { class: "columns" }, box, plot),
    folded("How it was timed", tree(part.timing)),
  );
}

function turns(part) {
  if (!part.turns.length) return [];
  return titledPart(
    "Turns",
    part.turns.map((turn) => {
      const pace = turn.speedup === null ? "" : `, ${Number(turn.speedup.toPrecision(3))} times as fast`;
      const said = el("p", {}, turn.reason);
      return folded(`Turn ${turn.turn}: ${turn.verdict}${pace}`, [
        said,
        turn.source === null ? nothing("It has no candidate.") : code(turn.source, `Candidate of turn ${turn.turn}`),
      ]);
    }),
  );
}

function logs(part) {
  const written = Object.entries(part.logs).filter(([, text]) => text);
  if (!written.length) return [];
  return titledPart(
    "What the ranks printed",
    written.map(([rank, text]) => [el("p", { class: "muted" }, `rank ${rank}`), el("pre", { class: "plain" }, text)]),
  );
}

function pace(sample) {
  if (sample.speedup === null) return null;
  const clock = sample.platform === ON_CPU ? ", by CPU times" : "";
  return el(
    "p",
    { class: "reason" },
    toned(sample.pace, "verdict"),
    ` ${speed(sample)} times as fast as the reference${clock}`,
  );
}

function facts(sample) {
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

function inside(sample) {
  const found = byId(`part-${sample.index}`);
  const head = [
    el("p", { class: "reason" }, toned(sample.verdict, "verdict"), ` ${sample.reason}`),
    pace(sample),
    facts(sample),
  ];
  if (!found)
    return [
      ...head,
      nothing(`This page holds the sources of ${data.parts} samples, the fastest first; others are in the run.`),
    ];
  const part = JSON.parse(found.textContent);
  return [
    ...head,
    ...(isEmpty(part.evidence) ? [] : titledPart("Evidence", tree(part.evidence))),
    ...(isEmpty(part.warnings) ? [] : titledPart("What the screen warns of", tree(part.warnings))),
    sides(sample, part),
    ...turns(part),
    ...times(sample, part),
    ...(part.profile ? titledPart("Profile", tree(part.profile)) : []),
    ...logs(part),
    el(
      "div",
      { class: "columns" },
      el("div", {}, titledPart("Environment", tree(part.environment))),
      el("div", {}, titledPart("Settings", tree({ ...part.setup, candidate: part.candidate, seconds: part.seconds }))),
    ),
  ];
}

const dialog = byId("sample");

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
  dialog.replaceChildren(
    el("header", {}, title, step(-1, "Previous", "k"), step(1, "Next", "j"), close),
    el("div", { class: "inside" }, inside(sample)),
  );
  dialog.dataset.index = sample.index;
  if (!dialog.open) dialog.showModal();
  dialog.scrollTop = 0;
  title.focus();
}
