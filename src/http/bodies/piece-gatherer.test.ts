import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PieceGatherer } from './piece-gatherer.ts';

/** Pieces of every size that a network makes, most of them small. */
const pieces = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 20 }) },
    { weight: 2, arbitrary: fc.uint8Array({ minLength: 1, maxLength: 2_000 }) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 200_000 }).map((n) => pattern(n)) },
  ),
  { maxLength: 200 },
);

function pattern(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => (i * 31) & 0xff);
}

function isWithinBound(gatherer: PieceGatherer, received: number): boolean {
  return gatherer.capacity <= 2 * received + 256 && gatherer.length <= gatherer.capacity;
}

test('any cut of a body gives the same bytes, within twice their memory', () => {
  fc.assert(
    fc.property(pieces, fc.constantFrom('take', 'move', 'shift'), (all, way) => {
      const gatherer = new PieceGatherer();
      let received = 0;
      for (const piece of all) {
        // The memory of a piece is its owner's again.
        const lent = Uint8Array.from(piece);
        gatherer.append(lent);
        lent.fill(0xff);
        received += piece.length;
        expect(isWithinBound(gatherer, received)).toBe(true);
      }
      const wanted = Buffer.concat(all);
      expect(gatherer.length).toBe(received);
      let given: Uint8Array;
      if (way === 'take') given = gatherer.consume(received);
      else if (way === 'move') gatherer.moveTo((given = new Uint8Array(received)));
      else {
        const parts: Uint8Array[] = [];
        while (gatherer.length > 0) parts.push(gatherer.shift());
        given = Buffer.concat(parts);
      }
      expect(Buffer.compare(given, wanted)).toBe(0);
      expect([gatherer.length, gatherer.capacity]).toEqual([0, 0]);
    }),
    { numRuns: 150 },
  );
});

test('what is taken in between is what came first', () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ add: fc.uint8Array({ minLength: 1, maxLength: 900 }) }),
      fc.record({ take: fc.double({ min: 0, max: 1, noNaN: true }) }),
      fc.constant({ shift: true }),
    ),
    { maxLength: 120 },
  );
  fc.assert(
    fc.property(steps, (all) => {
      const gatherer = new PieceGatherer();
      let wanted = Buffer.alloc(0);
      const check = (given: Uint8Array): void => {
        expect(Buffer.compare(given, wanted.subarray(0, given.length))).toBe(0);
        wanted = wanted.subarray(given.length);
      };
      for (const step of all) {
        if ('add' in step) {
          gatherer.append(step.add);
          wanted = Buffer.concat([wanted, step.add]);
        } else if ('take' in step) {
          const count = Math.floor(step.take * gatherer.length);
          const given = gatherer.consume(count);
          expect(given.length).toBe(count);
          check(given);
        } else check(gatherer.shift());
        expect(gatherer.length).toBe(wanted.length);
        expect(gatherer.capacity).toBeGreaterThanOrEqual(gatherer.length);
      }
      check(gatherer.consume(gatherer.length));
      expect(gatherer.capacity).toBe(0);
    }),
    { numRuns: 300 },
  );
});

test('eight MiB in single bytes are blocks, and not eight million pieces', () => {
  const gatherer = new PieceGatherer();
  const one = Uint8Array.of(7);
  for (let i = 0; i < 8 * 2 ** 20; i++) gatherer.append(one);
  expect(gatherer.capacity).toBeLessThanOrEqual(gatherer.length + 65_536);
  let blocks = 0;
  while (gatherer.length > 0) {
    gatherer.shift();
    blocks += 1;
  }
  expect(blocks).toBeLessThan(160);
});
