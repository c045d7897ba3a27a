/**
 * The cases of the CEL specification, as @bufbuild/cel-spec brings them, through the evaluation that conditions
 * have: with what the library does, what is done otherwise, and every call paid for.
 */
import {
  type CelInput,
  celUint,
  isCelError,
  isCelList,
  isCelMap,
  isCelType,
  isCelUint,
  parse,
} from '@bufbuild/cel';
import type { SimpleTest } from '@bufbuild/cel-spec/cel/expr/conformance/test/simple_pb.js';
import type { Value } from '@bufbuild/cel-spec/cel/expr/value_pb.js';
import {
  getConformanceSuite,
  type IncrementalTestSuite,
} from '@bufbuild/cel-spec/testdata/tests.js';
import { isReflectMessage } from '@bufbuild/protobuf/reflect';
import { describe, expect, test } from 'vitest';
import { CostMeter } from '../../src/model/cel/cel-meter.ts';
import { compileExpression, isProblem, planExpression } from '../../src/model/cel/cel-program.ts';
import { typeText } from '../../src/model/condition-type.ts';

/** Chapters of the language itself; the others are about messages, enums and extensions. */
const CHAPTERS =
  'basic comparisons conversions fields fp_math integer_math lists logic macros parse plumbing string timestamps'.split(
    ' ',
  );
/** Time zones by name, whose hours change with the data of the machine: refused on purpose. */
const BY_PLACE = /'(?:Australia|US|America|Asia)\//;
/** Quoted field names, which the parser of the library does not know; and one key as int and as uint. */
const UNKNOWN = [/`/, /\{0: 1, 0u: 2\}/];

type Case = { readonly name: string; readonly original: SimpleTest; readonly type: string };

function* casesOf(suite: IncrementalTestSuite, path: string): Generator<Case> {
  for (const { original, type, error } of suite.tests) {
    yield {
      name: `${path}/${original.name}`,
      original,
      type: error === undefined ? (type ?? '') : '',
    };
  }
  for (const inner of suite.suites) yield* casesOf(inner, `${path}/${inner.name}`);
}

const ALL = getConformanceSuite()
  .suites.filter(({ name }) => CHAPTERS.includes(name))
  .flatMap((suite) => [...casesOf(suite, suite.name)])
  .filter(({ original: { container, expr } }) => {
    return container === '' && !/TestAllTypes|google\.protobuf\.(?!Timestamp|Duration)/.test(expr);
  });

/** A value of the specification, as text that also a value of the evaluation has. */
function textOfSpec({ kind }: Value): string | undefined {
  switch (kind.case) {
    case 'nullValue':
      return 'null';
    case 'uint64Value':
      return `${kind.value}u`;
    case 'listValue':
      return `[${kind.value.values.map(textOfSpec).join()}]`;
    case 'mapValue':
      return `{${kind.value.entries
        .map(({ key, value }) => `${textOfSpec(key as Value)}:${textOfSpec(value as Value)}`)
        .toSorted()
        .join()}}`;
    case 'typeValue':
      return `type ${kind.value}`;
    case 'objectValue':
      return /Timestamp|Duration/.test(kind.value.typeUrl) ? 'a time' : undefined;
    case 'enumValue':
    case undefined:
      return undefined;
    default:
      return textOf(kind.value);
  }
}

function textOf(value: unknown): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return `${Object.is(value, -0) ? '-0' : value}.`;
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`;
  if (isCelUint(value)) return `${value.value}u`;
  if (isCelType(value)) return `type ${value.name}`;
  if (isCelList(value)) return `[${[...value].map(textOf).join()}]`;
  if (isCelMap(value)) {
    return `{${[...value]
      .map(([key, one]) => `${textOf(key)}:${textOf(one)}`)
      .toSorted()
      .join()}}`;
  }
  if (isReflectMessage(value)) return 'a time';
  return JSON.stringify(value);
}

function inputOf({ kind }: Value): CelInput | undefined {
  switch (kind.case) {
    case 'nullValue':
      return null;
    case 'uint64Value':
      return celUint(kind.value);
    case 'listValue':
      return kind.value.values.map((one) => inputOf(one) as CelInput);
    case 'mapValue':
      return new Map(
        kind.value.entries.map(({ key, value }) => [
          inputOf(key as Value) as string,
          inputOf(value as Value) as CelInput,
        ]),
      );
    case 'objectValue':
    case 'enumValue':
    case 'typeValue':
    case undefined:
      return undefined;
    default:
      return kind.value;
  }
}

/** What the specification wants: a text, 'an error', or undefined where this test cannot say. */
function wantedOf({ resultMatcher }: SimpleTest): string | undefined {
  switch (resultMatcher.case) {
    case 'value':
      return textOfSpec(resultMatcher.value);
    case 'typedResult':
      return resultMatcher.value.result === undefined
        ? undefined
        : textOfSpec(resultMatcher.value.result);
    case 'evalError':
      return 'an error';
    case undefined:
      return 'true';
    default:
      return undefined;
  }
}

function evaluate({ expr, bindings }: SimpleTest): string {
  try {
    const inputs: { [name: string]: CelInput } = {};
    for (const [name, { kind }] of Object.entries(bindings)) {
      if (kind.case === 'value') inputs[name] = inputOf(kind.value) as CelInput;
    }
    const { expr: parsed } = parse(expr);
    if (parsed === undefined) return 'an error';
    const run = planExpression(parsed, 1);
    const result = run(inputs as Parameters<typeof run>[0], new CostMeter(1_000_000));
    return isCelError(result) ? 'an error' : textOf(result);
  } catch {
    return 'an error';
  }
}

describe('the CEL specification', () => {
  const cases = ALL.filter(
    ({ original }) =>
      wantedOf(original) !== undefined &&
      !UNKNOWN.some((pattern) => pattern.test(original.expr)) &&
      Object.values(original.bindings).every(
        ({ kind }) => kind.case === 'value' && inputOf(kind.value) !== undefined,
      ),
  );

  test.each(CHAPTERS)('%s', (chapter) => {
    for (const { name, original } of cases.filter((one) => one.name.startsWith(`${chapter}/`))) {
      const wanted = BY_PLACE.test(original.expr) ? 'an error' : wantedOf(original);
      expect(`${name}: ${original.expr} → ${evaluate(original)}`).toBe(
        `${name}: ${original.expr} → ${wanted}`,
      );
    }
  });

  test('nearly all of its cases were asked', () => {
    expect(cases.length).toBeGreaterThan(1_030);
  });
});

describe('types of the checker are those of the reference implementation', () => {
  const closed = ALL.filter(
    ({ original, type }) =>
      type !== '' &&
      !original.disableCheck &&
      original.typeEnv.length === 0 &&
      Object.keys(original.bindings).length === 0 &&
      !UNKNOWN.some((pattern) => pattern.test(original.expr)),
  );

  test.each(CHAPTERS)('%s', (chapter) => {
    for (const { name, original, type } of closed) {
      if (name.startsWith(`${chapter}/`)) expectType(name, original.expr, type);
    }
  });

  test('most of its cases were asked', () => {
    expect(closed.length).toBeGreaterThan(950);
  });
});

function expectType(name: string, expr: string, type: string): void {
  const compiled = compileExpression(expr, new Map());
  if (isProblem(compiled)) {
    // Beyond CEL's own rules only what could never be anything but an error is refused.
    const refused = /is no (?:timestamp|duration)|a time zone is|"google" is not/;
    expect(compiled.message, name).toMatch(refused);
    return;
  }
  // Of types as values it is not known which ones; of an empty list not what it is joined with.
  if (type.startsWith('type')) return expect(compiled.type.kind, name).toBe('type');
  const isEmptyList = /\[\](?! *==)/.test(expr) && compiled.type.kind === 'list';
  if (!isEmptyList) expect(typeText(compiled.type), name).toBe(ownText(type));
}

/** A type of the reference implementation in our words. */
function ownText(type: string): string {
  return type
    .replaceAll(/google\.protobuf\.(\w+)/g, (_, name: string) => name.toLowerCase())
    .replaceAll(/\bdyn\b/g, 'any')
    .replaceAll('map(string, ', 'map<')
    .replaceAll(/(map|list)\(/g, '$1<')
    .replaceAll(')', '>');
}
