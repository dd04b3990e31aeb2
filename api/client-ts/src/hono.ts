import type { FingerpostError } from "./errors.js";
import { ask, refusalResponse, type HostOptions } from "./refuse.js";
import type { Tenants } from "./tenants.js";

export { tenantOf, type HostOptions } from "./refuse.js";

interface Context {
  req: { raw: Request };
}

/** Options of the middleware. */
export interface Options<C> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. */
  onError?: (context: C, error: FingerpostError) => Response | Promise<Response>;
}

/** Lets requests pass whose host has a tenant, which tenantOf returns. */
export function tenantMiddleware<C extends Context>(
  tenants: Tenants,
  options: Options<C> = {},
): (context: C, next: () => Promise<void>) => Promise<Response | void> {
  return async (context, next) => {
    const { raw } = context.req;
    const get = (name: string) => (name === "host" ? new URL(raw.url).host : raw.headers.get(name));
    const error = await ask(tenants, context, get, options);
    if (error === undefined) return next();
    return options.onError?.(context, error) ?? refusalResponse(error);
  };
}
