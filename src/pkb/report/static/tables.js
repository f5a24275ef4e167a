/* Tables that sort by their column headings and never grow past their box. */

const CHUNK = 500;

class Grid {
  /* columns: name, about, number, value(item), cell(item); the cell of the first names its row. */
  constructor(box, caption, columns, { sortable = true, total = null, rowId = null, onSort = () => {} } = {}) {
    Object.assign(this, { columns, total, rowId, onSort, items: [], by: null, down: false, most: CHUNK });
    this.heads = columns.map((column, at) => this.heading(column, at, sortable));
    this.body = el("tbody");
    this.more = el("button", { type: "button", id: "more", hidden: "" }, "");
    this.more.addEventListener("click", () => {
      this.most += CHUNK;
      this.fill();
    });
    const table = el("table", { "aria-label": caption }, el("thead", {}, el("tr", {}, this.heads)), this.body);
    box.replaceChildren(table, this.more);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", caption);
  }

  heading(column, at, sortable) {
    const inside = el(sortable ? "button" : "span", { type: sortable && "button" }, breakHeading(column.name));
    if (sortable) inside.addEventListener("click", () => this.sort(at));
    return el("th", { scope: "col", class: column.number && "number", title: column.about || null }, inside);
  }

  sort(at) {
    this.setOrder(at, this.by === at ? !this.down : Boolean(this.columns[at].number));
    this.onSort();
    this.show(this.items);
  }

  /* Sort by the column at this place, or by none. */
  setOrder(at, down) {
    this.down = down;
    this.by = at;
    this.heads.forEach((head, one) => {
      if (one === at) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  show(items) {
    this.items = items;
    this.most = CHUNK;
    this.fill();
  }

  get sorted() {
    if (this.by === null) return this.items;
    const { value } = this.columns[this.by];
    const sign = this.down ? -1 : 1;
    // Stable, and what has no value comes last either way.
    return [...this.items].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      return (
        sign *
        (typeof x === "number" && typeof y === "number"
          ? x - y
          : String(x).localeCompare(String(y), "en", { numeric: true }))
      );
    });
  }

  fill() {
    const rows = this.sorted.slice(0, this.most).map((item) => this.row(item));
    if (this.total) rows.push(this.row(this.total, "total"));
    this.body.replaceChildren(...rows);
    const rest = this.items.length - this.most;
    this.more.hidden = rest <= 0;
    this.more.textContent = `Show ${Math.min(rest, CHUNK)} more of ${rest}`;
  }

  row(item, className = null) {
    const cells = this.columns.map((column, at) => {
      const cell = column.cell(item);
      const tag = at ? "td" : "th";
      const node = el(tag, { scope: at ? null : "row", class: column.className || (column.number && "number") }, cell);
      const share = column.heat && column.value(item);
      if (typeof share === "number") {
        node.classList.add("heat");
        node.style.setProperty("--share", share);
      }
      return node;
    });
    return el("tr", { id: this.rowId && this.rowId(item), class: className }, cells);
  }
}

/* A Table of pkb/report/cells.py: cells are [text, value to sort by, sample to open]. */
function makeTable(table, title) {
  const columns = table.columns.map((column, at) => ({
    ...column,
    heat: table.heat && at > 0,
    value: (cells) => cells[at][1],
    cell: (cells) => makeCell(...cells[at], column.number),
  }));
  const box = el("div", { class: "box" });
  const texts = () => [table.columns.map((one) => one.name), ...table.rows.map((cells) => cells.map(([text]) => text))];
  const rows = table.total ? table.rows.slice(0, -1) : table.rows;
  const total = table.total ? table.rows.at(-1) : null;
  new Grid(box, title, columns, { sortable: rows.length > 1, total }).show(rows);
  const tools = el(
    "p",
    { class: "tools" },
    makeCopyButton(() => texts().map((row) => row.join("\t")).join("\n"), `Copy the table: ${title}`),
    makeDownloadButton(findFileName(title, "csv"), () => writeCsv(texts()), "text/csv"),
  );
  return el("div", {}, box, tools);
}

function makeCell(text, value, sample, isFigure) {
  const plain = isFigure ? breakFigure(text) : breakName(text);
  const inside = Object.hasOwn(TONES, text) ? colourWord(text, "verdict") : plain;
  return sample === null ? inside : el("a", { href: linkTo(samples[sample]) }, inside);
}

/* Short headings stay whole; a run's name may be long. */
const breakHeading = (text) => (text.length > 16 ? breakName(text) : el("span", { class: "whole" }, text));
const makeUnder = (text) => (text === null || text === "" ? null : el("div", { class: "under" }, breakName(text)));
const hasSeveral = (name) => new Set(samples.map((sample) => sample[name])).size > 1;
const describePlace = (s) => `${s.platform}, ${s.world} ranks, ${s.dtype}, ${s.size || `${s.m} x ${s.n}`}`;

/* The columns of all samples. Few enough for a narrow screen: what belongs together stands in one cell. */
const SAMPLE_COLUMNS = [
  {
    name: "problem",
    value: (s) => s.number,
    cell: (s) => [el("a", { href: linkTo(s) }, breakName(s.problem)), makeUnder(s.category)],
  },
  {
    name: "verdict",
    value: (s) => s.verdict,
    cell: (s) => [colourWord(s.verdict, "verdict"), makeUnder(s.check)],
  },
  { name: "sample", value: (s) => s.sample, cell: (s) => [breakName(s.sample), makeUnder(s.backend)] },
  { name: "run", value: (s) => s.run, cell: (s) => breakName(s.run), isShown: () => hasSeveral("run") },
  { name: "suite", value: (s) => s.suite, cell: (s) => breakName(s.suite), isShown: () => hasSeveral("suite") },
  {
    name: "speed-up",
    number: true,
    about: "median of paired blocks and its 95 % interval",
    value: (s) => s.speedup,
    cell: (s) => (s.speedup === null ? "" : [breakFigure(formatSpeedup(s)), el("div", {}, colourWord(s.pace))]),
  },
  {
    name: "time",
    number: true,
    about: "of one call",
    value: (s) => s.candidate_us,
    cell: (s) => (s.candidate_us === null ? "" : [breakFigure(formatDuration(s.candidate_us)), s.comparable ? null : makeUnder("CPU")]),
  },
  {
    name: "% of light",
    number: true,
    about: "of the speed of light",
    value: (s) => s.percent,
    cell: (s) => (s.percent === null ? "" : s.percent.toPrecision(3)),
  },
  { name: "why", className: "why", value: (s) => s.reason, cell: (s) => el("span", { title: s.reason }, s.reason) },
  { name: "where", value: describePlace, cell: (s) => makeUnder(describePlace(s)) },
].filter(({ isShown, value }) => (isShown ? isShown() : samples.some((sample) => value(sample) !== null)));
