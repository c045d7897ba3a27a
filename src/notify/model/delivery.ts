import type { Delivery, Endpoint, Channel, UserKey } from './notification.ts';

/** What operators and tenants follow: deliveries, their attempts, and the endpoints that they go to. */

/** What came of one attempt: `failed` is tried again, `dead` is not. */
export const ATTEMPT_OUTCOMES = ['sent', 'failed', 'dead'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** Attempts of one delivery that are kept; the oldest go first. */
export const ATTEMPTS_KEPT = 20;
/** Of what the other side answered; in bytes of UTF-8. */
export const ANSWER_BYTES_MAX = 256;

export type Attempt = {
  /** When it began. */
  readonly atMs: number;
  readonly outcome: AttemptOutcome;
  /** Of HTTP or SMTP; 0 without an answer. */
  readonly answerStatus: number;
  readonly tookMs: number;
  /** '' when it was sent. */
  readonly error: string;
  /** The start of the answer, at most ANSWER_BYTES_MAX. */
  readonly answer: string;
};

/** Which delivery: a notification on its way to one endpoint. */
export type DeliveryKey = { readonly notificationId: string; readonly endpointId: string };

/** A delivery as it is followed. */
export type DeliveryRecord = DeliveryKey &
  UserKey &
  Omit<Delivery, 'endpointId'> & {
    /** An attempt is in progress. */
    readonly isRunning: boolean;
    readonly createdAtMs: number;
    /** Null unless it is pending. */
    readonly nextAttemptMs: number | null;
    /** Null unless it is dead. */
    readonly diedAtMs: number | null;
    /** The last ATTEMPTS_KEPT, oldest first. */
    readonly log: readonly Attempt[];
  };

export type DeliveryQuery = {
  readonly tenantId: string;
  readonly status: Delivery['status'] | null;
  /** '' for any. */
  readonly endpointId: string;
  readonly userId: string;
  /** Made at or after, and before; null for any time. */
  readonly fromMs: number | null;
  readonly untilMs: number | null;
  readonly limit: number;
  /** Only what comes after it, which is older; null for the first page. */
  readonly after: DeliveryKey | null;
};
/** Dead deliveries of a tenant, by when they died. */
export type DeadQuery = Pick<DeliveryQuery, 'tenantId' | 'endpointId' | 'limit' | 'after'> & {
  /** Died at or after, and before; in milliseconds as records show them. */
  readonly diedFromMs: number;
  readonly diedUntilMs: number;
};

/** How many are due and how many can go nowhere. `next` null: there is no more. */
export type RetriedPage = {
  readonly retried: number;
  readonly skipped: number;
  readonly next: DeliveryKey | null;
};

/** `next` null: there is no more. A page may be short, or empty, with more to come. */
export type DeliveryPage = {
  readonly deliveries: readonly DeliveryRecord[];
  readonly next: DeliveryKey | null;
};

/** How one attempt ended, to be recorded. */
export type Settlement = DeliveryKey & {
  readonly tenantId: string;
  readonly status: Delivery['status'];
  /** Made, this one among them. */
  readonly attempts: number;
  /** Null unless it is pending. */
  readonly nextAttemptMs: number | null;
  readonly attempt: Attempt;
};

/** An endpoint that has failed for so long that nothing goes to it any more. */
export type DisabledEndpoint = {
  readonly tenantId: string;
  readonly endpointId: string;
  readonly failingSinceMs: number;
};

/** An endpoint as it fares. */
export type EndpointState = {
  readonly endpoint: Endpoint;
  /** Nothing has succeeded since; null: the last attempt did. */
  readonly failingSinceMs: number | null;
  readonly disabledAtMs: number | null;
  /** Until then the secret before the newest one signs, too; null: it alone does. */
  readonly previousSecretUntilMs: number | null;
};

/** What a tenant has in progress in one process, of one channel. */
export type BusyTenant = {
  readonly tenantId: string;
  readonly count: number;
  /** The endpoint that was served last. */
  readonly afterEndpoint: string;
  readonly endpoints: ReadonlyMap<string, number>;
};

/** Asks for due deliveries of one channel. */
export type ClaimRequest = {
  readonly channel: Channel;
  readonly nowMs: number;
  /** Hidden from other claims for so long. */
  readonly leaseMs: number;
  /** As many at most. */
  readonly places: number;
  /** In progress at once, `busy` among them; a tenant never has more than there are places left. */
  readonly perTenantMax: number;
  readonly perEndpointMax: number;
  /** That a tenant gets before the next one's turn. */
  readonly visitMax: number;
  readonly busy: readonly BusyTenant[];
  /** The tenant that was visited last; '' for none. */
  readonly afterTenant: string;
};
