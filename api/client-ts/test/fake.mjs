// A server that misbehaves as a test says, and remembers what it was asked.
import { createServer } from "node:http";

export const project = (slug, domain) => ({
  project: { id: 7, uuid: "u", slug, name: slug, status: "ACTIVE", labels: { plan: "gold", constructor: "x" } },
  authSettings: { registrationMode: "OPEN" },
  serviceSettings: { mailEnabled: true },
  matchedDomain: { domain },
});

const epoch = "0123456789abcdef";

export class Fake {
  asked = []; // {method, path, host, headers, body}
  streams = new Set();
  generation = 1;
  /** Set by tests: answers (request, response) in place of the usual answer, and returns true if it did. */
  resolve = () => false;
  events = () => false;
  slugs = new Map(); // by host; others are 404

  static async start() {
    const fake = new Fake();
    fake.server = createServer((request, response) => void fake.#serve(request, response));
    await fake.#listen(0);
    return fake;
  }

  #listen(port) {
    return new Promise((done) =>
      this.server.listen(port, "127.0.0.1", () => {
        this.port = this.server.address().port;
        this.url = `http://127.0.0.1:${this.port}`;
        done();
      }),
    );
  }

  get position() {
    return `${epoch}.${this.generation}`;
  }

  async #serve(request, response) {
    let body = "";
    for await (const part of request) body += part;
    const url = new URL(request.url, "http://x");
    const { method, headers } = request;
    const entry = { method, path: url.pathname, host: url.searchParams.get("domain"), headers, body };
    this.asked.push(entry);
    this.#woken?.();
    response.on("error", () => undefined);
    if (url.pathname.endsWith("/events")) {
      if (this.events(entry, response)) return;
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      this.streams.add(response);
      response.on("close", () => this.streams.delete(response));
      response.write(`retry: 1000\n\nid: ${this.position}\n\n`);
      return;
    }
    if (this.resolve(entry, response)) return;
    if (method === "POST") {
      const data = JSON.parse(body).domains.map((domain) => ({ domain, ...this.row(domain) }));
      this.json(response, 200, { success: true, data });
      return;
    }
    const { status, code, etag, result } = this.row(entry.host);
    if (status === 200 && headers["if-none-match"] === etag) {
      response.writeHead(304, { ETag: etag, "X-Config-Position": this.position }).end();
    } else if (status === 200) this.json(response, 200, { success: true, data: result }, { ETag: etag });
    else this.json(response, status, { success: false, error: { code } });
  }

  row(host) {
    const slug = this.slugs.get(host);
    if (slug === undefined) return { status: 404, code: "NOT_FOUND", etag: null, result: null };
    return { status: 200, code: null, etag: `"${slug}"`, result: project(slug, host) };
  }

  json(response, status, body, headers = {}) {
    response.writeHead(status, { "Content-Type": "application/json", "X-Config-Position": this.position, ...headers });
    response.end(JSON.stringify(body));
  }

  /** Sends an event to all streams. */
  event(domains, kind = "project.changed") {
    this.generation++;
    const data = JSON.stringify({ revision: this.generation, domains });
    this.raw(`id: ${this.position}\nevent: ${kind}\ndata: ${data}\n\n`);
  }

  raw(text) {
    for (const stream of this.streams) stream.write(text);
  }

  #woken;
  /** Waits until a question matches. */
  async until(match) {
    while (!this.asked.some(match)) await new Promise((done) => (this.#woken = done));
  }

  questions(host) {
    return this.asked.filter((a) => a.host === host).length;
  }

  /** Ends all connections and refuses new ones until back is called. */
  async away() {
    const closed = new Promise((done) => this.server.close(done));
    this.server.closeAllConnections();
    await closed;
  }

  back() {
    return this.#listen(this.port);
  }

  async close() {
    if (this.server.listening) await this.away();
  }
}
