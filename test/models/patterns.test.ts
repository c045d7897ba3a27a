import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { modelOfText, testFiles } from '../../src/assertions/test-files.ts';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { formatGate, printGate } from '../../src/language/gate/print-gate-tree.ts';
import type {
  ModelDocument,
  RelationDocument,
  RewriteDocument,
  SubjectDocument,
} from '../../src/language/model-document.ts';
import {
  inspectModel,
  type NamespaceModel,
  parseModel,
} from '../../src/model/namespace/namespace-model.ts';
import { scriptInProcess } from '../support/script-in-process.ts';

/* The worked patterns of docs/models.md: models with files of assertions, which hold and which say something. */
const FOLDER = 'docs/patterns';
const NAMES = globSync(`${FOLDER}/*.gate`)
  .map((path) => basename(path, '.gate'))
  .sort();
const LIMITS = { depthMax: 256, readBudget: 10_000 };

function textOf(name: string): string {
  return readFileSync(join(FOLDER, name), 'utf8');
}

/** A model with one part less, and what was taken from it. */
type Lesser = { readonly what: string; readonly document: ModelDocument };

/** The rewrite with one operand less at one place, for each place that has one to spare. */
function lesserRewrites(rewrite: RewriteDocument): readonly RewriteDocument[] {
  const { exclusion } = rewrite;
  if (exclusion !== undefined) {
    const { include, exclude } = exclusion;
    return [
      include,
      ...lesserRewrites(include).map((one) => ({ exclusion: { include: one, exclude } })),
      ...lesserRewrites(exclude).map((one) => ({ exclusion: { include, exclude: one } })),
    ];
  }
  for (const member of ['union', 'intersection'] as const) {
    const operands = rewrite[member];
    if (operands === undefined) continue;
    return operands.flatMap((operand, at) => [
      ...(operands.length > 1 ? [{ [member]: operands.filter((_, index) => index !== at) }] : []),
      ...lesserRewrites(operand).map((one) => ({ [member]: operands.with(at, one) })),
    ]);
  }
  return [];
}

/** The relation as above, and with one type of subject less. */
function lesserRelations({ subjects, ...rewrite }: RelationDocument): readonly RelationDocument[] {
  const admitted = subjects === undefined ? {} : { subjects };
  const fewer = (subjects ?? []).flatMap((_, at): readonly SubjectDocument[][] =>
    subjects !== undefined && subjects.length > 1 ? [subjects.filter((__, i) => i !== at)] : [],
  );
  return [
    ...lesserRewrites(rewrite).map((one) => ({ ...admitted, ...one })),
    ...fewer.map((few) => ({ ...rewrite, subjects: few })),
  ];
}

function lesserModels(document: ModelDocument): readonly Lesser[] {
  return Object.entries(document.namespaces).flatMap(([namespace, { relations, ...rest }]) =>
    Object.entries(relations).flatMap(([name, relation]) =>
      lesserRelations(relation).map((one) => ({
        what: `${namespace}#${name} as ${JSON.stringify(one)}`,
        document: {
          ...document,
          namespaces: {
            ...document.namespaces,
            [namespace]: { ...rest, relations: { ...relations, [name]: one } },
          },
        },
      })),
    ),
  );
}

function failures(name: string, model: NamespaceModel): number {
  const file = { name, text: textOf(`${name}.yaml`) };
  const result = testFiles(
    [file],
    () => model,
    LIMITS,
    () => name,
  );
  return result.failures.length;
}

describe.each(NAMES)('the pattern %s', (name) => {
  const text = textOf(`${name}.gate`);
  const { document, json } = parseGate(text);

  test('has nothing to find fault with, and is laid out', () => {
    expect(inspectModel(json)).toMatchObject({ errors: [], warnings: [] });
    expect(formatGate(text)).toBe(text);
    expect(modelOfText(JSON.stringify(parseGate(printGate(document)).document))).toEqual(
      modelOfText(text),
    );
  });

  test('its assertions hold, and notice each operand and type of subject that is taken out', async () => {
    const args = ['model', 'test', '--quiet', join(FOLDER, `${name}.yaml`)];
    const quiet = { code: 0, out: '', err: '' };
    expect(await scriptInProcess('src/gatehouse.ts', args)).toEqual(quiet);
    const lesser = lesserModels(document);
    const unnoticed = lesser.filter(
      (one) => failures(name, parseModel(JSON.stringify(one.document))) === 0,
    );
    expect(unnoticed.map(({ what }) => what)).toEqual([]);
    expect(lesser.length).toBeGreaterThan(0);
  });
});

test('docs/models.md lists each pattern with both of its files', () => {
  expect(NAMES.length).toBeGreaterThanOrEqual(12);
  const page = readFileSync('docs/models.md', 'utf8');
  const linked = [...page.matchAll(/\]\(patterns\/([\w-]+)\.(gate|yaml)\)/g)].map(
    ([, name, kind]) => `${name}.${kind}`,
  );
  expect(linked.toSorted()).toEqual(
    NAMES.flatMap((name) => [`${name}.gate`, `${name}.yaml`]).toSorted(),
  );
});
