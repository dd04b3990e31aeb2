/** The time of a client; tests give one that jumps. */
export interface Clock {
  /** Milliseconds since 1970. They must not go backwards. */
  now(): number;
  /** Calls f after a time in milliseconds, unless the function that it returns is called before. */
  after(ms: number, f: () => void): () => void;
}

/**
 * The clock of the machine. It follows the machine's time forward only, so that no answer becomes fresh again: the ticks of
 * most systems stand still while the machine sleeps. @internal
 */
export function realClock(): Clock {
  const ticks: { now(): number } = globalThis.performance ?? Date;
  let base = 0;
  return {
    now: () => (base = Math.max(base, Date.now() - ticks.now())) + ticks.now(),
    after: (ms, f) => {
      const timer = setTimeout(f, ms);
      return () => clearTimeout(timer);
    },
  };
}

/** The end of a client, for which any number of functions wait: Node warns of an AbortSignal with more than ten. @internal */
export class End {
  readonly waiting = new Set<(why: unknown) => void>();
  reason: unknown;

  come(why: unknown): void {
    this.reason = why;
    for (const f of this.waiting) f(why);
  }
}

/** A signal that aborts after a time, or with the end of the client. @internal */
export class Limit {
  readonly #control = new AbortController();
  readonly signal = this.#control.signal;
  #stop: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ms: number,
    private readonly why: Error,
    private readonly parent?: End,
  ) {
    this.restart();
    parent?.waiting.add(this.end);
    if (parent?.reason !== undefined) this.end(parent.reason);
  }

  /** Lets the time begin again. */
  restart(): void {
    this.#stop?.();
    this.#stop = this.clock.after(this.ms, () => this.end(this.why));
  }

  /** Aborts the signal now. */
  readonly end = (why?: unknown): void => {
    this.#stop?.();
    this.parent?.waiting.delete(this.end);
    this.#control.abort(why);
  };
}

/** Waits for a promise; it throws the signal's reason if the signal aborts before. @internal */
export async function unlessAborted<T>(done: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop!: () => void;
  const aborted = new Promise<never>((_, reject) => (stop = () => reject(signal.reason)));
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    return await Promise.race([aborted, done]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Waits for a time, or until the signal aborts. @internal */
export function sleep(clock: Clock, ms: number, end: End): Promise<void> {
  const { signal } = new Limit(clock, ms, new Error("over"), end);
  return new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", () => resolve())));
}
