import type { FingerpostError } from "./errors.js";
import type { Tenant } from "./tenant.js";

/** A question about a host that is on the wire. All lookups of the host wait for it. */
export class Question {
  era: number;
  /** An event has named the host meanwhile: the answer is not kept. */
  void = false;
  tenant: Tenant | undefined;
  error: FingerpostError | undefined;
  readonly done: Promise<void>;
  private finish!: () => void;

  constructor(
    readonly host: string,
    /** What is to be confirmed. */
    readonly prior: Tenant | undefined,
    era: number,
    /** When it has ended for certain: later it was lost, with the request that sent it. */
    readonly expires: number,
    /** How many failures were counted when it was sent. */
    readonly rounds: number,
  ) {
    this.era = era;
    this.done = new Promise((resolve) => (this.finish = resolve));
  }

  end(tenant: Tenant | undefined, error: FingerpostError | undefined): void {
    this.tenant = tenant;
    this.error = error;
    this.finish();
  }
}
