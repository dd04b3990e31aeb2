import { backoff } from "./backoff.js";
import { Blocks, type Block } from "./blocks.js";
import { sleep, type Clock } from "./clock.js";
import { Failure, failure, mediaType, type Wire } from "./wire.js";

const path = "/api/platform/events";
const silence = 45_000; // without a byte, after which a stream is dead; a comment comes every 15 s
const goodAfter = 10_000; // after which a stream has been good

/** What the feed tells, one call after the other. */
export interface Listener {
  /** The first block of a stream has come. resumed: the stream goes on where the one before ended. */
  connected(resumed: boolean): void;
  heard(): void;
  seen(id: string): void;
  reset(): void;
  changed(names: string[]): void;
  lost(why: Error): void;
}

/** Keeps a stream of the server's change feed open. */
export class Feed {
  /** Fulfilled when the feed is first open or has first failed. */
  readonly tried: Promise<void>;
  private triedOnce!: () => void;
  private lastID = ""; // to resume after

  constructor(
    private readonly wire: Wire,
    private readonly clock: Clock,
    private readonly end: AbortSignal,
    private readonly to: Listener,
  ) {
    this.tried = new Promise((resolve) => (this.triedOnce = resolve));
  }

  /** Returns when the client is closed. */
  async follow(): Promise<void> {
    for (let failures = 0; !this.end.aborted; ) {
      const opened: { at?: number } = {};
      let why: Failure;
      try {
        why = await this.stream(opened);
      } catch (error) {
        why = error as Failure;
      }
      if (opened.at !== undefined && this.clock.now() - opened.at >= goodAfter) failures = 0;
      this.to.lost(this.end.aborted ? new Failure("the client is closed") : why);
      this.triedOnce();
      await sleep(this.clock, backoff(++failures, why.retryAfter), this.end);
    }
  }

  /** Follows one stream until it ends, which is always a failure. */
  private async stream(opened: { at?: number }): Promise<Failure> {
    const control = new AbortController();
    const closed = (): void => control.abort(new Failure("the client is closed"));
    let stop = (): void => undefined;
    const alive = (): void => {
      stop();
      stop = this.clock.after(silence, () => control.abort(new Failure(`no byte for ${silence} ms`)));
    };
    this.end.addEventListener("abort", closed);
    alive();
    try {
      const resumes = this.lastID !== "";
      const headers: Record<string, string> = { Accept: "text/event-stream", "Cache-Control": "no-store" };
      if (resumes) headers["Last-Event-ID"] = this.lastID;
      const response = await this.wire.send(path, control.signal, headers);
      if (response.status !== 200 || mediaType(response) !== "text/event-stream" || response.body === null) {
        if (response.status === 400) this.lastID = "";
        throw new Failure(`the change feed answers ${response.status} with ${mediaType(response) || "no content type"}`);
      }
      const reader = response.body.getReader();
      const blocks = new Blocks();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return new Failure("the change feed has ended");
        alive();
        for (const block of blocks.take(value)) {
          if (control.signal.aborted) throw control.signal.reason;
          this.take(block);
          if (opened.at === undefined) {
            opened.at = this.clock.now();
            this.to.connected(resumes);
            this.triedOnce();
          }
          this.to.heard();
        }
      }
    } catch (error) {
      throw failure("the change feed has ended", error, control.signal);
    } finally {
      stop();
      this.end.removeEventListener("abort", closed);
      control.abort(new Failure("the change feed has ended")); // whatever is open of it
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
