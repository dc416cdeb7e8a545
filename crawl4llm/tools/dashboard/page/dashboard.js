// Draws the server's events. Whatever comes from crawled pages enters the document as text only.
"use strict";

const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
const count = (n) => plain.format(n);
const number = (n) => (Math.abs(n) >= 1000 ? plain.format(n) : short.format(n));
const percent = (n) => `${short.format(100 * n)} %`;
const bytes = (n) => {
  const power = n >= 1e9 ? 3 : n >= 1e6 ? 2 : n >= 1e3 ? 1 : 0;
  return `${short.format(Number((n / 1000 ** power).toPrecision(3)))} ${["B", "kB", "MB", "GB"][power]}`;
};
const duration = (seconds) => {
  if (seconds < 120) return `${short.format(Number(seconds.toPrecision(3)))} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60 ? `${minutes % 60} min` : ""}`.trim();
};

const CHARTS = [
  { title: "Pages a second", unit: number, lines: { rate: "pages crawled a second" } },
  { title: "Influence", unit: number, lines: { influence: "mean influence", good: "share of good pages" } },
  { title: "Documents", unit: count, lines: { visited: "discovered", queued: "in the frontier", crawled: "crawled" } },
  { title: "Memory", unit: bytes, lines: { crawler: "crawler", workers: "worker processes" } },
  { title: "Workers", unit: percent, lines: { busy: "time at work" } },
  { title: "Bytes received a second", unit: bytes, lines: { received: "received a second" } },
];
const [HEIGHT, LEFT, RIGHT, BOTTOM] = [220, 58, 8, 24];

const byId = (id) => document.getElementById(id);

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function cell(value, unit, tag = "td") {
  const isNumber = typeof value === "number";
  return element(tag, { className: isNumber ? "number" : "" }, isNumber ? unit(value) : element("bdi", {}, value ?? "\u2013"));
}

function table(caption, heads, rows, unit = count) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const lines = rows.map((row) => element("tr", {}, ...row.map((value) => (value instanceof Node ? value : cell(value, unit)))));
  return element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, ...lines));
}

// -- charts ---------------------------------------------------------------------------------------------------------

function steps(most, isTime) {
  const least = most / 5 || 1;
  const scale = 10 ** Math.floor(Math.log10(least));
  const round = [1, 2, 5, 10].map((factor) => factor * scale);
  const times = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const step = (isTime && least >= 1 ? times : round).find((one) => one >= least) ?? round.find((one) => one >= least);
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, place) => place * step);
}

function makeChart(chart) {
  const id = `chart-${chart.title.toLowerCase().replaceAll(" ", "-")}`;
  chart.picture = shape("svg", { role: "img" });
  chart.legend = element("ul", { className: "legend" });
  // The range is the keyboard's and the screen reader's way along the chart; it lies over the plot, and is not seen.
  chart.place = element("input", { type: "range", min: 0, ariaLabel: `${chart.title}: point` });
  chart.place.oninput = () => { chart.atEnd = chart.place.value === chart.place.max; drawCursor(chart); };
  const plot = element("div", { className: "plot" }, chart.picture, chart.place);
  plot.onpointermove = plot.onpointerdown = (event) => {
    const box = chart.picture.getBoundingClientRect();
    chart.place.value = nearest(chart, ((event.clientX - box.left) * chart.width) / box.width);
    chart.place.oninput();
  };
  chart.atEnd = true;
  chart.said = element("output");
  chart.details = element("details", {}, element("summary", {}, "Table"));
  chart.details.ontoggle = () => drawTable(chart);
  chart.section = element("section", { hidden: true },
    element("h2", { id }, chart.title),
    element("figure", {}, chart.legend, plot, chart.said), chart.details);
  chart.section.setAttribute("aria-labelledby", id);
  byId("charts").append(chart.section);
}

function drawChart(chart, columns) {
  const names = Object.keys(chart.lines).filter((name) => columns[name]?.some((value) => value !== null));
  chart.section.hidden = names.length === 0;
  if (names.length === 0) return;
  const isTime = columns.seconds.some((value) => value !== null);
  Object.assign(chart, { columns, names, isTime, x: isTime ? columns.seconds : columns.crawled });
  const right = Math.max(...chart.x) || 1;
  const width = Math.max(chart.picture.clientWidth, 240);
  chart.picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const top = Math.max(...names.flatMap((name) => columns[name]).filter((value) => value !== null)) || 1;
  const along = (value) => LEFT + ((width - LEFT - RIGHT) * value) / right;
  chart.width = width;
  chart.at = (place) => along(chart.x[place]);
  const up = (value) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - 10) * value) / top;
  const parts = [];
  for (const value of steps(top, false)) {
    const y = up(value);
    parts.push(shape("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
      shape("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, chart.unit(value)));
  }
  for (const value of steps(right, isTime)) {
    parts.push(shape("text", { x: along(value), y: HEIGHT - 6, "text-anchor": "middle" },
      isTime ? duration(value) : count(value)));
  }
  names.forEach((name, line) => {
    let path = "";
    columns[name].forEach((value, place) => {
      if (value !== null) path += `${path ? "L" : "M"}${chart.at(place).toFixed(1)} ${up(value).toFixed(1)}`;
    });
    parts.push(shape("path", { class: `curve c${line}`, d: path }));
  });
  chart.cursor = shape("line", { class: "cursor", y1: 10, y2: HEIGHT - BOTTOM });
  chart.picture.replaceChildren(...parts, chart.cursor);
  chart.picture.setAttribute("aria-label", `${chart.title} over ${isTime ? "the time" : "the pages"} of the crawl; the table has the figures`);
  chart.legend.replaceChildren(...names.map((name, line) => element("li", {},
    shape("svg", { viewBox: "0 0 30 10", "aria-hidden": "true" }, shape("path", { class: `curve c${line}`, d: "M0 5L30 5" })),
    chart.lines[name])));
  chart.place.max = chart.x.length - 1;
  if (chart.atEnd) chart.place.value = chart.place.max;
  drawCursor(chart);
  drawTable(chart);
}

function nearest(chart, at) {
  let best = 0;
  chart.x.forEach((_, place) => { if (Math.abs(chart.at(place) - at) < Math.abs(chart.at(best) - at)) best = place; });
  return best;
}

function drawCursor(chart) {
  const place = Number(chart.place.value);
  chart.cursor.setAttribute("x1", chart.at(place));
  chart.cursor.setAttribute("x2", chart.at(place));
  const where = chart.isTime ? `${duration(chart.x[place])}, ${count(chart.columns.crawled[place])} pages` : `${count(chart.x[place])} pages`;
  const values = chart.names.map((name) => {
    const value = chart.columns[name][place];
    return `${chart.lines[name]} ${value === null ? "\u2013" : chart.unit(value)}`;
  });
  const said = `${where}: ${values.join(", ")}`;
  chart.said.setAttribute("aria-live", document.activeElement === chart.place ? "polite" : "off");
  chart.said.textContent = said;
  chart.place.setAttribute("aria-valuetext", said);
}

function drawTable(chart) {
  if (!chart.details.open || !chart.names) return;
  const rows = chart.x.map((x, place) => [
    element("td", { className: "number" }, chart.isTime ? duration(x) : count(x)),
    ...chart.names.map((name) => chart.columns[name][place])]);
  const made = table(chart.title, [chart.isTime ? "time" : "pages", ...chart.names.map((name) => chart.lines[name])], rows.reverse(), chart.unit);
  const scroll = chart.details.querySelector(".scroll");
  if (scroll) scroll.replaceChildren(made);
  else chart.details.append(element("div", { className: "scroll", tabIndex: 0, role: "region", ariaLabel: `${chart.title}, table` }, made));
}

// -- tables with bars -----------------------------------------------------------------------------------------------

function drawBars(id, caption, heads, rows, empty) {
  const section = byId(id);
  const most = Math.max(...rows.map((row) => row.at(-1)), 1);
  const compares = rows.length > 1; // one row alone has nothing to be compared with
  const lines = rows.map((row) => {
    if (!compares) return row;
    const bar = element("span", { ariaHidden: "true" });
    bar.style.width = `${(100 * row.at(-1)) / most}%`;
    return [...row, element("td", { className: "share" }, bar)];
  });
  const made = rows.length ? table(caption, heads, lines) : element("p", { className: "quiet" }, empty);
  if (compares) made.tHead.rows[0].append(element("td"));
  section.replaceChildren(section.querySelector("h2"), made);
}

function drawFrontier(frontier, hasJobdir) {
  byId("jobdir").hidden = hasJobdir;
  for (const id of ["scores", "owners", "aside"]) byId(id).hidden = !hasJobdir;
  if (!hasJobdir) return;
  const none = frontier?.fault ?? (frontier === null ? "Reading the JOBDIR ..." : "Nothing is queued.");
  const of = frontier ? `The best ${count(frontier.read ?? 0)} of ${count(frontier.queued ?? 0)} documents, at the last commit` : "";
  const scores = (frontier?.scores ?? []).filter((bin) => bin[2]).reverse();
  drawBars("scores", of, ["score from", "to", "documents"], scores.map(([from, to, n]) =>
    [element("td", { className: "number" }, number(from)), element("td", { className: "number" }, number(to)), n]), none);
  drawBars("owners", of, ["owner", "documents"], (frontier?.owners ?? []).map(([name, n]) => [name || "(no owner)", n]), none);
  drawBars("aside", "At the last commit", ["owner or URL prefix", "documents"], frontier?.aside ?? [], frontier && !frontier.fault ? "None: every owner has budget left." : none);
}

// -- best pages -----------------------------------------------------------------------------------------------------

const items = new Map();

function makeItem(page) {
  const shown = page.url || page.id;
  const isWeb = /^https?:\/\//i.test(page.url) && URL.canParse(page.url);
  const name = element("bdi", {}, shown);
  const link = isWeb ? element("a", { href: page.url, rel: "noreferrer noopener", target: "_blank" }, name) : name;
  const text = element("div", { className: "text", hidden: true, tabIndex: 0, role: "region", ariaLabel: `Text of ${shown}` });
  const button = element("button", { type: "button", ariaExpanded: "false" }, "Show text");
  button.setAttribute("aria-label", `Text of ${shown}`);
  button.onclick = async () => {
    text.hidden = !text.hidden;
    button.ariaExpanded = String(!text.hidden);
    button.textContent = text.hidden ? "Show text" : "Hide text";
    if (text.hidden || text.textContent) return;
    text.textContent = "Reading the archive ...";
    try {
      const found = await (await fetch(`text?${page.offset}`)).json();
      text.textContent = found.text || `No text: ${found.fault ?? "the page has none"}`;
    } catch {
      text.textContent = "";
      text.hidden = true;
    }
  };
  const order = typeof page.order === "number" ? `, page ${count(page.order + 1)} of the crawl` : "";
  return element("li", {}, element("p", {}, link), element("p", { className: "quiet" }, `influence ${number(page.influence)}${order} `, button), text);
}

function drawBest(pages) {
  const wanted = pages.map((page) => {
    const key = `${page.offset} ${page.id}`;
    if (!items.has(key)) items.set(key, makeItem(page));
    return items.get(key);
  });
  const list = document.querySelector("#best ol");
  if (wanted.length !== list.children.length || wanted.some((item, place) => item !== list.children[place])) {
    const focused = document.activeElement;
    list.replaceChildren(...wanted);
    if (list.contains(focused)) focused.focus({ preventScroll: true });
  }
}

// -- all of it ------------------------------------------------------------------------------------------------------

const say = (id, text) => { if (byId(id).textContent !== text) byId(id).textContent = text; };

function stateOf(crawl) {
  if (crawl.runs) return "Running";
  if (crawl.reason) return `Ended: ${crawl.reason.replaceAll("_", " ")}`;
  return crawl.storage ? "Not ended, as of the newest work in the storage" : "Not running: stopped or killed before its end";
}

function draw(crawl) {
  const now = crawl.now;
  say("name", crawl.name);
  const goal = typeof crawl.pages === "number" ? `, ${count(crawl.pages)} pages wanted` : "";
  const good = crawl.threshold === null ? "; without QUALITY_THRESHOLD no page counts as good" : `; a good page has an influence of ${number(crawl.threshold)} or more`;
  say("about", `Policy ${crawl.policy}, corpus ${crawl.corpus}${goal}${good}`);
  say("state", stateOf(crawl));
  say("fault", crawl.fault ?? "");
  byId("fault").hidden = !crawl.fault;
  byId("reading").hidden = crawl.read === null || crawl.read >= 1;
  byId("read").value = crawl.read ?? 1;
  say("share", percent(Math.round(100 * (crawl.read ?? 1)) / 100));
  drawFrontier(crawl.frontier, crawl.jobdir);
  if (!now) return;
  document.title = `${count(now.crawled)} pages - crawl4llm`;
  const facts = { "pages crawled": now.crawled, discovered: now.visited, "in the frontier": now.queued, "mean influence": crawl.mean };
  const tiles = Object.entries(facts).filter(([, value]) => value !== null).map(([name, value]) => [name, name === "mean influence" ? number(value) : count(value)]);
  if (now.seconds !== null) tiles.push(["running time", duration(now.seconds)], ["last point", new Date(1000 * now.time).toLocaleTimeString()]);
  byId("now").replaceChildren(...tiles.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  for (const chart of CHARTS) drawChart(chart, crawl.charts);
  drawBars("waits", "By reason", ["reason", "owners", "documents"], crawl.waits, "None.");
  const rows = (isRefusal) => crawl.ended.filter((one) => one.refusal === isRefusal).map((one) => [one.outcome, `${one.reason}${one.why ? `: ${one.why}` : ""}`, one.count]);
  drawBars("refusals", "Documents that must not be fetched or used", ["end", "reason", "documents"], rows(true), "None.");
  drawBars("ended", "Other documents without a page", ["end", "reason", "documents"], rows(false), "None.");
  drawBest(crawl.best);
}

const isDark = () => (document.documentElement.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => say("theme", isDark() ? "Light colours" : "Dark colours");
byId("theme").onclick = () => { document.documentElement.style.colorScheme = isDark() ? "light" : "dark"; nameTheme(); };
matchMedia("(prefers-color-scheme: dark)").onchange = nameTheme;
nameTheme();
CHARTS.forEach(makeChart);
const events = new EventSource("events");
let last = null;
events.onmessage = (event) => { last = JSON.parse(event.data); draw(last); };
window.onresize = () => last && draw(last);
events.onerror = () => say("state", "No connection to the dashboard; trying again");
