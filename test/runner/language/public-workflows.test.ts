import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { PermissionsPolicy } from '../../../src/runner/language/check-permissions.ts';
import { type ReadLimits, readWorkflow } from '../../../src/runner/language/read-workflow.ts';
import type { FileProblem, WorkflowSource } from '../../../src/runner/model/workflow.ts';
import { publicData } from './public-data.ts';

/** Files whose outcome differs, with the reason; everything else must agree. */
const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {
  'concurrency.yml':
    'has jobs without steps, which the parser takes and the service refuses; so do we',
  'errors-anchor-tag.yml': 'GitHub takes anchors since 2025, and so do we',
  'errors-max-result-size.yml': "counts bytes of that parser's own objects; we cap values and text",
  'errors-reusable-workflow-max-result-size.yml': 'the same',
  'events-mapping-all.yml':
    'has branches beside branches-ignore, which the parser takes and the service refuses; we refuse',
  'misc-jobs.yml': 'has jobs without steps, too',
  'on-workflow_dispatch-unknown-keys-ignored.yml': 'we say so when a key is unknown',
  'yaml-schema-sequence.yml': 'a comment without a blank before it is no YAML 1.2',
  'yaml-schema-str-flow-styles.yml': 'a quoted text that goes on less indented is no YAML 1.2',
};

const folder = publicData('workflow-parser/testdata/reader');
const FILES = 195;

/** One file of the data: a workflow, what it calls, and either the errors or none. */
type Case = {
  readonly name: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly source: WorkflowSource;
  readonly called: ReadonlyMap<string, WorkflowSource>;
  readonly expected: readonly Expected[];
};
type Expected = {
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
  readonly text: string;
};

describe.skipIf(folder === undefined)("GitHub's workflow files", () => {
  test(`all ${FILES} but the known differences`, async () => {
    const cases = readdirSync(folder ?? '').map((name) => caseFrom(folder ?? '', name));
    const failures = new Map<string, string>();
    for (const one of cases) {
      const failure = await failureOf(one);
      if (failure !== undefined) {
        failures.set(one.name, failure);
      }
    }
    const passed = cases.length - failures.size;
    process.stdout.write(`workflow files: ${passed} of ${cases.length} passed\n`);
    for (const [name, failure] of failures) {
      if (KNOWN_DIFFERENCES[name] === undefined) {
        process.stdout.write(`${name}\n${failure}\n`);
      }
    }
    expect([...failures.keys()].toSorted()).toEqual(Object.keys(KNOWN_DIFFERENCES).toSorted());
    expect(cases).toHaveLength(FILES);
  });
});

function caseFrom(path: string, name: string): Case {
  const parts = readFileSync(join(path, name), 'utf8').split(/\r?\n---\r?\n/);
  const called = new Map<string, WorkflowSource>();
  for (let index = 2; index < parts.length - 1; index += 2) {
    const file = (parts[index] ?? '').trim();
    const fileName = /([^/@]+)(?:@.*)?$/.exec(file)?.[1] ?? file;
    called.set(file, { path: file, fileName, text: parts[index + 1] ?? '' });
  }
  const { errors = [] } = JSON.parse(parts.at(-1) ?? '') as {
    readonly errors?: readonly { readonly Message: string }[];
  };
  return {
    name,
    options: (parse(parts[0] ?? '') ?? {}) as Record<string, unknown>,
    source: { path: `.github/workflows/${name}`, fileName: name, text: parts[1] ?? '' },
    called,
    expected: errors.map(({ Message }) => expectedFrom(Message)),
  };
}

function expectedFrom(message: string): Expected {
  const match = /^(.*?) \(Line: (\d+), Col: (\d+)\): (.*)$/s.exec(message);
  if (match === null) {
    return expectedWithin(message.replace(/^\.github\/workflows\/[\w.-]+\.yml: /, ''));
  }
  const [, file, line, column, text = ''] = match;
  return { file, line: Number(line), column: Number(column), text };
}

/** Some messages of the YAML parser carry the position in their words. */
function expectedWithin(message: string): Expected {
  const match = / on line (\d+) and column (\d+)/.exec(message);
  const [words = '', line, column] = match ?? [];
  return match === null
    ? { text: message }
    : { text: message.replace(words, ''), line: Number(line), column: Number(column) };
}

async function failureOf(one: Case): Promise<string | undefined> {
  const { problems } = await readWorkflow(
    one.source,
    async (uses) =>
      await Promise.resolve(one.called.get(uses) ?? one.called.get(uses.replace(/^\.\//, ''))),
    limitsFrom(one.options),
  );
  const missing = one.expected.filter((wanted) => !problems.some((found) => agrees(found, wanted)));
  const extra = problems.filter((found) => !one.expected.some((wanted) => agrees(found, wanted)));
  return missing.length === 0 && extra.length === 0
    ? undefined
    : `  missing ${JSON.stringify(missing)}\n  extra ${JSON.stringify(extra)}`;
}

function agrees(found: FileProblem, wanted: Expected): boolean {
  const isThere =
    wanted.line === undefined || (wanted.line === found.line && wanted.column === found.column);
  return isThere && comparable(found.message) === comparable(wanted.text);
}

/** Without what the service shortens, and without the keys of steps that grew since. */
function comparable(text: string): string {
  return text
    .replace(/(Add one of these properties): .*$/, '$1')
    .slice(0, 90)
    .toLowerCase();
}

const POLICIES: Readonly<Record<string, PermissionsPolicy>> = {
  LimitedRead: 'limitedRead',
  Write: 'write',
};

function limitsFrom(options: Readonly<Record<string, unknown>>): ReadLimits {
  const numberOf = (name: string): number | undefined => {
    const value = options[name];
    return typeof value === 'number' ? value : undefined;
  };
  return {
    depthMax: numberOf('max-depth'),
    charactersMax: numberOf('max-file-size'),
    callDepthMax: numberOf('max-nested-reusable-workflows-depth'),
    jobsMax: numberOf('max-job-limit'),
    permissionsPolicy: POLICIES[String(options['permissions-policy'])],
  };
}
