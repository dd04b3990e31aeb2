// Run in a project that has installed the package, with server.mjs next to it: one question to the real server.
import assert from "node:assert/strict";
import { open } from "fingerpost-client";
import { Server } from "./server.mjs";

const server = await Server.start();
const tenants = open({ url: server.url, key: server.key });
try {
  const tenant = await tenants.lookup("Shop.Acme.Example:443");
  assert.equal(tenant.name, "Acme Shop");
  console.log(`installed, and ${tenant.domain} is ${tenant.slug}'s`);
} finally {
  await tenants.close();
  await server.close();
}
