"use strict";
// What the page of sliders does. It asks no server for anything. It looks figures up, and takes the next larger one where a
// setting lies between two that are tabulated: epsilon grows with rounds and rate, and falls with noise.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
const NEAR = 1e-8; // of a place in the table: its figures were computed with a little less noise than their place says
const LEAST_NOISE = 0.5; // of the slider, whose places are eighths of powers of two

function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function made(name, text, kind = "") {
  const element = document.createElement(name);
  if (kind) element.className = kind;
  element.append(text);
  return element;
}

// Bounds as people read them: rounded, and never downwards. The same rules as in the command (securetm/wording.py).
function upward(value) {
  if (!Number.isFinite(value)) return "infinity";
  if (value > 0 && value < 0.001) return "0.001";
  const places = value < 10 ? 3 : value < 100 ? 2 : 0;
  const shift = 10 ** places;
  return String(ceiling(value * shift) / shift);
}

const ceiling = (value) => (Math.abs(value - Math.round(value)) <= 1e-12 * Math.abs(value) ? Math.round(value) : Math.ceil(value));

function upwardFigure(value, digits = 3) {
  if (value === 0) return "0";
  const step = 10 ** (Math.floor(Math.log10(value)) + 1 - digits);
  const written = Number((ceiling(value / step) * step).toPrecision(digits));
  return value < 0.001 ? written.toExponential(digits - 1).replace(/\.?0+e/, "e") : String(written);
}

// A share in per cent. Only 1 is 100 %: as many decimals as it takes to tell it from that.
function upwardShare(share) {
  let places = share > 0 && share < 0.01 ? Math.min(6, 1 - Math.floor(Math.log10(100 * share))) : 1, shown;
  do shown = ceiling(100 * share * 10 ** places) / 10 ** places; while (share < 1 && shown >= 100 && places++ < 6);
  return `${shown} %`;
}

const many = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
const rounded = (value, digits = 4) => Number(value.toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits });

// ---- what the sliders say

const sliders = { // what a place of each slider means, and back
  each: [(place) => place, (value) => value],
  rounds: [(place) => (byId("asked").value === "all" ? place : 10 * 10 ** (3 * (place - 1) / 63)), (value) => (byId("asked").value === "all" ? value : 1 + 63 * Math.log10(value / 10) / 3)],
  noise: [(place) => Math.ceil(LEAST_NOISE * 2 ** (place / 8) * 1e4 - 1e-6) / 1e4, (value) => 8 * Math.log2(value / LEAST_NOISE)],
  rate: [(place) => data.sampled.rates[place], (value) => data.sampled.rates.findIndex((rate) => rate >= value)],
  epsilon: [(place) => place / 10, (value) => 10 * value],
  parties: [(place) => place, (value) => value],
  missing: [(place) => place, (value) => value],
  colluding: [(place) => place, (value) => value],
};
const NUMBERS = ["documents", "persons"]; // which have no slider
const WHOLE = ["each", "rounds", "parties", "missing", "colluding", ...NUMBERS];
const typed = (name) => byId(`${name}-typed`);

function told(name) {
  const value = Number(typed(name).value);
  return typed(name).value.trim() === "" || !Number.isFinite(value) ? NaN : value;
}

function settings() {
  const found = { unit: byId("unit").value, asked: byId("asked").value, adds: byId("adds").value };
  found.delta = data.deltas.findIndex((delta) => String(delta) === String(Number(byId("delta").value)));
  for (const name of [...Object.keys(sliders), ...NUMBERS]) found[name] = told(name);
  return found;
}

// ---- epsilon

const above = (values, value) => values.findIndex((one) => one >= value * (1 - 1e-12));
const below = (values, value) => values.findLastIndex((one) => one <= value * (1 + 1e-12));

// Epsilon of one unit: NaN where nothing is tabulated, Infinity above the largest figure.
function epsilonOf(at, moved = 1) {
  if (at.asked === "all") {
    const held = data.unsampled, place = Math.ceil(held.steps * Math.log2(Math.sqrt(at.rounds) * moved / at.noise) - NEAR);
    const row = Math.max(place - held.first, 0);
    return row < held.epsilon.length ? figure(held.epsilon[row][at.delta]) : Infinity;
  }
  const { rates, noises, counts, epsilon } = data.sampled;
  const [rate, noise, count] = [above(rates, at.rate), below(noises, at.noise), above(counts, at.rounds)];
  if (count < 0 || rate < 0) return NaN;
  return noise < 0 ? Infinity : figure(epsilon[rate][noise][count][at.delta]);
}

const figure = (value) => (value < 0 ? Infinity : value);

// What is promised: the theorem of group privacy where documents are sampled one by one, with the delta that grows.
function promised(at) {
  const delta = data.deltas[at.delta];
  if (at.unit !== "group" || at.each === 1) return { epsilon: epsilonOf(at), delta };
  if (at.asked === "all") return { epsilon: epsilonOf(at, at.each), delta };
  const one = epsilonOf(at), growth = one > 0 ? Math.expm1(at.each * one) / Math.expm1(one) : at.each;
  return { epsilon: at.each * one, delta: Math.min(1, delta * growth) };
}

// The least noise for an epsilon, rounded upwards; NaN where none is tabulated.
function noiseFor(at, epsilon) {
  const moved = at.unit === "group" ? at.each : 1;
  if (at.asked === "all") {
    const held = data.unsampled.epsilon;
    let row = held.findLastIndex((told) => told[at.delta] >= 0 && told[at.delta] <= epsilon);
    if (row < 0) return NaN;
    return Math.ceil(Math.sqrt(at.rounds) * moved * 2 ** (-(row + data.unsampled.first) / data.unsampled.steps) * 1e4 - 1e-7) / 1e4;
  }
  return data.sampled.noises.find((noise) => promised({ ...at, noise }).epsilon <= epsilon && promised({ ...at, noise }).delta < 1) ?? NaN;
}

// ---- what is refused

function refusal(at) {
  const name = Object.keys(sliders).find((one) => Number.isNaN(at[one])) ?? NUMBERS.find((one) => Number.isNaN(at[one]));
  if (name) return `${labelOf(name)}: type a number.`;
  const broken = WHOLE.find((one) => !Number.isInteger(at[one]) || at[one] < (["missing", "colluding"].includes(one) ? 0 : 1));
  if (broken) return `${labelOf(broken)}: type a whole number, ${["missing", "colluding"].includes(broken) ? "0" : "1"} or more.`;
  if (!(at.noise >= 0.01)) return "Noise must be at least 0.01.";
  if (at.asked === "some" && !(at.rate > 0 && at.rate <= 1)) return "The share of the documents must be above 0 and at most 1.";
  if (at.each > at.documents) return "A person cannot have more documents than there are.";
  if (at.unit !== "document" && at.persons > at.documents) return "There cannot be more persons than documents.";
  if (at.unit !== "document" && at.persons * at.each < at.documents) return `${many(at.persons, "person")} with at most ${many(at.each, "document")} each cannot have ${many(at.documents, "document")}.`;
  if (at.missing >= at.parties) return "Somebody must remain in a sum: fewer may be missing, or there must be more parties.";
  if (at.colluding >= at.parties - at.missing) return `No honest party is left among the ${at.parties - at.missing} that remain: fewer may help an adversary, or more must remain.`;
  if (at.adds === "shares" && at.parties < 4) return "Shares need at least 4 parties (dp-distributed), or 5 (fortress): take more parties, or let each party add all the noise.";
  return "";
}

const labelOf = (name) => document.querySelector(`#of-${name} label`).textContent;

// ---- what is shown

function show() {
  const at = settings(), refused = refusal(at);
  for (const name of Object.keys(sliders)) byId(name).setAttribute("aria-valuetext", typed(name).value);
  byId("of-rate").hidden = at.asked === "all";
  for (const name of ["each", "persons"]) byId(`of-${name}`).hidden = at.unit === "document";
  const found = refused ? { epsilon: NaN, delta: NaN } : promised(at);
  const unit = at.unit === "document" ? "document" : "person";
  byId("figure").replaceChildren(...headline(found, unit, refused));
  byId("figure").dataset.epsilon = String(found.epsilon);
  byId("meaning").textContent = refused ? "" : meaning(at, found, unit);
  byId("warnings").replaceChildren(...warnings(at, found, unit, refused).map(warning));
  if (refused) return;
  curve(at, unit);
  numbers(at);
  rows(at);
  byId("command").textContent = command(at);
}

function headline(found, unit, refused) {
  if (refused) return ["This cannot be."];
  if (Number.isNaN(found.epsilon)) return ["Not tabulated: ask the command below."];
  if (found.epsilon === Infinity || found.delta >= 1) return [`No promise of use: epsilon per ${unit} is above ${data.largest}, or delta is 1.`];
  return [`epsilon = ${upward(found.epsilon)} per ${unit} `, made("small", `delta = ${upwardFigure(found.delta)}`)];
}

// The most true positives at 1 % false ones. Where all are asked, the noise of all rounds is one Gaussian, whose best test is
// known; where batches are drawn, epsilon and delta alone bound it, and the command's own figure is smaller.
function meaning(at, found, unit) {
  if (!Number.isFinite(found.epsilon) || found.delta >= 1) return "";
  const head = `Whoever tests for one ${unit} and may err on 1 % of those that were not used finds at most `;
  if (at.asked === "all") {
    const moved = at.unit === "group" ? at.each : 1;
    return `${head}${upwardShare(normal(Math.sqrt(at.rounds) * moved / at.noise - FALSE_POSITIVES_AT))} of those that were.`;
  }
  const most = Math.min(1, Math.exp(found.epsilon) * 0.01 + found.delta, 1 - Math.exp(-found.epsilon) * (0.99 - found.delta));
  return `${head}${upwardShare(most)} of those that were, by epsilon and delta alone; the command counts more closely, and finds less.`;
}

const FALSE_POSITIVES_AT = 2.3263478740408408; // deviations above the mean, of the top 1 % of a normal distribution

// The normal distribution function (Abramowitz and Stegun 7.1.26: wrong by less than one in six million).
function normal(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x) / Math.SQRT2);
  const tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-x * x / 2) / 2;
  return x < 0 ? tail : 1 - tail;
}

function warnings(at, found, unit, refused) {
  if (refused) return [refused];
  const units = unit === "person" ? at.persons : at.documents, told = [];
  if (found.delta * units >= 1) told.push(`Delta is not below 1 / ${unit}s: publishing one ${unit} whole would satisfy it. Choose a smaller delta.`);
  if (found.epsilon > 10) told.push("An epsilon above 10 excludes hardly any attack: more noise or fewer rounds lower it.");
  const target = Number(typed("epsilon").value);
  if (found.epsilon > target * (1 + 1e-9)) told.push(`These rounds spend more than the epsilon that may be spent (${target}): a ledger with that budget ends the run before. The command below allows ${allowed(at)}.`);
  if (at.adds === "shares" && at.asked === "all" && !asSized(at)) told.push("No shipped profile is sized for so many missing and helping parties of that number: the command below counts with a profile of your own.");
  if (at.unit === "group") told.push(`Rows of documents: ${many(at.each, "document")} of a person move a sum as far as ${at.each} rows. Rows of persons (--unit person) would spend epsilon = ${upward(epsilonOf(at))}.`);
  return told;
}

function warning(text) {
  const item = document.createElement("li");
  item.append(made("b", "Note: "), text);
  return item;
}

function curve(at, unit) {
  const most = Math.max(at.asked === "all" ? 8 : 100, Math.min(2 * at.rounds, at.asked === "all" ? 10000 : 10000));
  const places = [...Array(33).keys()].map((n) => Math.max(1, Math.round(most * n / 32)));
  const points = [...new Set([...places, at.rounds])].sort((a, b) => a - b).map((n) => [n, promised({ ...at, rounds: n }).epsilon]);
  const drawable = points.filter(([, epsilon]) => Number.isFinite(epsilon));
  const own = promised(at).epsilon, target = told("epsilon");
  const top = Math.max(1, ...drawable.map(([, epsilon]) => epsilon), Number.isFinite(target) ? target : 0) * 1.05;
  const x = (n) => 56 + 560 * n / most, y = (epsilon) => 250 - 220 * epsilon / top;
  const parts = [drawn("line", { x1: 56, y1: 250, x2: 616, y2: 250 }), drawn("line", { x1: 56, y1: 30, x2: 56, y2: 250 })];
  for (const share of [0, 0.25, 0.5, 0.75, 1]) {
    const value = share * top;
    parts.push(drawn("line", { class: "grid", x1: 56, y1: y(value), x2: 616, y2: y(value) }));
    parts.push(drawn("text", { x: 50, y: y(value) + 4, "text-anchor": "end" }, rounded(value, 2)));
    parts.push(drawn("text", { x: x(share * most), y: 270, "text-anchor": "middle" }, rounded(share * most, 3)));
  }
  parts.push(drawn("text", { x: 336, y: 292, "text-anchor": "middle" }, "rounds"));
  parts.push(drawn("text", { x: 56, y: 20 }, `epsilon per ${unit}`));
  if (target <= top) parts.push(drawn("line", { class: "limit", x1: 56, y1: y(target), x2: 616, y2: y(target) }));
  const line = drawable.map(([n, epsilon], place) => `${place ? "L" : "M"}${x(n).toFixed(1)} ${y(epsilon).toFixed(1)}`).join("");
  if (drawable.length) parts.push(drawn("path", { class: "epsilon", d: line }));
  if (Number.isFinite(own)) parts.push(drawn("circle", { class: "marked", cx: x(at.rounds), cy: y(own), r: 6 }));
  byId("curve").replaceChildren(...parts);
  byId("curve").setAttribute("aria-label", `Epsilon per ${unit} grows with the rounds; ${many(at.rounds, "round")} spend ${upward(own)}. The table below has the numbers.`);
}

function numbers(at) {
  const counts = at.asked === "all" ? [1, 2, 4, 8, 16, 32] : data.sampled.counts.slice(0, 6);
  const body = counts.map((count, place) => {
    const row = document.createElement("tr"), epsilon = promised({ ...at, rounds: count }).epsilon, wanted = [0.5, 1, 2, 3, 5, 8][place];
    const noise = noiseFor(at, wanted);
    const cells = [count.toLocaleString("en"), Number.isFinite(epsilon) ? upward(epsilon) : `above ${data.largest}`, String(wanted), Number.isNaN(noise) ? "\u2013" : rounded(noise, 6)];
    row.append(...cells.map((text) => made("td", text, "number")));
    return row;
  });
  byId("numbers").tBodies[0].replaceChildren(...body);
}

function rows(at) {
  const ofPersons = at.unit === "person", held = ofPersons ? at.persons : at.documents;
  const answered = at.asked === "all" ? held : held * at.rate;
  const remain = at.parties - at.missing, honest = remain - at.colluding;
  const carried = { shares: Math.sqrt(at.parties / (at.parties - at.colluding)), opener: 1, party: Math.sqrt(at.parties) }[at.adds] * at.noise;
  byId("rows").textContent = `A sum adds up about ${rounded(answered)} rows of ${ofPersons ? "persons" : "documents"}, each at most 1 long. Its noise has a deviation of ${rounded(carried)} in every direction: ${rounded(answered / carried)} to one.`;
  const share = { shares: at.noise / Math.sqrt(honest), opener: at.noise, party: at.noise }[at.adds];
  const who = { shares: `Each party adds a share of deviation ${rounded(share)}, so that ${rounded(at.noise)} is left where ${at.missing} of ${many(at.parties, "party").replace("partys", "parties")} are missing and ${at.colluding} know their own. What is there for missing ones is taken off where nobody is missing.`, opener: "The coordinator adds all of it, and sees exact totals: the promise is for readers of the model.", party: "Each party adds all of it, so that nobody else need be trusted; a sum carries the noise of all." };
  byId("parts").textContent = who[at.adds];
}

// What the command allows: the epsilon that may be spent, or where that is too little, enough for all rounds.
function allowed(at) {
  const spent = promised({ ...at, unit: "person" }).epsilon, target = told("epsilon");
  return target >= spent ? target : Number.isFinite(spent) ? Math.min(100, Math.ceil(spent * 10) / 10) : 100;
}

// Whether as many may be missing and help as the shipped profiles with shares are sized for.
function asSized(at) {
  const sized = data.sized[at.parties];
  return sized !== undefined && sized[0] === at.missing && sized[1] === at.colluding;
}

function command(at) {
  const delta = byId("delta").value, people = at.unit === "document" ? "" : ` --unit ${at.unit === "group" ? "document" : "person"} --persons ${at.persons} --documents-per-person ${at.each}`;
  if (at.asked === "some") return `securetm budget dp-sgd --documents ${at.documents} --batch ${Math.round(at.rate * at.documents)} --epochs ${Number((at.rounds * at.rate).toPrecision(12))} --noise ${at.noise} --delta ${delta}${people}`;
  if (at.adds === "shares" && !asSized(at)) return `securetm budget distributed --documents ${at.documents} --rounds ${at.rounds} --noise ${at.noise} --delta ${delta} --parties ${at.parties} --missing ${at.missing} --colluding ${at.colluding}${people}`;
  const profile = { shares: "dp-distributed", opener: "dp-central", party: "dp-local" }[at.adds];
  return `securetm budget profile ${profile} --vocabulary english --documents ${at.documents} --rounds ${at.rounds} --noise ${at.noise} --epsilon ${allowed(at)} --delta ${delta} --parties ${at.parties}${people}`;
}

// ---- moving

function place(name) { // the slider stands where the number is, as far as it reaches
  const value = told(name);
  if (Number.isFinite(value)) byId(name).value = String(Math.round(sliders[name][1](value)));
}

function setNoise() {
  const noise = noiseFor(settings(), told("epsilon"));
  if (Number.isNaN(noise)) return;
  typed("noise").value = String(noise);
  place("noise");
}

// Persons follow where they would contradict the documents; missing and helping parties are those that a profile is sized for.
function follow(name) {
  const [documents, each, persons] = ["documents", "each", "persons"].map(told);
  if (["documents", "each"].includes(name) && (persons > documents || persons * each < documents)) typed("persons").value = String(Math.ceil(documents / each));
  const sized = name === "parties" ? data.sized[told("parties")] ?? (told("parties") < 4 ? [0, 0] : undefined) : undefined;
  if (sized === undefined) return;
  ["missing", "colluding"].forEach((one, which) => { typed(one).value = String(sized[which]); place(one); });
}

for (const name of Object.keys(sliders)) {
  byId(name).addEventListener("input", () => {
    const value = sliders[name][0](Number(byId(name).value));
    typed(name).value = String(WHOLE.includes(name) ? Math.round(value) : value);
    follow(name);
    if (name === "epsilon") setNoise();
    show();
  });
  typed(name).addEventListener("input", () => { place(name); follow(name); if (name === "epsilon") setNoise(); show(); });
}
for (const name of ["unit", "delta", "adds"]) byId(name).addEventListener("input", show);
for (const name of NUMBERS) typed(name).addEventListener("input", () => { follow(name); show(); });
byId("asked").addEventListener("input", () => {
  typed("rounds").value = byId("asked").value === "all" ? String(data.start.rounds) : "1000";
  typed("noise").value = byId("asked").value === "all" ? String(data.start.noise) : "1";
  place("rounds");
  place("noise");
  show();
});
byId("controls").addEventListener("submit", (event) => event.preventDefault());
Object.keys(sliders).forEach(place);
show();
