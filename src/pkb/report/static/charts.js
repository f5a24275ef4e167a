/* Charts: plain SVG, drawn anew for every width, so that text keeps its size. */

const drawings = new Map();
const observer = new ResizeObserver((entries) => {
  requestAnimationFrame(() => entries.forEach((entry) => redraw(entry.target)));
});

function showChart(box, draw) {
  drawings.set(box, { draw, width: -1 });
  redraw(box);
  observer.observe(box);
}

function redraw(box) {
  const drawing = drawings.get(box);
  const width = box.clientWidth;
  if (!width || width === drawing.width) return;
  drawing.width = width;
  box.replaceChildren(drawing.draw(width));
}

function makeLogScale(low, high, from, to) {
  const span = Math.log(high / low);
  return (value) => from + (Math.log(value / low) / span) * (to - from);
}

function makeScale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

function listLogTicks(low, high, most) {
  if (high < 3 * low) return listLinearTicks(low, high, Math.min(most, 5));
  const decades = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) decades.push(power);
  for (const steps of [[1, 2, 5], [1, 3], [1]]) {
    const ticks = decades.flatMap((power) => steps.map((step) => step * 10 ** power));
    const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
    if (inside.length <= most) return inside;
  }
  return decades
    .filter((power) => power % 2 === 0)
    .map((power) => 10 ** power)
    .filter((tick) => tick >= low && tick <= high);
}

function listLinearTicks(low, high, most) {
  const rough = (high - low) / most;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * unit).find((one) => one >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(Number(tick.toPrecision(6)));
  return ticks;
}

const formatTick = (tick) => String(Number(tick.toPrecision(3)));
const drawLine = (x1, y1, x2, y2, className) => svg("line", { x1, y1, x2, y2, class: className });
const drawLabel = (x, y, text, className = "", anchor = "start") =>
  svg("text", { x, y, class: className, "text-anchor": anchor }, text);
const addTitle = (node, text) => {
  node.append(svg("title", {}, text));
  return node;
};

function drawDurationGrid(y, ticks, left, right) {
  return ticks.flatMap((tick) => [
    drawLine(left, y(tick), right, y(tick), "grid"),
    drawLabel(left - 6, y(tick) + 4, formatDuration(tick), "quiet", "end"),
  ]);
}

function makeSvg(width, height, about, parts) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about }, parts);
}

function makeKey(name, className) {
  const stroke = drawLine(2, 6, 26, 6, `stroke ${className}`);
  const mark = svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, stroke);
  return el("li", {}, mark, name);
}

/* A LineChart of pkb/report/section.py: shares over x. */
function plotLines({ about, x, x_label: name, lines, logarithmic, stepped }) {
  const [low, high] = [Math.min(...x), Math.max(...x)];
  return (width) => {
    const [left, right, top, height] = [44, width - 12, 10, 280];
    const bottom = height - 38;
    const atX = logarithmic ? makeLogScale(low, high, left, right) : makeScale(low, high, left, right);
    const atY = makeScale(0, 1, bottom, top);
    const parts = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
      drawLine(left, atY(share), right, atY(share), "grid"),
      drawLabel(left - 6, atY(share) + 4, `${share * 100} %`, "quiet", "end"),
    ]);
    for (const tick of (logarithmic ? listLogTicks : listLinearTicks)(low, high, width / 60)) {
      parts.push(drawLine(atX(tick), top, atX(tick), bottom, logarithmic && tick === 1 ? "one" : "grid"));
      parts.push(drawLabel(atX(tick), bottom + 16, formatTick(tick), "quiet", "middle"));
    }
    parts.push(drawLabel((left + right) / 2, height - 4, name, "quiet", "middle"));
    lines.forEach((one, at) => parts.push(drawShares(one, at, x, atX, atY, stepped)));
    return makeSvg(width, height, about, parts);
  };
}

function drawShares(one, at, x, atX, atY, stepped) {
  const known = x.map((value, place) => [value, one.values[place]]).filter(([, share]) => share !== null);
  const points = known.flatMap(([value, share], place) => {
    // In steps: the share falls at single samples, and does not slope between them.
    const shares = stepped ? [known[Math.max(place - 1, 0)][1], share] : [share];
    return shares.map((height) => `${atX(value).toFixed(1)},${atY(height).toFixed(1)}`);
  });
  return addTitle(svg("polyline", { points: points.join(" "), class: `stroke ${findLineClass(one, at)}` }), one.label);
}

const findLineClass = (one, at) =>
  `${one.run === null ? `run-${at % 6}` : findRunClass(one.run)} ${one.dashed ? "dashed" : ""}`.trim();

/* The fastest correct sample of each problem and run. */
function findFastest(shown) {
  const best = new Map();
  for (const sample of shown.filter(isTimed)) {
    const place = JSON.stringify([sample.run, sample.problem, sample.comparable]);
    if (!best.has(place) || best.get(place).speedup < sample.speedup) best.set(place, sample);
  }
  return [...best.values()].sort(
    (a, b) =>
      b.comparable - a.comparable ||
      a.number - b.number ||
      runs.indexOf(a.run) - runs.indexOf(b.run),
  );
}

function makeEmptyNote(why) {
  return el("p", { class: "empty" }, why);
}

function plotSpeedups(shown) {
  const best = findFastest(shown);
  if (!best.length) return () => makeEmptyNote(UNTIMED);
  const low = Math.min(0.5, ...best.map((sample) => sample.low)) / 1.08;
  const high = Math.max(2, ...best.map((sample) => sample.high)) * 1.08;
  return (width) => {
    const wide = width > 640;
    const [left, right] = wide ? [Math.min(330, width * 0.34), width - 225] : [18, width - 18];
    const x = makeLogScale(low, high, left, right);
    const step = wide ? 22 : 38;
    const parts = [];
    let y = 24;
    best.forEach((sample, at) => {
      if (!sample.comparable && (!at || best[at - 1].comparable)) {
        parts.push(drawLabel(8, y + 14, wide ? CPU_TIMES : "CPU times: the host's clock", "quiet"));
        y += 26;
      }
      parts.push(...drawSpeedup(sample, x, y, step, wide, left, right));
      y += step;
    });
    const axis = listLogTicks(low, high, (right - left) / 46).flatMap((tick) => [
      drawLine(x(tick), 18, x(tick), y + 4, tick === 1 ? "one" : "grid"),
      drawLabel(x(tick), 13, formatTick(tick), "quiet", "middle"),
      drawLabel(x(tick), y + 18, formatTick(tick), "quiet", "middle"),
    ]);
    const band = svg("rect", { x: x(0.98), y: 18, width: x(1.02) - x(0.98), height: y - 14, class: "band" });
    const name = drawLabel((left + right) / 2, y + 36, "times as fast as the reference", "quiet", "middle");
    return makeSvg(width, y + 44, `Speed-ups of ${best.length} samples; the table below has the numbers`, [
      band,
      axis,
      name,
      parts,
    ]);
  };
}

function drawSpeedup(sample, x, y, step, wide, left, right) {
  const middle = y + (wide ? step / 2 : step - 10);
  const name = runs.length > 1 ? `${sample.problem} · ${sample.run}` : sample.problem;
  const said = `${sample.problem} ${sample.sample} ${sample.run}: ${formatSpeedup(sample)} ${sample.pace}`;
  const link = svg(
    "a",
    { href: linkTo(sample), tabindex: -1, class: findRunClass(sample.run) },
    svg("rect", { x: left, y: middle - 9, width: right - left, height: 18, fill: "transparent" }),
    drawLine(x(sample.low), middle, x(sample.high), middle, "stroke"),
    drawLine(x(sample.low), middle - 4, x(sample.low), middle + 4, "stroke"),
    drawLine(x(sample.high), middle - 4, x(sample.high), middle + 4, "stroke"),
    svg("circle", { cx: x(sample.speedup), cy: middle, r: 4.5, class: "fill" }),
  );
  const most = Math.floor(left / 6.6);
  const texts = wide
    ? [
        drawLabel(left - 10, middle + 4, shorten(name, most), "", "end"),
        drawLabel(right + 12, middle + 4, `${formatSpeedup(sample)} ${sample.pace}`, "quiet"),
      ]
    : [
        drawLabel(8, y + 13, shorten(name, Math.floor((right - left) / 6.6) - 8)),
        drawLabel(right + 10, y + 13, formatRatio(sample.speedup), "quiet", "end"),
      ];
  return [...texts, addTitle(link, said)];
}

const shorten = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/* Time measured over the least time possible. */
function plotLight(shown) {
  const best = findFastest(shown).filter((sample) => sample.roofline_us !== null);
  if (!best.length) return () => makeEmptyNote(NO_LIGHT);
  const floors = best.map((sample) => sample.roofline_us);
  const times = best.flatMap((sample) => [sample.reference_us, sample.candidate_us]);
  const [x0, x1] = [Math.min(...floors) / 1.4, Math.max(...floors) * 1.4];
  const [y0, y1] = [Math.min(...floors, ...times) / 1.4, Math.max(...times) * 1.4];
  return (width) => {
    const [left, right, top, height] = [62, width - 70, 12, 380];
    const bottom = height - 40;
    const x = makeLogScale(x0, x1, left, right);
    const y = makeLogScale(y0, y1, bottom, top);
    const grid = drawDurationGrid(y, listLogTicks(y0, y1, 8), left, right);
    const feet = listLogTicks(x0, x1, width / 90).flatMap((tick) => [
      drawLine(x(tick), top, x(tick), bottom, "grid"),
      drawLabel(x(tick), bottom + 16, formatDuration(tick), "quiet", "middle"),
    ]);
    const under = `${x(x0)},${y(y0)} ${x(x0)},${y(x0)} ${x(x1)},${y(x1)} ${x(x1)},${y(y0)}`;
    const beyond = svg("polygon", { points: under, class: "beyond" });
    const roofs = [100, 50, 10, 1].flatMap((percent) => drawRoof(percent, x, y, x0, x1, y1, right));
    const name = drawLabel((left + right) / 2, height - 4, "speed of light", "quiet", "middle");
    const marks = best.map((sample) => drawLightMark(sample, x, y));
    return makeSvg(width, height, `Measured time against the speed of light of ${best.length} samples`, [
      beyond,
      grid,
      feet,
      roofs,
      name,
      marks,
    ]);
  };
}

function drawRoof(percent, x, y, x0, x1, y1, right) {
  const slow = 100 / percent;
  const end = Math.min(x1, y1 / slow);
  if (end <= x0) return [];
  const where = end < x1 ? { x: x(end) + 4, y: y(y1) + 10 } : { x: right + 4, y: y(end * slow) + 4 };
  return [
    drawLine(x(x0), y(x0 * slow), x(end), y(end * slow), percent === 100 ? "one" : "grid dashed"),
    drawLabel(where.x, where.y, `${percent} %`, "quiet"),
  ];
}

function drawLightMark(sample, x, y) {
  const at = x(sample.roofline_us);
  const times = [sample.reference_us, sample.candidate_us, sample.roofline_us];
  const [reference, candidate, light] = times.map(formatDuration);
  const name = `${sample.problem} ${sample.sample} ${sample.run}`;
  const said = `${name}: ${candidate}, reference ${reference}, speed of light ${light}`;
  return addTitle(
    svg(
      "a",
      { href: linkTo(sample), tabindex: -1, class: findRunClass(sample.run) },
      drawLine(at, y(sample.reference_us), at, y(sample.candidate_us), "thin"),
      svg("circle", { cx: at, cy: y(sample.reference_us), r: 3.5, class: "hollow" }),
      svg("circle", { cx: at, cy: y(sample.candidate_us), r: 4.5, class: "fill" }),
    ),
    said,
  );
}

/* The blocks of reference and candidate in the order in which they were timed. */
function plotBlocks(blocks) {
  const all = [...blocks.reference, ...blocks.candidate];
  const [low, high] = [Math.min(...all) / 1.1, Math.max(...all) * 1.1];
  return (width) => {
    const [left, right, top, height] = [62, width - 12, 8, 170];
    const bottom = height - 26;
    const y = makeLogScale(low, high, bottom, top);
    const x = (at) => left + ((at + 0.5) / blocks.reference.length) * (right - left);
    const grid = drawDurationGrid(y, listLogTicks(low, high, 5), left, right);
    const marks = [
      ["reference", "hollow", "run-1"],
      ["candidate", "fill", "run-0"],
    ].flatMap(([world, mark, colour]) =>
      blocks[world].map((us, at) =>
        addTitle(
          svg("circle", { cx: x(at), cy: y(us), r: 3.5, class: `${mark} ${colour}` }),
          `${world}, block ${at}: ${formatDuration(us)}`,
        ),
      ),
    );
    const words = "blocks: reference hollow, candidate filled";
    const name = drawLabel((left + right) / 2, height - 4, words, "quiet", "middle");
    return makeSvg(width, height, "Median time of each timed block", [grid, marks, name]);
  };
}
