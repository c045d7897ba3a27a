import { fromJson } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  NotifyRequestSchema,
  PutEndpointRequestSchema,
} from '../../gen/notify/v1/notify_service_pb.ts';
import { malformedMessage } from './malformed-message.ts';

const ALLOWED = 'must be CHANNEL_LIVE, CHANNEL_WEBHOOK, CHANNEL_EMAIL';
const CASES = [
  [NotifyRequestSchema, { channels: ['CHANNEL_LIVE', 'CHANNEL_MAIL'] }, 'channels[1]'],
  [NotifyRequestSchema, { title: 'x', data: { channel: 'a' }, channels: ['mail'] }, 'channels[0]'],
  [
    PutEndpointRequestSchema,
    { endpoint: { id: 'a', channel: 'CHANNEL_MAIL' } },
    'endpoint.channel',
  ],
] as const;

test.each(CASES)('%s: the field is named, and what is allowed', (schema, body, field) => {
  let error: unknown;
  try {
    fromJson(schema, JSON.parse(JSON.stringify(body)));
  } catch (thrown) {
    error = thrown;
  }
  const told = malformedMessage(error as Error, {
    input: schema,
    isBinary: false,
    bytes: Buffer.from(JSON.stringify(body)),
  });
  expect(told.reason).toBe('FIELD_INVALID');
  expect(told.metadata).toEqual({ field });
  expect(told.message.startsWith(`${field}: ${ALLOWED}`)).toBe(true);
  if (JSON.stringify(body).includes('CHANNEL_MAIL')) {
    expect(told.message).toContain('; did you mean CHANNEL_EMAIL?');
  }
});
