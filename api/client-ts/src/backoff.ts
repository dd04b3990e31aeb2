const first = 1000;
const longest = 30_000;
export const longestRetryAfter = 300_000; // no answer of the server switches the client off

/** Milliseconds to wait after a number of failures in a row: full jitter, and not less than the server has asked for. */
export function backoff(failures: number, retryAfter: number): number {
  const limit = Math.min(longest, first * 2 ** Math.min(failures - 1, 5));
  return Math.max(Math.random() * limit, Math.min(retryAfter, longestRetryAfter));
}
