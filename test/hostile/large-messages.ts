import http2 from 'node:http2';
import { expect } from 'vitest';
import type { Service } from '../support/service.ts';
import { printToll, STALL_MS_MAX, type Toll, tollOf } from './toll.ts';

/** A request that is much work to read. */
export type LargeMessage = {
  /** For the table. */
  readonly name: string;
  /** "workspace.v1.AuthzService/Check" */
  readonly method: string;
  /** Default: application/json. */
  readonly type?: string | undefined;
  readonly body: Uint8Array | string;
  readonly isGzip?: boolean | undefined;
  /** Of the answer: the status of HTTP and what its text holds, of gRPC the code. */
  readonly answer: readonly [status: number, text: string];
  /** How many are sent at once; default 1. */
  readonly count?: number | undefined;
};

/** Where it is sent. */
export type LargeTarget = Pick<Service, 'pid' | 'baseUrl' | 'metricsUrl' | 'token' | 'adminSecret'>;

/** Sends it as a caller who may call the method, and holds the stall to its bound. */
export async function sendLarge(service: LargeTarget, message: LargeMessage): Promise<Toll> {
  const { pid, metricsUrl } = service;
  const { name, count = 1, type = 'application/json', answer } = message;
  const answers: (readonly [number, string])[] = [];
  const send = type.startsWith('application/grpc') ? sendGrpc : sendConnect;
  const toll = await tollOf({ pid, healthUrl: `${metricsUrl}/healthz` }, async () => {
    await Promise.all(
      Array.from({ length: count }, async () => {
        answers.push(await send(service, message));
      }),
    );
  });
  printToll(count === 1 ? name : `${name}, ${count} at once`, toll);
  for (const [status, text] of answers) {
    expect([status, text]).toEqual([answer[0], expect.stringContaining(answer[1])]);
  }
  expect(toll.stallMs).toBeLessThan(STALL_MS_MAX);
  return toll;
}

async function sendConnect(
  { baseUrl, token, adminSecret }: LargeTarget,
  { method, type = 'application/json', body, isGzip = false }: LargeMessage,
): Promise<readonly [number, string]> {
  const response = await fetch(`${baseUrl}/${method}`, {
    method: 'POST',
    headers: {
      'content-type': type,
      authorization: `Bearer ${token}`,
      'x-admin-secret': adminSecret,
      ...(isGzip ? { 'content-encoding': 'gzip' } : {}),
    },
    body,
  });
  return [response.status, await response.text()];
}

function sendGrpc(
  { baseUrl, token }: LargeTarget,
  { method, type = '', body, isGzip = false }: LargeMessage,
): Promise<readonly [number, string]> {
  const session = http2.connect(baseUrl);
  return new Promise<readonly [number, string]>((resolve, reject) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': `/${method}`,
      'content-type': type,
      authorization: `Bearer ${token}`,
      ...(isGzip ? { 'grpc-encoding': 'gzip' } : {}),
    });
    const look = (fields: http2.IncomingHttpHeaders): void => {
      const status = fields['grpc-status'];
      if (typeof status !== 'string') return;
      resolve([Number(status), decodeURIComponent(String(fields['grpc-message'] ?? ''))]);
    };
    session.once('error', reject);
    stream.once('error', reject);
    stream.on('response', look);
    stream.on('trailers', look);
    stream.resume();
    stream.end(enveloped(Buffer.from(body), isGzip));
  }).finally(() => session.destroy());
}

function enveloped(message: Uint8Array, isGzip: boolean): Uint8Array {
  const head = Buffer.alloc(5);
  head[0] = isGzip ? 1 : 0;
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
