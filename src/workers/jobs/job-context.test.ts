import { expect, test } from 'vitest';
import { DecodingMemory } from './job-context.ts';

const MIB = 1024 * 1024;

test('takes 32 MiB together, and a longer body where there is no other', () => {
  const memory = new DecodingMemory();
  memory.acquire(40 * MIB);
  expect(() => memory.acquire(1)).toThrow('is exhausted');
  memory.release(40 * MIB);
  memory.acquire(30 * MIB);
  memory.acquire(2 * MIB);
  expect(() => memory.acquire(1)).toThrow(
    expect.objectContaining({ reason: 'BODY_MEMORY_EXHAUSTED' }),
  );
  memory.release(30 * MIB);
  memory.acquire(30 * MIB);
});
