import { describe, expect, test } from 'vitest';
import { HeldParts, HeldCapacity } from './held-parts.ts';

const textsIn = (room: HeldCapacity, stallMs?: number) =>
  new HeldParts<string>(room, (text) => text.length, stallMs);

describe('held parts', () => {
  test('come in order, those that are there and those that come later; then nothing', async () => {
    const room = new HeldCapacity();
    const parts = textsIn(room);
    parts.add('a');
    parts.add('bc');
    expect(room.held).toBe(3);
    expect(await parts.next()).toBe('a');
    expect(room.held).toBe(2);
    expect(await parts.next()).toBe('bc');
    const later = parts.next();
    parts.add('d');
    expect(await later).toBe('d');
    const last = parts.next();
    parts.finish();
    expect(await last).toBeUndefined();
    expect(room.held).toBe(0);
  });

  test('share one room: whoever finds it full fails, and gives back what it held', async () => {
    const room = new HeldCapacity(10);
    const [one, other] = [textsIn(room), textsIn(room)];
    one.add('123456');
    other.add('1234');
    other.add('5');
    await expect(other.next()).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
    expect(room.held).toBe(6);
    // What comes late is not held, and the first error stays.
    other.add('1');
    other.fail(new Error('later'));
    await expect(other.next()).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
    one.add('7890');
    expect(await one.next()).toBe('123456');
    one.close();
    expect(room.held).toBe(0);
  });

  test('are given up when the evaluation fails: no list is cut silently', async () => {
    const room = new HeldCapacity();
    const parts = textsIn(room);
    parts.add('abc');
    expect(await parts.next()).toBe('abc');
    parts.add('def');
    parts.fail(new Error('lost'));
    expect(room.held).toBe(0);
    await expect(parts.next()).rejects.toThrow('lost');
  });

  test('are given up for a reader who takes nothing, and it is told so', async () => {
    const room = new HeldCapacity();
    const parts = textsIn(room, 1);
    parts.add('abc');
    parts.add('def');
    expect(await parts.next()).toBe('abc');
    while (room.held > 0) await new Promise((resolve) => setTimeout(resolve, 1));
    parts.finish();
    await expect(parts.next()).rejects.toMatchObject({ reason: 'DEADLINE_EXCEEDED' });
  });

  test('wait for a part as long as it takes', async () => {
    const parts = textsIn(new HeldCapacity(), 1);
    parts.add('a');
    expect(await parts.next()).toBe('a');
    const next = parts.next();
    await new Promise((resolve) => setTimeout(resolve, 20));
    parts.add('b');
    expect(await next).toBe('b');
    parts.close();
  });
});
