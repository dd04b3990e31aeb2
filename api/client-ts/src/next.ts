import type { FingerpostError } from "./errors.js";
import { ask, refusalResponse, tenantOf, type HostOptions } from "./refuse.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

export type { HostOptions } from "./refuse.js";

/** Options of the proxy. */
export interface Options<Req> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. */
  onError?: (request: Req, error: FingerpostError) => Response | Promise<Response>;
}

/**
 * Returns a function for Next's proxy.ts, or middleware.ts before Next 16. It calls pass for requests whose host has a
 * tenant, and answers the others.
 */
export function tenantProxy<Req extends Request>(
  tenants: Tenants,
  pass: (request: Req, tenant: Tenant) => Response | Promise<Response>,
  options: Options<Req> = {},
): (request: Req) => Promise<Response> {
  return async (request) => {
    const get = (name: string) => request.headers.get(name) || (name === "host" ? new URL(request.url).host : null);
    const error = await ask(tenants, request, get, options);
    if (error === undefined) return pass(request, tenantOf(request));
    return options.onError?.(request, error) ?? refusalResponse(error);
  };
}
