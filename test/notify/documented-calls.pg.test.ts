/* The calls of docs/notifications.md, made by curl as they are written but for real ids, and its check of a signature. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { shellBlocks } from '../support/readme.ts';
import { mustCall, notify, SERVICE_TOKEN } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';
import { type Received, startReceiver } from './support/webhook-receiver.ts';

const PATH = 'docs/notifications.md';
const [FIRST = '', OTHERS = ''] = shellBlocks('Send notifications', PATH);
const HELPER = /^notify\(\) \{[^]*?\}$/m.exec(FIRST)?.[0] ?? '';

const SECRET = 'sixteen-or-more-letters';

/** The answers of the calls of a block, one for each. */
async function answersOf(service: ServedNotify, block: string): Promise<readonly unknown[]> {
  const script = block
    .replaceAll('localhost:9200', '"$ADDRESS"')
    // Answers have no newline at their end.
    .replaceAll(/-d "\$2"; \}/g, '-d "$2"; echo; }');
  const env = {
    PATH: process.env['PATH'],
    ADDRESS: new URL(service.internalUrl).host,
    SERVICE_TOKEN,
  };
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-euc', script], { env });
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}

type Verifier = (headers: object, rawBody: string, secret: string) => boolean;

/** The verifier of signatures that the document shows. */
async function shownVerifier(): Promise<Verifier> {
  const code = /```js\n(import \{ createHmac[^]*?)```/.exec(readFileSync(PATH, 'utf8'))?.[1] ?? '';
  const module: unknown = await import(
    `data:text/javascript,${encodeURIComponent(`${code}\nexport { isGenuine };`)}`
  );
  return (module as { readonly isGenuine: Verifier }).isGenuine;
}

test('notifications are sent, listed and marked, and an endpoint is put', async () => {
  const service = await serveNotify();
  expect(await answersOf(service, `${HELPER}\n${OTHERS}`)).toMatchObject([
    { notification: { sequence: '1', title: 'Build passed' }, is_duplicate: false },
    { notifications: [{ sequence: '1' }], unread_count: '1' },
    { marked_count: '1', unread_count: '0' },
    { endpoint: { id: 'ci', address: 'https://ci.example/hook' } },
  ]);
});

test('streams are revoked, ended and bounded', async () => {
  const service = await serveNotify();
  const asked = { tenant_id: 'acme', user_id: 'ann', device_type: 'web', ttl_seconds: 300 };
  const { token_id: id } = await mustCall(service, 'CreateStreamToken', asked);
  const [block = ''] = shellBlocks('Live streams', PATH);
  expect(await answersOf(service, block.replaceAll('0198…', String(id)))).toEqual([{}, {}, {}, {}]);
});

test('a dead delivery is listed, shown and tried again', async () => {
  const receiver = await startReceiver((response, index) => {
    response.writeHead(index === 0 ? 410 : 204).end();
  });
  const service = await serveNotify({ NOTIFY_WEBHOOK_ALLOW_PRIVATE: 'true' });
  const endpoint = { id: 'ci', tenant_id: 'acme', channel: 'CHANNEL_WEBHOOK' };
  await mustCall(service, 'PutEndpoint', {
    endpoint: { ...endpoint, address: receiver.url },
    signing_secret: SECRET,
  });
  const { id } = await notify(service, { channels: ['CHANNEL_WEBHOOK'] });
  const [block = ''] = shellBlocks('Following deliveries', PATH);
  const calls = block.replaceAll('0198…', String(id));
  const [listing = ''] = calls.split('\ndelivery GetDelivery');
  await poll(() => answersOf(service, listing)).toMatchObject([
    { deliveries: [{ notification_id: id, status: 'DELIVERY_STATUS_DEAD' }] },
  ]);
  const isGenuine = await shownVerifier();
  const [{ headers, body }] = receiver.received as [Received];
  expect(isGenuine(headers, body, SECRET)).toBe(true);
  expect(isGenuine(headers, `${body} `, SECRET)).toBe(false);
  expect(isGenuine(headers, body, `${SECRET}s`)).toBe(false);
  expect(await answersOf(service, calls)).toMatchObject([
    { deliveries: [{ notification_id: id }] },
    { delivery: { attempts: 1 }, attempts: [{ answer_status: 410 }] },
    {},
    { retried: 0, skipped: 0 },
    { attempt: { outcome: 'ATTEMPT_OUTCOME_SENT' } },
    { endpoint },
    {},
  ]);
});
