// The real server, for tests: the binary FINGERPOST_BINARY on a folder of its own.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const binary = process.env.FINGERPOST_BINARY;
if (!binary) throw new Error("FINGERPOST_BINARY is missing: the path of the built fingerpost");

export const project = `project "acme" {
  name   = "Acme Shop"
  status = "ACTIVE"
  labels = { plan = "gold" }
  domain "shop.acme.example" { primary = true }
  domain "*.acme.example" {}
  domain "old.acme.example" { active = false }
}
project "gone" {
  name   = "Gone"
  status = "SUSPENDED"
  domain "gone.example" {}
}
`;

export class Server {
  #process;

  /** Starts a server whose only file has the text. */
  static async start(text = project) {
    const s = new Server();
    s.folder = mkdtempSync(join(tmpdir(), "fingerpost-"));
    s.write(text);
    const keys = ["keys", "create", "test", "--allow", "resolve,read,write", "--config", s.config];
    execFileSync(binary, ["fmt", "--config", s.config], { stdio: "ignore" });
    s.key = execFileSync(binary, keys, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    await s.run("127.0.0.1:0");
    return s;
  }

  get config() {
    return join(this.folder, "projects.d");
  }

  write(text) {
    execFileSync("mkdir", ["-p", this.config]);
    writeFileSync(join(this.config, "acme.hcl"), text);
  }

  async run(address) {
    const flags = ["serve", "--config", this.config, "--data", join(this.folder, "store"), "--listen", address, "--ops-listen", "127.0.0.1:0", "--mail-sink"];
    const child = (this.#process = spawn(binary, flags, { stdio: ["ignore", "pipe", "pipe"] }));
    let log = "";
    this.url = await new Promise((found, failed) => {
      const read = (text) => {
        log += text;
        const at = /http:\/\/127\.0\.0\.1:\d+(?=\/api)/.exec(log);
        if (at && /^try: /m.test(log)) found(at[0]);
      };
      child.stdout.setEncoding("utf8").on("data", read);
      child.stderr.setEncoding("utf8").on("data", read);
      child.on("exit", (code) => failed(new Error(`fingerpost ended with ${code}: ${log}`)));
    });
  }

  async call(method, path, body) {
    const response = await fetch(this.url + path, {
      method,
      headers: { "X-PLATFORM-KEY": this.key, "Content-Type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer.data;
  }

  /** Ends the process at once, as a power cut does. */
  async kill() {
    const ended = new Promise((done) => this.#process.once("exit", done));
    this.#process.removeAllListeners("exit").once("exit", () => undefined);
    const again = new Promise((done) => this.#process.once("exit", done));
    this.#process.kill("SIGKILL");
    await Promise.race([ended, again]);
  }

  async restart() {
    await this.run(new URL(this.url).host);
  }

  async close() {
    if (this.#process.exitCode === null && this.#process.signalCode === null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
