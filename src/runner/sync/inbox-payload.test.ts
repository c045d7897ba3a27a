import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formField } from './form-field.ts';
import { parsePayload, PAYLOAD_BOUNDS } from './inbox-payload.ts';

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded; charset=utf-8';
const parse = (text: string): Promise<unknown> => parsePayload(JSON_TYPE, Buffer.from(text));

/** A push as a code host sends it. */
function pushOf(commits: number, filesOfEach: number): string {
  const person = { name: 'Änne', email: 'anne@example.com', username: 'anne' };
  const files = (kind: string, commit: number): string[] =>
    Array.from(
      { length: filesOfEach / 2 },
      (_, i) => `packages/${kind}/src/dir-${commit}/f${i}.ts`,
    );
  return JSON.stringify({
    ref: 'refs/heads/main',
    repository: Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`${i}_url`, `https://x/${i}`]),
    ),
    commits: Array.from({ length: commits }, (_, i) => ({
      id: i.toString(16).padStart(40, '0'),
      tree_id: 'b'.repeat(40),
      distinct: true,
      message: `Mend "the" thing\n\n${'Why it was so. '.repeat(20)}`,
      timestamp: '2026-01-01T00:00:00Z',
      url: `https://example.com/o/r/commit/${'c'.repeat(40)}`,
      author: person,
      committer: person,
      added: files('added', i),
      removed: [],
      modified: files('modified', i),
    })),
  });
}

test('the largest pushes of code hosts are parsed', async () => {
  const text = pushOf(2_048, 20);
  expect(await parse(text)).toEqual(JSON.parse(text));
  const one = pushOf(1, 40_000);
  expect(await parsePayload(FORM_TYPE, Buffer.from(`payload=${encodeURIComponent(one)}`))).toEqual(
    JSON.parse(one),
  );
});

const list = (count: number): string => `{"a":[${'1,'.repeat(count - 3)}1]}`;
const named = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"n${i}":1`).join(',')}}`;
const long = (bytes: number): string => `{"a":"${'x'.repeat(bytes - 8)}"}`;
const deep = (levels: number): string => `{"a":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
const { valuesMax, namesMax, bytesMax } = PAYLOAD_BOUNDS;

test.each([
  ['values', list, valuesMax, 'BODY_TOO_LARGE'],
  ['names', named, namesMax, 'BODY_TOO_LARGE'],
  ['bytes', long, bytesMax, 'BODY_TOO_LARGE'],
  ['levels', deep, 128, 'INVALID_JSON'],
  ['digits', (digits: number) => `{"a":${'1'.repeat(digits)}}`, 256, 'INVALID_JSON'],
] as const)(
  'as many %s as are allowed are parsed, one more is refused',
  async (_, of, max, reason) => {
    expect(await parse(of(max))).toEqual(JSON.parse(of(max)));
    await expect(parse(of(max + 1))).rejects.toMatchObject({ reason });
  },
);

test.each([
  ['', 'is not JSON'],
  ['{"secret":', 'is not JSON'],
  ['[1]', 'is not an object'],
  ['{"a":"\\', 'is not JSON'],
  [':::', 'is not JSON'],
  [']]]]', 'is not JSON'],
])('%j is refused without being repeated', async (text, problem) => {
  await expect(parse(text)).rejects.toMatchObject({ reason: 'INVALID_JSON' });
  await expect(parse(text)).rejects.toThrow(problem);
});

test('any JSON within the bounds is what JSON.parse makes of it, in either form', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.nat(4),
      async (value, indent) => {
        const text = JSON.stringify(value, null, indent);
        const expected: unknown = JSON.parse(text);
        expect(await parse(text)).toEqual(expected);
        const form = Buffer.from(new URLSearchParams({ other: 'a', payload: text }).toString());
        expect(await parsePayload(FORM_TYPE, form)).toEqual(expected);
      },
    ),
  );
});

test('a field of a form is what URLSearchParams reads', () => {
  const unit = fc.constantFrom('p', '&', '=', '%', '%70', '+', '%2', '%zz', '%c3%a9', '%ff', '\0');
  fc.assert(
    fc.property(fc.string({ unit, maxLength: 30, size: 'max' }), (text) => {
      const steps = formField(Buffer.from(text), 'p');
      let step = steps.next();
      while (step.done !== true) step = steps.next();
      expect(step.value.toString()).toBe(new URLSearchParams(text).get('p') ?? '');
    }),
    { numRuns: 1_000 },
  );
});
