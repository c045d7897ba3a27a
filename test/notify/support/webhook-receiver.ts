import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/** One request that arrived. */
export type Received = {
  readonly path: string;
  readonly atMs: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
};

/** Says what the nth request (from 0) is answered with. */
export type Answering = (response: http.ServerResponse, index: number, request: Received) => void;

export type WebhookReceiver = { readonly url: string; readonly received: readonly Received[] };

/** A real HTTP server on the loopback, closed when the test ends. */
export async function startReceiver(
  answering: Answering,
  whenDone: (undo: () => void) => void = onTestFinished,
): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const one = {
        path: request.url ?? '',
        atMs: performance.now(),
        headers: request.headers,
        body: Buffer.concat(chunks).toString(),
      };
      received.push(one);
      answering(response, received.length - 1, one);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  whenDone(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}

/** Whether a request is signed as Standard Webhooks 1.0 says, by the raw bytes of the key. */
export function isSigned({ headers, body }: Received, key: Buffer): boolean {
  const content = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  const expected = createHmac('sha256', key).update(content).digest('base64');
  return String(headers['webhook-signature']).split(' ').includes(`v1,${expected}`);
}
