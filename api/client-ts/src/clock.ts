/** The time of a client; tests give one that jumps. */
export interface Clock {
  /** Milliseconds since 1970. They must not go backwards. */
  now(): number;
  /** Calls f after a time in milliseconds, unless the function that it returns is called before. */
  after(ms: number, f: () => void): () => void;
}

/** The clock of the machine. It does not follow corrections of the machine's time, so that no answer becomes fresh again. @internal */
export function realClock(): Clock {
  const ticks: { now(): number } = globalThis.performance ?? Date;
  const base = Date.now() - ticks.now();
  return {
    now: () => base + ticks.now(),
    after: (ms, f) => {
      const timer = setTimeout(f, ms);
      return () => clearTimeout(timer);
    },
  };
}

/**
 * A signal that aborts after a time, or with another signal, which has not aborted yet: workerd lets a request listen to a
 * signal of another request, and does not let it read that signal.
 * @internal
 */
export class Limit {
  readonly #control = new AbortController();
  readonly signal = this.#control.signal;
  #stop: (() => void) | undefined;

  constructor(
    private readonly clock: Clock,
    private readonly ms: number,
    private readonly why: Error,
    private readonly parent?: AbortSignal,
  ) {
    parent?.addEventListener("abort", this.#aborted);
    this.restart();
  }

  readonly #aborted = (): void => this.end(this.parent?.reason);

  /** Lets the time begin again. */
  restart(): void {
    this.#stop?.();
    this.#stop = this.clock.after(this.ms, () => this.end(this.why));
  }

  /** Aborts the signal now. */
  end(why?: unknown): void {
    this.#stop?.();
    this.parent?.removeEventListener("abort", this.#aborted);
    this.#control.abort(why);
  }
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
export function sleep(clock: Clock, ms: number, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (end.aborted) return resolve();
    new Limit(clock, ms, new Error("over"), end).signal.addEventListener("abort", () => resolve());
  });
}
