// How many requests may wait at a time. A browser opens at most six HTTP/1.1
// connections to a server, for all its windows together. If waiting took them
// all, no window could send the release that ends the waiting. So the windows
// tell each other how many of their requests wait, and keep it to four in all.

const protocol = performance.getEntriesByType("navigation")[0]?.nextHopProtocol;

// From HTTP/2 on, one connection carries a hundred requests.
export const most = protocol === "h2" || protocol === "h3" ? 64 : 4;

const channel = new BroadcastChannel("lock_gateway");
const me = crypto.getRandomValues(new Uint32Array(1))[0];
const others = new Map(); // how many requests wait in other windows, by window
let mine = 0;
let onChange = () => {};

channel.onmessage = ({ data }) => {
  if (data.hello) {
    tell();
    return;
  }
  if (data.waiting > 0) others.set(data.window, data.waiting);
  else others.delete(data.window);
  onChange();
};
channel.postMessage({ hello: true });
addEventListener("pageshow", tell); // also when it comes back after it was left
addEventListener("pagehide", () => channel.postMessage({ window: me, waiting: 0 }));

function tell() {
  channel.postMessage({ window: me, waiting: mine });
}

// elsewhere is how many requests of other windows wait.
export function elsewhere() {
  let sum = 0;
  for (const n of others.values()) sum += n;
  return sum;
}

// take reports whether one more request may wait, and counts it.
export function take() {
  if (mine + elsewhere() >= most) return false;
  mine++;
  tell();
  return true;
}

// give ends what take began.
export function give() {
  mine--;
  tell();
}

// watch has f called when other windows have more or fewer requests that wait.
export function watch(f) {
  onChange = f;
}
