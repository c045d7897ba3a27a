import { expect, onTestFinished, test } from 'vitest';
import { textOption } from '../../src/config/option.ts';
import { defineOutbound } from '../../src/notify/channels/channel.ts';
import { CHANNELS, ChannelRegistry } from '../../src/notify/channels/registry.ts';
import { invalidField } from '../../src/notify/model/reasons.ts';
import { startNotificationService } from '../../src/notify/service/notification-service.ts';
import { loadNotifySettings } from '../../src/notify/service/settings.ts';
import { createLogger } from '../../src/observability/logger.ts';
import {
  call,
  freshDatabase,
  mustCall,
  notify,
  SERVICE_TOKEN,
  series,
} from './support/notify-process.ts';
import { poll } from './support/poll.ts';

/** A number that notify.v1.Channel does not name yet. */
const PAGER = 4;

/** All that a channel is, in one place: pages go to whoever looks at `sent`. */
function pagerChannel(sent: string[]) {
  return defineOutbound({
    number: PAGER,
    name: 'pager',
    provider: 'radio',
    options: {
      pagerArea: textOption({
        env: 'NOTIFY_PAGER_AREA',
        description: 'Where pagers are reached.',
        fallback: undefined,
        fallbackText: 'unset',
        pattern: /^[a-z]+$/,
        rule: 'letters',
      }),
    },
    servesTenants: false,
    isSigned: false,
    checkAddress: (field, address) => {
      if (!/^\d{4}$/.test(address)) throw invalidField(field, 'must be four digits');
      return address;
    },
    open: ({ pagerArea }) =>
      pagerArea === undefined
        ? undefined
        : {
            sendsMax: 3,
            sender: {
              send: ({ endpoint, notification }) => {
                sent.push(`${pagerArea}/${endpoint.address}: ${notification.title}`);
                return Promise.resolve({ isSent: true, answerStatus: 0, answer: '' });
              },
              close: () => undefined,
            },
          },
  });
}

/** A service in this process that has a pager beside the channels that there are. */
async function startWithPager(env: Readonly<Record<string, string>>) {
  const sent: string[] = [];
  const channels = new ChannelRegistry([...CHANNELS.all, pagerChannel(sent)]);
  const all = {
    ...(await freshDatabase()),
    NOTIFY_INTERNAL_PORT: '0',
    NOTIFY_CLIENT_PORT: '0',
    NOTIFY_METRICS_PORT: '0',
    NOTIFY_SERVICE_AUTH_TOKENS: SERVICE_TOKEN,
    NOTIFY_DRAIN_MS: '0',
    ...env,
  };
  const service = await startNotificationService({
    settings: loadNotifySettings(all, undefined, channels),
    env: all,
    logger: createLogger('error'),
    version: '1.0.0',
    channels,
  });
  onTestFinished(() => service.stop());
  const urlAt = (port: number): string => `http://127.0.0.1:${port}`;
  return {
    sent,
    internalUrl: urlAt(service.internalPort),
    metricsUrl: urlAt(service.metricsPort),
  };
}

const pager = (given: object = {}) => ({
  endpoint: {
    id: 'p',
    tenant_id: 'acme',
    user_id: 'ann',
    channel: PAGER,
    address: '4711',
    ...given,
  },
});

test('a channel that is one definition and one row is set up, checked, stored, sent and counted', async () => {
  const service = await startWithPager({ NOTIFY_PAGER_AREA: 'north' });
  const wrong = await call(service, 'PutEndpoint', pager({ address: 'ann' }));
  expect([wrong.status, wrong.body['message']]).toEqual([
    400,
    'endpoint.address: must be four digits',
  ]);
  const ofNobody = await call(service, 'PutEndpoint', pager({ user_id: '' }));
  expect([ofNobody.status, ofNobody.body['message']]).toEqual([
    400,
    'endpoint.user_id is required',
  ]);
  await mustCall(service, 'PutEndpoint', pager());
  const { endpoints } = await mustCall(service, 'ListEndpoints', { tenant_id: 'acme' });
  expect(endpoints).toEqual([pager().endpoint]);
  const stored = await notify(service, { channels: ['CHANNEL_LIVE', PAGER], title: 'Disk full' });
  expect(stored['channels']).toEqual(['CHANNEL_LIVE', PAGER]);
  await poll(() => service.sent).toEqual(['north/4711: Disk full']);
  const labels = '{channel="pager",provider="radio",status="sent"}';
  await poll(() => series(service, `notify_send_total${labels}`)).toBe(1);
  expect(await series(service, 'notify_send_places{channel="pager"}')).toBe(3);
  const page = { tenant_id: 'acme', user_id: 'ann' };
  await poll(
    async () => (await mustCall(service, 'ListNotifications', page))['notifications'],
  ).toEqual([
    expect.objectContaining({
      deliveries: [expect.objectContaining({ channel: PAGER, status: 'DELIVERY_STATUS_SENT' })],
    }),
  ]);
});

test('a channel that the settings do not set up is refused by its name, and errors name all channels', async () => {
  const service = await startWithPager({});
  const refused = await call(service, 'Notify', {
    tenant_id: 'acme',
    user_id: 'ann',
    channels: [PAGER],
    title: 'Disk full',
  });
  expect([refused.status, refused.body['message']]).toEqual([
    412,
    'the channel pager is not set up here',
  ]);
  const unknown = await call(service, 'PutEndpoint', pager({ channel: 9 }));
  expect(unknown.body['message']).toBe(
    'endpoint.channel: must be CHANNEL_LIVE, CHANNEL_WEBHOOK, CHANNEL_EMAIL or CHANNEL_PAGER',
  );
  const live = await call(service, 'PutEndpoint', pager({ channel: 'CHANNEL_LIVE' }));
  expect(live.body['message']).toBe('endpoint.channel: must be webhook, email or pager');
  // Its options are the service's: a name that nobody knows is still refused.
  expect(() => loadNotifySettings({ NOTIFY_PAGER_AREA: 'north' })).toThrow('NOTIFY_PAGER_AREA');
});

test('two channels with one number, one name or one option are no registry', () => {
  const [live] = CHANNELS.all;
  if (live === undefined) throw new Error('there is a live channel');
  const more = (given: object) => new ChannelRegistry([...CHANNELS.all, { ...live, ...given }]);
  expect(() => more({ name: 'other' })).toThrow('a number of its own');
  expect(() => more({ number: PAGER })).toThrow('a name of its own');
  expect(() => more({ number: 16, name: 'other' })).toThrow('a bit of the store');
  const options = CHANNELS.outbound[0]?.options;
  const twice = more({ number: PAGER, name: 'other', options });
  expect(() => loadNotifySettings({}, undefined, twice)).toThrow('belongs to one channel');
});
