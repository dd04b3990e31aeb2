import { FingerpostError, type Code } from "./errors.js";

/**
 * The project that a host name belongs to, and how the project is configured. It is frozen and shared by all lookups of
 * the name; a change on the server gives another object.
 */
export interface Tenant {
  /** Below 2^53; stays for the life of the project, as does uuid. */
  readonly id: number;
  readonly uuid: string;
  /** Unique, may be renamed. */
  readonly slug: string;
  readonly name: string;
  /** DRAFT or ACTIVE; for suspended projects a lookup fails with the code `suspended`. */
  readonly status: string;
  /** The record that matched: the host name, or a wildcard such as *.acme.example. */
  readonly domain: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly auth: Readonly<Auth>;
  readonly services: Readonly<Services>;
  /** Of the answer, quoted; "" where the server gave none. */
  readonly etag: string;
  /** When the server last gave or confirmed the answer. */
  readonly asOf: Date;
  /**
   * The answer is older than `fresh` and the server has not confirmed it, because the change feed is down or the server
   * is away.
   */
  readonly stale: boolean;
}

/** The project's settings for sign-up and sign-in. */
export interface Auth {
  registrationMode: string;
  emailVerificationRequired: boolean;
  phoneVerificationRequired: boolean;
  approvalRequired: boolean;
  inviteOnly: boolean;
  twoFactorRequired: boolean;
}

/** Which services the project uses. */
export interface Services {
  authEnabled: boolean;
  mailEnabled: boolean;
  smsEnabled: boolean;
  auditEnabled: boolean;
}

type Fields = Record<string, unknown>;

function object(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const yes = (value: unknown): boolean => value === true;

/** Reads the data of an answer; undefined if it has no project. @internal */
export function readTenant(data: unknown, etag: string, now: number): Tenant | undefined {
  const d = object(data);
  const project = object(d.project);
  const auth = object(d.authSettings);
  const services = object(d.serviceSettings);
  return made({
    id: Number.isSafeInteger(project.id) ? (project.id as number) : 0,
    uuid: text(project.uuid),
    slug: text(project.slug),
    name: text(project.name),
    status: text(project.status),
    domain: text(object(d.matchedDomain).domain),
    labels: labels(project.labels),
    auth: {
      registrationMode: text(auth.registrationMode),
      emailVerificationRequired: yes(auth.emailVerificationRequired),
      phoneVerificationRequired: yes(auth.phoneVerificationRequired),
      approvalRequired: yes(auth.approvalRequired),
      inviteOnly: yes(auth.inviteOnly),
      twoFactorRequired: yes(auth.twoFactorRequired),
    },
    services: {
      authEnabled: yes(services.authEnabled),
      mailEnabled: yes(services.mailEnabled),
      smsEnabled: yes(services.smsEnabled),
      auditEnabled: yes(services.auditEnabled),
    },
    etag,
    asOf: new Date(now),
    stale: false,
  });
}

/** Reads what JSON.stringify made of a Tenant; undefined if it did not. A time in the future becomes now. @internal */
export function rereadTenant(value: unknown, now: number): Tenant | undefined {
  const t = object(value);
  const asOf = Math.min(Date.parse(text(t.asOf)), now);
  if (Number.isNaN(asOf)) return undefined;
  return readTenant(
    { project: t, authSettings: t.auth, serviceSettings: t.services, matchedDomain: { domain: t.domain } },
    text(t.etag),
    asOf,
  );
}

function made(t: Tenant): Tenant | undefined {
  if (t.id <= 0 || t.slug === "" || t.domain === "") return undefined;
  Object.freeze(t.auth);
  Object.freeze(t.services);
  return Object.freeze(t);
}

function labels(value: unknown): Readonly<Record<string, string>> {
  // Without a prototype: a label may be called constructor.
  const all = Object.create(null) as Record<string, string>;
  for (const [name, label] of Object.entries(object(value))) if (typeof label === "string") all[name] = label;
  return Object.freeze(all);
}

/** @internal */
export function withTime(t: Tenant, asOf: number, stale: boolean): Tenant {
  return Object.freeze({ ...t, asOf: new Date(asOf), stale });
}

const refusals: Record<string, [code: Code, why: string]> = {
  "400 VALIDATION_ERROR": ["invalid", "not a host name"],
  "404 NOT_FOUND": ["unknown", "no project has this host name"],
  "403 DOMAIN_NOT_VERIFIED": ["notVerified", "the domain is not active or not verified"],
  "403 PROJECT_SUSPENDED": ["suspended", "the project is suspended"],
  "403 FORBIDDEN": ["forbidden", "the key does not reach the project"],
};

/** What a status says about a name; undefined if it says nothing. @internal */
export function refusal(host: string, status: number, code: unknown): FingerpostError | undefined {
  const known = refusals[`${status} ${String(code)}`];
  return known && new FingerpostError(known[0], `${host}: ${known[1]}`);
}
