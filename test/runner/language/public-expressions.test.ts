import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  ContextDictionary,
  jsonFromExpressionData,
} from '../../../src/runner/language/expression-data.ts';
import { evaluateTree } from '../../../src/runner/language/expression-evaluator.ts';
import { functionsFor } from '../../../src/runner/language/expression-functions.ts';
import { parseExpression } from '../../../src/runner/language/expression.ts';
import type { JsonObject, JsonValue } from '../../../src/shared/json.ts';
import { publicData } from './public-data.ts';

type Case = {
  readonly expr: string;
  readonly contexts?: JsonObject;
  readonly result?: { readonly kind: string; readonly value: JsonValue };
  readonly err?: { readonly kind: 'lexing' | 'parsing' | 'evaluation'; readonly value: string };
  readonly options?: { readonly skip?: readonly string[] };
};

const folder = publicData('expressions/testdata');
const CASES = 1_015;

describe.skipIf(folder === undefined)("GitHub's expression cases", () => {
  test(`all ${CASES}`, () => {
    const cases = casesIn(folder ?? '');
    const failures = cases.flatMap((one) => failureOf(one) ?? []);
    process.stdout.write(
      `expressions: ${cases.length - failures.length} of ${cases.length} passed\n`,
    );
    expect(failures).toEqual([]);
    expect(cases).toHaveLength(CASES);
  });
});

function casesIn(path: string): readonly Case[] {
  return readdirSync(path)
    .flatMap((name) =>
      Object.values(
        JSON.parse(readFileSync(join(path, name), 'utf8')) as Record<string, readonly Case[]>,
      ).flat(),
    )
    .filter((one) => one.options?.skip?.includes('typescript') !== true);
}

function failureOf(one: Case): string | undefined {
  const actual = outcomeOf(one);
  const wanted = one.err === undefined ? JSON.stringify(one.result) : wantedText(one.err, one.expr);
  const isRight = one.err === undefined ? actual === wanted : actual.includes(wanted);
  return isRight ? undefined : `${one.expr}: ${actual} instead of ${wanted}`;
}

/** Evaluation errors are quoted with a position that only the service knows. */
function wantedText(err: NonNullable<Case['err']>, expr: string): string {
  return err.kind === 'evaluation'
    ? err.value.replace(`. Located within expression: ${expr}`, '')
    : err.value;
}

function outcomeOf({ expr, contexts = {} }: Case): string {
  try {
    if (expr.trim() === '') {
      return JSON.stringify({ kind: 'Null', value: null });
    }
    const tree = parseExpression(expr, { contexts: Object.keys(contexts), functions: [] });
    const result = jsonFromExpressionData(
      evaluateTree(tree, new ContextDictionary(contexts), functionsFor({ contexts }, new Map())),
    );
    return JSON.stringify({ kind: kindOf(result), value: result });
  } catch (error) {
    return error instanceof Error ? `error: ${error.message}` : 'error';
  }
}

function kindOf(value: JsonValue): string {
  if (value === null) {
    return 'Null';
  }
  if (Array.isArray(value)) {
    return 'Array';
  }
  const type = typeof value;
  return type === 'object' ? 'Object' : type.charAt(0).toUpperCase() + type.slice(1);
}
