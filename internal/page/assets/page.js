// The instrument at the top of the page: what its controls do.

import { address, ask, server } from "./api.js";
import { copy, languages } from "./code.js";
import { elsewhere, most } from "./connections.js";
import * as log from "./log.js";
import * as queue from "./queue.js";
import * as state from "./state.js";

const get = (id) => document.getElementById(id);
const lockId = get("lock-id");
const maxValue = get("max-value");

let count = 0; // the requests so far
let action = "acquire"; // of the request that is shown as code

const theLock = () => ({ lockId: lockId.value, maxValue: maxValue.value });

// parameters are those of the fields that the action knows.
function parameters() {
  const holder = get("holder-name").value;
  if (action === "acquire") return { waitTimeoutMs: get("wait-ms").value, holder, ttlMs: get("ttl-ms").value };
  if (action === "release") return { holder };
  if (action === "value") return { detail: "1" };
  return {};
}

async function perform(wanted) {
  action = wanted;
  let url;
  try {
    url = address(theLock(), action, parameters());
  } catch (error) {
    notify(error.message);
    return;
  }
  notify("");
  showCode();
  const request = { n: ++count, url, lock: theLock(), holder: get("holder-name").value };
  const waits = action === "acquire" && Number(get("wait-ms").value) !== 0;
  const end = log.add(request.n, url);
  try {
    const { ok, status, body, json } = await (waits ? queue.acquire(request) : ask(url));
    end(ok ? "good" : "bad", String(status), body);
    tell(`${wanted} ${request.n}: ${json.detail ?? body}`);
    if (!ok) notify(json.detail ?? `The answer was ${status}.`);
    if (!request.holder && state.same(request.lock, theLock())) {
      if (json.acquired) state.granted(request.n);
      if (json.released) state.released();
    }
  } catch (error) {
    const cancelled = error.name === "AbortError";
    end("bad", cancelled ? "cancelled" : "no answer", "");
    tell(`${wanted} ${request.n}: ${cancelled ? "cancelled" : "no answer"}`);
    if (!cancelled) notify("There was no answer. Whether the request was carried out is unknown.");
  }
  look();
}

function tell(text) {
  get("outcome").textContent = text;
}

function notify(text) {
  get("notice").textContent = text;
  get("notice").hidden = text === "";
}

// What is drawn is asked for once a second while somebody can see it.
const usually = 1000;
const afterTrouble = 5000;
const patience = 4000;

let timer;
let looking = false;
let again = false; // somebody asked while an answer was under way, and may need a later one

async function look() {
  clearTimeout(timer);
  if (looking || document.hidden) {
    again = !document.hidden;
    return;
  }
  looking = true;
  let pause;
  do {
    again = false;
    pause = await lookOnce();
  } while (again);
  looking = false;
  if (pause && !document.hidden) timer = setTimeout(look, pause);
}

// lookOnce returns how long to wait before the next look; 0 if another answer
// can only come of another lock.
async function lookOnce() {
  const lock = theLock();
  try {
    const { ok, status, json } = await ask(address(lock, "value", { detail: "1" }), AbortSignal.timeout(patience));
    again ||= !state.same(lock, theLock());
    // One that was asked for before the last change may be older than it.
    if (again) return usually;
    if (ok) state.show(lock, json);
    else state.trouble(json.detail ?? `The answer was ${status}.`);
    return ok ? usually : status < 500 ? 0 : afterTrouble;
  } catch (error) {
    if (error.name === "TimeoutError") {
      state.trouble("No answer for 4 seconds. If windows of this browser wait for locks of this server elsewhere, they may have taken all connections.");
    } else {
      state.trouble(error instanceof TypeError ? "The server cannot be reached." : error.message);
    }
    return afterTrouble;
  }
}

function showCode() {
  const language = document.querySelector("[name=language]:checked").value;
  try {
    get("code").textContent = languages[language](address(theLock(), action, parameters()));
  } catch (error) {
    get("code").textContent = error.message;
  }
}

// The queue changes, and with it whether all of it may be sent.
queue.watch(() => {
  state.draw();
  const unsent = queue.waiting.some((w) => !w.sent);
  get("unsent").hidden = !unsent;
  get("unsent-why").textContent = `${most} requests wait${elsewhere() ? ", some of them in other windows" : ""}.`;
});

let typing;
get("request").addEventListener("input", ({ target }) => {
  showCode();
  if (target !== lockId && target !== maxValue) return;
  state.forget();
  clearTimeout(typing);
  typing = setTimeout(look, 300);
});

get("request").addEventListener("submit", (event) => {
  event.preventDefault();
  perform("acquire");
});
for (const button of document.querySelectorAll("button[type=button][data-action]")) {
  button.addEventListener("click", () => perform(button.dataset.action));
}

function newLock() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 15) | 64; // the version, and
  bytes[8] = (bytes[8] & 63) | 128; // the variant, of a random UUID
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  lockId.value = hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  state.forget();
  showCode();
  look();
}
get("new-id").addEventListener("click", newLock);

for (const [button, from, text] of [
  ["copy-id", lockId, () => lockId.value],
  ["copy-code", get("code"), () => get("code").textContent],
]) {
  get(button).addEventListener("click", async () => {
    tell((await copy(text(), from)) ? "Copied" : "It is selected, and can be copied with the keyboard");
  });
}
for (const radio of document.querySelectorAll("[name=language]")) radio.addEventListener("change", showCode);

document.addEventListener("visibilitychange", look);

// The manual's examples are for this server.
const texts = document.createTreeWalker(get("manual"), NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const { currentNode: text } = texts;
  if (text.data.includes("http://localhost:8080")) text.data = text.data.replaceAll("http://localhost:8080", server);
}

get("controls").disabled = false;
newLock();
