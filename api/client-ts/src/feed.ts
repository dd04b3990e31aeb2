import { backoff } from "./backoff.js";
import { Blocks, type Block } from "./blocks.js";
import { Limit, sleep, type Clock, type End } from "./clock.js";
import { Failure, failure, mediaType, type Wire } from "./wire.js";

const path = "/api/platform/events";
const silence = 45_000; // without a byte, after which a stream is dead; a comment comes every 15 s
const goodAfter = 10_000; // after which a stream has been good

/** What the feed tells, one call after the other. */
export interface Listener {
  /** The first block with an id has come: before it, the server may not know yet what the stream has missed. */
  connected(resumed: boolean): void;
  heard(open: boolean): void;
  seen(id: string): void;
  reset(): void;
  changed(names: string[]): void;
  lost(why: Error): void;
}

/** Keeps a stream of the server's change feed open. */
export class Feed {
  private lastID = ""; // to resume after
  private openedAt: number | undefined;

  constructor(
    private readonly wire: Wire,
    private readonly clock: Clock,
    private readonly end: End,
    private readonly to: Listener,
  ) {}

  /** Returns when the client is closed. */
  async follow(): Promise<void> {
    for (let failures = 0; this.end.reason === undefined; ) {
      const why = await this.stream().catch((error: Failure) => error);
      if (this.openedAt !== undefined && this.clock.now() - this.openedAt >= goodAfter) failures = 0;
      this.to.lost(why);
      await sleep(this.clock, backoff(++failures, why.retryAfter), this.end);
    }
  }

  /** Follows one stream until it ends, which is always a failure. */
  private async stream(): Promise<never> {
    this.openedAt = undefined;
    const limit = new Limit(this.clock, silence, new Failure(`no byte for ${silence} ms`), this.end);
    try {
      const resumes = this.lastID !== "";
      const headers: Record<string, string> = { Accept: "text/event-stream", "Cache-Control": "no-store" };
      if (resumes) headers["Last-Event-ID"] = this.lastID;
      const response = await this.wire.send(path, limit.signal, headers);
      if (response.status !== 200 || mediaType(response) !== "text/event-stream" || response.body === null) {
        if (response.status === 400) this.lastID = "";
        throw new Failure(`the change feed answers ${response.status} with ${mediaType(response)}`);
      }
      const reader = response.body.getReader();
      const blocks = new Blocks();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) throw new Failure("the change feed has ended");
        limit.restart();
        for (const block of blocks.take(value)) {
          if (limit.signal.aborted) throw limit.signal.reason;
          this.take(block);
          if (this.openedAt === undefined && block.id) {
            this.openedAt = this.clock.now();
            this.to.connected(resumes);
          }
          this.to.heard(this.openedAt !== undefined);
        }
      }
    } catch (error) {
      throw failure("the change feed has ended", error, limit.signal);
    } finally {
      limit.end(); // and whatever is open of the stream
    }
  }

  private take(block: Block): void {
    let domains: unknown = [];
    if (block.data !== undefined && block.event !== "reset") {
      const event = JSON.parse(block.data) as { domains?: unknown } | null;
      domains = event?.domains ?? [];
    }
    if (!Array.isArray(domains)) throw new Error("an event of the change feed has no domains");
    if (block.id !== undefined && /^[\x21-\x7e]*$/.test(block.id)) {
      this.lastID = block.id;
      this.to.seen(block.id);
    }
    if (block.event === "reset") this.to.reset();
    else if (domains.length > 0) this.to.changed(domains.map(String));
  }
}

/** Reports whether a host is below one of the names, at any depth. */
export function isBelow(host: string, names: ReadonlySet<string>): boolean {
  if (names.size === 0) return false;
  for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
    if (names.has(host.slice(dot + 1))) return true;
  }
  return false;
}
