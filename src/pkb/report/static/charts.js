/* Charts: plain SVG, drawn anew for every width, so that text keeps its size. */

const drawings = new Map();
const watcher = new ResizeObserver((entries) => {
  requestAnimationFrame(() => entries.forEach((entry) => redraw(entry.target)));
});

function chart(box, draw) {
  drawings.set(box, { draw, width: -1 });
  redraw(box);
  watcher.observe(box);
}

function redraw(box) {
  const drawing = drawings.get(box);
  const width = box.clientWidth;
  if (!width || width === drawing.width) return;
  drawing.width = width;
  box.replaceChildren(drawing.draw(width));
}

function logScale(low, high, from, to) {
  const span = Math.log(high / low);
  return (value) => from + (Math.log(value / low) / span) * (to - from);
}

function logTicks(low, high, most) {
  if (high < 3 * low) return linearTicks(low, high, Math.min(most, 5));
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

function linearTicks(low, high, most) {
  const rough = (high - low) / most;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * unit).find((one) => one >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) ticks.push(Number(tick.toPrecision(6)));
  return ticks;
}

const plain = (tick) => String(Number(tick.toPrecision(3)));
const line = (x1, y1, x2, y2, className) => svg("line", { x1, y1, x2, y2, class: className });
const label = (x, y, text, className = "", anchor = "start") =>
  svg("text", { x, y, class: className, "text-anchor": anchor }, text);
const titled = (node, text) => {
  node.append(svg("title", {}, text));
  return node;
};

function durationLines(y, ticks, left, right) {
  return ticks.flatMap((tick) => [
    line(left, y(tick), right, y(tick), "grid"),
    label(left - 6, y(tick) + 4, duration(tick), "quiet", "end"),
  ]);
}

function drawn(width, height, about, parts) {
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about }, parts);
}

function key(name, className) {
  const mark = svg("svg", { width: 28, height: 12, "aria-hidden": "true" }, line(2, 6, 26, 6, `stroke ${className}`));
  return el("li", {}, mark, name);
}

/* fast_p: the share of samples that are right and more than p times as fast as the reference. */
function fastCurve(width) {
  const { ps, lines } = data.curve;
  const [left, right, top, height] = [44, width - 12, 10, 280];
  const bottom = height - 38;
  const x = logScale(ps[0], ps.at(-1), left, right);
  const y = (share) => bottom - share * (bottom - top);
  const parts = [0, 0.25, 0.5, 0.75, 1].flatMap((share) => [
    line(left, y(share), right, y(share), "grid"),
    label(left - 6, y(share) + 4, `${share * 100} %`, "quiet", "end"),
  ]);
  for (const tick of logTicks(ps[0], ps.at(-1), width / 60)) {
    parts.push(line(x(tick), top, x(tick), bottom, tick === 1 ? "one" : "grid"));
    parts.push(label(x(tick), bottom + 16, plain(tick), "quiet", "middle"));
  }
  parts.push(label((left + right) / 2, height - 4, "p: times as fast as the reference", "quiet", "middle"));
  for (const one of lines) {
    // In steps: the share falls at single samples, and does not slope between them.
    const points = ps
      .flatMap((p, at) =>
        [one.values[Math.max(at - 1, 0)], one.values[at]].map((share) => `${x(p).toFixed(1)},${y(share).toFixed(1)}`),
      )
      .join(" ");
    const style = `stroke ${runClass(one.run)} ${one.cpu ? "dashed" : ""}`;
    parts.push(titled(svg("polyline", { points, class: style }), one.label));
  }
  return drawn(width, height, "fast_p over p, one line per run; the values are in the table below", parts);
}

/* The fastest correct sample of each problem and run. */
function fastest(shown) {
  const best = new Map();
  for (const sample of shown.filter(isTimed)) {
    const place = JSON.stringify([sample.run, sample.problem, sample.platform === ON_CPU]);
    if (!best.has(place) || best.get(place).speedup < sample.speedup) best.set(place, sample);
  }
  return [...best.values()].sort(
    (a, b) =>
      (a.platform === ON_CPU) - (b.platform === ON_CPU) ||
      a.number - b.number ||
      runs.indexOf(a.run) - runs.indexOf(b.run),
  );
}

function nothing(why) {
  return el("p", { class: "empty" }, why);
}

function speedupPlot(shown) {
  const best = fastest(shown);
  if (!best.length) return () => nothing(UNTIMED);
  const low = Math.min(0.5, ...best.map((sample) => sample.low)) / 1.08;
  const high = Math.max(2, ...best.map((sample) => sample.high)) * 1.08;
  return (width) => {
    const wide = width > 640;
    const [left, right] = wide ? [Math.min(330, width * 0.34), width - 225] : [18, width - 18];
    const x = logScale(low, high, left, right);
    const step = wide ? 22 : 38;
    const parts = [];
    let y = 24;
    best.forEach((sample, at) => {
      if (sample.platform === ON_CPU && (!at || best[at - 1].platform !== ON_CPU)) {
        parts.push(label(8, y + 14, wide ? CPU_TIMES : "CPU times: the host's clock", "quiet"));
        y += 26;
      }
      parts.push(...speedupLine(sample, x, y, step, wide, left, right));
      y += step;
    });
    const axis = logTicks(low, high, (right - left) / 46).flatMap((tick) => [
      line(x(tick), 18, x(tick), y + 4, tick === 1 ? "one" : "grid"),
      label(x(tick), 13, plain(tick), "quiet", "middle"),
      label(x(tick), y + 18, plain(tick), "quiet", "middle"),
    ]);
    const band = svg("rect", { x: x(0.98), y: 18, width: x(1.02) - x(0.98), height: y - 14, class: "band" });
    const name = label((left + right) / 2, y + 36, "times as fast as the reference", "quiet", "middle");
    return drawn(width, y + 44, `Speed-ups of ${best.length} samples; the table below has the numbers`, [
      band,
      axis,
      name,
      parts,
    ]);
  };
}

function speedupLine(sample, x, y, step, wide, left, right) {
  const middle = y + (wide ? step / 2 : step - 10);
  const name = runs.length > 1 ? `${sample.problem} · ${sample.run}` : sample.problem;
  const said = `${sample.problem} ${sample.sample} ${sample.run}: ${speed(sample)} ${sample.pace}`;
  const link = svg(
    "a",
    { href: linkTo(sample), tabindex: -1, class: runClass(sample.run) },
    svg("rect", { x: left, y: middle - 9, width: right - left, height: 18, fill: "transparent" }),
    line(x(sample.low), middle, x(sample.high), middle, "stroke"),
    line(x(sample.low), middle - 4, x(sample.low), middle + 4, "stroke"),
    line(x(sample.high), middle - 4, x(sample.high), middle + 4, "stroke"),
    svg("circle", { cx: x(sample.speedup), cy: middle, r: 4.5, class: "fill" }),
  );
  const most = Math.floor(left / 6.6);
  const texts = wide
    ? [
        label(left - 10, middle + 4, cut(name, most), "", "end"),
        label(right + 12, middle + 4, `${speed(sample)} ${sample.pace}`, "quiet"),
      ]
    : [
        label(8, y + 13, cut(name, Math.floor((right - left) / 6.6) - 8)),
        label(right + 10, y + 13, ratio(sample.speedup), "quiet", "end"),
      ];
  return [...texts, titled(link, said)];
}

const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

/* Time measured over the least time possible. */
function lightPlot(shown) {
  const best = fastest(shown).filter((sample) => sample.roofline_us !== null);
  if (!best.length) return () => nothing(NO_LIGHT);
  const floors = best.map((sample) => sample.roofline_us);
  const times = best.flatMap((sample) => [sample.reference_us, sample.candidate_us]);
  const [x0, x1] = [Math.min(...floors) / 1.4, Math.max(...floors) * 1.4];
  const [y0, y1] = [Math.min(...floors, ...times) / 1.4, Math.max(...times) * 1.4];
  return (width) => {
    const [left, right, top, height] = [62, width - 70, 12, 380];
    const bottom = height - 40;
    const x = logScale(x0, x1, left, right);
    const y = logScale(y0, y1, bottom, top);
    const grid = durationLines(y, logTicks(y0, y1, 8), left, right);
    const feet = logTicks(x0, x1, width / 90).flatMap((tick) => [
      line(x(tick), top, x(tick), bottom, "grid"),
      label(x(tick), bottom + 16, duration(tick), "quiet", "middle"),
    ]);
    const under = `${x(x0)},${y(y0)} ${x(x0)},${y(x0)} ${x(x1)},${y(x1)} ${x(x1)},${y(y0)}`;
    const beyond = svg("polygon", { points: under, class: "beyond" });
    const roofs = [100, 50, 10, 1].flatMap((percent) => roof(percent, x, y, x0, x1, y1, right));
    const name = label((left + right) / 2, height - 4, "speed of light", "quiet", "middle");
    const marks = best.map((sample) => lightMark(sample, x, y));
    return drawn(width, height, `Measured time against the speed of light of ${best.length} samples`, [
      beyond,
      grid,
      feet,
      roofs,
      name,
      marks,
    ]);
  };
}

function roof(percent, x, y, x0, x1, y1, right) {
  const slow = 100 / percent;
  const end = Math.min(x1, y1 / slow);
  if (end <= x0) return [];
  const where = end < x1 ? { x: x(end) + 4, y: y(y1) + 10 } : { x: right + 4, y: y(end * slow) + 4 };
  return [
    line(x(x0), y(x0 * slow), x(end), y(end * slow), percent === 100 ? "one" : "grid dashed"),
    label(where.x, where.y, `${percent} %`, "quiet"),
  ];
}

function lightMark(sample, x, y) {
  const at = x(sample.roofline_us);
  const [reference, candidate, light] = [sample.reference_us, sample.candidate_us, sample.roofline_us].map(duration);
  const name = `${sample.problem} ${sample.sample} ${sample.run}`;
  const said = `${name}: ${candidate}, reference ${reference}, speed of light ${light}`;
  return titled(
    svg(
      "a",
      { href: linkTo(sample), tabindex: -1, class: runClass(sample.run) },
      line(at, y(sample.reference_us), at, y(sample.candidate_us), "thin"),
      svg("circle", { cx: at, cy: y(sample.reference_us), r: 3.5, class: "hollow" }),
      svg("circle", { cx: at, cy: y(sample.candidate_us), r: 4.5, class: "fill" }),
    ),
    said,
  );
}

/* Both sides' blocks in the order in which they were timed. */
function blocksPlot(blocks) {
  const all = [...blocks.reference, ...blocks.candidate];
  const [low, high] = [Math.min(...all) / 1.1, Math.max(...all) * 1.1];
  return (width) => {
    const [left, right, top, height] = [62, width - 12, 8, 170];
    const bottom = height - 26;
    const y = logScale(low, high, bottom, top);
    const x = (at) => left + ((at + 0.5) / blocks.reference.length) * (right - left);
    const grid = durationLines(y, logTicks(low, high, 5), left, right);
    const sides = [
      ["reference", "hollow", "run-1"],
      ["candidate", "fill", "run-0"],
    ].flatMap(([side, mark, colour]) =>
      blocks[side].map((us, at) =>
        titled(
          svg("circle", { cx: x(at), cy: y(us), r: 3.5, class: `${mark} ${colour}` }),
          `${side}, block ${at}: ${duration(us)}`,
        ),
      ),
    );
    const name = label((left + right) / 2, height - 4, "blocks: reference hollow, candidate filled", "quiet", "middle");
    return drawn(width, height, "Median time of each timed block", [grid, sides, name]);
  };
}
