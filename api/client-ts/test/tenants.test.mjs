// The rules of the client against a server that misbehaves. No test waits for time: the clock jumps.
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";
import { ShiftedClock } from "./clock.mjs";
import { Fake } from "./fake.mjs";
import { load } from "./package.mjs";
import { Server } from "./server.mjs";

const { open, FingerpostError } = await load("index.js");
const { fileStore } = await load("node.js");
const { canonical } = await load("host.js");

const key = "fpk_secret_key";

/** Runs f with a server, a clock, and open, whose clients are closed at the end. */
function story(name, f) {
  test(name, { timeout: 60_000 }, async () => {
    const fake = await Fake.start();
    const clock = new ShiftedClock();
    const clients = [];
    const lines = [];
    const opened = (options = {}) => {
      const client = open({ url: fake.url, key, clock, log: (line) => lines.push(line), ...options });
      clients.push(client);
      return client;
    };
    fake.slugs.set("a.example", "a").set("x.a.example", "x").set("b.example", "b");
    try {
      await f({ fake, clock, lines, open: opened });
    } finally {
      for (const client of clients) await client.close();
      await fake.close();
    }
    assert.ok(!lines.join("\n").includes(key), "the log has the key");
  });
}

const code = async (promise) => {
  try {
    await promise;
    return "answered";
  } catch (error) {
    assert.ok(error instanceof FingerpostError, inspect(error));
    assert.ok(!inspect(error, { depth: 9, showHidden: true }).includes(key), "an error has the key");
    return error.code;
  }
};

/** Waits for a condition that no call reports. */
async function until(condition) {
  while (!condition()) await new Promise((done) => setImmediate(done));
}

const away = async (fake, client) => {
  await fake.away();
  await until(() => !client.status().connected);
};

story("hits make no request, and lookups of a name share one", async ({ fake, open }) => {
  const t = open();
  await t.ready();
  const [one, two] = await Promise.all([t.lookup("a.example"), t.lookup("A.example.:80")]);
  assert.equal(one, two);
  assert.equal(one.labels.constructor, "x");
  assert.equal(one.labels.toString, undefined);
  assert.throws(() => (one.labels.plan = "y"));
  assert.equal(await t.lookup("a.example"), one);
  assert.equal(fake.questions("a.example"), 1);
  assert.equal(fake.asked.find((a) => a.host === "a.example").headers["x-platform-key"], key);
});

story("events drop what they name", async ({ fake, open }) => {
  const changes = [];
  const t = open({ onChange: (hosts) => changes.push(...hosts) });
  await t.ready();
  for (const host of ["a.example", "x.a.example", "b.example"]) await t.lookup(host);
  assert.equal(await code(t.lookup("no.a.example")), "unknown");
  assert.equal(await code(t.lookup("no.a.example")), "unknown");
  assert.equal(fake.questions("no.a.example"), 1);
  changes.length = 0;
  fake.slugs.set("no.a.example", "no").set("x.a.example", "x2").set("a.example", "a2");
  fake.event(["*.a.example"]);
  await until(() => changes.length > 0);
  assert.deepEqual(changes.sort(), ["no.a.example", "x.a.example"]);
  assert.equal((await t.lookup("no.a.example")).slug, "no");
  assert.equal((await t.lookup("x.a.example")).slug, "x2");
  assert.equal((await t.lookup("a.example")).slug, "a");
  assert.equal(t.status().position, fake.position);
  assert.equal(fake.asked.find((a) => a.host === "no.a.example" && a.headers["x-min-position"] === fake.position) !== undefined, true);
  fake.event(["a.example"]);
  await until(() => changes.includes("a.example"));
  assert.equal((await t.lookup("a.example")).slug, "a2");
});

story("an event voids the answer of a question that is on the wire", async ({ fake, open }) => {
  const t = open();
  await t.ready();
  let held;
  fake.resolve = ({ host }, response) => {
    if (host !== "a.example" || held) return false;
    held = response;
    return true;
  };
  const early = t.lookup("a.example");
  await fake.until((a) => a.host === "a.example");
  fake.event(["a.example"]);
  await until(() => t.status().position === fake.position);
  const late = t.lookup("a.example");
  const old = fake.row("a.example");
  fake.slugs.set("a.example", "new");
  fake.json(held, 200, { success: true, data: old.result }, { ETag: old.etag });
  assert.equal((await early).slug, "a");
  assert.equal((await late).slug, "new");
  assert.equal((await t.lookup("a.example")).slug, "new");
  assert.equal(fake.questions("a.example"), 2);
});

story("reset has everything confirmed", async ({ fake, open }) => {
  const changes = [];
  const t = open({ onChange: (hosts) => changes.push(...hosts) });
  await t.ready();
  const before = await t.lookup("a.example");
  fake.event([], "reset");
  await until(() => changes.includes("a.example"));
  const after = await t.lookup("a.example");
  assert.equal(fake.asked.at(-1).headers["if-none-match"], '"a"');
  assert.ok(after.asOf > before.asOf && !after.stale);
  fake.event([], "reset");
  await until(() => changes.length === 2);
  fake.resolve = (_, response) => response.writeHead(500).end();
  assert.equal((await t.lookup("a.example")).stale, true);
});

story("half an event says nothing, and the stream resumes", async ({ fake, open, clock }) => {
  const t = open();
  await t.ready();
  await t.lookup("a.example");
  fake.raw(`id: ${fake.position}9\nevent: project.changed\ndata: {"domains":["a.example"]}\n`);
  for (const stream of fake.streams) stream.end();
  await until(() => !t.status().connected);
  assert.equal(t.status().entries, 1);
  clock.advance(60_000);
  await fake.until((a) => a.headers["last-event-id"] === fake.position);
});

story("a stream without a byte is dead after 45 s", async ({ fake, open, clock }) => {
  const t = open();
  await t.ready();
  clock.advance(44_000);
  assert.equal(t.status().connected, true);
  clock.advance(1100);
  await until(() => !t.status().connected);
  assert.match(t.status().lastError.message, /no byte/);
});

story("away: the last answer stays, until it is too old", async ({ fake, open, clock }) => {
  const t = open({ maxStale: 7_200_000 });
  await t.ready();
  await t.lookup("a.example");
  assert.equal(await code(t.lookup("no.example")), "unknown");
  await away(fake, t);
  assert.equal((await t.lookup("a.example")).stale, false);
  assert.equal(await code(t.lookup("no.example")), "unknown");
  clock.advance(3_600_000);
  assert.equal((await t.lookup("a.example")).stale, true);
  assert.equal(await code(t.lookup("never.example")), "unavailable");
  clock.advance(3_600_001);
  await until(() => t.status().lastError !== undefined);
  assert.equal(await code(t.lookup("a.example")), "unavailable");
  await fake.back();
  clock.advance(60_000);
  await until(() => t.status().connected);
  assert.equal((await t.lookup("a.example")).stale, false);
});

story("after a failure a name without an answer fails at once, and one question tries again", async ({ fake, open, clock }) => {
  fake.events = (_, response) => response.writeHead(503, { "Retry-After": "20" }).end();
  fake.resolve = (_, response) => response.writeHead(429, { "Retry-After": "20" }).end();
  const t = open();
  assert.equal(await code(t.lookup("a.example")), "unavailable");
  const error = await t.lookup("b.example").catch((e) => e);
  assert.ok(error.retryAfter > 10_000 && error.retryAfter <= 20_000, String(error.retryAfter));
  assert.equal(fake.questions("b.example"), 0);
  clock.advance(19_000);
  assert.equal(await code(t.lookup("b.example")), "unavailable");
  assert.equal(fake.questions("b.example"), 0);
  fake.resolve = () => false;
  clock.advance(1100);
  assert.equal((await t.lookup("b.example")).slug, "b");
});

story("what is not an answer of the API is away", async ({ fake, open, clock }) => {
  fake.events = (_, response) => response.writeHead(302, { Location: "http://127.0.0.1:1/" }).end();
  const bad = [
    ["HTML", (r) => r.writeHead(200, { "Content-Type": "text/html" }).end("<p>log in</p>"), /text\/html/],
    ["a redirect", (r) => r.writeHead(302, { Location: "http://127.0.0.1:1/" }).end(), /redirect/],
    ["half JSON", (r) => r.writeHead(200, { "Content-Type": "application/json" }).end('{"success":'), /not JSON/],
    ["another's JSON", (r) => r.writeHead(200, { "Content-Type": "application/json" }).end("[]"), /not of this API/],
    ["another's 404", (r) => r.writeHead(404, { "Content-Type": "text/plain" }).end("no"), /text\/plain/],
    ["no project", (r) => fake.json(r, 200, { success: true, data: {} }), /no project/],
    ["a cut", (r) => r.destroy(), /request failed/],
  ];
  const t = open();
  for (const [name, answer, text] of bad) {
    fake.resolve = (_, response) => (answer(response), true);
    clock.advance(60_000);
    const error = await t.lookup("a.example").catch((e) => e);
    assert.equal(error.code, "unavailable", name);
    assert.match(error.message, text, name);
  }
  assert.match(t.status().lastError.message, /request failed/);
});

story("401 is not an answer to a name", async ({ fake, open, clock }) => {
  const t = open();
  await t.ready();
  await t.lookup("a.example");
  const refuse = (_, response) => (fake.json(response, 401, { success: false, error: { code: "UNAUTHORIZED" } }), true);
  fake.resolve = fake.events = refuse;
  for (const stream of fake.streams) stream.end();
  await until(() => !t.status().connected);
  clock.advance(60_000);
  await until(() => /401/.test(t.status().lastError?.message ?? ""));
  assert.equal(await code(t.lookup("b.example")), "unauthorized");
  assert.equal((await t.lookup("a.example")).stale, true);
  assert.equal(await code(t.lookup("b.example")), "unauthorized");
});

story("POSITION_UNKNOWN: the position is forgotten and everything confirmed", async ({ fake, open }) => {
  const t = open();
  await t.ready();
  await t.lookup("b.example");
  fake.event(["a.example"]);
  await until(() => t.status().position === fake.position);
  fake.resolve = ({ headers }, response) => {
    if (!headers["x-min-position"]) return false;
    fake.json(response, 409, { success: false, error: { code: "POSITION_UNKNOWN" } });
    return true;
  };
  assert.equal((await t.lookup("a.example")).slug, "a");
  assert.equal(t.status().position, undefined);
  await t.lookup("b.example");
  assert.equal(fake.questions("b.example"), 2);
});

story("a lookup gives up, and a name in memory has an answer then", async ({ fake, open, clock }) => {
  const changes = [];
  const t = open({ onChange: (hosts) => changes.push(...hosts) });
  await t.ready();
  await t.lookup("a.example");
  fake.resolve = () => true;
  const gone = t.lookup("b.example", { signal: AbortSignal.abort(new Error("enough")) });
  assert.equal((await gone.catch((e) => e)).cause.message, "enough");
  const waits = t.lookup("b.example");
  clock.advance(2100);
  assert.equal(await code(waits), "cancelled");
  fake.event([], "reset");
  await until(() => changes.length > 0);
  const asked = t.lookup("a.example");
  clock.advance(2100);
  assert.equal((await asked).stale, true);
});

story("the least recently used name goes first, in two spaces", async ({ fake, open }) => {
  const t = open({ maxEntries: 2, maxNegative: 1 });
  await t.ready();
  for (const host of ["a.example", "b.example", "a.example", "x.a.example"]) await t.lookup(host);
  for (const host of ["n1.example", "n2.example"]) assert.equal(await code(t.lookup(host)), "unknown");
  assert.deepEqual([t.status().entries, t.status().negatives], [2, 1]);
  await t.lookup("a.example");
  await t.lookup("b.example");
  await code(t.lookup("n1.example"));
  assert.deepEqual([fake.questions("a.example"), fake.questions("b.example"), fake.questions("n1.example")], [1, 2, 2]);
});

story("warm names are one batch, with etags", async ({ fake, open, clock }) => {
  const t = open({ warm: ["A.example", "a.example", "b.example", "no.example", "bad name"] });
  await t.ready();
  assert.deepEqual([t.status().entries, t.status().negatives], [2, 1]);
  assert.equal((await t.lookup("a.example")).etag, '"a"');
  assert.equal(fake.asked.filter((a) => a.path.endsWith("resolve")).length, 1);
});

story("feed: false follows Cache-Control and ETag", async ({ fake, open, clock }) => {
  fake.resolve = ({ host, headers }, response) => {
    const { etag, result } = fake.row(host);
    const control = { "Cache-Control": "private, max-age=10", ETag: etag };
    if (headers["if-none-match"] === etag) response.writeHead(304, control).end();
    else fake.json(response, 200, { success: true, data: result }, control);
    return true;
  };
  const t = open({ feed: false });
  await t.ready();
  await t.lookup("a.example");
  clock.advance(9000);
  await t.lookup("a.example");
  assert.equal(fake.asked.length, 1);
  clock.advance(2000);
  fake.slugs.set("a.example", "a2");
  assert.equal((await t.lookup("a.example")).slug, "a2");
  clock.advance(11_000);
  assert.equal((await t.lookup("a.example")).stale, false);
  assert.equal(fake.asked.at(-1).headers["if-none-match"], '"a2"');
  await fake.away();
  clock.advance(11_000);
  assert.equal((await t.lookup("a.example")).stale, true);
  assert.ok(fake.asked.every((a) => a.path.endsWith("/resolve")));
});

story("the file answers after a restart while the server is away", async ({ fake, open, clock, lines }) => {
  const folder = mkdtempSync(join(tmpdir(), "file-"));
  const path = join(folder, "tenants");
  try {
    const first = open({ file: fileStore(path) });
    await first.ready();
    await first.lookup("a.example");
    assert.equal(await code(first.lookup("no.example")), "unknown");
    const second = open({ file: fileStore(path) });
    await until(() => statSync(path, { throwIfNoEntry: false }));
    await second.lookup("b.example");
    await until(() => lines.some((line) => /another process writes it/.test(line)));
    await first.close();
    const text = readFileSync(path, "utf8");
    assert.ok(!text.includes(key) && !text.includes("no.example") && text.includes("a.example"));
    assert.equal(statSync(path).mode & 0o777, 0o600);
    chmodSync(path, 0o644);
    await fake.away();

    const later = open({ file: fileStore(path) });
    await later.ready();
    assert.equal((await later.lookup("a.example")).slug, "a");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.equal(later.status().position, first.status().position);
    const other = open({ key: "fpk_other", file: fileStore(path) });
    assert.equal(await code(other.lookup("a.example")), "unavailable");
    assert.ok(lines.some((line) => /another url or key/.test(line)));

    writeFileSync(path, text.replace("a.example", "z.example"));
    const damaged = open({ file: fileStore(path) });
    assert.equal(await code(damaged.lookup("z.example")), "unavailable");
    assert.ok(lines.some((line) => /damaged/.test(line)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

story("a file that cannot be written is no failure", async ({ open, lines }) => {
  const t = open({ file: fileStore(join(tmpdir(), "there", "is", "no", "folder")) });
  await t.ready();
  assert.equal((await t.lookup("a.example")).slug, "a");
  await until(() => lines.some((line) => /not written/.test(line)));
});

story("a lock of a process that has ended is broken, one of a live process is not", async ({ open, lines }) => {
  const folder = mkdtempSync(join(tmpdir(), "lock-"));
  const path = join(folder, "tenants");
  const lock = `${path}.lock`;
  try {
    const other = fileStore(path);
    await other.write("x");
    const held = JSON.parse(readFileSync(lock, "utf8"));
    const gone = { ...held, pid: 2 ** 22 + 1 };
    writeFileSync(lock, JSON.stringify({ ...held, pid: process.ppid }));
    await assert.rejects(fileStore(path).write("x"), /another process/);
    // In another name space of process ids, as of a container, the process may live.
    writeFileSync(lock, JSON.stringify({ ...gone, place: held.place.replace(/[0-9]+\]$/, "1]") }));
    await assert.rejects(fileStore(path).write("x"), /another process/);
    writeFileSync(lock, JSON.stringify(gone));
    await other.close();
    const store = fileStore(path);
    await store.write("y");
    await assert.rejects(fileStore(path).write("z"), /another process/);
    assert.equal(readFileSync(path, "utf8"), "y");
    await store.close();
    const next = fileStore(path);
    await next.write("z");
    await next.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

story("the feed is open from the first id on", async ({ fake, open, clock }) => {
  const t = open();
  await t.ready();
  await t.lookup("a.example");
  await away(fake, t);
  clock.advance(3_600_000);
  let stream;
  fake.events = (_, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write("retry: 2000\n\n: a comment\n\n");
    stream = response;
    return true;
  };
  fake.resolve = (_, response) => (response.writeHead(503).end(), true);
  await fake.back();
  const before = t.status().lastContact;
  clock.advance(31_000);
  await until(() => stream !== undefined && t.status().lastContact > before);
  assert.equal((await t.lookup("a.example")).stale, true);
  assert.equal(t.status().connected, false);
  stream.write(`id: ${fake.position}\n\n`);
  await until(() => t.status().connected);
  assert.equal((await t.lookup("a.example")).stale, false);
});

story("what an event has dropped is the answer, as stale, while the server is away", async ({ fake, open }) => {
  const t = open();
  await t.ready();
  await t.lookup("a.example");
  await t.lookup("x.a.example");
  fake.event(["a.example", "*.a.example"]);
  await until(() => t.status().entries === 0);
  fake.resolve = (_, response) => (response.writeHead(503).end(), true);
  for (const host of ["a.example", "x.a.example", "a.example"]) assert.equal((await t.lookup(host)).stale, true);
  fake.resolve = () => false;
  fake.slugs.set("a.example", "new");
  fake.raw(":\n\n");
  await until(() => t.status().lastError === undefined);
  assert.equal((await t.lookup("a.example")).slug, "new");
});

story("failures at the same time count once, and questions have a bound", async ({ fake, open, clock }) => {
  const warnings = [];
  const warned = (w) => warnings.push(w);
  process.on("warning", warned);
  const t = open();
  await t.ready();
  await t.lookup("b.example");
  for (let round = 0; round < 5; round++) {
    const held = [];
    fake.resolve = (_, response) => held.push(response);
    const all = Array.from({ length: 64 }, (_, i) => code(t.lookup(`new${round}-${i}.example`)));
    await until(() => held.length === 64);
    assert.equal(await code(t.lookup("one.more.example")), "unavailable");
    assert.equal((await t.lookup("b.example")).stale, false);
    for (const response of held) response.writeHead(503).end();
    await Promise.all(all);
    fake.resolve = () => false;
    clock.advance(1100);
    assert.equal(await code(t.lookup(`new${round}.example`)), "unknown");
  }
  process.off("warning", warned);
  assert.deepEqual(warnings, []);
});

story("after a pause of the process the feed is not trusted until it was heard", async ({ fake, open, clock }) => {
  const t = open();
  await t.ready();
  await t.lookup("a.example");
  fake.resolve = (_, response) => (response.writeHead(503).end(), true);
  clock.advance(30_000);
  assert.equal((await t.lookup("a.example")).stale, true);
  const before = t.status().lastContact;
  fake.raw(":\n\n");
  await until(() => t.status().lastContact > before);
  assert.equal((await t.lookup("a.example")).stale, false);
});

story("functions of the user may throw and look names up", async ({ fake, open, clock }) => {
  const unhandled = [];
  const note = (error) => unhandled.push(error);
  process.on("unhandledRejection", note);
  const seen = [];
  const bad = () => {
    throw new Error("a bug of the user");
  };
  const t = open({
    log: bad,
    observe: bad,
    onChange: async ([host]) => {
      seen.push((await t.lookup(host)).slug);
      bad();
    },
  });
  await t.ready();
  await t.lookup("a.example");
  fake.slugs.set("a.example", "new");
  fake.event(["a.example"]);
  await until(() => seen.includes("new"));
  await away(fake, t);
  await fake.back();
  clock.advance(31_000);
  await until(() => t.status().connected);
  process.off("unhandledRejection", note);
  assert.deepEqual(unhandled, []);
});

story("a client without an answer leaves the file of another key", async ({ fake, open, clock }) => {
  let text;
  const file = { read: async () => text, write: async (next) => void (text = next), close: async () => undefined };
  const right = open({ file });
  await right.ready();
  await right.lookup("a.example");
  await right.close();
  const good = text;
  assert.match(good, /a\.example/);
  fake.resolve = fake.events = (_, response) => (fake.json(response, 401, { success: false, error: {} }), true);
  const wrong = open({ key: "fpk_wrong_key", file, maxStale: 3_600_000 });
  assert.equal(await code(wrong.lookup("a.example")), "unauthorized");
  clock.advance(61_000);
  await wrong.close();
  assert.equal(text, good);
});

story("the permissions of a file behind a link stay", async () => {
  const folder = mkdtempSync(join(tmpdir(), "link-"));
  try {
    const theirs = join(folder, "theirs");
    writeFileSync(theirs, "hello");
    chmodSync(theirs, 0o644);
    symlinkSync(theirs, join(folder, "link"));
    assert.equal(await fileStore(join(folder, "link")).read(), "hello");
    assert.equal(statSync(theirs).mode & 0o777, 0o644);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("wrong options are named, without their values", () => {
  const bad = () => open({ url: "http://user:geheim@x/", key: "two words", fresh: -1, maxEntries: 0 });
  assert.throws(bad, (error) => {
    assert.ok(error instanceof TypeError);
    assert.match(error.message, /url .*key .*fresh .*maxEntries/);
    assert.ok(!/geheim|two words/.test(error.message));
    return true;
  });
});

story("the key is not shown", async ({ open }) => {
  const t = open();
  assert.ok(!inspect(t, { depth: 9, showHidden: true }).includes(key));
  assert.ok(!JSON.stringify(t).includes(key));
});

test("host names are made canonical as the server does", { timeout: 60_000 }, async () => {
  // The vectors of the server's own test: a name, and its canonical form or the error.
  const source = readFileSync(new URL("../../../resolver/hostname/hostname_test.go", import.meta.url), "utf8");
  const onlyHere = [];
  let n = 0;
  for (const [, input, want] of source.matchAll(/^\tf\("((?:[^"\\]|\\.)*)", ("(?:[^"\\]|\\.)*"|no\w+)\)/gm)) {
    if (/\\x[89a-f]/.test(input)) continue; // not UTF-8: no string
    const text = JSON.parse(`"${input.replace(/\\x(..)/g, "\\u00$1")}"`);
    if (text.startsWith("*")) continue; // a record, not a host
    let got = "!";
    try {
      got = canonical(text);
    } catch (error) {
      assert.equal(error.code, "invalid", text);
    }
    n++;
    if (want.startsWith("no") && got !== "!") onlyHere.push(text);
    else assert.equal(got, want.startsWith("no") ? "!" : JSON.parse(want), JSON.stringify(text));
  }
  assert.ok(n > 120, `${n} vectors`);
  // What only the platform's IDNA accepts, the server refuses.
  assert.ok(onlyHere.length < 5, onlyHere.join(" "));
  const server = await Server.start();
  const t = open({ url: server.url, key: server.key });
  try {
    for (const host of onlyHere) assert.equal(await code(t.lookup(host)), "invalid", host);
  } finally {
    await t.close();
    await server.close();
  }
});

story("a key that is empty is that of the environment", async ({ open: opened }) => {
  const before = process.env.FINGERPOST_KEY;
  try {
    process.env.FINGERPOST_KEY = key;
    for (const none of [undefined, ""]) assert.equal((await opened({ key: none }).lookup("a.example")).slug, "a");
    delete process.env.FINGERPOST_KEY;
    assert.throws(() => opened({ key: "" }), /key is missing/);
  } finally {
    if (before !== undefined) process.env.FINGERPOST_KEY = before;
  }
});
