// Prints JSON: nanoseconds per hit and lookups per second for a name in canonical spelling and for another, and the heap
// bytes of an entry. FINGERPOST_CLIENT_TS is the folder of the built package; ENTRIES is 10000 by default. Run it with
// node --expose-gc. It asks a fake server, or the one at FINGERPOST_URL with the key FINGERPOST_KEY, where all names with
// SUFFIX belong to the project SLUG: "go -C bench run . client" gives it one.
import { Fake, project } from "./fake.mjs";
import { load } from "./package.mjs";

const { open } = await load("index.js");
const entries = Number(process.env.ENTRIES ?? 10_000);
const { FINGERPOST_URL: url, FINGERPOST_KEY: key = "fpk_bench" } = process.env;
const { SUFFIX: suffix = ".tenants.example", SLUG: slug = "bench" } = process.env;
const name = (i) => `host-${i}${suffix}`;

const fake = url ? undefined : await Fake.start();
if (fake) fake.row = (host) => ({ status: 200, code: null, etag: `"${host}"`, result: project(slug, host) });
const heap = () => {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
};
const hosts = Array.from({ length: entries }, (_, i) => name(i));
const before = heap();
const t = open({ url: url ?? fake.url, key, warm: hosts, maxEntries: entries });
await t.ready();
if (t.status().entries !== entries) throw new Error(`${t.status().entries} entries, want ${entries}`);
if (fake) fake.asked.length = 0;
const entryBytes = Math.round((heap() - before) / entries);

/** The nanoseconds of a lookup, over 40 rounds after one in which the code becomes warm. */
async function measure(spelling) {
  const names = Array.from({ length: 1000 }, (_, i) => spelling(name((i * 7919) % entries)));
  let begun;
  for (let round = 0; round <= 40; round++) {
    if (round === 1) begun = performance.now();
    for (let n = 0; n < 20; n++)
      for (const host of names) {
        const tenant = await t.lookup(host);
        if (tenant.slug !== slug || tenant.stale) throw new Error(`${host} is ${tenant.slug}, stale: ${tenant.stale}`);
      }
  }
  return ((performance.now() - begun) * 1e6) / (40 * 20 * names.length);
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
await fake?.close();
