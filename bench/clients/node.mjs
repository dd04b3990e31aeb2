// Fills a client, and looks names up for as many milliseconds as each line of standard input says.
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, url, suffix, slug, entries] = process.argv.slice(1);
const { open } = await import(pathToFileURL(join(folder, "dist", "index.js")));

const hosts = Array.from({ length: Number(entries) }, (_, n) => `n${String(n).padStart(7, "0")}${suffix}`);
const heap = () => {
  globalThis.gc();
  globalThis.gc();
  return process.memoryUsage().heapUsed;
};
const before = heap();
const tenants = open({ url, warm: hosts, key: process.env.FINGERPOST_KEY, maxEntries: hosts.length });
await tenants.ready();
if (tenants.status().entries !== hosts.length) throw new Error(`${tenants.status().entries} entries`);
console.log(JSON.stringify({ bytes: heap() - before }));

let n = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const began = performance.now();
  let hits = 0;
  while (performance.now() - began < Number(line)) {
    for (let i = 0; i < 1000; i++, hits++) {
      n = (n + 1) % hosts.length;
      const tenant = await tenants.lookup(hosts[n]);
      if (tenant.slug !== slug || tenant.stale) throw new Error(`${hosts[n]} is ${tenant.slug}, stale: ${tenant.stale}`);
    }
  }
  console.log(JSON.stringify({ hits, ms: performance.now() - began }));
}
await tenants.close();
