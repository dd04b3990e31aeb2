import type { FingerpostError } from "./errors.js";
import type { Tenant } from "./tenant.js";

/** The last answer about a name: a tenant or an error. */
export interface Entry {
  readonly host: string;
  readonly tenant: Tenant | undefined;
  readonly error: FingerpostError | undefined;
  /** Of a tenant, settled: a hit makes no object. */
  readonly promise: Promise<Tenant> | undefined;
  /** The tenant with stale set, made when it is first needed. */
  stale: Tenant | undefined;
  /** When the server gave or confirmed it, in milliseconds of the clock. */
  asOf: number;
  /** How long it is good without the change feed, in milliseconds. */
  readonly fresh: number;
  /** The cache's era when the question was asked. */
  era: number;
  /** An event has dropped it: it is kept for the time that the server is away. */
  aside?: boolean;
  newer: Entry | undefined;
  older: Entry | undefined;
}

/** Answers by name, the least recently used of which goes first. */
class Kind {
  size = 0;
  newest: Entry | undefined;
  oldest: Entry | undefined;
  constructor(readonly max: number) {}

  push(e: Entry): void {
    e.newer = undefined;
    e.older = this.newest;
    if (this.newest !== undefined) this.newest.newer = e;
    this.newest = e;
    this.oldest ??= e;
    this.size++;
  }

  unlink(e: Entry): void {
    if (e.newer === undefined) this.newest = e.older;
    else e.newer.older = e.older;
    if (e.older === undefined) this.oldest = e.newer;
    else e.older.newer = e.newer;
    this.size--;
  }
}

/** Tenants and negative answers, with a bound of their own each. */
export class Entries {
  readonly byHost = new Map<string, Entry>();
  readonly positive: Kind;
  readonly negative: Kind;

  constructor(maxPositive: number, maxNegative: number) {
    this.positive = new Kind(maxPositive);
    this.negative = new Kind(maxNegative);
  }

  private kind(e: Entry): Kind {
    return e.tenant === undefined ? this.negative : this.positive;
  }

  used(e: Entry): void {
    const kind = this.kind(e);
    if (kind.newest === e) return;
    kind.unlink(e);
    kind.push(e);
  }

  put(e: Entry): void {
    const before = this.byHost.get(e.host);
    if (before !== undefined) this.drop(before);
    const kind = this.kind(e);
    this.byHost.set(e.host, e);
    kind.push(e);
    if (kind.size > kind.max) this.drop(kind.oldest as Entry);
  }

  drop(e: Entry): void {
    this.byHost.delete(e.host);
    this.kind(e).unlink(e);
  }
}
