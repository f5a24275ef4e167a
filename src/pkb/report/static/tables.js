/* Tables that sort by their column headings and never grow past their box. */

const CHUNK = 500;

class Grid {
  /* columns: name, about, number, value(item), cell(item); the cell of the first names its row. */
  constructor(box, caption, columns, { sortable = true, total = null, rowId = null } = {}) {
    Object.assign(this, { columns, total, rowId, items: [], by: null, down: false, most: CHUNK });
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
    const inside = el(sortable ? "button" : "span", { type: sortable && "button" }, column.name);
    if (sortable) inside.addEventListener("click", () => this.sort(at));
    return el("th", { scope: "col", class: column.number && "number", title: column.about || null }, inside);
  }

  sort(at) {
    this.down = this.by === at ? !this.down : Boolean(this.columns[at].number);
    this.by = at;
    this.heads.forEach((head, one) => {
      if (one === at) head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.show(this.items);
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
    cell: (cells) => makeCell(...cells[at]),
  }));
  const box = el("div", { class: "box" });
  const rows = table.total ? table.rows.slice(0, -1) : table.rows;
  const total = table.total ? table.rows.at(-1) : null;
  new Grid(box, title, columns, { sortable: rows.length > 1, total }).show(rows);
  return box;
}

function makeCell(text, value, sample) {
  const inside = Object.hasOwn(TONES, text) ? colourWord(text, "verdict") : text;
  return sample === null ? inside : el("a", { href: `#sample-${sample}` }, inside);
}

const formatOptional = (value) => (value === null ? "" : value);
const SAMPLE_COLUMNS = [
  { name: "problem", value: (s) => s.problem, cell: (s) => el("a", { href: linkTo(s) }, s.problem) },
  { name: "verdict", value: (s) => s.verdict, cell: (s) => colourWord(s.verdict, "verdict") },
  { name: "sample", className: "name", value: (s) => s.sample, cell: (s) => s.sample },
  { name: "run", className: "name", value: (s) => s.run, cell: (s) => s.run },
  {
    name: "speed-up",
    number: true,
    about: "median of paired blocks and its 95 % interval",
    value: (s) => s.speedup,
    cell: formatSpeedup,
  },
  {
    name: "pace",
    about: "at 95 %",
    value: (s) => s.pace,
    cell: (s) => (s.speedup === null ? "" : [colourWord(s.pace), s.comparable ? "" : " (CPU times)"]),
  },
  { name: "why", className: "why", value: (s) => s.reason, cell: (s) => el("span", { title: s.reason }, s.reason) },
  {
    name: "time",
    number: true,
    value: (s) => s.candidate_us,
    cell: (s) => (s.candidate_us === null ? "" : formatDuration(s.candidate_us)),
  },
  {
    name: "% of light",
    number: true,
    about: "of the speed of light",
    value: (s) => s.percent,
    cell: (s) => (s.percent === null ? "" : s.percent.toPrecision(3)),
  },
  { name: "check", value: (s) => s.check, cell: (s) => formatOptional(s.check) },
  { name: "category", value: (s) => s.category, cell: (s) => s.category },
  { name: "backend", value: (s) => s.backend, cell: (s) => s.backend },
  { name: "platform", value: (s) => s.platform, cell: (s) => s.platform },
  { name: "ranks", number: true, value: (s) => s.world, cell: (s) => s.world },
  { name: "dtype", value: (s) => s.dtype, cell: (s) => s.dtype },
  { name: "size", value: (s) => s.size || s.m * s.n, cell: (s) => s.size || `${s.m} x ${s.n}` },
];
