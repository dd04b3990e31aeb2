// The programs of README.md, started and asked.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder as built } from "./package.mjs";
import { Server } from "./server.mjs";

const here = resolve(import.meta.dirname, "..");
let server;
let folder;

before(async () => {
  server = await Server.start();
  folder = mkdtempSync(join(tmpdir(), "programs-"));
  const modules = join(folder, "node_modules");
  for (const scope of ["@hono", "@opentelemetry"]) mkdirSync(join(modules, scope), { recursive: true });
  symlinkSync(built, join(modules, "fingerpost-client"));
  for (const name of ["express", "fastify", "hono", "next", "@hono/node-server", "prom-client", "@opentelemetry/api"]) {
    symlinkSync(join(built, "node_modules", name), join(modules, name));
  }
  writeFileSync(join(folder, "package.json"), '{"type": "module"}');
  const readme = readFileSync(join(here, "README.md"), "utf8");
  for (const [, name, text] of readme.matchAll(/```js\n\/\/ (\w+\.mjs)\n(.*?)```/gs)) {
    // Next's bundler adds the ending, and Node does not.
    writeFileSync(join(folder, name), text.replace('"next/server"', '"next/server.js"'));
  }
});

after(async () => {
  await server?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const environment = () => ({
  ...process.env,
  FINGERPOST_URL: server.url,
  FINGERPOST_KEY: server.key,
  CACHE_FILE: join(folder, "tenants"),
  PORT: "0",
});

function get(port, host, headers = {}) {
  return new Promise((done, failed) => {
    const sent = request({ port, host: "127.0.0.1", headers: { ...headers, Host: host } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => (text += part));
      response.on("end", () => done({ status: response.statusCode, text, headers: response.headers }));
    });
    sent.on("error", failed).end();
  });
}

for (const name of ["express", "fastify", "hono"]) {
  test(name, async () => {
    const child = spawn(process.execPath, [`${name}.mjs`], { cwd: folder, env: environment(), stdio: ["ignore", "pipe", "inherit"] });
    try {
      const port = await new Promise((found, failed) => {
        child.stdout.on("data", (text) => found(Number(/^port (\d+)/m.exec(text)?.[1])));
        child.on("exit", () => failed(new Error(`${name}.mjs has ended`)));
      });
      const shown = async (host, headers) => {
        const { status, text } = await get(port, host, headers);
        return `${status} ${text.trim()}`;
      };
      assert.equal(await shown("Shop.Acme.Example:443"), "200 hello Acme Shop");
      assert.equal(await shown("nobody.example"), "404 unknown host");
      assert.equal(await shown("old.acme.example"), "403 this host is not served");
      assert.equal(await shown("nobody.example", { "X-Forwarded-Host": "shop.acme.example" }), "404 unknown host");
    } finally {
      child.kill();
    }
  });
}

test("next", async () => {
  Object.assign(process.env, { FINGERPOST_URL: server.url, FINGERPOST_KEY: server.key });
  const { proxy } = await import(pathToFileURL(join(folder, "proxy.mjs")));
  const { NextRequest } = await import(pathToFileURL(join(folder, "node_modules/next/server.js")));
  const asked = (host) => proxy(new NextRequest(`http://${host}/page`, { headers: { host, "x-tenant": "forged" } }));
  const passed = await asked("shop.acme.example");
  assert.equal(passed.headers.get("x-middleware-next"), "1");
  assert.equal(passed.headers.get("x-middleware-request-x-tenant"), "acme");
  assert.equal((await asked("nobody.example")).status, 404);
  assert.equal((await asked("gone.example")).status, 403);
});

test("workers", async () => {
  const { default: worker } = await import(pathToFileURL(join(folder, "worker.mjs")));
  const env = { FINGERPOST_URL: server.url, FINGERPOST_KEY: server.key };
  const asked = (host) => worker.fetch(new Request(`http://${host}/`), env);
  assert.equal(await (await asked("shop.acme.example")).text(), "hello Acme Shop");
  assert.equal((await asked("nobody.example")).status, 404);
});

/** Opens the client of a program of the section Metrics, and has a miss and a hit. */
async function twoLookups(name) {
  Object.assign(process.env, { FINGERPOST_URL: server.url, FINGERPOST_KEY: server.key });
  const { tenants } = await import(pathToFileURL(join(folder, name)));
  try {
    await tenants.ready();
    for (let n = 0; n < 2; n++) await tenants.lookup("shop.acme.example");
  } finally {
    await tenants.close();
  }
}

test("prometheus", async () => {
  await twoLookups("prometheus.mjs");
  const { register } = createRequire(join(folder, "x.js"))("prom-client");
  const text = await register.metrics();
  for (const kind of ["hit", "miss"]) assert.match(text, new RegExp(`tenant_lookup_seconds_count{kind="${kind}"} 1`));
});

test("opentelemetry", async () => {
  const { metrics } = createRequire(join(folder, "x.js"))("@opentelemetry/api");
  const kinds = [];
  const record = (seconds, { kind }) => kinds.push(kind) && assert.ok(seconds >= 0 && seconds < 60);
  metrics.setGlobalMeterProvider({ getMeter: () => ({ createHistogram: () => ({ record }) }) });
  await twoLookups("opentelemetry.mjs");
  assert.deepEqual(kinds, ["miss", "hit"]);
});
