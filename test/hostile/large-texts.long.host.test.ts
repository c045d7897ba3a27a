import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { type LargeMessage, sendLarge } from './large-messages.ts';

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(async () => {
  await service.stop();
});

const CHECK = 'workspace.v1.AuthzService/Check';
const OVER: LargeMessage['answer'] = [429, 'FIELD_TOO_LARGE'];
const LONG = 8_000_000;
const digits = '9'.repeat(1_000_000);
const model = (text: string): string => JSON.stringify({ model: { json: text } });

/** 41 types of 40 relations each: 63 KiB. */
const READABLE = Array.from({ length: 41 }, (_, n) =>
  [
    `namespace t${n} {`,
    ...Array.from({ length: 40 }, (__, r) => `  relation viewer${r}: this or viewer0`).slice(1),
    '  relation viewer0',
    '}',
  ].join('\n'),
).join('\n');
const MODEL = { gate: 'namespace doc {\n  relation viewer\n}' };
const ASSERTIONS = [
  'tuples:',
  ...Array.from({ length: 8_500 }, (_, n) => `  - doc:${n}#viewer@user:${'u'.repeat(90)}${n}`),
  'tests:',
  '  - allow: [doc:1#viewer@user:ann]',
].join('\n');

const MESSAGES: readonly LargeMessage[] = [
  {
    name: 'a number of a million digits as text',
    method: 'gatehouse.v1.ModelService/GetModel',
    body: `{"version":"${digits}"}`,
    answer: [400, 'version'],
  },
  {
    name: 'a number of a million digits',
    method: 'gatehouse.v1.ModelService/GetModel',
    body: `{"version":${digits}}`,
    answer: [400, 'version'],
  },
  {
    name: 'a name of 8 MB',
    method: CHECK,
    body: `{"object_id":"${'a'.repeat(LONG)}"}`,
    answer: OVER,
    count: 6,
  },
  {
    name: 'a name of 8 MB in two bytes a character',
    method: CHECK,
    body: gzipSync(`{"object_id":"${'é'.repeat(LONG / 2)}"}`),
    isGzip: true,
    answer: OVER,
    count: 6,
  },
  {
    name: 'a name of 8 MB, binary',
    method: CHECK,
    type: 'application/proto',
    body: Buffer.concat([Buffer.from('1280a4e803', 'hex'), Buffer.from('é'.repeat(LONG / 2))]),
    answer: OVER,
  },
  {
    name: '8 MB of white space',
    method: CHECK,
    body: `{${' '.repeat(LONG)}}`,
    // As good as none.
    answer: [400, 'FIELD_REQUIRED'],
    count: 6,
  },
  {
    name: 'a model of 7 MB of lists',
    method: 'gatehouse.v1.ModelService/ValidateModel',
    body: model('['.repeat(3_500_000) + ']'.repeat(3_500_000)),
    answer: OVER,
  },
  {
    name: 'a model of 300 KB of lists',
    method: 'gatehouse.v1.ModelService/ValidateModel',
    body: model(`[${'[],'.repeat(100_000)}[]]`),
    answer: OVER,
  },
  {
    name: 'a model of 64 KB of lists, which is read',
    method: 'gatehouse.v1.ModelService/ValidateModel',
    body: model(`[${'[],'.repeat(21_000)}[]]`),
    answer: [200, '"valid":false'],
  },
  {
    name: 'a model of 63 KB of one relation after the other, which is read',
    method: 'gatehouse.v1.ModelService/ValidateModel',
    body: model(
      JSON.stringify({
        namespaces: Object.fromEntries(
          Array.from({ length: 20 }, (_, n) => [
            `n${n}`,
            {
              relations: Object.fromEntries(Array.from({ length: 250 }, (__, r) => [`r${r}`, {}])),
            },
          ]),
        ),
      }),
    ),
    answer: [200, '"valid"'],
  },
  {
    name: 'a model of 63 KB in the readable form, which is read',
    method: 'gatehouse.v1.ModelService/ValidateModel',
    body: JSON.stringify({ model: { gate: READABLE } }),
    answer: [200, '"valid":true'],
  },
  {
    name: 'a file of 1 MB of assertions, which is read',
    method: 'gatehouse.v1.ModelService/TestModel',
    body: JSON.stringify({ model: MODEL, files: [{ name: 'a', text: ASSERTIONS }] }),
    answer: [200, '"a"'],
  },
];

for (const message of MESSAGES) {
  test(`${message.name}, ${message.count ?? 1} at once`, async () => {
    await sendLarge(service, message);
  });
}
