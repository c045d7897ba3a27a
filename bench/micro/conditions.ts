// Yields nanoseconds per condition evaluated: an address in four networks, and an instant.
// Run: npm run bench -- condition-ip condition-instant
import { CONDITION_TRUE, prepareCondition } from '../../src/model/conditions.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const OPERATIONS = 1_000;

function conditionBench(
  name: string,
  yields: string,
  condition: { readonly name: string; readonly params: object },
  contextOf: (i: number) => Readonly<Record<string, unknown>>,
): MicroBench {
  return {
    name,
    yields,
    operations: OPERATIONS,
    prepare() {
      const holds = prepareCondition(condition.name, JSON.stringify(condition.params));
      const contexts = listOf(OPERATIONS, contextOf);
      mustHold(
        contexts.every((context) => holds(context) === CONDITION_TRUE),
        `${condition.name} holds`,
      );
      return () => {
        let sum = 0;
        for (const context of contexts) sum += holds(context);
        return sum;
      };
    },
  };
}

export const conditionIp = conditionBench(
  'condition-ip',
  'ns per address looked for in four networks',
  {
    name: 'ip_in_cidrs',
    params: { cidrs: ['192.168.0.0/16', '2001:db8::/32', '172.16.0.0/12', '10.0.0.0/8'] },
  },
  (i) => ({ ip: `10.1.${i % 250}.${i % 199}` }),
);

export const conditionInstant = conditionBench(
  'condition-instant',
  'ns per instant compared',
  { name: 'not_after', params: { not_after: '2030-01-01T00:00:00Z' } },
  (i) => ({ now: `2026-05-04T10:${String(i % 60).padStart(2, '0')}:00.25Z` }),
);
