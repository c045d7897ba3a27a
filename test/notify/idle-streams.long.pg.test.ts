import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { EventClient } from '../support/event-client.ts';
import { notify, streamUrl } from './support/notify-process.ts';
import { serveNotify } from './support/notify-service.ts';

test('an idle stream outlives what the listener allows an answer that does not move', async () => {
  const service = await serveNotify();
  const client = await EventClient.open(await streamUrl(service));
  await client.untilType('open');
  // Longer than the 10 s after which the listener gives up on such an answer.
  await sleep(13_000);
  await notify(service);
  const events = await client.until((all) => all.some(({ event }) => event === 'notification'));
  expect(events.at(-1)?.id).toBe('1');
});
