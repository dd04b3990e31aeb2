import type { Clock } from "./clock.js";
import type { Store } from "./options.js";
import { rereadTenant, type Tenant } from "./tenant.js";

const format = "fingerpost-client tenants 1";
const saveEvery = 1000;
const retryEvery = 30_000;
const touchEvery = 60_000;
/** Bounds the part of the time that is spent writing: what takes long to write is written less often. */
const saveShare = 20;

export interface Kept {
  position: string | undefined;
  tenants: [host: string, tenant: Tenant][];
}

/** Keeps the last good answers in a Store: a line of JSON with a head, then one line for each name. */
export class Keeper {
  #head: Promise<{ format: string; url: string; key: string }>;
  #dirty = false;
  #busy: Promise<void> | undefined; // a write
  #stop: (() => void) | undefined; // the wait for the next one
  #stopTouch: (() => void) | undefined;
  #closed = false;
  #told = "";
  #ours = false; // the store has answers of this url and key, or had

  constructor(
    private readonly store: Store,
    url: string,
    key: string,
    private readonly clock: Clock,
    private readonly log: (line: string) => void,
    private readonly kept: () => Kept,
  ) {
    // The store has a hash of the key: of a random text of 190 bits, which cannot be guessed.
    this.#head = sha256(`fingerpost tenants\0${url}\0${key}`).then((hash) => ({ format, url, key: hash }));
  }

  /** Reads the store; undefined if it has nothing of use. It does not fail. */
  async load(): Promise<Kept | undefined> {
    try {
      const text = await this.store.read();
      if (text === undefined) return undefined;
      return await this.read(text);
    } catch (error) {
      this.log(`fingerpost: the file of answers is ignored: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  private async read(text: string): Promise<Kept> {
    const damaged = new Error("it is damaged, or not such a file");
    const end = text.indexOf("\n");
    const body = text.slice(end + 1);
    let head: { format?: unknown; url?: unknown; key?: unknown; position?: unknown; sum?: unknown };
    try {
      head = JSON.parse(text.slice(0, Math.max(end, 0))) as typeof head;
    } catch {
      throw damaged;
    }
    const own = await this.#head;
    if (head?.format !== own.format) throw damaged;
    if (head.url !== own.url || head.key !== own.key) throw new Error("it belongs to another url or key");
    if (head.sum !== (await sha256(body))) throw damaged;
    const now = this.clock.now();
    const tenants: [string, Tenant][] = [];
    for (const line of body.split("\n")) {
      if (line === "") continue;
      const { host, tenant } = JSON.parse(line) as { host?: unknown; tenant?: unknown };
      const read = rereadTenant(tenant, now);
      if (typeof host !== "string" || read === undefined) throw damaged;
      tenants.push([host, read]);
    }
    this.#ours = true;
    return { position: typeof head.position === "string" ? head.position : undefined, tenants };
  }

  /** Asks for a write. */
  dirty(): void {
    this.#dirty = true;
    if (this.#busy === undefined && this.#stop === undefined && !this.#closed) this.start();
  }

  /** From now on writes what an open change feed confirms with a later time, once a minute. */
  touch(): void {
    this.#stopTouch = this.clock.after(touchEvery, () => {
      this.dirty();
      this.touch();
    });
  }

  private start(): void {
    this.#dirty = false;
    const begun = performance.now();
    this.#busy = this.save().then((saved) => {
      this.#busy = undefined;
      if (this.#closed) return;
      if (!saved) this.#dirty = true;
      const wait = saved ? Math.max(saveEvery, (performance.now() - begun) * saveShare) : retryEvery;
      this.#stop = this.clock.after(wait, () => {
        this.#stop = undefined;
        if (this.#dirty) this.start();
      });
    });
  }

  /** Writes the store and reports whether it did. */
  private async save(): Promise<boolean> {
    let told = "";
    try {
      const { position, tenants } = this.kept();
      this.#ours ||= tenants.length > 0;
      if (!this.#ours) return true; // as with a wrong key
      const body = tenants.map(([host, tenant]) => `${JSON.stringify({ host, tenant })}\n`).join("");
      const head = { ...(await this.#head), position, sum: await sha256(body) };
      await this.store.write(`${JSON.stringify(head)}\n${body}`);
    } catch (error) {
      told = error instanceof Error ? error.message : String(error);
    }
    if (told !== "" && told !== this.#told) this.log(`fingerpost: the file of answers is not written: ${told}`);
    this.#told = told;
    return told === "";
  }

  /** Writes what was not written. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stop?.();
    this.#stopTouch?.();
    await this.#busy;
    if (this.#dirty) await this.save();
    await this.store.close();
  }
}

async function sha256(text: string): Promise<string> {
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(sum), (b) => b.toString(16).padStart(2, "0")).join("");
}
