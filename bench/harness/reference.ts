// The yardstick of the micro-benchmarks; yields nothing by itself.
import { createRandom } from '../../test/support/dataset/random.ts';

const BYTES = 16_384;
const KEYS = 4_096;

/**
 * The yardstick of the micro-benchmarks: a fixed work of JavaScript that hashes 16 KiB, looks up
 * 4,096 keys of a Map and reads 4,096 words at random from 1 MiB. Never to be changed: every ratio of
 * bench/baseline.json is measured against it.
 */
export function createReference(): () => number {
  const random = createRandom(1);
  const bytes = Uint8Array.from({ length: BYTES }, () => random.below(256));
  const map = new Map<number, number>();
  for (let key = 0; key < KEYS; key++) map.set(key * 7919, key);
  const words = new Uint32Array(262_144);
  const places = Uint32Array.from({ length: KEYS }, () => random.below(words.length));
  return () => {
    let hash = 0x811c9dc5;
    for (let i = 0; i < BYTES; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
    for (let key = 0; key < KEYS; key++) hash += map.get(key * 7919) ?? 0;
    for (let i = 0; i < KEYS; i++) hash += words[places[i] as number] as number;
    return hash;
  };
}
