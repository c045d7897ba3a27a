import { afterAll, beforeAll, test } from 'vitest';
import { type Service, startService } from '../support/service.ts';
import { type LargeMessage, sendLarge } from './large-messages.ts';

/* By a caller who may call the methods, but in another project: it is told so, and nothing is built of what it sent. */

let service: Service;
beforeAll(async () => {
  const scope = { projects: ['mine'], tenants: '*', services: '*', methods: '*' };
  const callers = [{ name: 'limited', tokens: ['limited-token'], scopes: [scope] }];
  const started = await startService({ env: { GATEWAY_CALLERS: JSON.stringify({ callers }) } });
  service = { ...started, token: 'limited-token' };
});
afterAll(async () => {
  await service.stop();
});

const item = '{"namespace":"document","object_id":"o","relation":"viewer","subject_user_id":"u"}';
/** The project is named behind the items. */
const items = (count: number): string =>
  `{"items":[${`${item},`.repeat(count - 1)}${item}],"project_id":"theirs"}`;
const REFUSED: LargeMessage['answer'] = [403, 'SCOPE_REFUSED'];

const MESSAGES: readonly LargeMessage[] = [
  {
    name: '90,000 items for a project of others',
    method: 'workspace.v1.AuthzService/BatchCheck',
    body: items(90_000),
    answer: REFUSED,
    count: 6,
  },
  {
    name: '9,000 items for a project of others',
    method: 'workspace.v1.AuthzService/BatchCheck',
    type: 'application/json; charset=utf-8',
    body: items(9_000),
    answer: REFUSED,
    count: 6,
  },
  {
    name: '90,000 items for a project of others, gRPC',
    method: 'workspace.v1.AuthzService/BatchCheck',
    type: 'application/grpc+json',
    body: items(90_000),
    answer: [7, 'limited'],
    count: 3,
  },
];

for (const message of MESSAGES) {
  test(`${message.name}, ${message.count ?? 1} at once`, async () => {
    await sendLarge(service, message);
  });
}
