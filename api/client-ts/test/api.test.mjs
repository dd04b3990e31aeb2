// The client against the real server.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./package.mjs";
import { Server } from "./server.mjs";

const { open } = await load("index.js");
const { call } = await load("api.js");

test("calls of the API, and what a write does to the cache", { timeout: 60_000 }, async () => {
  const server = await Server.start();
  let changed;
  const change = new Promise((done) => (changed = done));
  const t = open({ url: server.url, key: server.key, warm: ["shop.acme.example"], onChange: (hosts) => changed(hosts) });
  try {
    await t.ready();
    const tenant = await t.lookup("shop.acme.example");
    assert.equal(tenant.labels.plan, "gold");
    assert.match(tenant.etag, /^"/);
    const list = await call(server, "GET /api/platform/projects", { query: { limit: 1, page: 1 } });
    assert.deepEqual([list.data.length, list.meta.total], [1, 2]);
    await call(server, "PUT /api/platform/projects/{id}", { path: { id: tenant.id }, body: { name: "Acme 2" } });
    assert.deepEqual(await change, ["shop.acme.example"]);
    assert.equal((await t.lookup("shop.acme.example")).name, "Acme 2");
    await assert.rejects(call(server, "GET /api/platform/projects/{id}", { path: { id: 1 } }), { name: "CallError", status: 404, code: "NOT_FOUND" });
    await assert.rejects(call(server, "GET /api/platform/projects/{id}"), TypeError);
  } finally {
    await t.close();
    await server.close();
  }
});
