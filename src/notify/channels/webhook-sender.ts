import { createHmac } from 'node:crypto';
import { lookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../shared/time/clock.ts';
import { isRefusedHost } from '../core/refused-host.ts';
import { ANSWER_BYTES_MAX } from '../model/delivery.ts';
import type { DueDelivery } from '../model/notification.ts';
import { retryAfterMs } from './retry-after.ts';
import { failed, type Sender, type SendResult, shortAnswer } from './sender.ts';

export type WebhookOptions = {
  readonly clock: Clock;
  /** Whether loopback, private and link-local addresses are allowed. */
  readonly allowsPrivate: boolean;
  readonly connectionsPerHostMax: number;
};

/** The body of an answer decides nothing: it is read, so that the connection can be kept, this far. */
const BODY_BYTES_MAX = 65_536;
const BODY_MS_MAX = 1_000;
/** Its start is kept for people; an attempt waits so long for it. */
const START_MS_MAX = 100;
/** Connections that are kept for the next delivery to a host, and how long. */
const IDLE_PER_HOST_MAX = 2;
const IDLE_MS_MAX = 5_000;
const GONE = 410;
const SECRET_PREFIX = 'whsec_';

/**
 * Posts notifications to webhooks, signed as the Standard Webhooks specification 1.0 says
 * (standardwebhooks.com): HMAC-SHA256 over `id.timestamp.body` in `webhook-signature`, with `webhook-id`
 * the same in every attempt. Redirects are not followed. Addresses are judged after name resolution,
 * on the very connection that is made, so that a name cannot lead to a private network.
 */
export class WebhookSender implements Sender {
  readonly #options: WebhookOptions;
  readonly #agents: { readonly http: http.Agent; readonly https: https.Agent };
  readonly #lookup: LookupFunction;

  constructor(options: WebhookOptions) {
    this.#options = options;
    const settings = {
      keepAlive: true,
      maxSockets: options.connectionsPerHostMax,
      maxFreeSockets: IDLE_PER_HOST_MAX,
      // Of idle ones: hosts are as many as tenants like.
      timeout: IDLE_MS_MAX,
    };
    this.#agents = { http: new http.Agent(settings), https: new https.Agent(settings) };
    this.#lookup = guardedLookup(options.allowsPrivate);
  }

  async send(delivery: DueDelivery, signal: AbortSignal): Promise<SendResult> {
    if (delivery.signingSecrets.length === 0) return failed(UNREADABLE);
    const url = URL.parse(delivery.endpoint.address);
    if (url === null) return failed('the address is no URL', true);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    // Literal addresses are not looked up.
    if (isRefusedHost(host, this.#options.allowsPrivate)) return failed(REFUSED, true);
    const body = bodyOf(delivery);
    const headers = this.#headers(delivery, body);
    try {
      const { status, retryAfter, start } = await this.#post(url, headers, body, signal);
      const answer = { answerStatus: status, answer: shortAnswer(start) };
      if (status >= 200 && status < 300) return { isSent: true, ...answer };
      const askedMs = retryAfterMs(retryAfter, this.#options.clock.nowMs());
      return failed(`HTTP ${status}`, status === GONE, askedMs, answer);
    } catch (error) {
      if (signal.aborted) return failed('timed out');
      const text = textOf(error);
      return failed(text, text === REFUSED);
    }
  }

  close(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  #headers(delivery: DueDelivery, body: string): Record<string, string | number> {
    const { notification, endpoint, signingSecrets } = delivery;
    const id = `${notification.id}.${endpoint.id}`;
    const timestamp = Math.floor(this.#options.clock.nowMs() / 1000);
    const signed = `${id}.${timestamp}.${body}`;
    // While two secrets overlap a receiver may know either; libraries take whichever fits.
    const signatures = signingSecrets.map((secret) => {
      const digest = createHmac('sha256', keyOf(secret)).update(signed).digest('base64');
      return `v1,${digest}`;
    });
    return {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'gatehouse-notify',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signatures.join(' '),
    };
  }

  #post(
    url: URL,
    headers: Record<string, string | number>,
    body: string,
    signal: AbortSignal,
  ): Promise<HookAnswer> {
    const isSecure = url.protocol === 'https:';
    const agent = isSecure ? this.#agents.https : this.#agents.http;
    const options = { method: 'POST', headers, agent, signal, lookup: this.#lookup };
    return new Promise((resolve, reject) => {
      const request = (isSecure ? https : http).request(url, options, (response) => {
        const status = response.statusCode ?? 0;
        const retryAfter = response.headers['retry-after'];
        // The head is the answer: a body that is slow or endless changes nothing about it.
        readStart(response, (start) => resolve({ status, retryAfter, start }));
      });
      // Also after the answer, when the connection breaks: nobody waits any more.
      request.on('error', reject);
      request.end(body);
    });
  }
}

const REFUSED = 'the address is not one that webhooks may go to';

const UNREADABLE = 'no signing secret can be read with the keys that are set';

type HookAnswer = {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly start: Buffer;
};

/**
 * Calls `onStart` once with what of the body came soon, reads on for a moment, and drops a connection whose answer does not
 * end.
 */
function readStart(response: http.IncomingMessage, onStart: (start: Buffer) => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  const reported = (): void => onStart(Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX));
  const soon = setTimeout(reported, START_MS_MAX);
  const timer = setTimeout(() => response.destroy(), BODY_MS_MAX).unref();
  response.on('data', (chunk: Buffer) => {
    if (size < ANSWER_BYTES_MAX) chunks.push(chunk.subarray(0, ANSWER_BYTES_MAX));
    size += chunk.length;
    if (size >= ANSWER_BYTES_MAX) reported();
    if (size > BODY_BYTES_MAX) response.destroy();
  });
  response.on('end', reported);
  response.on('error', ignoreBrokenAnswer);
  response.on('close', () => {
    clearTimeout(soon);
    clearTimeout(timer);
    reported();
  });
}

function ignoreBrokenAnswer(): void {
  // The status had arrived.
}

/** A secret as libraries for Standard Webhooks write it is base64 of the key; any other text is the key. */
function keyOf(signingSecret: string): Buffer {
  return signingSecret.startsWith(SECRET_PREFIX)
    ? Buffer.from(signingSecret.slice(SECRET_PREFIX.length), 'base64')
    : Buffer.from(signingSecret, 'utf8');
}

/** Node gives an empty message when every address of a name failed. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  if (error.message !== '') return error.message;
  return 'code' in error ? String(error.code) : 'the request failed';
}

/** As dns.lookup, but fails when any address of the name is one that webhooks may not go to. */
function guardedLookup(allowsPrivate: boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      if (addresses.some(({ address }) => isRefusedHost(address, allowsPrivate))) {
        return callback(new Error(REFUSED), '', 0);
      }
      if (options.all === true) return callback(null, addresses);
      const [first] = addresses;
      return callback(null, first?.address ?? '', first?.family ?? 0);
    });
  };
}

function bodyOf({ notification, isTest }: DueDelivery): string {
  return JSON.stringify({
    type: isTest ? 'notification.test' : 'notification.created',
    timestamp: new Date(notification.createdAtMs).toISOString(),
    data: {
      id: notification.id,
      tenant_id: notification.tenantId,
      user_id: notification.userId,
      sequence: notification.sequence,
      title: notification.title,
      body: notification.body,
      data: notification.data,
    },
  });
}
