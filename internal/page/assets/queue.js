// The acquires of this window that wait, in the order in which they were asked
// for. Those for which there is no connection yet wait here to be sent.

import { ask } from "./api.js";
import * as connections from "./connections.js";

export const waiting = []; // { n, url, lock, holder, since, sent, controller, resolve, reject }

let onChange = () => {};

// acquire sends a request when it may be, and resolves to the answer. What
// `waiting` has of it is there until then.
export function acquire(request) {
  const controller = new AbortController();
  return new Promise((resolve, reject) => {
    waiting.push({ ...request, since: performance.now(), sent: false, controller, resolve, reject });
    send();
  });
}

// cancel ends a request. If it was sent, its connection closes, and the server
// takes it out of the queue.
export function cancel(w) {
  w.controller.abort();
  if (!w.sent) {
    leave(w);
    w.reject(w.controller.signal.reason);
  }
}

// watch has f called when a request comes, is sent, or goes.
export function watch(f) {
  onChange = f;
}

function send() {
  for (const w of waiting) {
    if (w.sent) continue;
    if (!connections.take()) break;
    w.sent = true;
    ask(w.url, w.controller.signal)
      .finally(() => {
        leave(w);
        connections.give();
        send();
      })
      .then(w.resolve, w.reject);
  }
  onChange();
}

function leave(w) {
  waiting.splice(waiting.indexOf(w), 1);
  onChange();
}

connections.watch(send);
