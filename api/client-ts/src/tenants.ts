import { backoff, longestRetryAfter } from "./backoff.js";
import { End, Limit, sleep, unlessAborted } from "./clock.js";
import { Entries, type Entry } from "./entries.js";
import { FingerpostError, isAnswer } from "./errors.js";
import { Feed, isBelow } from "./feed.js";
import { canonical, remembered } from "./host.js";
import { Keeper } from "./keeper.js";
import { complete, type Complete, type Kind, type Options } from "./options.js";
import { parsePosition, positionText, reaches, type Position } from "./position.js";
import { Question } from "./question.js";
import { readTenant, refusal, withTime, type Tenant } from "./tenant.js";
import { Failure, failure, Wire, type Answer } from "./wire.js";

const lookupLimit = 2000;
const askLimit = 5000; // of a question; the server waits up to 2 s for a position
const batchLimit = 30_000;
const maxBatch = 1000;
const maxQuestions = 64; // on the wire: new names must not take the connections of known ones
const pause = 20_000; // without a lookup or a comment of the feed, one of which comes every 15 s: the process was stopped
const closedText = "the client is closed";
const sends = 4; // of one question, where its position is refused
const resolvePath = "/api/platform/projects/resolve?labels=1";

/** The state of a client, for a health page. */
export interface Status {
  /** The change feed is open. */
  connected: boolean;
  /** Of the newest change that was seen. */
  position: string | undefined;
  /** Names with a tenant in memory that no event has dropped. */
  entries: number;
  /** Names without one in memory. */
  negatives: number;
  /** The earliest asOf in memory. */
  oldestAsOf: Date | undefined;
  /** Why the feed is not open or the last question failed. */
  lastError: Error | undefined;
  /** When the server last answered or sent anything. */
  lastContact: Date | undefined;
}

/** What an entry is worth at a moment. */
type Verdict =
  | "useless" // no answer, or one that is too old
  | "good" // nothing has changed since
  | "goodForNow" // the answer to give, while the server is asked
  | "toConfirm"; // to be confirmed by the server, unless that is away

interface Reply {
  tenant?: Tenant;
  unchanged?: boolean;
  refusal?: FingerpostError;
  maxAge: number;
}

/**
 * Begins to follow the server's change feed and returns at once. It throws a TypeError for wrong options only: while the
 * server is away, names are answered from `file`. Call `close` to end it.
 */
export function open(options: Options): Tenants {
  return new Tenants(complete(options));
}

/** Answers which tenant a host name belongs to, from memory where it can. Made by `open`. */
export class Tenants {
  readonly #o: Complete;
  readonly #wire: Wire;
  readonly #entries: Entries;
  readonly #asking = new Map<string, Question>();
  readonly #feed: Feed | undefined;
  readonly #keeper: Keeper | undefined;
  readonly #end = new End();
  #loading: Promise<void> | undefined;
  /** Counts the times at which everything was marked. An entry of an earlier era is confirmed before its next use. */
  #era = 1;
  #connected = false;
  #heard = 0; // when an open feed last had a whole event or comment
  #alive = 0; // when the process last looked at the time or heard the feed
  #paused = false; // the process was stopped, and has not heard the feed since
  #contact = 0;
  #feedError: Error | undefined;
  #seen: { at: Position; reached: boolean } | undefined;
  /** What is known of a server that does not answer questions. */
  #away = { failures: 0, until: 0, asked: 0, probing: 0, cause: undefined as Failure | undefined };
  #rounds = 0; // failures, without those of questions that were on the wire when another one was counted
  readonly #questions = new Set<Question>(); // on the wire, without batches
  #warm: "toAsk" | "asked" | "answered" = "toAsk";
  #closed: Promise<void> | undefined;
  readonly #ready: Promise<void>;
  #isReady!: () => void;

  /** @internal */
  constructor(o: Complete) {
    this.#o = o;
    const { clock } = o;
    this.#wire = new Wire(o.url, o.key, o.fetch, clock.now);
    this.#entries = new Entries(o.maxEntries, o.maxNegative);
    this.#ready = new Promise((resolve) => (this.#isReady = resolve));
    if (o.file !== undefined) {
      const keeper = new Keeper(o.file, o.url, o.key, clock, this.#log, () => ({
        position: this.#seen && positionText(this.#seen.at),
        tenants: this.#kept(),
      }));
      this.#keeper = keeper;
      if (o.maxStale > 0) keeper.touch();
      this.#loading = this.#load(keeper);
    }
    if (!o.feed) {
      void this.#askWarm();
      return;
    }
    this.#feed = new Feed(this.#wire, clock, this.#end, {
      connected: (resumed) => this.#connect(resumed),
      heard: (open) => this.#hear(open),
      seen: (id) => this.#see(id),
      reset: () => this.#mark(),
      changed: (names) => this.#forget(names),
      lost: (why) => this.#disconnect(why),
    });
    void this.#follow(this.#feed);
  }

  /**
   * Returns the tenant of a host as a client sends it: case, a port, a final dot and IDNA do not matter. A name in memory
   * is answered without a request; any other is one request, which all lookups of the name share.
   *
   * It fails with a FingerpostError: one of the answers, `unauthorized`, `unavailable`, or `cancelled` when the signal
   * aborts (`cause` is its reason) or, without a signal, after 2 s. A name that is in memory is answered also then.
   */
  lookup(host: string, options?: { signal?: AbortSignal | undefined }): Promise<Tenant> {
    const e = this.#entries.byHost.get(host) ?? this.#entries.byHost.get(remembered(host) ?? "");
    if (e !== undefined && e.era === this.#era && this.#o.observe === undefined && this.#follows(this.#o.clock.now())) {
      this.#entries.used(e);
      return e.promise ?? Promise.reject(e.error as FingerpostError);
    }
    return this.#lookup(host, options?.signal);
  }

  async #lookup(host: string, signal: AbortSignal | undefined): Promise<Tenant> {
    const { observe, clock } = this.#o;
    const begun = observe && clock.now();
    let kind: Kind = "negative";
    try {
      const name = canonical(host);
      kind = "error";
      const [tenant, answered] = await this.#answer(name, signal);
      kind = answered;
      return tenant;
    } catch (error) {
      if (error instanceof FingerpostError && isAnswer(error)) kind = "negative";
      throw error;
    } finally {
      if (begun !== undefined) this.#call(() => observe?.({ kind, host, duration: clock.now() - begun }));
    }
  }

  /** Answers a canonical name by memory, by the server, or by memory if the server is away. */
  async #answer(name: string, signal: AbortSignal | undefined): Promise<[Tenant, Kind]> {
    let limit: Limit | undefined;
    /** Waits for done; the error if the lookup gives up before. */
    const wait = (done: Promise<void>): Promise<FingerpostError | undefined> => {
      const end = signal ?? (limit ??= new Limit(this.#o.clock, lookupLimit, noAnswer(lookupLimit))).signal;
      return unlessAborted(done, end).then(
        () => undefined,
        (cause: unknown) => new FingerpostError("cancelled", "the lookup was given up", { cause }),
      );
    };
    try {
      if (this.#loading !== undefined) await wait(this.#loading);
      for (;;) {
        const now = this.#o.clock.now();
        const e = this.#entries.byHost.get(name);
        const verdict = this.#judge(e, now);
        if (e !== undefined && (verdict === "good" || verdict === "goodForNow")) {
          if (verdict === "goodForNow" && this.#question(name, now) === undefined && this.#mayAsk(now)) this.#ask(name, e);
          return this.#give(e, verdict);
        }
        let q = this.#question(name, now);
        const joins = q === undefined || (!q.void && q.era === this.#era); // otherwise it may be older than an event
        if (q === undefined) {
          if (!this.#mayAsk(now)) {
            if (e !== undefined && verdict === "toConfirm") return this.#give(e, "goodForNow");
            throw this.#awayError();
          }
          q = this.#ask(name, e);
        }
        const gaveUp = await wait(q.done);
        if (gaveUp === undefined && !joins) continue;
        if (q.tenant !== undefined && gaveUp === undefined) return [q.tenant, "miss"];
        const error = gaveUp ?? (q.error as FingerpostError);
        if (!isAnswer(error) && verdict === "toConfirm" && e !== undefined) return this.#give(e, "goodForNow");
        throw error;
      }
    } finally {
      limit?.end();
    }
  }

  #judge(e: Entry | undefined, now: number): Verdict {
    if (e === undefined) return "useless";
    const current = e.era === this.#era;
    if (current && this.#follows(now)) return "good";
    const age = now - this.#asOf(e);
    if (current && age < e.fresh) return "good";
    if (e.tenant === undefined ? age >= e.fresh : this.#o.maxStale > 0 && age > this.#o.maxStale) return "useless";
    if ((current && this.#feed !== undefined) || (this.#away.failures > 0 && !e.aside) || this.#closed !== undefined) return "goodForNow";
    return "toConfirm";
  }

  /** When the server last gave or confirmed an answer. An open change feed confirms what it does not name. */
  #asOf(e: Entry): number {
    return e.era === this.#era && this.#heard > e.asOf ? this.#heard : e.asOf;
  }

  #give(e: Entry, verdict: Verdict): [Tenant, Kind] {
    if (this.#entries.byHost.get(e.host) === e) this.#entries.used(e);
    if (e.tenant === undefined) throw e.error as FingerpostError;
    const asOf = this.#asOf(e);
    const current = e.era === this.#era; // otherwise the server should have confirmed it
    if (verdict === "good" || (current && this.#o.clock.now() - asOf < e.fresh)) return [e.tenant, "hit"];
    if (e.stale?.asOf.getTime() !== Math.trunc(asOf)) e.stale = withTime(e.tenant, asOf, true);
    return [e.stale as Tenant, "stale"];
  }

  // ---- questions

  /** The question about a name that is on the wire. Some runtimes drop one with the request that sent it. */
  #question(name: string, now: number): Question | undefined {
    const q = this.#asking.get(name);
    return q !== undefined && now < q.expires ? q : undefined;
  }

  /** Reports whether a question may go to the server. While the server is away, one may after each wait; it has to follow. */
  #mayAsk(now: number): boolean {
    const a = this.#away;
    if (this.#closed !== undefined) return false;
    if (this.#questions.size >= maxQuestions) {
      for (const [host, q] of this.#asking) {
        if (now < q.expires) continue; // otherwise it was lost by the runtime
        this.#asking.delete(host);
        this.#questions.delete(q);
      }
      if (this.#questions.size >= maxQuestions) return false;
    }
    if (a.failures === 0) return true;
    if (now < a.until || now < a.probing) return false;
    a.probing = now + askLimit;
    return true;
  }

  #awayError(): FingerpostError {
    const { cause, until } = this.#away;
    const why = cause ?? new Failure(this.#closed === undefined ? "too many questions" : closedText);
    return why.asError(Math.max(0, until - this.#o.clock.now()));
  }

  #pose(host: string, prior: Tenant | undefined, limit: number): Question {
    const q = new Question(host, prior, this.#era, this.#o.clock.now() + limit + 1000, this.#rounds);
    this.#asking.set(host, q);
    return q;
  }

  #ask(host: string, e: Entry | undefined): Question {
    const q = this.#pose(host, e?.aside ? undefined : e?.tenant, askLimit);
    this.#questions.add(q);
    void this.#resolve(q).then(
      (reply) => {
        this.#succeeded();
        this.#settle(q, reply);
      },
      (error: unknown) => {
        this.#failed(error as Failure, q);
        this.#settle(q, undefined);
      },
    );
    return q;
  }

  /** Ends a question with what the server has said; undefined: nothing. */
  #settle(q: Question, reply: Reply | undefined): void {
    this.#questions.delete(q);
    if (this.#asking.get(q.host) === q) this.#asking.delete(q.host);
    else q.void = true; // it was taken for lost, and events did not reach it
    if (reply === undefined) return q.end(undefined, this.#awayError());
    const now = this.#o.clock.now();
    const tenant = reply.unchanged ? withTime(q.prior as Tenant, now, false) : reply.tenant;
    if (!q.void) {
      this.#put(q.host, tenant, reply.refusal, now, q.era, reply.maxAge);
      this.#keeper?.dirty();
    }
    q.end(tenant, reply.refusal);
  }

  #put(host: string, tenant: Tenant | undefined, error: FingerpostError | undefined, asOf: number, era: number, fresh: number): void {
    const promise = tenant && Promise.resolve(tenant);
    this.#entries.put({ host, tenant, error, promise, stale: undefined, asOf, fresh, era, newer: undefined, older: undefined });
  }

  #succeeded(): void {
    this.#away = { failures: 0, until: 0, asked: 0, probing: 0, cause: undefined };
    this.#contact = this.#o.clock.now();
  }

  #failed(why: Failure, q: Question): void {
    const a = this.#away;
    const now = this.#o.clock.now();
    if (why.retryAfter > 0) a.asked = now + Math.min(why.retryAfter, longestRetryAfter);
    a.until = Math.max(a.until, a.asked);
    if (q.rounds !== this.#rounds) return; // another question that was on the wire with it has been counted
    this.#rounds++;
    const until = Math.max(a.asked, now + backoff(a.failures + 1, 0));
    this.#away = { failures: a.failures + 1, until, asked: a.asked, probing: 0, cause: why };
  }

  /** A block of the feed has come. One of an open feed ends the wait after failures, unless the server has asked for it. */
  #hear(open: boolean): void {
    const now = (this.#contact = this.#o.clock.now());
    if (!open) return;
    this.#heard = this.#alive = now;
    this.#paused = false;
    if (now >= this.#away.asked) this.#succeeded();
  }

  /** Reports whether the feed is open and could be heard: nobody knows what came while the process was stopped. */
  #follows(now: number): boolean {
    if (now - this.#alive > pause) this.#paused = true;
    this.#alive = now;
    return this.#connected && !this.#paused;
  }

  async #resolve(q: Question): Promise<Reply> {
    const etag = q.prior?.etag ?? "";
    const headers: Record<string, string> = etag === "" ? {} : { "If-None-Match": etag };
    const a = await this.#exchange([q], `${resolvePath}&domain=${encodeURIComponent(q.host)}`, askLimit, headers);
    const now = this.#o.clock.now();
    const maxAge = this.#feed === undefined ? freshness(a.headers, this.#o.fresh) : this.#o.fresh;
    if (a.status === 304 && etag !== "") return { unchanged: true, maxAge };
    if (a.status === 200) {
      const tenant = readTenant(a.data, a.headers.get("ETag") ?? "", now);
      if (tenant === undefined) throw new Failure("an answer has no project");
      return { tenant, maxAge };
    }
    const refused = refusal(q.host, a.status, a.code);
    if (refused === undefined) throw new Failure(`the server answers ${a.status}`);
    return { refusal: refused, maxAge: this.#o.fresh };
  }

  /** Sends a request, again where its position is refused. The answer is as new as the newest event. */
  async #exchange(qs: Question[], path: string, ms: number, headers: Record<string, string>, body?: string): Promise<Answer> {
    const limit = new Limit(this.#o.clock, ms, noAnswer(ms), this.#end);
    try {
      for (let n = 0; n < sends; n++) {
        for (const q of qs) q.era = this.#era;
        const seen = this.#seen;
        const min = seen && !seen.reached ? { "X-Min-Position": positionText(seen.at) } : undefined;
        const a = await this.#wire.ask(path, limit.signal, { ...headers, ...min }, body);
        if (a.status === 409 && a.code === "POSITION_UNKNOWN" && min !== undefined) {
          // The files were restored, or the node is another cluster's.
          this.#seen = undefined;
          this.#mark();
          continue;
        }
        const at = parsePosition(a.headers.get("X-Config-Position"));
        if (seen === undefined || at === undefined) return a;
        seen.reached = reaches(at, seen.at); // where nodes differ, the next question asks for the position
        if (seen.reached) return a;
        if (min !== undefined) throw new Failure("an answer is older than the position that was asked for");
      }
      throw new Failure("the server's position changes with every answer");
    } catch (error) {
      throw failure("the request failed", error, limit.signal);
    } finally {
      limit.end();
    }
  }

  // ---- the change feed

  async #follow(feed: Feed): Promise<void> {
    await this.#loading;
    await feed.follow();
  }

  #connect(resumed: boolean): void {
    if (this.#feedError !== undefined) this.#log("fingerpost: the change feed is open");
    this.#connected = true;
    this.#hear(true);
    this.#feedError = undefined;
    this.#succeeded();
    if (!resumed) this.#mark();
    void this.#askWarm();
    this.#checkReady();
  }

  #disconnect(why: Error): void {
    if (this.#feedError?.message !== why.message && this.#closed === undefined) {
      this.#log(`fingerpost: the change feed is not open: ${why.message}`);
    }
    this.#connected = false;
    this.#feedError = why;
    void this.#askWarm();
  }

  #see(id: string): void {
    const at = parsePosition(id);
    if (at !== undefined && !(this.#seen && reaches(this.#seen.at, at))) this.#seen = { at, reached: false };
  }

  /** Drops what is known of the names of an event, and voids the questions about them. A tenant is set aside. */
  #forget(names: string[]): void {
    const exact = new Set(names.filter((name) => !name.startsWith("*.")));
    const below = new Set(names.filter((name) => name.startsWith("*.")).map((name) => name.slice(2)));
    for (const [host, q] of this.#asking) q.void ||= exact.has(host) || isBelow(host, below);
    const dropped: Entry[] = [];
    for (const name of exact) {
      const e = this.#entries.byHost.get(name);
      if (e !== undefined) dropped.push(e);
    }
    if (below.size > 0) {
      for (const e of this.#entries.byHost.values()) if (!exact.has(e.host) && isBelow(e.host, below)) dropped.push(e);
    }
    this.#keeper?.dirty();
    this.#changed(dropped.filter((e) => !e.aside).map((e) => e.host));
    for (const e of dropped) {
      if (e.tenant === undefined) this.#entries.drop(e);
      else {
        e.asOf = this.#asOf(e);
        e.era = 0;
        e.aside = true;
      }
    }
  }

  /** Has every entry confirmed before its next use. */
  #mark(): void {
    const all = [...this.#entries.byHost.values()];
    for (const e of all) e.asOf = this.#asOf(e);
    this.#era++;
    this.#changed(all.filter((e) => !e.aside).map((e) => e.host));
  }

  #changed(hosts: string[]): void {
    const { onChange } = this.#o;
    if (hosts.length > 0 && onChange !== undefined) this.#call(() => onChange(hosts));
  }

  /** Calls a function of the user later, in order. Its error, also that of a promise, ends nothing. */
  #call(f: () => void): void {
    void Promise.resolve()
      .then(f)
      .catch((error: unknown) => this.#o.log(`fingerpost: a function given to open has thrown: ${String(error)}`))
      .catch(() => undefined); // it was log
  }

  readonly #log = (line: string): void => this.#call(() => this.#o.log(line));

  // ---- the start and the end

  async #load(keeper: Keeper): Promise<void> {
    const kept = await keeper.load();
    this.#loading = undefined;
    if (kept === undefined) return;
    for (const [host, tenant] of kept.tenants) this.#put(host, tenant, undefined, tenant.asOf.getTime(), 0, this.#o.fresh);
    const at = parsePosition(kept.position);
    if (at !== undefined) this.#seen = { at, reached: false };
    if (kept.tenants.length > 0) this.#isReady();
  }

  #kept(): [string, Tenant][] {
    const all: [string, Tenant][] = [];
    for (const e of this.#entries.byHost.values()) if (e.tenant) all.push([e.host, withTime(e.tenant, this.#asOf(e), false)]);
    return all;
  }

  /** Asks for the names of warm, once: with the feed when that is tried, since what is asked before has to be confirmed. */
  async #askWarm(): Promise<void> {
    if (this.#warm !== "toAsk") return;
    this.#warm = "asked";
    await this.#loading;
    let names: string[] = [];
    for (const host of this.#o.warm) {
      try {
        names.push(canonical(host));
      } catch (error) {
        this.#log(`fingerpost: a name to warm is left out: ${String(error)}`);
      }
    }
    names = [...new Set(names)];
    for (let failures = 0; names.length > 0 && this.#closed === undefined; ) {
      try {
        await this.#batch(names.slice(0, maxBatch));
        names = names.slice(maxBatch);
        failures = 0;
      } catch (error) {
        await sleep(this.#o.clock, backoff(++failures, error instanceof Failure ? error.retryAfter : 0), this.#end);
      }
    }
    if (names.length === 0) this.#warm = "answered";
    this.#checkReady();
  }

  async #batch(names: string[]): Promise<void> {
    const now = this.#o.clock.now();
    const asked = names.filter((name) => !this.#asking.has(name) && this.#judge(this.#entries.byHost.get(name), now) !== "good");
    if (asked.length === 0) return;
    const qs = asked.map((name) => this.#pose(name, undefined, batchLimit));
    let replies: (Reply | undefined)[];
    try {
      const headers = { "Content-Type": "application/json" };
      const body = JSON.stringify({ domains: asked });
      const a = await this.#exchange(qs, resolvePath, batchLimit, headers, body);
      if (a.status !== 200 || !Array.isArray(a.data) || a.data.length !== asked.length) {
        throw new Failure(`the answer to a batch (${a.status}) is not of this API`);
      }
      replies = a.data.map((row: unknown, i) => this.#row(asked[i] as string, row));
      this.#succeeded();
    } catch (error) {
      this.#failed(error as Failure, qs[0] as Question);
      for (const q of qs) this.#settle(q, undefined);
      throw error;
    }
    qs.forEach((q, i) => this.#settle(q, replies[i]));
  }

  #row(host: string, value: unknown): Reply | undefined {
    const row = value as { status?: unknown; code?: unknown; etag?: unknown; result?: unknown } | null;
    const etag = typeof row?.etag === "string" ? row.etag : "";
    const maxAge = this.#o.fresh;
    if (row?.status === 200) {
      const tenant = readTenant(row.result, etag, this.#o.clock.now());
      return tenant && { tenant, maxAge };
    }
    const refused = refusal(host, Number(row?.status), row?.code);
    return refused && { refusal: refused, maxAge };
  }

  #checkReady(): void {
    if (this.#warm === "answered" && (this.#connected || !this.#o.feed)) this.#isReady();
  }

  /**
   * Waits until the change feed is open and the names of `warm` are answered; at once if answers were read from `file`.
   * It fails when the signal aborts, with the signal's reason. A service may begin without it: it then waits in lookup.
   */
  ready(options?: { signal?: AbortSignal | undefined }): Promise<void> {
    return options?.signal ? unlessAborted(this.#ready, options.signal) : this.#ready;
  }

  /** Returns the present state. It looks at every entry. */
  status(): Status {
    let oldest = Infinity;
    let entries = 0;
    for (const e of this.#entries.byHost.values()) {
      if (e.tenant === undefined || e.aside) continue;
      entries++;
      oldest = Math.min(oldest, this.#asOf(e));
    }
    return {
      connected: this.#connected,
      position: this.#seen && positionText(this.#seen.at),
      entries,
      negatives: this.#entries.negative.size,
      oldestAsOf: oldest === Infinity ? undefined : new Date(oldest),
      lastError: this.#away.cause ?? this.#feedError,
      lastContact: this.#contact === 0 ? undefined : new Date(this.#contact),
    };
  }

  /**
   * Ends the change feed and the questions, and writes `file`. Afterwards names are answered from memory, as while the
   * server is away. It may be called again.
   */
  close(): Promise<void> {
    this.#closed ??= (async () => {
      this.#end.come(new Failure(closedText));
      await this.#loading;
      await this.#keeper?.close();
    })();
    return this.#closed;
  }
}

/** How long an answer is good by its Cache-Control, in milliseconds. */
function freshness(headers: Headers, otherwise: number): number {
  const control = headers.get("Cache-Control");
  if (control === null) return otherwise;
  if (/(^|[ ,])no-(store|cache)/i.test(control)) return 0;
  const age = /(?:^|[ ,])max-age=([0-9]{1,9})/i.exec(control);
  return age === null ? otherwise : Number(age[1]) * 1000;
}

function noAnswer(ms: number): Failure {
  return new Failure(`no answer within ${ms} ms`);
}
