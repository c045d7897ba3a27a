/** Seeded random numbers, the same on every machine. */
export type Random = { readonly next: () => number; readonly below: (n: number) => number };

/** sfc32 (C. Doty-Humphrey, PractRand), 20 draws thrown away. `next` is in [0, 1), `below(n)` an integer in [0, n). */
export function createRandom(seed: number): Random {
  let [a, b, c, d] = [0x9e3779b9, 0x243f6a88, 0xb7e15162, seed >>> 0];
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return (t >>> 0) / 4294967296;
  };
  for (let i = 0; i < 20; i++) next();
  return { next, below: (n) => Math.floor(next() * n) };
}

/**
 * Ranks in [0, n) by Zipf's law with exponent 0.99 (Gray et al., "Quickly generating billion-record
 * synthetic databases", as in YCSB), scattered over the range by a fixed odd multiplier.
 */
export function createZipf(random: Random, n: number): () => number {
  const theta = 0.99;
  let zeta = 0;
  for (let i = 1; i <= n; i++) zeta += 1 / i ** theta;
  const alpha = 1 / (1 - theta);
  const eta = (1 - (2 / n) ** (1 - theta)) / (1 - (1 + 0.5 ** theta) / zeta);
  return () => {
    const u = random.next();
    const uz = u * zeta;
    const tail = Math.min(n - 1, Math.floor(n * (eta * u - eta + 1) ** alpha));
    const rank = uz < 1 ? 0 : uz < 1 + 0.5 ** theta ? 1 : tail;
    return (rank * 7919 + 17) % n;
  };
}
