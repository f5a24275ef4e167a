/* The page: the sections, and the samples that the filters leave. */

/* Which samples are shown. */
const CHOICES = ["run", "verdict", "category", "pace", "platform"];
const chosen = new Map();
let list = samples;

function addChoices() {
  for (const name of CHOICES) {
    const values = [...new Set(samples.map((sample) => sample[name]))];
    if (values.length < 2) continue;
    const options = values.map((value, at) => el("option", { value: at }, value));
    const select = el("select", { "data-choice": name }, el("option", { value: "" }, "all"), options);
    select.addEventListener("change", () => {
      chosen.set(name, select.value === "" ? null : values[select.value]);
      refresh();
    });
    byId("choices").append(el("label", {}, name, select));
  }
}

function refresh() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = [...chosen].filter(([, value]) => value !== null);
  list = samples.filter(
    (sample) =>
      words.every((word) => sample.words.includes(word)) && wanted.every(([name, value]) => sample[name] === value),
  );
  byId("shown").textContent = `${list.length} of ${samples.length} samples`;
  showChart(byId("speedups"), plotSpeedups(list));
  showChart(byId("light"), plotLight(list));
  grid.show(list);
}

const grid = new Grid(byId("table"), "All samples", SAMPLE_COLUMNS, { rowId: (sample) => `row-${sample.index}` });

function followHash() {
  const found = /^#sample-(\d+)$/.exec(location.hash);
  const sample = found && samples[Number(found[1])];
  if (sample) openSample(sample, grid.sorted);
  else if (dialog.open) dialog.close();
}

function onClosed() {
  if (!location.hash.startsWith("#sample-")) return;
  // Back to its row: the address then says where we are, and the browser brings it into view.
  location.hash = `row-${dialog.dataset.index}`;
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
  refresh();
  addContents();
  byId("filter").addEventListener("input", refresh);
  byId("theme-button").addEventListener("click", nextTheme);
  byId("keys-button").addEventListener("click", () => byId("keys").showModal());
  byId("table").addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (row && !event.target.closest("a") && !String(getSelection())) location.hash = row.querySelector("a").hash;
  });
  dialog.addEventListener("close", onClosed);
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", followHash);
  followHash();
  // After the first paint.
  requestAnimationFrame(() =>
    setTimeout(() => {
      document.documentElement.dataset.ready = Math.round(performance.now());
    }),
  );
}

start();
