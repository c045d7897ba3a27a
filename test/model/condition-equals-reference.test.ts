import { Environment } from '@marcbachmann/cel-js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isProblem } from '../../src/model/cel/cel-program.ts';
import {
  CONDITION_FALSE,
  CONDITION_TRUE,
  CONDITION_UNDECIDED,
} from '../../src/model/conditions/conditions.ts';
import {
  compileCondition,
  prepareDeclaredCondition,
} from '../../src/model/conditions/declared-condition.ts';
import {
  type ConditionDeclaration,
  parseConditions,
} from '../../src/model/conditions/model-conditions.ts';
import { whyUndecided } from '../../src/model/conditions/undecided-condition.ts';
import {
  areTyped,
  celOf,
  ERROR,
  inputs,
  PARAMETERS,
  referenceResult,
  terms,
} from '../reference/condition-reference.ts';
import { byLength } from '../support/test-length.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? byLength(0.1, 1));
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const params = { seed, numRuns: Math.ceil(1_500 * FUZZ_RUNS) };

function declare(expression: string): ConditionDeclaration {
  const document = { own: { parameters: PARAMETERS, expression } };
  return parseConditions(document, '$').get('own') as ConditionDeclaration;
}

describe(`conditions == reference (SEED=${seed})`, () => {
  test('with inputs from the tuple, from the request, ill-typed and missing', () => {
    const met = new Set<number>();
    fc.assert(
      fc.property(terms, inputs, inputs, (term, given, context) => {
        const declaration = declare(celOf(term));
        const compiled = compileCondition(declaration);
        if (isProblem(compiled)) throw new Error(compiled.message);
        const result = referenceResult(term, given, context);
        const isUndecided = result === ERROR || !areTyped(given);
        const wanted = isUndecided
          ? CONDITION_UNDECIDED
          : result === true
            ? CONDITION_TRUE
            : CONDITION_FALSE;
        const outcome = prepareDeclaredCondition(declaration, JSON.stringify(given))(context);
        met.add(wanted);
        expect(outcome, celOf(term)).toBe(wanted);
      }),
      params,
    );
    expect(met.size).toBe(3);
  });

  test('what is missing are inputs of the expression, and giving all of them right leaves none', () => {
    const right = { a: 1, b: 2, s: 'a', u: 'b', p: true, q: false, g: ['a'], h: [1] };
    fc.assert(
      fc.property(terms, inputs, (term, context) => {
        const declaration = declare(celOf(term));
        const conditions = new Map([['own', declaration]]);
        const missingInputs = (given: object): readonly string[] =>
          whyUndecided(conditions, { conditionName: 'own' }, JSON.stringify(given))
            ?.missingInputs ?? [];
        const missing = missingInputs(context);
        const known = compileCondition(declaration);
        const named = isProblem(known) ? new Set<string>() : known.parameters;
        for (const name of missing) expect(named.has(name), celOf(term)).toBe(true);
        const isUndecided = referenceResult(term, {}, context) === ERROR;
        if (!isUndecided) expect(missing, celOf(term)).toEqual([]);
        expect(missingInputs(right)).toEqual([]);
        // Every input that it names as missing is absent or ill-typed.
        for (const name of missing) {
          const one = Object.fromEntries(Object.entries(context).filter(([key]) => key === name));
          expect(Object.hasOwn(context, name) && areTyped(one), celOf(term)).toBe(false);
        }
      }),
      params,
    );
  });

  test('another implementation says the same of what it can evaluate', () => {
    const environment = new Environment();
    for (const [name, type] of Object.entries(PARAMETERS)) environment.registerVariable(name, type);
    const right = fc.record({
      a: fc.integer({ min: -2, max: 4 }),
      b: fc.integer({ min: -2, max: 4 }),
      s: fc.constantFrom('', 'a', 'ab'),
      u: fc.constantFrom('a', 'b'),
      p: fc.boolean(),
      q: fc.boolean(),
      g: fc.array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 3 }),
      h: fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }),
    });
    let compared = 0;
    fc.assert(
      fc.property(terms, right, (term, context) => {
        const theirs = evaluated(environment, celOf(term), {
          ...context,
          a: BigInt(context.a),
          b: BigInt(context.b),
          h: context.h.map(BigInt),
        });
        if (theirs === undefined) return;
        compared++;
        const outcome = prepareDeclaredCondition(declare(celOf(term)), '')(context);
        expect(outcome, celOf(term)).toBe(theirs ? CONDITION_TRUE : CONDITION_FALSE);
      }),
      params,
    );
    expect(compared).toBeGreaterThan(params.numRuns / 2);
  });
});

/** Undefined where it throws: what it takes for an error is not compared. */
function evaluated(
  environment: Environment,
  expression: string,
  context: { readonly [name: string]: unknown },
): boolean | undefined {
  try {
    return environment.evaluate(expression, context) === true;
  } catch {
    return undefined;
  }
}
