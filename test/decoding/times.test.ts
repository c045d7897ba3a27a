/* Times in JSON, in whichever message of whichever method they lie: days that exist, and no others, each refusal with its path. */
import { type DescField, type DescMessage, type Message } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { holdsReadValues } from '../../src/decoding/json-values.ts';
import { MessageDecoder } from '../../src/decoding/message-decoder.ts';
import { CheckRequestSchema } from '../../src/gen/workspace/v1/authz_service_pb.ts';
import { AppError } from '../../src/shared/app-error.ts';
import { NO_TIMES, TIMES, TOO_FINE } from '../support/times.ts';
import { INPUTS, jsonAt, valueAt, waysTo } from './messages.ts';

/** Everything is scanned and built in slices; and as it is used. */
const SLICED = { unscannedBytesMax: 0, scannedAtOnceBytesMax: 0, decodedAtOnceValuesMax: 0 };
const DECODERS = [new MessageDecoder(), new MessageDecoder({}, SLICED)];

function isTime({ message }: DescField): boolean {
  return message?.typeName === 'google.protobuf.Timestamp';
}

const PLACES = [...new Set(INPUTS)].flatMap((desc) =>
  waysTo(desc, isTime).map((way) => ({ desc, way, name: way.map(({ name }) => name).join('.') })),
);

test('times lie where it is known that they do, and in no map', () => {
  const names = PLACES.map(({ desc, name }) => `${desc.typeName}.${name}`);
  expect(names).toContain('workspace.v1.WriteRelationTuplesRequest.updates.tuple.expires_at');
  expect(names).toContain('gatehouse.v1.CheckRequest.scope.contextual_tuples.expires_at');
  expect(names).toContain('gatehouse.v1.ImportTuplesRequest.written_at');
  expect(names).toContain('notify.v1.ListDeliveriesRequest.created_from');
  expect(PLACES.flatMap(({ way }) => way).map(({ fieldKind }) => fieldKind)).not.toContain('map');
  for (const { desc } of PLACES) expect(holdsReadValues(desc)).toBe(true);
  expect(holdsReadValues(CheckRequestSchema)).toBe(false);
});

test.each(PLACES)('$desc.typeName: $name', async ({ desc, way }) => {
  for (const decoder of DECODERS) {
    for (const isCamel of [false, true]) {
      const decode = async (value: unknown, items = 1): Promise<Message> => {
        const bytes = Buffer.from(JSON.stringify(jsonAt(way, value, isCamel, items)));
        return await decoder.decode(desc, false, bytes);
      };
      for (const [text, seconds, nanos] of TIMES) {
        const found = valueAt(await decode(text), way);
        expect(found).toMatchObject({ seconds: BigInt(seconds), nanos });
      }
      for (const text of [...NO_TIMES, TOO_FINE, 7, true, {}, ['2096-10-10T12:00:00Z']]) {
        const field = way
          .map(({ name, fieldKind }) => name + (fieldKind === 'list' ? '[2]' : ''))
          .join('.');
        const error = await decode(text, 3).catch((thrown: unknown) => thrown);
        expect(error).toBeInstanceOf(AppError);
        expect(error).toMatchObject({ reason: 'BODY_MALFORMED', metadata: { field } });
        expect((error as Error).message).toContain(`${field}: must be a time`);
      }
    }
  }
});

test('the path counts the items of a long list through all of its parts', async () => {
  const place = PLACES.find(({ name }) => name === 'updates.tuple.expires_at');
  if (place === undefined) throw new Error('no such field');
  const body = Buffer.from(JSON.stringify(jsonAt(place.way, '2099-02-29T12:00:00Z', false, 5_000)));
  for (const decoder of DECODERS) {
    const decoded = (async () => await decoder.decode(place.desc, false, body))();
    await expect(decoded).rejects.toThrow('updates[4999].tuple.expires_at: must be a time');
  }
});

test('a time that is rewritten hides no duplicate, and no escape hides a time', () => {
  const place = PLACES.find(({ name }) => name === 'updates.tuple.expires_at');
  const [decoder] = DECODERS;
  const decode = (tuple: string): unknown =>
    decoder?.decode(
      place?.desc as DescMessage,
      false,
      Buffer.from(`{"updates":[{"tuple":${tuple}}]}`),
    );
  const small = '2096-02-29t12:00:00z';
  expect(() => decode(`{"expires_at":"${small}","expires_at":"${small}"}`)).toThrow('duplicate');
  expect(() => decode(`{"expires_at":"${small}","expiresAt":"${small}"}`)).toThrow('expires_at');
  expect(() => decode(`{"expires_at":"${small}","nothing":1}`)).toThrow('unknown');
  expect(() => decode('{"expires\\u005fat":"2099-02-29T12:00:00Z"}')).toThrow('must be a time');
  expect(decode('{"expires_at":null}')).toBeDefined();
  expect(decode('{"condition_params":{"expires_at":"2099-02-29T12:00:00Z"}}')).toBeDefined();
});
