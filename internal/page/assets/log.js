// The log of requests and their answers.

const list = document.getElementById("log");
const empty = document.getElementById("log-empty");
const kept = 50;

// add begins an entry, and returns the function that ends it: with the answer's
// status and body, or with what became of it instead.
export function add(n, url) {
  const entry = document.createElement("li");
  entry.value = n;
  const { pathname, search } = new URL(url);
  const result = element("p", "result", element("span", "pending", "no answer yet"));
  entry.append(element("p", "asked", element("b", "", "#" + n), " ", element("code", "", "GET " + pathname + search)), result);
  empty.hidden = true;
  list.prepend(entry);
  while (list.children.length > kept) list.lastChild.remove();

  const begun = performance.now();
  return (kind, status, body) => {
    const took = element("span", "took", duration(performance.now() - begun));
    result.replaceChildren(element("b", kind, status), " ", element("code", "", body), " ", took);
  };
}

function element(name, className, ...content) {
  const e = document.createElement(name);
  if (className) e.className = className;
  e.append(...content);
  return e;
}

function duration(ms) {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
