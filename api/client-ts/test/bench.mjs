// Prints JSON: nanoseconds per hit and lookups per second for a name in canonical spelling and for another, and the heap
// bytes of an entry. FINGERPOST_CLIENT_TS is the folder of the built package; ENTRIES is 10000 by default. Run it with
// node --expose-gc.
import { Fake, project } from "./fake.mjs";
import { load } from "./package.mjs";

const { open } = await load("index.js");
const entries = Number(process.env.ENTRIES ?? 10_000);
const name = (i) => `host-${i}.tenants.example`;

const fake = await Fake.start();
fake.row = (host) => ({ status: 200, code: null, etag: `"${host}"`, result: project(host.split(".")[0], host) });
const heap = () => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
const before = heap();
const t = open({ url: fake.url, key: "fpk_bench", warm: Array.from({ length: entries }, (_, i) => name(i)), maxEntries: entries });
await t.ready();
fake.asked.length = 0;
const entryBytes = Math.round((heap() - before) / entries);

/** The best of 40 rounds, in nanoseconds per lookup. */
async function measure(spelling) {
  const names = Array.from({ length: 1000 }, (_, i) => spelling(name((i * 7919) % entries)));
  let best = Infinity;
  for (let round = 0; round < 40; round++) {
    const begun = performance.now();
    for (let n = 0; n < 20; n++) for (const host of names) await t.lookup(host);
    best = Math.min(best, ((performance.now() - begun) * 1e6) / (20 * names.length));
  }
  return best;
}

const hit = await measure((host) => host);
const other = await measure((host) => `${host.toUpperCase()}:443`);
console.log(
  JSON.stringify({
    runtime: `node ${process.versions.node}`,
    entries,
    hitNs: Math.round(hit),
    lookupsPerSecond: Math.round(1e9 / hit),
    otherSpellingNs: Math.round(other),
    entryBytes,
  }),
);
await t.close();
await fake.close();
