import { realClock, type Clock } from "./clock.js";

/** Where the last good answers are kept for a restart while the server is away: `fileStore` of "fingerpost-client/node". */
export interface Store {
  /** The stored text; undefined if there is none. */
  read(): Promise<string | undefined>;
  /** Replaces the text. It fails where another process writes the same store. */
  write(text: string): Promise<void>;
  close(): Promise<void>;
}

/** How a lookup was answered: from memory, from memory with `stale`, by the server, without a tenant, not at all. */
export type Kind = "hit" | "stale" | "miss" | "negative" | "error";

/** The end of a lookup, for metrics and traces. `duration` is in milliseconds, `host` as it was given. */
export interface LookupEvent {
  kind: Kind;
  host: string;
  duration: number;
}

/** What `open` takes. Times are in milliseconds. */
export interface Options {
  /** The address of fingerpost, such as https://fingerpost.internal:8080. The key is sent there only. */
  url: string;
  /** A key with the permission resolve. Default: FINGERPOST_KEY of the environment. */
  key?: string;
  /** Keeps the last good answers for a restart while the server is away. Default: nothing. */
  file?: Store;
  /** Names to ask in one batch at the start. */
  warm?: readonly string[];
  /** How long an answer is good without the change feed. Default: 5,000. */
  fresh?: number;
  /** The age after which an answer is no longer given while the server is away. Default: 0, no limit. */
  maxStale?: number;
  /** How many names with a tenant are kept, 10,000 by default. The least recently used one goes first. */
  maxEntries?: number;
  /** How many names without one are kept, 1,000 by default. */
  maxNegative?: number;
  /**
   * false: no change feed, for functions that live for one request. Answers are good for as long as their Cache-Control
   * says, and then confirmed by their ETag. Nothing is sent before the first lookup.
   */
  feed?: boolean;
  /**
   * Called with the names whose answers were dropped, or marked to be confirmed before the next use. Nothing waits for
   * it, nor for `observe` and `log`: they may use the client, and throw.
   */
  onChange?: (hosts: string[]) => void;
  /** Called at the end of each lookup. */
  observe?: (event: LookupEvent) => void;
  /** Takes a line when the change feed is lost or open again, and for trouble with `file`. Default: console.warn. */
  log?: (line: string) => void;
  /** Sends the requests. Default: the global fetch. */
  fetch?: typeof globalThis.fetch;
  /** For tests. */
  clock?: Clock;
}

/** @internal */
export interface Complete {
  url: string;
  key: string;
  file: Store | undefined;
  warm: readonly string[];
  fresh: number;
  maxStale: number;
  maxEntries: number;
  maxNegative: number;
  feed: boolean;
  onChange: ((hosts: string[]) => void) | undefined;
  observe: ((event: LookupEvent) => void) | undefined;
  log: (line: string) => void;
  fetch: typeof globalThis.fetch;
  clock: Clock;
}

/** Puts the defaults in. It throws a TypeError that names every wrong option, without their values. @internal */
export function complete(o: Options): Complete {
  const problems: string[] = [];
  const url = address(o.url, problems);
  const key = o.key || environment("FINGERPOST_KEY");
  if (!key) problems.push("key is missing: give it here or in FINGERPOST_KEY");
  else if (!/^[\x21-\x7e]+$/.test(key)) problems.push("key holds a blank or another character that no key has");
  const number = (name: "fresh" | "maxStale" | "maxEntries" | "maxNegative", least: number, otherwise: number): number => {
    const value = o[name] ?? otherwise;
    if (!(value >= least)) problems.push(`${name} must be at least ${least}`);
    return value;
  };
  const all = {
    url,
    key: key ?? "",
    file: o.file,
    warm: o.warm ?? [],
    fresh: number("fresh", 0, 5000),
    maxStale: number("maxStale", 0, 0),
    maxEntries: number("maxEntries", 1, 10_000),
    maxNegative: number("maxNegative", 1, 1000),
    feed: o.feed ?? true,
    onChange: o.onChange,
    observe: o.observe,
    log: o.log ?? ((line: string) => console.warn(line)),
    fetch: o.fetch ?? globalThis.fetch,
    clock: o.clock ?? realClock(),
  };
  if (problems.length > 0) throw new TypeError(`fingerpost options: ${problems.join("; ")}`);
  return all;
}

function address(text: string, problems: string[]): string {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // said below, without the text: it may hold a password
  }
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    problems.push("url must be an address such as http://127.0.0.1:8080");
  } else if (url.username !== "" || url.password !== "" || text.includes("?") || text.includes("#")) {
    problems.push("url must have no user, query or fragment");
  }
  return url === undefined ? "" : url.href.replace(/\/+$/, "");
}

function environment(name: string): string | undefined {
  try {
    return (globalThis as { process?: { env?: Record<string, string | undefined> } }).process?.env?.[name];
  } catch {
    return undefined; // Deno without the permission to read it
  }
}
