/**
 * Whether somebody who has `own` of a resource may take one more of it, when all together have `used` of `max`: as long as that
 * is less than `factor` times what is free. One alone gets factor / (1 + factor) of all; of n who take whatever they can get each
 * has the same, and max / (1 + n * factor) stays free for who comes next (dynamic thresholds: A. K. Choudhury, E. L. Hahne,
 * IEEE/ACM Transactions on Networking 6(2), 1998).
 */
export function hasFairRoom(own: number, used: number, max: number, factor: number): boolean {
  return own < factor * (max - used);
}
