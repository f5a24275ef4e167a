/* The page: the sections, and the samples that the filters leave. */

/* Which samples are shown. */
let list = samples;

function addChoices() {
  for (const name of FILTERS) {
    const values = [...new Set(samples.map((sample) => sample[name]))];
    if (values.length < 2) continue;
    const options = values.map((value) => el("option", { value: `=${value}` }, value));
    const select = el("select", { "data-choice": name }, el("option", { value: "" }, "all"), options);
    select.addEventListener("change", () => {
      setInView(name, select.value === "" ? null : select.value.slice(1));
      refresh();
    });
    byId("choices").append(el("label", {}, name, select));
  }
}

/* Set the fields to what the address says. */
function fillChoices() {
  for (const select of document.querySelectorAll("[data-choice]")) {
    const wanted = view.get(select.dataset.choice);
    select.value = wanted === null ? "" : `=${wanted}`;
  }
  if (byId("filter").value !== (view.get("words") ?? "")) byId("filter").value = view.get("words") ?? "";
  const at = SAMPLE_COLUMNS.findIndex((column) => column.name === view.get("sort"));
  grid.setOrder(at < 0 ? null : at, view.get("order") === "down");
}

function refresh() {
  const words = (view.get("words") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = FILTERS.filter((name) => view.has(name)).map((name) => [name, view.get(name)]);
  list = samples.filter(
    (sample) =>
      words.every((word) => sample.words.includes(word)) && wanted.every(([name, value]) => sample[name] === value),
  );
  byId("shown").textContent = `${list.length} of ${samples.length} samples`;
  showChart(byId("speedups"), plotSpeedups(list));
  showChart(byId("light"), plotLight(list));
  grid.show(list);
}

const grid = new Grid(byId("table"), "All samples", SAMPLE_COLUMNS, {
  rowId: (sample) => `row-${sample.index}`,
  onSort: () => {
    view.set("order", grid.down ? "down" : "up");
    setInView("sort", SAMPLE_COLUMNS[grid.by].name);
  },
});

function addTools() {
  const values = () => [data.columns, ...grid.sorted.map((sample) => data.columns.map((name) => sample[name]))];
  byId("tools").append(
    makeButton("Copy link", "Copy the address of this view: filters and sorting", () => copy(location.href)),
    makeDownloadButton("samples.csv", () => writeCsv(values()), "text/csv"),
  );
}

function followAddress() {
  if (!readAddress()) {
    if (dialog.open) dialog.close();
    return;
  }
  fillChoices();
  refresh();
  const sample = samplesByName.get(view.get("sample"));
  if (sample) openSample(sample, grid.sorted);
  else if (dialog.open) dialog.close();
}

function onClosed() {
  if (!view.has("sample")) return;
  setInView("sample", null);
  // Back to its row, which the browser brings into view.
  byId(`row-${dialog.dataset.index}`)?.querySelector("a").focus();
}

function move(by) {
  if (dialog.open) {
    const there = grid.sorted[grid.sorted.indexOf(samples[dialog.dataset.index]) + by];
    if (there) location.replace(linkTo(there));
    return;
  }
  const links = [...grid.body.querySelectorAll("th a")];
  const at = links.indexOf(document.activeElement);
  const next = links[at < 0 ? 0 : Math.min(Math.max(at + by, 0), links.length - 1)];
  next?.focus();
}

const KEYS = {
  "/": () => {
    if (!dialog.open) byId("filter").focus();
  },
  j: () => move(1),
  k: () => move(-1),
  t: () => nextTheme(),
  "?": () => {
    if (!dialog.open) byId("keys").showModal();
  },
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName);
  if (typing && event.key === "Escape" && event.target === byId("filter")) {
    setInView("words", null);
    byId("filter").value = "";
    byId("filter").blur();
    refresh();
  } else if (!typing && Object.hasOwn(KEYS, event.key)) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

const THEMES = ["auto", "light", "dark"];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme-button").textContent = `Theme: ${theme}`;
  // A browser may refuse to remember anything for a file.
  try {
    localStorage.setItem("pkb-theme", theme);
  } catch {
    return;
  }
}

function nextTheme() {
  setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]);
}

function readTheme() {
  try {
    return localStorage.getItem("pkb-theme");
  } catch {
    return null;
  }
}

function addContents() {
  const links = [...document.querySelectorAll("main section")].map((one) =>
    el("a", { href: `#${one.id}` }, one.querySelector("h2").textContent),
  );
  byId("contents").append(...links);
}

function start() {
  setTheme(THEMES.includes(readTheme()) ? readTheme() : "auto");
  document.title = `pkb report: ${runs.join(", ")}`;
  byId("subtitle").textContent = data.subtitle;
  byId("origin").textContent = data.origin;
  byId("notices").append(...data.notices.map((text) => el("p", { class: "notice" }, text)));
  data.sections.forEach(drawSection);
  addChoices();
  if (runs.length > 1) byId("run-keys").append(...runs.map((run) => makeKey(run, findRunClass(run))));
  addTools();
  addContents();
  byId("filter").addEventListener("input", () => {
    setInView("words", byId("filter").value);
    refresh();
  });
  byId("theme-button").addEventListener("click", nextTheme);
  byId("keys-button").addEventListener("click", () => byId("keys").showModal());
  byId("table").addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row && !event.target.closest("a") && !String(getSelection())) location.hash = row.querySelector("a").hash;
  });
  dialog.addEventListener("close", onClosed);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", followAddress);
  refresh();
  followAddress();
  // After the first paint.
  requestAnimationFrame(() =>
    setTimeout(() => {
      document.documentElement.dataset.ready = Math.round(performance.now());
    }),
  );
}

start();
