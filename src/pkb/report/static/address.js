/* What is shown, in the address after the #: filters, sorting, and the open sample. A name without = is a section. */

const FILTERS = ["run", "verdict", "category", "pace", "platform", "suite"];
const view = new URLSearchParams();

const nameSample = (sample) => [sample.run, sample.problem, sample.sample].map(encodeURIComponent).join("/");
const samplesByName = new Map(samples.map((sample) => [nameSample(sample), sample]));

/* The address of one sample: the same in every report that has its run. */
const linkTo = (sample) => `#${new URLSearchParams({ sample: nameSample(sample) })}`;

function readAddress() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return false;
  const found = new URLSearchParams(text);
  const opens = found.has("sample") && found.size === 1;
  // A link to a sample alone leaves filters and sorting as they are.
  for (const name of [...view.keys()]) if (!opens || name === "sample") view.delete(name);
  for (const [name, value] of found) view.set(name, value);
  if (opens) writeAddress();
  return true;
}

function setInView(name, value) {
  if (value === null || value === "") view.delete(name);
  else view.set(name, value);
  writeAddress();
}

function writeAddress() {
  const text = String(view);
  history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
}

/* Copying and downloading. */
function makeButton(name, title, act) {
  const button = el("button", { type: "button", class: "small", title }, name);
  button.addEventListener("click", async () => {
    const said = await act();
    button.textContent = said;
    setTimeout(() => (button.textContent = name), 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return "Copied";
  } catch {
    return copyByHand(text) ? "Copied" : "Not allowed here";
  }
}

/* For browsers that keep the clipboard from pages that were opened as files. */
function copyByHand(text) {
  const area = el("textarea", { readonly: "" });
  area.value = text;
  (dialog.open ? dialog : document.body).append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function download(name, text, type) {
  const link = el("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  return "Saved";
}

const makeCopyButton = (findText, title = "Copy") => makeButton("Copy", title, () => copy(findText()));
const makeDownloadButton = (file, findText, type = "text/plain") =>
  makeButton("Download", `Save as ${file}`, () => download(file, findText(), type));

/* Rows as comma-separated values; a text that a spreadsheet would take for a formula begins with an apostrophe. */
function writeCsv(rows) {
  const quote = (value) => {
    if (typeof value === "number" || value === null) return value === null ? "" : String(value);
    const text = /^\s*[=+\-@]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(quote).join(",")).join("\n") + "\n";
}

const findFileName = (title, ending) => `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${ending}`;
