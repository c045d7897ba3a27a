import { createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../shared/app-error.ts';
import type { JsonObject } from '../../shared/json.ts';
import { DECODE_TURNS } from '../../shared/slice-queue.ts';
import type { DeliveryMemory } from './delivery-memory.ts';
import { parsePayload } from './inbox-payload.ts';

/** Of the raw body; GitHub caps its payloads at the same. */
export const INBOX_BODY_BYTES_MAX = 25 * 1024 * 1024;
const SIGNATURE_HEADERS: readonly string[] = ['x-host-signature-256', 'x-hub-signature-256'];
const SIGNATURE = /^sha256=([0-9a-f]{64})$/i;
const EVENT = /^[a-z][a-z0-9_.-]{0,99}$/i;
const DELIVERY_ID = /^[\w.:-]{1,128}$/;

export type DeliveryRequest = {
  /** Repeated headers joined by `, `, as `Headers` does. */
  readonly headers: { get(name: string): string | null };
  /** As received, before any parsing. */
  readonly rawBody: Uint8Array;
};

export type InboxDelivery =
  | { readonly kind: 'ping'; readonly deliveryId: string }
  /** A delivery id or a signature that was seen before. */
  | { readonly kind: 'duplicate'; readonly event: string; readonly deliveryId: string }
  | {
      readonly kind: 'accepted';
      readonly event: string;
      readonly deliveryId: string;
      readonly payload: JsonObject;
      /** To be called when the event could not be handled after all, so that it may be sent again. */
      release(): Promise<void>;
    };

/**
 * Checks and admits one webhook delivery (design §2.5; docs.github.com, "Validating webhook
 * deliveries"): HMAC-SHA256 of the raw body under `secret`, in constant time, then the memory of
 * deliveries, then the payload. It is on disk that a delivery was admitted when the promise resolves.
 * Errors: WEBHOOK_SECRET_MISSING, BODY_TOO_LARGE (also for a payload that holds too much), INVALID_SIGNATURE, INVALID_REQUEST (no event),
 * INVALID_JSON, DISK_FULL, STORE_UNAVAILABLE. None repeats anything of the body.
 */
export async function verifyDelivery(
  request: DeliveryRequest,
  secret: string | undefined,
  memory: DeliveryMemory,
  nowMs: number,
): Promise<InboxDelivery> {
  const { headers, rawBody } = request;
  if (secret === undefined || secret === '') {
    throw new AppError('WEBHOOK_SECRET_MISSING', 'no webhook secret is configured');
  }
  if (rawBody.length > INBOX_BODY_BYTES_MAX) {
    throw new AppError('BODY_TOO_LARGE', `a delivery has at most ${INBOX_BODY_BYTES_MAX} bytes`);
  }
  const digest = await mustSignature(headers, rawBody, secret);
  const event = headers.get('x-host-event') ?? headers.get('x-github-event') ?? '';
  if (!EVENT.test(event)) throw badHeader('x-host-event', 'must name the event');
  // A delivery without an id is known by its signature alone.
  const id = headers.get('x-host-delivery') ?? headers.get('x-github-delivery') ?? `sig-${digest}`;
  if (!DELIVERY_ID.test(id)) throw badHeader('x-host-delivery', 'is no delivery id');
  const payload = await parsePayload(headers.get('content-type') ?? '', rawBody);
  if (event === 'ping') return { kind: 'ping', deliveryId: id };
  if (!(await memory.admit(id, digest, nowMs))) return { kind: 'duplicate', event, deliveryId: id };
  const release = (): Promise<void> => memory.forget(id, digest, nowMs);
  return { kind: 'accepted', event, deliveryId: id, payload, release };
}

/** Bytes that are hashed in one go. */
const HASHED_BYTES = 1_048_576;

/** The hexadecimal signature, once it is known to be right. */
async function mustSignature(
  headers: DeliveryRequest['headers'],
  rawBody: Uint8Array,
  secret: string,
): Promise<string> {
  const given = SIGNATURE_HEADERS.map((name) => headers.get(name)).filter(
    (value) => value !== null,
  );
  // Two signatures, also two in one header, are one too many: which of them counts is not ours to guess.
  const hex = given.length === 1 ? SIGNATURE.exec(given[0] ?? '')?.[1] : undefined;
  const hmac = createHmac('sha256', secret);
  for (let from = 0; from < rawBody.length; from += HASHED_BYTES) {
    // Nobody is known yet: a large body holds nobody up.
    if (from > 0) await DECODE_TURNS.turn();
    hmac.update(rawBody.subarray(from, from + HASHED_BYTES));
  }
  const expected = hmac.digest();
  if (hex === undefined || !timingSafeEqual(Buffer.from(hex, 'hex'), expected)) {
    throw new AppError('INVALID_SIGNATURE', 'the signature is missing or wrong');
  }
  return hex.toLowerCase();
}

function badHeader(field: string, problem: string): AppError {
  return new AppError('INVALID_REQUEST', `the header ${field} ${problem}`, { field });
}
