// Locks for JavaScript and TypeScript, where there is fetch: Node.js, Deno, Bun.
//
//     await withLock("nightly-backup", async (token) => { await backup() })

const server = process.env.LOCKS ?? "http://localhost:8080";

/**
 * Calls work while it holds a slot of a lock, of which at most maxValue are held
 * at a time, and gives it the fencing token. With a ttlMs the slot frees itself
 * after that long, even while the work still goes on, since nothing here renews it:
 * choose one that is longer than the work can take. Without, a signal that kills
 * this program leaves the slot held.
 *
 * @template T
 * @param {string} name
 * @param {(token: number) => Promise<T>} work
 * @param {{maxValue?: number, waitMs?: number, ttlMs?: number}} [options]
 * @returns {Promise<T>}
 */
export async function withLock(name, work, { maxValue = 1, waitMs = 60_000, ttlMs } = {}) {
	const path = pathOf(name, maxValue);
	const holder = crypto.randomUUID(); // with it, both requests can be repeated
	const query = new URLSearchParams({ holder, waitTimeoutMs: String(waitMs) });
	if (ttlMs !== undefined) query.set("ttlMs", String(ttlMs));
	try {
		const answer = await get(`${path}/acquire?${query}`, waitMs + 30_000);
		if (!answer.acquired) throw new Error(`somebody else has the lock ${name}`);
		return await work(answer.token);
	} finally {
		// Also if no answer came: it may have been lost on its way.
		await get(`${path}/release?holder=${holder}`, 30_000);
	}
}

/**
 * The same without a holder. Nothing may be repeated then: if an answer is lost,
 * the slot may stay held.
 *
 * @template T
 * @param {string} name
 * @param {() => Promise<T>} work
 * @param {{maxValue?: number, waitMs?: number}} [options]
 * @returns {Promise<T>}
 */
export async function withAnonymousLock(name, work, { maxValue = 1, waitMs = 60_000 } = {}) {
	const path = pathOf(name, maxValue);
	const answer = await get(`${path}/acquire?waitTimeoutMs=${waitMs}`, waitMs + 30_000, 1);
	if (!answer.acquired) throw new Error(`somebody else has the lock ${name}`);
	try {
		return await work();
	} finally {
		await get(`${path}/release`, 30_000, 1);
	}
}

function pathOf(name, maxValue) {
	return `${server}/v1/${maxValue}/${encodeURIComponent(name)}`;
}

async function get(url, timeoutMs, tries = 5) {
	for (let left = tries - 1; ; left--) {
		try {
			const response = await fetch(url, { cache: "no-store", signal: AbortSignal.timeout(timeoutMs) });
			if (response.ok) return await response.json();
			const problem = await response.text();
			if (response.status < 500 || left === 0) throw Object.assign(new Error(problem), { final: true });
		} catch (error) {
			if (error.final || left === 0) throw error;
		}
		await new Promise((resolve) => setTimeout(resolve, 1000));
	}
}
