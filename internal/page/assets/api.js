// Requests to the API.

// The page knows where it is below the API, whatever prefix a proxy took off.
const api = new URL(document.documentElement.dataset.api + "v1/", location.href).href;

// What the examples of the manual have for the address of the server.
export const server = api.slice(0, -"/v1/".length);

// All but letters, digits and -._~, so that an address is the same in every
// language's quotes.
function encode(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
}

// address is the URL of an action on a lock. Parameters that are empty are left
// out.
export function address(lock, action, parameters = {}) {
  if ([lock.lockId, lock.maxValue].some((part) => part === "." || part === "..")) {
    throw new Error("A browser takes . and .. out of every address. Other clients can use such an id.");
  }
  const query = Object.entries(parameters)
    .filter(([, value]) => value !== "")
    .map(([name, value]) => name + "=" + encode(value))
    .join("&");
  return `${api}${encode(lock.maxValue)}/${encode(lock.lockId)}/${action}` + (query && "?" + query);
}

// ask sends a request and returns the answer, decoded as far as it can be.
export async function ask(url, signal) {
  const response = await fetch(url, { cache: "no-store", signal });
  const body = (await response.text()).trimEnd();
  let json = {};
  try {
    json = JSON.parse(body);
  } catch {
    // Not from the gateway, but from something in front of it.
  }
  return { status: response.status, ok: response.ok, body, json };
}
