/* The sections that pkb/report/sections made: a title, a note, and a chart or a table or both. */

const CHARTS = { lines: drawLines, bars: drawBars };
const VERDICTS = ["CORRECT", "WRONG", "REJECTED", "BUILD_FAILED", "CRASH", "HANG", "CHEAT", "ENVIRONMENT"];

function drawSection(one) {
  const heading = `${one.name}-title`;
  const place = el(
    "section",
    { id: one.name, "aria-labelledby": heading },
    el("h2", { id: heading }, one.title),
    one.note ? el("p", { class: "note" }, one.note) : null,
  );
  byId("summary").append(place);
  const hasNothing = one.chart && !(one.chart.lines || one.chart.bars).length;
  if (hasNothing && one.if_empty) return place.append(makeEmptyNote(one.if_empty));
  if (one.chart) CHARTS[one.chart.kind](place, one.chart);
  if (!one.table || (one.chart && !one.table.rows.length)) return;
  const table = makeTable(one.table, one.title);
  place.append(one.fold_table ? makeFold("The values", table) : table);
}

function drawLines(place, chart) {
  const box = el("div", { class: "chart" });
  const keys = chart.lines.map((one, at) => makeKey(one.label, findLineClass(one, at)));
  place.append(box, el("ul", { class: "legend" }, keys));
  showChart(box, plotLines(chart));
}

function drawBars(place, chart) {
  const names = [...new Set(chart.bars.flatMap((bar) => Object.keys(bar.parts)))];
  const findPartClass = (name) => (VERDICTS.includes(name) ? `v-${name}` : `part run-${names.indexOf(name) % 6}`);
  for (const bar of chart.bars) {
    const parts = Object.entries(bar.parts).map(([name, count]) => {
      const part = el("span", { class: findPartClass(name), title: `${name}: ${count}` });
      part.style.flexGrow = count;
      return part;
    });
    const said = Object.entries(bar.parts)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
    place.append(
      el("div", { class: "muted" }, bar.label),
      el("div", { class: "stack", role: "img", "aria-label": said }, parts),
    );
  }
  const keys = names.map((name) => el("li", {}, el("span", { class: `swatch ${findPartClass(name)}` }), name));
  place.append(el("ul", { class: "legend" }, keys));
}
