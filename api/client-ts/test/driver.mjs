// Plays the steps of the conformance table: reads requests as lines of JSON, and writes their answers with the same id, in
// any order. FINGERPOST_CLIENT_TS is the folder of the built package.
import { createInterface } from "node:readline";
import { ShiftedClock } from "./clock.mjs";
import { load } from "./package.mjs";

const [{ open }, { fileStore }] = await Promise.all([load("index.js"), load("node.js")]);

const clock = new ShiftedClock();
let tenants;
let changes = [];

const signal = (timeout) => (timeout > 0 ? AbortSignal.timeout(timeout) : undefined);

const actions = {
  open({ url, key, file, fresh, maxStale, maxEntries, maxNegative, warm }) {
    changes = [];
    tenants = open({
      url, key, clock,
      file: file ? fileStore(file) : undefined,
      fresh: fresh || undefined,
      maxStale: maxStale || undefined,
      maxEntries: maxEntries || undefined,
      maxNegative: maxNegative || undefined,
      warm: warm ?? undefined,
      onChange: (hosts) => changes.push(...hosts),
      log: (line) => console.error(line),
    });
    return { ok: true };
  },
  async lookup({ host, timeout }) {
    const { auth, services, ...tenant } = await tenants.lookup(host, { signal: signal(timeout) });
    return { tenant };
  },
  async ready({ timeout }) {
    await tenants.ready({ signal: signal(timeout) });
    return { ok: true };
  },
  status() {
    const { lastError, ...status } = tenants.status();
    return { status: { ...status, position: status.position ?? "", lastError: lastError?.message ?? "" } };
  },
  changes() {
    const hosts = changes;
    changes = [];
    return { hosts };
  },
  advance({ by }) {
    clock.advance(by);
    return { ok: true };
  },
  async close() {
    await tenants.close();
    return { ok: true };
  },
};

async function answer(request) {
  try {
    return await actions[request.do](request);
  } catch (error) {
    return { error: error.code ?? error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  answer(request).then((a) => process.stdout.write(`${JSON.stringify({ id: request.id, ...a })}\n`));
}
await tenants?.close();
process.exit(0);
