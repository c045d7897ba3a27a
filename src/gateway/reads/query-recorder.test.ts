import { describe, expect, test } from 'vitest';
import { QueryRecorder, type RecordedQuery } from './query-recorder.ts';

const question = (userId: string, projectId = 'p'): RecordedQuery => ({
  projectId,
  tenantId: '',
  namespace: 'doc',
  objectId: 'd',
  relation: 'viewer',
  userId,
  contextJson: '',
});

function recorderOf(every: number, bytesMax = 1 << 20, random?: () => number): QueryRecorder {
  return new QueryRecorder({ every, bytesMax, random });
}

const usersOf = (recorder: QueryRecorder, count = 1_000) =>
  recorder.newest('p', count).map(({ userId }) => userId);

describe('a recorder of questions', () => {
  test('records none where it is off', () => {
    const recorder = recorderOf(0);
    for (let i = 0; i < 100; i++) recorder.offer(() => question(`u${i}`));
    expect([recorder.isNext(), recorder.count]).toEqual([false, 0]);
  });

  test('records one of so many, and makes no other', () => {
    const recorder = recorderOf(10);
    let made = 0;
    for (let i = 0; i < 20_000; i++) {
      recorder.offer(() => {
        made += 1;
        return question(`u${i}`);
      });
    }
    expect(recorder.count).toBe(made);
    expect(made).toBeGreaterThan(1_700);
    expect(made).toBeLessThan(2_300);
  });

  test('a look whether it is the next one counts those that are not', () => {
    const recorder = recorderOf(4, 1 << 20, () => 0.5);
    const looks = Array.from({ length: 6 }, () => recorder.isNext());
    expect(looks).toEqual([false, false, false, true, true, true]);
    recorder.offer(() => question('u'));
    expect([recorder.count, recorder.isNext()]).toEqual([1, false]);
  });

  test('keeps each question once, as new as it was asked last', () => {
    const recorder = recorderOf(1);
    for (const user of ['a', 'b', 'a', 'c']) recorder.offer(() => question(user));
    recorder.offer(() => question('a', 'other'));
    recorder.offer(() => undefined);
    expect(usersOf(recorder)).toEqual(['b', 'a', 'c']);
    expect(usersOf(recorder, 2)).toEqual(['a', 'c']);
    expect(usersOf(recorder, 0)).toEqual([]);
    expect(recorder.newest('other', 10)).toHaveLength(1);
  });

  test('stays within its bytes, whatever is asked: the oldest go first', () => {
    const bytesMax = 4_096;
    const recorder = recorderOf(1, bytesMax);
    for (let i = 0; i < 200; i++) recorder.offer(() => question(`u${i}`));
    expect(recorder.bytes).toBeLessThanOrEqual(bytesMax);
    const kept = recorder.count;
    expect(kept).toBeGreaterThan(5);
    expect(usersOf(recorder)).toEqual(Array.from({ length: kept }, (_, i) => `u${200 - kept + i}`));
    recorder.offer(() => question('x'.repeat(10_000)));
    expect([recorder.count, recorder.bytes <= bytesMax]).toEqual([kept, true]);
    const { bytes } = recorder;
    recorder.offer(() => question('u199'));
    expect(recorder.bytes).toBe(bytes);
  });
});
