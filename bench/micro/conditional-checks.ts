// Yields nanoseconds per Check with a context by the general evaluation: of a plain grant, of one under a built-in
// condition and under conditions that the model declares, each with parameters of its own among 100.
// Run: npm run bench -- check-plain check-built-in check-built-in-networks check-declared check-declared-networks
import { TupleIndex } from '../../src/cache/tuple-index.ts';
import { Evaluator } from '../../src/engine/evaluator.ts';
import type { CheckQuery } from '../../src/model/check-query.ts';
import { parseModel } from '../../src/model/namespace-model.ts';
import { systemClock } from '../../src/shared/clock.ts';
import { listOf, type MicroBench, mustHold } from '../harness/micro-bench.ts';

const OPERATIONS = 1_000;
const READ_BUDGET = 10_000;
const PARAMETERS = 100;

const MODEL = parseModel(
  JSON.stringify({
    conditions: {
      adult: { parameters: { min: 'int', age: 'int' }, expression: 'age >= min' },
      office: {
        parameters: { networks: 'list<string>', ip: 'ipaddress' },
        expression: 'networks.exists(network, ip.in_cidr(network))',
      },
    },
    namespaces: { doc: { relations: { viewer: {} } } },
  }),
);

type Condition = {
  readonly name: string;
  readonly paramsOf: (list: number) => object;
  readonly contextOf: (i: number) => object;
};

const ofAge = (i: number): object => ({ age: 40 + (i % 50) });
const networks = (list: number): string[] => [
  `10.${list}.0.0/16`,
  `192.168.${list}.0/24`,
  'fd00::/8',
];
const ofNetworks = (i: number): object => ({ ip: `10.${i % PARAMETERS}.3.${i % 199}` });

function conditionalBench(name: string, yields: string, condition?: Condition): MicroBench {
  return {
    name,
    yields,
    operations: OPERATIONS,
    prepare() {
      const index = new TupleIndex();
      const questions = listOf(OPERATIONS, (i): CheckQuery => {
        const key = { namespace: 'doc', objectId: `d${i}`, relation: 'viewer' };
        const subject = { kind: 'user', userId: `u${i}` } as const;
        const payload =
          condition === undefined
            ? {}
            : {
                conditionName: condition.name,
                conditionParams: JSON.stringify(condition.paramsOf(i % PARAMETERS)),
              };
        index.applyChange('insert', { ...key, subject, ...payload });
        const contextJson = JSON.stringify((condition?.contextOf ?? ofAge)(i));
        return { ...key, subject, contextJson };
      });
      const options = { depthMax: 256, membershipBytesMax: 64 << 20 };
      const evaluator = new Evaluator(index, MODEL, options, systemClock);
      const nowMs = Date.now();
      const isAllowed = (question: CheckQuery): boolean => {
        const task = evaluator.startCheck(question, nowMs, READ_BUDGET);
        mustHold(task.run(Infinity) === 'done', 'a check ends in its slice');
        return task.result();
      };
      mustHold(questions.every(isAllowed), 'every check allows');
      return () => {
        let allowed = 0;
        for (const question of questions) if (isAllowed(question)) allowed++;
        return allowed;
      };
    },
  };
}

export const checkPlain = conditionalBench('check-plain', 'ns per Check of a plain grant');

export const checkBuiltIn = conditionalBench(
  'check-built-in',
  'ns per Check of a grant under age_at_least',
  { name: 'age_at_least', paramsOf: (list) => ({ min_age: list % 40 }), contextOf: ofAge },
);

export const checkBuiltInNetworks = conditionalBench(
  'check-built-in-networks',
  'ns per Check of a grant under ip_in_cidrs of three networks',
  {
    name: 'ip_in_cidrs',
    paramsOf: (list) => ({ cidrs: networks(list) }),
    contextOf: ofNetworks,
  },
);

export const checkDeclared = conditionalBench(
  'check-declared',
  'ns per Check of a grant under a declared condition, age >= min',
  { name: 'adult', paramsOf: (list) => ({ min: list % 40 }), contextOf: ofAge },
);

export const checkDeclaredNetworks = conditionalBench(
  'check-declared-networks',
  'ns per Check of a grant under a declared condition over three networks',
  { name: 'office', paramsOf: (list) => ({ networks: networks(list) }), contextOf: ofNetworks },
);
