// Draws a lock: its slots, and its queue.

import { cancel, waiting } from "./queue.js";

const slots = document.getElementById("slots");
const queue = document.getElementById("queue");
const summary = document.getElementById("summary");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// More slots than this are not drawn but counted.
const drawn = 16;

// The anonymous grants of this window that may still be held, oldest first. A
// lock does not know which of its anonymous slots is whose; here the oldest is
// taken to be released first.
let grants = [];
let shown = null; // { lock, json } of the last answer

// granted notes a request that got an anonymous slot.
export function granted(n) {
  grants.push(n);
  grants.sort((a, b) => a - b); // answers may come in another order
}

// released notes that an anonymous slot was freed.
export function released() {
  grants.shift();
}

// forget is for when the lock is another one.
export function forget() {
  grants = [];
  shown = null;
  draw();
}

// trouble says why the lock cannot be drawn.
export function trouble(why) {
  shown = null;
  drawSlots();
  drawQueue();
  summarize(why);
}

// show draws the answer to value?detail=1.
export function show(lock, json) {
  shown = { lock, json };
  const anonymous = (json.value ?? 0) - (json.holders ?? []).length;
  grants = anonymous > 0 ? grants.slice(-anonymous) : [];
  draw();
}

// draw draws the slots and the queue as far as they are known.
export function draw() {
  const state = shown?.json;
  drawSlots(state);
  drawQueue(state);
  summarize(state ? describe(state) : "");
}

// summarize says the same only once: what it says is read out.
function summarize(text) {
  if (summary.textContent !== text) summary.textContent = text;
}

function describe({ value, waiting }) {
  const total = shown.lock.maxValue.replace(/^0+(?=.)/, "");
  const queued = waiting ? `, ${waiting} waiting` : ", nobody waiting";
  return value === undefined ? "Never acquired, or forgotten: value is {}" : `${value} of ${total} held${queued}`;
}

function drawSlots(state) {
  const items = [];
  if (state) {
    const held = state.value ?? 0;
    const named = state.holders ?? [];
    const anonymous = held - named.length;
    for (const h of named) {
      const left = h.expiresInMs === undefined ? "" : `, ${Math.ceil(h.expiresInMs / 1000)} s left`;
      items.push(["held", h.holder + left]);
    }
    for (let i = 0; i < anonymous && items.length < drawn; i++) {
      items.push(["held", grants[i] ? "#" + grants[i] : "held"]);
    }
    // maxValue can be greater than a number can say.
    let free = BigInt(shown.lock.maxValue) - BigInt(held);
    if (items.length < held) items.push(["more", `and ${held - items.length} more held`]);
    for (; free > 0 && items.length < drawn; free--) items.push(["free", "free"]);
    if (free > 0) items.push(["more", `and ${free} more free`]);
  }
  // Only what changed is touched, so that only that moves.
  items.forEach(([kind, text], i) => {
    const item = slots.children[i] ?? slots.appendChild(document.createElement("li"));
    if (item.className !== kind || item.textContent !== text) {
      const instead = document.createElement("li");
      instead.className = kind;
      instead.textContent = text;
      if (kind === "held" && text !== kind) instead.ariaLabel = "held by " + text;
      item.replaceWith(instead);
    }
  });
  while (slots.children.length > items.length) slots.lastChild.remove();
}

const cards = new Map(); // n → the item of a waiting request
const others = document.createElement("li");
others.className = "more";

function drawQueue(state) {
  const before = new Map([...cards].map(([n, card]) => [n, card.getBoundingClientRect()]));
  for (const [n, card] of cards) {
    if (waiting.some((w) => w.n === n)) continue;
    leave(card);
    cards.delete(n);
  }
  const places = new Set(); // requests of one holder share one
  for (const w of waiting) {
    if (!cards.has(w.n)) cards.set(w.n, queue.appendChild(newCard(w)));
    const card = cards.get(w.n);
    const another = shown && !same(w.lock, shown.lock);
    const seconds = Math.floor((performance.now() - w.since) / 1000);
    card.classList.toggle("unsent", !w.sent);
    card.children[1].textContent = w.sent ? (another ? "another lock" : `${seconds} s`) : "not sent yet";
    if (w.sent && !another) places.add(w.holder || w.n);
  }
  const rest = (state?.waiting ?? 0) - places.size;
  others.textContent = `${places.size ? "and " : ""}${rest} from elsewhere`;
  if (rest > 0) queue.append(others);
  else others.remove();
  move(before);
}

export function same(a, b) {
  return a.lockId === b.lockId && a.maxValue === b.maxValue;
}

function newCard(w) {
  const card = document.createElement("li");
  card.className = "card";
  const name = document.createElement("b");
  name.textContent = "#" + w.n + (w.holder && " " + w.holder);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Cancel";
  const which = document.createElement("span");
  which.className = "unseen";
  which.textContent = " request " + w.n;
  button.append(which);
  button.addEventListener("click", () => cancel(w));
  card.append(name, document.createElement("span"), button);
  return card;
}

// leave takes a card away. The focus must not get lost with it.
function leave(card) {
  if (card.contains(document.activeElement)) {
    const next = card.nextElementSibling?.querySelector("button") ?? card.previousElementSibling?.querySelector("button");
    (next ?? document.querySelector("[data-action=acquire]")).focus();
  }
  card.remove();
}

// move lets the cards glide from where they were.
function move(before) {
  if (calm.matches) return;
  for (const [n, card] of cards) {
    const from = before.get(n);
    const to = card.getBoundingClientRect();
    if (from && (from.x !== to.x || from.y !== to.y)) {
      card.animate(
        { transform: [`translate(${from.x - to.x}px, ${from.y - to.y}px)`, "none"] },
        { duration: 250, easing: "ease-out" },
      );
    }
  }
}
