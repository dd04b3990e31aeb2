// The options of the middlewares, with requests as the frameworks make them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./package.mjs";

const { FingerpostError } = await load("index.js");
const [express, fastify, hono, next] = await Promise.all(["express.js", "fastify.js", "hono.js", "next.js"].map(load));

/** Knows one host. */
const tenants = {
  async lookup(host) {
    if (host === "shop.acme.example") return { slug: "acme" };
    throw new FingerpostError("unavailable", host, { retryAfter: 1500 });
  },
};

const request = (host, forwarded) => ({ headers: { host, ...(forwarded && { "x-forwarded-host": forwarded }) } });
const webRequest = (host, forwarded) => new Request(`http://${host}/`, request("ignored.example", forwarded));

/** Each asks with headers and gives the slug, the answer's status and Retry-After, or what onError says. */
const asks = {
  express: (host, forwarded, options) =>
    new Promise((done) => {
      const asked = request(host, forwarded);
      const response = { writeHead: (...head) => (response.head = head), end: () => done(`${response.head[0]} ${response.head[1]["Retry-After"]}`) };
      const onError = options.onError && ((_, __, error) => done(options.onError(error)));
      express.tenantMiddleware(tenants, { ...options, onError })(asked, response, () => done(express.tenantOf(asked).slug));
    }),
  async fastify(host, forwarded, options) {
    const asked = request(host, forwarded);
    const sent = {};
    const reply = { code: (status) => (sent.status = status), headers: (headers) => (sent.after = headers["Retry-After"]), send: () => (sent.done = true) };
    const onError = options.onError && ((_, __, error) => (sent.text = options.onError(error)));
    const returned = await fastify.tenantHook(tenants, { ...options, onError })(asked, reply);
    if (returned === undefined) return fastify.tenantOf(asked).slug;
    assert.equal(returned, reply);
    return sent.text ?? `${sent.status} ${sent.after}`;
  },
  async hono(host, forwarded, options) {
    const context = { req: { raw: webRequest(host, forwarded) } };
    const onError = options.onError && ((_, error) => new Response(options.onError(error)));
    const answer = await hono.tenantMiddleware(tenants, { ...options, onError })(context, async () => undefined);
    if (answer === undefined) return hono.tenantOf(context).slug;
    return onError ? answer.text() : `${answer.status} ${answer.headers.get("Retry-After")}`;
  },
  async next(host, forwarded, options) {
    const onError = options.onError && ((_, error) => new Response(options.onError(error)));
    const pass = (_, tenant) => new Response(tenant.slug);
    const asked = new Request(`http://${host}/`, { headers: forwarded ? { "x-forwarded-host": forwarded } : {} });
    const answer = await next.tenantProxy(tenants, pass, { ...options, onError })(asked);
    return answer.status === 200 ? answer.text() : `${answer.status} ${answer.headers.get("Retry-After")}`;
  },
};

for (const [name, ask] of Object.entries(asks)) {
  test(name, async () => {
    const shop = "shop.acme.example";
    assert.equal(await ask(shop, undefined, {}), "acme");
    assert.equal(await ask("other.example", shop, {}), "503 2");
    assert.equal(await ask("other.example", `${shop}, proxy.example`, { trustForwardedHost: true }), "acme");
    assert.equal(await ask(shop, undefined, { trustForwardedHost: true }), "acme");
    assert.equal(await ask("other.example", undefined, { onError: (error) => `no: ${error.code}` }), "no: unavailable");
  });
}

test("a request that has not passed has no tenant", () => {
  for (const { tenantOf } of [express, fastify, hono]) assert.throws(() => tenantOf({}), /has not passed/);
});
