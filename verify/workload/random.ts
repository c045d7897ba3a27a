import { createHash } from 'node:crypto';

/** Numbers that follow from a seed. */
export type Random = {
  /** 0 up to 1, without 1. */
  fraction(): number;
  /** 0 up to `below`, without it. */
  integer(below: number): number;
  chance(probability: number): boolean;
  pick<T>(list: readonly T[]): T;
  /** Another sequence, which stays the same however much is drawn here. */
  fork(name: string): Random;
};

/**
 * The sequence of `seed`: sfc32 (Doty-Humphrey, PractRand), started from a hash of the seed. Not for secrets.
 */
export function createRandom(seed: string): Random {
  const start = createHash('sha256').update(seed).digest();
  let [a, b, c, counter] = [0, 4, 8].map((at) => start.readInt32LE(at)).concat(1) as [
    number,
    number,
    number,
    number,
  ];
  const fraction = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 12; i++) fraction();
  const integer = (below: number): number => Math.floor(fraction() * below);
  return {
    fraction,
    integer,
    chance: (probability) => fraction() < probability,
    pick: (list) => {
      const picked = list[integer(list.length)];
      if (picked === undefined) throw new Error('nothing to pick from');
      return picked;
    },
    fork: (name) => createRandom(`${seed}/${name}`),
  };
}
