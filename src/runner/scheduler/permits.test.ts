import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Cancellation } from './cancellation.ts';
import { FairPermits, type Release } from './permits.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31));

type Request = {
  readonly owner: string;
  readonly cancellation: Cancellation;
  state: 'waiting' | 'granted' | 'refused' | 'released';
  release: Release | undefined;
};

type Move =
  | { readonly kind: 'acquire'; readonly owner: string }
  | { readonly kind: 'release' | 'cancel'; readonly pick: number };

const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('acquire' as const), owner: fc.constantFrom('a', 'b', 'c') }),
    fc.record({ kind: fc.constant('release' as const), pick: fc.nat() }),
    fc.record({ kind: fc.constant('cancel' as const), pick: fc.nat() }),
  ),
  { maxLength: 80, size: 'max' },
);

/** Plays the script, and calls `check` after each move. */
async function play(
  max: number,
  script: readonly Move[],
  check: (requests: readonly Request[]) => void,
): Promise<void> {
  const permits = new FairPermits(max);
  const requests: Request[] = [];
  for (const move of script) {
    if (move.kind === 'acquire') {
      const cancellation = new Cancellation();
      const request: Request = {
        owner: move.owner,
        cancellation,
        state: 'waiting',
        release: undefined,
      };
      requests.push(request);
      void permits.acquire(move.owner, cancellation).then((release) => {
        request.state = release === undefined ? 'refused' : 'granted';
        request.release = release;
      });
    } else {
      const wanted = move.kind === 'release' ? 'granted' : 'waiting';
      const open = requests.filter(({ state }) => state === wanted);
      const chosen = open[move.pick % Math.max(1, open.length)];
      if (chosen !== undefined && move.kind === 'cancel')
        chosen.cancellation.cancel('cancel', 'run');
      if (chosen !== undefined && move.kind === 'release') {
        chosen.state = 'released';
        chosen.release?.();
        chosen.release?.();
      }
    }
    await Promise.resolve();
    await Promise.resolve();
    check(requests);
    expect(permits.granted).toBe(requests.filter(({ state }) => state === 'granted').length);
  }
}

describe(`permits (SEED=${SEED})`, () => {
  test('never more than there are, and none is free while somebody waits', async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), moves, async (max, script) => {
        await play(max, script, (requests) => {
          const granted = requests.filter(({ state }) => state === 'granted').length;
          expect(granted).toBeLessThanOrEqual(max);
          if (requests.some(({ state }) => state === 'waiting')) expect(granted).toBe(max);
        });
      }),
      { seed: SEED, numRuns: 200 },
    );
  });

  test('of one owner the longest waiting request is next; owners take turns', async () => {
    const permits = new FairPermits(1);
    const order: string[] = [];
    const never = new Cancellation();
    const first = await permits.acquire('x', never);
    const take = async (owner: string, name: string): Promise<void> => {
      const release = await permits.acquire(owner, never);
      order.push(name);
      release?.();
    };
    const all = [
      take('a', 'a1'),
      take('a', 'a2'),
      take('a', 'a3'),
      take('b', 'b1'),
      take('c', 'c1'),
      take('b', 'b2'),
    ];
    first?.();
    await Promise.all(all);
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });
});
