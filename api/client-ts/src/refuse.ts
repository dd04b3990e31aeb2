import { FingerpostError } from "./errors.js";
import type { Tenant } from "./tenant.js";
import type { Tenants } from "./tenants.js";

/** What all middlewares take. */
export interface HostOptions {
  /** Take the host from the first X-Forwarded-Host where it is there. Set it behind a proxy that sets the header only. */
  trustForwardedHost?: boolean;
}

// Frameworks have no place with a type for a request's tenant.
const tenantsByRequest = new WeakMap<object, Tenant>();

/** The tenant of a request that has passed the middleware; of a context in Hono. */
export function tenantOf(request: object): Tenant {
  const tenant = tenantsByRequest.get(request);
  if (tenant === undefined) throw new Error("this request has not passed the middleware of fingerpost-client");
  return tenant;
}

/** @internal */
export type GetHeader = (name: string) => string | null | undefined;

/** Asks for the tenant of a request, which tenantOf then returns, or returns the error of a lookup. @internal */
export async function ask(tenants: Tenants, request: object, get: GetHeader, options: HostOptions): Promise<FingerpostError | undefined> {
  const forwarded = options.trustForwardedHost && get("x-forwarded-host")?.split(",")[0]?.trim();
  try {
    tenantsByRequest.set(request, await tenants.lookup(forwarded || (get("host") ?? get(":authority") ?? "")));
  } catch (error) {
    if (error instanceof FingerpostError) return error;
    throw error;
  }
  return undefined;
}

/** Reads the headers of a request of Node. @internal */
export function nodeHeaders(request: { headers: Record<string, string | string[] | undefined> }): GetHeader {
  return (name) => [request.headers[name] ?? ""].flat()[0] || undefined;
}

/** How a request is answered whose host has no tenant. The text does not say why: that is for operators. @internal */
export function refusal(error: FingerpostError): { status: number; headers: Record<string, string>; text: string } {
  const headers: Record<string, string> = { "Cache-Control": "no-store", "Content-Type": "text/plain; charset=utf-8" };
  switch (error.code) {
    case "unknown":
    case "invalid":
      return { status: 404, headers, text: "unknown host\n" };
    case "notVerified":
    case "suspended":
    case "forbidden":
      return { status: 403, headers, text: "this host is not served\n" };
    default:
      headers["Retry-After"] = String(Math.max(1, Math.ceil(error.retryAfter / 1000)));
      return { status: 503, headers, text: "temporarily unavailable\n" };
  }
}

/** The same as a Response. @internal */
export function refusalResponse(error: FingerpostError): Response {
  const { text, ...init } = refusal(error);
  return new Response(text, init);
}
