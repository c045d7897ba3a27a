import { createHmac } from 'node:crypto';
import { lookup } from 'node:dns';
import http from 'node:http';
import https from 'node:https';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../../shared/clock.ts';
import { isRefusedHost } from '../core/refused-host.ts';
import type { DueDelivery } from '../model/notification.ts';
import { failed, type Sender, type SendResult } from './sender.ts';

export type WebhookOptions = {
  readonly clock: Clock;
  /** Whether loopback, private and link-local addresses are allowed. */
  readonly allowsPrivate: boolean;
  readonly connectionsPerHostMax: number;
};

/** The body of an answer says nothing that is used: it is read, so that the connection can be kept, this far. */
const ANSWER_BYTES_MAX = 65_536;
const ANSWER_MS_MAX = 1_000;
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
    const url = URL.parse(delivery.endpoint.address);
    if (url === null) return failed('the address is no URL', true);
    const host = url.hostname.replace(/^\[|\]$/g, '');
    // Literal addresses are not looked up.
    if (isRefusedHost(host, this.#options.allowsPrivate)) return failed(REFUSED, true);
    const body = bodyOf(delivery);
    const headers = this.#headers(delivery, body);
    try {
      const { status, retryAfter } = await this.#post(url, headers, body, signal);
      if (status >= 200 && status < 300) return { isSent: true };
      return failed(`HTTP ${status}`, status === GONE, this.#retryAfterMs(retryAfter));
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
    const { notification, endpoint, signingSecret } = delivery;
    const id = `${notification.id}.${endpoint.id}`;
    const timestamp = Math.floor(this.#options.clock.nowMs() / 1000);
    const signed = `${id}.${timestamp}.${body}`;
    const signature = createHmac('sha256', keyOf(signingSecret)).update(signed).digest('base64');
    return {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'gatehouse-notify',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    };
  }

  #post(
    url: URL,
    headers: Record<string, string | number>,
    body: string,
    signal: AbortSignal,
  ): Promise<{ readonly status: number; readonly retryAfter: string | undefined }> {
    const isSecure = url.protocol === 'https:';
    const agent = isSecure ? this.#agents.https : this.#agents.http;
    const options = { method: 'POST', headers, agent, signal, lookup: this.#lookup };
    return new Promise((resolve, reject) => {
      const request = (isSecure ? https : http).request(url, options, (response) => {
        // The head is the answer: a body that is slow or endless changes nothing about it.
        resolve({
          status: response.statusCode ?? 0,
          retryAfter: response.headers['retry-after'],
        });
        discardBody(response);
      });
      // Also after the answer, when the connection breaks: nobody waits any more.
      request.on('error', reject);
      request.end(body);
    });
  }

  #retryAfterMs(value: string | undefined): number | undefined {
    if (value === undefined) return undefined;
    if (/^\d{1,7}$/.test(value)) return Number(value) * 1000;
    const atMs = Date.parse(value);
    return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - this.#options.clock.nowMs());
  }
}

const REFUSED = 'the address is not one that webhooks may go to';

/** Reads on for a moment, and drops a connection whose answer does not end. */
function discardBody(response: http.IncomingMessage): void {
  const timer = setTimeout(() => response.destroy(), ANSWER_MS_MAX).unref();
  let size = 0;
  response.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > ANSWER_BYTES_MAX) response.destroy();
  });
  response.on('error', ignoreBrokenAnswer);
  response.on('close', () => clearTimeout(timer));
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

function bodyOf({ notification }: DueDelivery): string {
  return JSON.stringify({
    type: 'notification.created',
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
