/** The time of a client; tests give one that jumps. */
export interface Clock {
  /** Milliseconds since 1970. They must not go backwards. */
  now(): number;
  /** Calls f after a time in milliseconds, unless the function that it returns is called before. */
  after(ms: number, f: () => void): () => void;
}

/** The clock of the machine. It does not follow corrections of the machine's time, so that no answer becomes fresh again. */
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

/** Waits for a time, or until the signal aborts. */
export function sleep(clock: Clock, ms: number, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (end.aborted) return resolve();
    const woken = (): void => {
      stop();
      end.removeEventListener("abort", woken);
      resolve();
    };
    const stop = clock.after(ms, woken);
    end.addEventListener("abort", woken);
  });
}
