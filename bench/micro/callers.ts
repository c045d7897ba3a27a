import { parseCallersFile } from '../../src/gateway/callers/callers-file.ts';
// Yields nanoseconds per call for who makes it: found by its token among a hundred, counted against its rate, and looked at
// where it goes; and the same by comparing with one token, as without names.
// Run: npm run bench -- caller-found token-compared
import { Callers } from '../../src/gateway/callers/callers.ts';
import { mustRule } from '../../src/gateway/callers/method-rules.ts';
import { createAuthenticator } from '../../src/http/service-tokens.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const OPERATIONS = 1_000;
const CALLERS = 100;
const CHECK = mustRule('/workspace.v1.AuthzService/Check');
/** 43 characters, as 32 random bytes have in base64url. */
const tokenOf = (index: number): string => `token-${index}-`.padEnd(43, 'abcdefghij');
/** Texts of their own, as those of headers are. */
const headersOf = (token: string): readonly string[] =>
  listOf(64, () => Buffer.from(`Bearer ${token}`).toString('latin1'));

export const callerFound: MicroBench = {
  name: 'caller-found',
  yields: 'ns per call of one of 100 callers, with its scope and rate',
  operations: OPERATIONS,
  prepare() {
    const file = {
      callers: listOf(CALLERS, (index) => ({
        name: `caller-${index}`,
        tokens: [tokenOf(index)],
        scopes: [{ projects: ['atlas'], tenants: ['', 'acme'], services: '*', methods: ['read'] }],
        rate_limit: { per_second: 1_000_000_000 },
      })),
    };
    const callers = new Callers({
      tokens: [],
      file: parseCallersFile(JSON.stringify(file)),
      defaultProjectId: 'atlas',
      onKeysFetched: () => undefined,
    });
    const headers = headersOf(tokenOf(57));
    const admitted = (): number => {
      let count = 0;
      for (let i = 0; i < OPERATIONS; i++) {
        const caller = callers.find(headers[i & 63] ?? '')?.caller;
        if (caller?.canAcquire() !== true || !caller.admits()) continue;
        if (caller.scopes.admitTenant(CHECK, '', 'acme')) count += 1;
      }
      return count;
    };
    mustHold(admitted() === OPERATIONS, 'each call is let in');
    return admitted;
  },
};

export const tokenCompared: MicroBench = {
  name: 'token-compared',
  yields: 'ns per call whose token is compared with one',
  operations: OPERATIONS,
  prepare() {
    const authenticator = createAuthenticator([tokenOf(57)]);
    const headers = headersOf(tokenOf(57));
    const accepted = (): number => {
      let count = 0;
      for (let i = 0; i < OPERATIONS; i++)
        count += Number(authenticator.accepts(headers[i & 63] ?? ''));
      return count;
    };
    mustHold(accepted() === OPERATIONS, 'each call is let in');
    return accepted;
  },
};
