// Yields nanoseconds per consistency token made, and per token checked that was not met before.
// Run: npm run bench -- token-encode token-decode
import { TokenCodec } from '../../src/model/consistency-token.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const SHARD = { projectId: 'bench', tenantId: 'tenant-1' };
const OPERATIONS = 1_000;
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i);

export const tokenEncode: MicroBench = {
  name: 'token-encode',
  yields: 'ns per token made',
  operations: OPERATIONS,
  prepare() {
    const codec = new TokenCodec({ key: KEY, rememberMax: 16 });
    let revision = 0;
    return () => {
      let characters = 0;
      for (let i = 0; i < OPERATIONS; i++) characters += codec.encode(SHARD, 1, revision++).length;
      return characters;
    };
  },
};

export const tokenDecode: MicroBench = {
  name: 'token-decode',
  yields: 'ns per token checked, none of them remembered',
  operations: OPERATIONS,
  prepare() {
    const codec = new TokenCodec({ key: KEY, rememberMax: 16 });
    const tokens = listOf(OPERATIONS, (revision) => codec.encode(SHARD, 1, revision));
    mustHold(
      tokens.every((token, revision) => codec.decode(SHARD, token).revision === revision),
      'tokens name their seq',
    );
    return () => {
      let sum = 0;
      for (const token of tokens) sum += codec.decode(SHARD, token).revision;
      return sum;
    };
  },
};
