"use strict";
// What the page of topics does. It asks no server for anything, and writes text as text: no word or name becomes markup.
// The data beside it: logarithms are whole thousandths, and `words` of a topic are all that any relevance can show.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const state = { topic: 0, step: data.start, labels: { ...data.labels }, unsaved: false, later: 0 };

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`;
const titleOf = (topic) => state.labels[topic] || `Topic ${topic + 1}`;
const fullTitle = (topic) => `Topic ${topic + 1}` + (state.labels[topic] ? `: ${state.labels[topic]}` : "");

// ---- words by relevance

// How much of the topic a word is, and how much of the word's use falls in the topic.
function parts(topic, at) {
  const share = Math.exp(data.topics[topic].logs[at] / 1000), whole = Math.exp(data.overall[data.topics[topic].words[at]] / 1000);
  return [share, Math.min(1, data.weights[topic] * share / whole)];
}

// The first words by relevance. A word that is hardly in the topic, and hardly used there, is left out.
function ranked(topic, count) {
  const { words, logs } = data.topics[topic], rest = data.steps - state.step;
  const relevance = words.map((word, at) => data.steps * logs[at] - rest * data.overall[word]);
  const order = words.map((_, at) => at).sort((a, b) => relevance[b] - relevance[a] || a - b).slice(0, count);
  const found = order.filter((at) => Math.max(...parts(topic, at)) >= 0.0005);
  return found.length ? found : order;
}

const wordsOf = (topic, count) => ranked(topic, count).map((at) => data.words[data.topics[topic].words[at]]);
const isUnsure = (topic, at) => data.topics[topic].unsure !== undefined && data.topics[topic].unsure[at] === "1";

// What marks a word that does not stand above the noise.
const mark = () => make("span", { class: "unsure", role: "img", "aria-label": data.unsure, title: data.unsure }, "?");

// A topic's first words in a line, with their marks.
function markedWords(topic, count) {
  const word = (at) => [data.words[data.topics[topic].words[at]], ...(isUnsure(topic, at) ? [mark()] : [])];
  return ranked(topic, count).flatMap((at, place) => (place ? [" ", ...word(at)] : word(at)));
}

function bar(share, most) {
  const made = make("span", { class: "bar", "aria-hidden": "true" });
  made.style.setProperty("--part", `${(100 * share / Math.max(most, 1e-9)).toFixed(2)}%`);
  return made;
}

function showWords() {
  const one = data.topics[state.topic], order = ranked(state.topic, data.shown);
  const most = Math.exp(Math.max(...one.logs) / 1000);
  byId("words").tBodies[0].replaceChildren(...order.map((at) => {
    const [share, here] = parts(state.topic, at);
    const open = isUnsure(state.topic, at);
    const word = make("th", { scope: "row" }, data.words[one.words[at]]);
    if (open) word.append("\u00a0", mark());
    return make("tr", open ? { class: "open" } : {}, word, make("td", { class: "long" }, bar(share, most)),
      make("td", { class: "number" }, percent(share)), make("td", { class: "number rest" }, percent(here)));
  }));
  const unsure = order.filter((at) => isUnsure(state.topic, at)).length;
  byId("noise").hidden = one.unsure === undefined;
  byId("noise").textContent = `${order.length - unsure} of these ${order.length} words stand above the noise that was added for ` +
    "privacy. Those with a question mark and an open bar do not.";
}

// ---- one topic

function rows(title, head, lines) {
  const table = make("table", { class: "small" }, make("caption", {}, title));
  table.append(make("thead", {}, make("tr", {}, ...head.map((name, at) => make("th", { scope: "col", class: at && name ? "number" : "" }, name)))));
  table.append(make("tbody", {}, ...lines));
  return table;
}

function showParties() {
  const place = byId("at-parties");
  if (!data.parties.length) return;
  const found = data.parties.map((name, at) => [name, data.by_party[at][state.topic]]).sort((a, b) => b[1] - a[1]);
  const few = found.slice(0, 12), most = few[0][1];
  place.replaceChildren(rows("At each party: the share of its documents that the topic takes", ["party", "", "share"],
    few.map(([name, share]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "long" }, bar(share, most)),
      make("td", { class: "number" }, percent(share))))));
  if (found.length > few.length) place.append(make("p", { class: "note" }, `and ${found.length - few.length} parties with less`));
}

function showTime() {
  const time = data.over_time, place = byId("over-time");
  if (!time) return;
  const shares = time.shares.map((row) => row ? row[state.topic] : 0), most = Math.max(...shares, 1e-9), wide = 100 / shares.length;
  const columns = shares.map((share, at) => drawn("rect", {
    x: at * wide + wide * 0.1, width: wide * 0.8, y: 40 - 40 * share / most, height: 40 * share / most }));
  const picture = drawn("svg", { viewBox: "0 0 100 40", preserveAspectRatio: "none", class: "time", role: "img",
    "aria-label": `Shares from ${time.periods[0]} to ${time.periods.at(-1)}, at most ${percent(most)}; numbers below` }, ...columns);
  const ends = make("p", { class: "ends note" }, make("span", {}, time.periods[0]), make("span", {}, `at most ${percent(most)}`), make("span", {}, time.periods.at(-1)));
  const numbers = rows("", ["period", "documents", "share"], shares.map((share, at) => make("tr", {}, make("th", { scope: "row" }, time.periods[at]),
    make("td", { class: "number" }, String(time.documents[at])), make("td", { class: "number" }, time.documents[at] ? percent(share) : "–"))));
  place.replaceChildren(make("h3", {}, `Over time, at ${time.whose}`), picture, ends, make("details", {}, make("summary", {}, "As numbers"), numbers));
}

function showDocuments() {
  const behind = data.behind, place = byId("behind");
  if (!behind) return;
  const found = behind.topics[state.topic].map(([number, share, label, date, words]) => make("li", {},
    make("strong", {}, `Document ${number}`), make("span", { class: "note" }, ["", percent(share) + " of it", label, date].filter((part, at) => !at || part).join(" · ")),
    make("p", {}, words)));
  const none = make("p", { class: "note" }, "No document is about this topic.");
  place.replaceChildren(make("h3", {}, `Documents at ${behind.whose}`), found.length ? make("ol", {}, ...found) : none);
}

function showTopic() {
  const topic = state.topic;
  byId("topic-title").textContent = `Topic ${topic + 1}`;
  byId("label").value = state.labels[topic] || "";
  byId("topic-share").textContent = data.shares ? `${percent(data.shares[topic])} of ${data.shares_of}` : "";
  showWords(), showParties(), showTime(), showDocuments(), markChosen();
}

function choose(topic, say = true) {
  state.topic = (topic + data.topics.length) % data.topics.length;
  showTopic();
  if (say) byId("said").textContent = `${fullTitle(state.topic)}: ${wordsOf(state.topic, 5).join(", ")}`;
}

// ---- all topics

const lines = [...byId("topics").tBodies[0].rows];
const searched = data.topics.map((one) => one.words.map((word) => data.words[word].toLowerCase()));

function showLists() {
  lines.forEach((line, topic) => {
    line.querySelector(".named").textContent = state.labels[topic] || "";
    line.querySelector(".top").replaceChildren(...markedWords(topic, 8));
  });
  for (const cell of document.querySelectorAll("#parties .named")) cell.textContent = state.labels[cell.dataset.topic] || "";
}

function sortedTopics(by) {
  const order = data.topics.map((_, topic) => topic), party = by.startsWith("party ") ? data.by_party[Number(by.slice(6))] : null;
  if (by === "label") return order.sort((a, b) => !state.labels[a] - !state.labels[b] || titleOf(a).localeCompare(titleOf(b)) || a - b);
  const shares = party || (by === "share" ? data.shares : null);
  return shares ? order.sort((a, b) => shares[b] - shares[a] || a - b) : order;
}

function arrange() {
  const wanted = byId("search").value.trim().toLowerCase();
  byId("topics").tBodies[0].append(...sortedTopics(byId("sort").value).map((topic) => lines[topic]));
  let found = 0;
  lines.forEach((line, topic) => {
    const fits = !wanted || String(topic + 1) === wanted || (state.labels[topic] || "").toLowerCase().includes(wanted) ||
      searched[topic].some((word) => word.includes(wanted));
    line.hidden = !fits, found += fits;
  });
  byId("found").textContent = wanted ? `${found} of ${lines.length} topics` : "";
}

function markChosen() {
  lines.forEach((line, topic) => line.classList.toggle("chosen", topic === state.topic));
  for (const one of byId("map").querySelectorAll("[role=option]")) {
    one.setAttribute("aria-selected", String(Number(one.dataset.topic) === state.topic));
    if (Number(one.dataset.topic) === state.topic) byId("map").setAttribute("aria-activedescendant", one.id);
  }
  for (const one of byId("map").querySelectorAll(".documents circle")) one.classList.toggle("own", Number(one.dataset.topic) === state.topic);
  byId("map").querySelector(".numbers").replaceChildren(...numbers());
}

// ---- the map

const spots = [];

function drawMap() {
  const map = byId("map"), wide = Math.max(map.parentElement.clientWidth, 200), high = Math.round(Math.min(wide * 0.9, 560));
  const count = data.topics.length, largest = Math.min(wide, high) * Math.min(0.085, 0.5 / Math.sqrt(count));
  const most = Math.max(...data.weights), edge = largest + 16;
  spots.length = 0;
  data.topics.forEach((one, topic) => spots.push({ topic, r: Math.max(3, largest * Math.sqrt(data.weights[topic] / most)),
    x: wide / 2 + one.at[0] * (wide / 2 - edge), y: high / 2 - one.at[1] * (high / 2 - edge) }));
  moveApart(wide, high);
  map.setAttribute("viewBox", `0 0 ${wide} ${high}`);
  const order = [...spots].sort((a, b) => b.r - a.r || a.topic - b.topic);
  map.classList.toggle("with-documents", Boolean(data.behind));
  map.replaceChildren(...order.map(circle), drawn("g", { class: "documents", "aria-hidden": "true" }, ...documentSpots()),
    drawn("g", { class: "numbers", "aria-hidden": "true" }),
    drawn("g", { class: "names", "aria-hidden": "true" }, ...names(order, wide, high)));
  markChosen();
}

// A document lies between the topics that it has more of than an even share; those behind the page are at the party's own place.
function documentSpots() {
  return (data.behind ? data.behind.mapped : []).map(([number, words, pulls]) => {
    const at = (axis) => pulls.reduce((sum, [topic, part]) => sum + part * spots[topic][axis], 0) / pulls.reduce((sum, [, part]) => sum + part, 0);
    return drawn("circle", { cx: at("x").toFixed(1), cy: at("y").toFixed(1), r: 2, "data-topic": pulls[0][0] },
      drawn("title", {}, `Document ${number}: ${words}`));
  });
}

// Circles that hide each other move apart until at most a third of their radii overlap, so that each can be clicked.
function moveApart(wide, high) {
  const inside = (value, r, end) => Math.min(Math.max(value, r + 2), end - r - 2);
  for (let pass = 0; pass < (spots.length > 300 ? 15 : 60); pass += 1) {
    for (let first = 0; first < spots.length; first += 1) {
      for (let second = first + 1; second < spots.length; second += 1) {
        const a = spots[first], b = spots[second], dx = b.x - a.x, dy = b.y - a.y, wanted = (a.r + b.r) * 0.68;
        if (Math.abs(dx) >= wanted || Math.abs(dy) >= wanted) continue;
        const far = Math.hypot(dx, dy), push = Math.max(0, wanted - far) / 4, angle = far < 0.01 ? first + second : Math.atan2(dy, dx);
        a.x -= Math.cos(angle) * push, a.y -= Math.sin(angle) * push, b.x += Math.cos(angle) * push, b.y += Math.sin(angle) * push;
      }
    }
    for (const one of spots) one.x = inside(one.x, one.r, wide), one.y = inside(one.y, one.r, high);
  }
}

function circle({ topic, x, y, r }) {
  const share = data.shares ? `, ${percent(data.shares[topic])}` : "", said = `${fullTitle(topic)}${share}: ${wordsOf(topic, 5).join(", ")}`;
  const made = drawn("g", { role: "option", id: `spot-${topic}`, "data-topic": topic, "aria-label": said, "aria-selected": "false" });
  made.append(drawn("title", {}, said), drawn("circle", { cx: x, cy: y, r }));
  return made;
}

// Numbers of circles, the chosen one's first; where two would lie on each other, one is left out.
function numbers() {
  const found = [], order = [...spots].sort((a, b) => (b.topic === state.topic) - (a.topic === state.topic) || b.r - a.r || a.topic - b.topic);
  for (const spot of order) {
    if ((spot.r >= 8 || spot.topic === state.topic) && !found.some((one) => Math.abs(one.x - spot.x) < 18 && Math.abs(one.y - spot.y) < 13)) found.push(spot);
  }
  return found.map(({ topic, x, y, r }) => drawn("text", { x, y: r < 8 ? y - r - 7 : y, dy: "0.35em",
    class: topic === state.topic && r >= 8 ? "chosen" : "" }, String(topic + 1)));
}

function names(order, wide, high) {
  const taken = order.map(({ x, y, r }) => [x - r * 0.8, y - r * 0.8, x + r * 0.8, y + r * 0.8]), found = [];
  for (const { topic, x, y, r } of order) {
    const text = (state.labels[topic] || wordsOf(topic, 1)[0] || "").slice(0, 24), half = text.length * 3.4 + 3;
    const at = [[x, y + r + 12], [x, y - r - 4]].find(([cx, cy]) => cx - half > 0 && cx + half < wide && cy < high - 2 && cy > 12 &&
      !taken.some(([left, top, right, low]) => cx - half < right && cx + half > left && cy - 10 < low && cy + 3 > top));
    if (!at) continue;
    taken.push([at[0] - half, at[1] - 10, at[0] + half, at[1] + 3]);
    found.push(drawn("text", { x: at[0], y: at[1] }, text));
  }
  return found;
}

function towards(across, up) {
  const from = spots[state.topic];
  let best = null, least = Infinity;
  for (const to of spots) {
    const dx = to.x - from.x, dy = from.y - to.y, along = dx * across + dy * up, away = Math.abs(dx * up) + Math.abs(dy * across);
    if (to !== from && along > 0 && along >= away && along + 2 * away < least) best = to, least = along + 2 * away;
  }
  return best ? best.topic : state.topic;
}

const KEYS = {
  ArrowLeft: () => towards(-1, 0), ArrowRight: () => towards(1, 0), ArrowUp: () => towards(0, 1), ArrowDown: () => towards(0, -1),
  PageDown: () => state.topic + 1, PageUp: () => state.topic - 1, Home: () => 0, End: () => data.topics.length - 1,
};

// ---- labels of topics

// One line of printable text, as `securetm topics --labels` takes it.
function cleaned(text) {
  const shown = text.replace(/(?![\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]/gu, "").replace(/\p{Zs}/gu, " ");
  return [...shown.trim()].slice(0, data.longest_label).join("");
}

function labelled(topic, label) {
  if (cleaned(label)) state.labels[topic] = cleaned(label);
  else delete state.labels[topic];
  showLists(), drawMap();
}

function keepLabels() {
  const file = new Blob([JSON.stringify({ labels: state.labels }, null, 1) + "\n"], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(file), download: "labels.json" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  state.unsaved = false;
  tell(`${Object.keys(state.labels).length} labels saved to labels.json`);
}

async function readLabels(file) {
  let found = null;
  try {
    found = JSON.parse(await file.text()).labels;
  } catch { /* said below */ }
  const fits = (key, name) => /^\d+$/.test(key) && Number(key) < data.topics.length && typeof name === "string";
  const names = found && typeof found === "object" ? Object.entries(found).filter(([key, name]) => fits(key, name)) : [];
  if (!names.length) return tell("No labels of these topics are in that file");
  for (const [key, name] of names) if (cleaned(name)) state.labels[Number(key)] = cleaned(name);
  showLists(), drawMap(), arrange(), showTopic();
  return tell(`${names.length} labels read`);
}

const tell = (text) => { byId("labels-said").textContent = text; };

// ---- what is clicked and typed

function listen() {
  byId("relevance").addEventListener("input", (event) => {
    state.step = Number(event.target.value);
    showStep(), showWords();
    clearTimeout(state.later);
    state.later = setTimeout(() => (showLists(), drawMap()), 150); // the rest of the page follows once the slider rests
  });
  byId("previous").addEventListener("click", () => choose(state.topic - 1));
  byId("next").addEventListener("click", () => choose(state.topic + 1));
  byId("label").addEventListener("input", (event) => {
    state.unsaved = true, labelled(state.topic, event.target.value), tell("Labels are not saved yet");
  });
  byId("save").addEventListener("click", keepLabels);
  byId("load").addEventListener("change", (event) => event.target.files[0] && readLabels(event.target.files[0]));
  byId("search").addEventListener("input", arrange);
  byId("sort").addEventListener("change", arrange);
  document.addEventListener("click", (event) => {
    const at = event.target.closest("[data-topic]");
    if (!at) return;
    choose(Number(at.dataset.topic));
    if (!at.closest("#map")) byId("topic").focus();
  });
  byId("map").addEventListener("keydown", (event) => {
    const to = KEYS[event.key];
    if (to) event.preventDefault(), choose(to());
  });
  addEventListener("beforeunload", (event) => state.unsaved && event.preventDefault());
  new ResizeObserver(drawMap).observe(byId("map").parentElement);
}

function showStep() {
  const part = (state.step / data.steps).toFixed(2);
  byId("relevance").setAttribute("aria-valuetext", `${part}; 0 ranks words that occur in no other topic first, 1 frequent words`);
  byId("step").textContent = part;
}

for (const element of document.querySelectorAll("[data-needs-script]")) element.hidden = false;
byId("relevance").value = state.step;
lines.forEach((line, topic) => data.shares && line.querySelector(".long").append(bar(data.shares[topic], Math.max(...data.shares))));
showStep(), showLists(), drawMap(), choose(data.first, false), listen();
