import type { FingerpostError } from "./errors.js";
import { ask, nodeHeaders, refusal, type HostOptions } from "./refuse.js";
import type { Tenants } from "./tenants.js";

export { tenantOf, type HostOptions } from "./refuse.js";

interface Request {
  headers: Record<string, string | string[] | undefined>;
}
interface Response {
  writeHead(status: number, headers: Record<string, string>): unknown;
  end(text: string): unknown;
}
type Next = (error?: unknown) => void;

/** Options of the middleware. */
export interface Options<Req, Res> extends HostOptions {
  /** Answers a request whose host has no tenant, in place of 404, 403 or 503. */
  onError?: (request: Req, response: Res, error: FingerpostError, next: Next) => void;
}

/** Lets requests pass whose host has a tenant, which tenantOf returns. Express 4 and 5; the order of `use` matters. */
export function tenantMiddleware<Req extends Request, Res extends Response>(
  tenants: Tenants,
  options: Options<Req, Res> = {},
): (request: Req, response: Res, next: Next) => void {
  return (request, response, next) => {
    ask(tenants, request, nodeHeaders(request), options).then((error) => {
      if (error === undefined) return next();
      if (options.onError !== undefined) return options.onError(request, response, error, next);
      const { status, headers, text } = refusal(error);
      response.writeHead(status, headers);
      response.end(text);
    }).catch(next);
  };
}
