import { gzipSync } from 'node:zlib';
import { test } from 'vitest';
import { SERVICE_TOKEN, startNotify } from '../notify/support/notify-process.ts';
import { type LargeMessage, sendLarge } from './large-messages.ts';

const NOTIFY = 'notify.v1.NotifyService/Notify';
const OVER: LargeMessage['answer'] = [429, 'FIELD_TOO_LARGE'];
/** As long as a body may be. */
const BYTES = 130_000;
const MESSAGES: readonly LargeMessage[] = [
  {
    name: 'a notification with data of 65,000 values',
    method: NOTIFY,
    body: gzipSync(`{"data":{"a":[${'1,'.repeat(BYTES / 2 - 100)}1]}}`),
    isGzip: true,
    answer: OVER,
    count: 16,
  },
  {
    name: 'a notification with 12,000 unknown keys',
    method: NOTIFY,
    body: `{${Array.from({ length: 12_000 }, (_, i) => `"k${i}":1`).join(',')}}`,
    answer: [400, 'BODY_MALFORMED'],
    count: 16,
  },
  {
    name: '43,000 unknown fields of a notification',
    method: NOTIFY,
    type: 'application/proto',
    body: Buffer.from('c03e01'.repeat(43_000), 'hex'),
    answer: [400, 'BODY_MALFORMED'],
    count: 16,
  },
  {
    name: '43,000 ids to mark',
    method: 'notify.v1.NotifyService/MarkRead',
    body: `{"tenant_id":"t","user_id":"u","ids":[${'"",'.repeat(43_000)}""]}`,
    answer: [400, 'FIELD_INVALID'],
    count: 16,
  },
];

for (const message of MESSAGES) {
  test(`${message.name}, ${message.count ?? 1} at once`, async () => {
    const { internalUrl: baseUrl, metricsUrl, pid } = await startNotify();
    await sendLarge({ pid, baseUrl, metricsUrl, token: SERVICE_TOKEN, adminSecret: '' }, message);
  });
}
