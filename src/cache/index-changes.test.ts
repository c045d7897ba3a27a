import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { checkIndex, listOf } from '../../test/support/index-structure/check-index.ts';
import {
  CHANGE_ENTITY,
  CHANGE_FIRST_MENTION,
  CHANGE_FLAGS,
  CHANGE_NAMESPACE,
  CHANGE_NODE,
  CHANGE_OF_USER,
  CHANGE_RELATION,
  CHANGE_SUBJECT,
  CHANGE_WORDS,
  EDGE_NODE_MASK,
  EDGE_QUALIFIED,
  WILDCARD_NAME,
  WILDCARD_NODE,
  typedWildcardOf,
} from '../model/tuple-reader.ts';
import { TupleIndex } from './tuple-index.ts';
import { ROW_BOUNDS, type RowBytes, type TupleRow } from './tuple-row.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);

/** `doc:a#viewer@u`, `doc:a#viewer@*` or `doc:a#viewer@group:g#member`. */
function rowOf(text: string, payload: Partial<TupleRow> = {}): TupleRow {
  const [object = '', subject = ''] = text.split('@');
  const [namespace = '', objectId = '', relation = ''] = object.split(/[:#]/);
  const [first = '', second, third = ''] = subject.split(/[:#]/);
  const columns =
    subject === '*'
      ? ['*', '', '']
      : second === undefined
        ? ['', first, '']
        : [first, second, third];
  const [subjectNamespace = '', subjectId = '', subjectRelation = ''] = columns;
  return {
    namespace,
    objectId,
    relation,
    subjectNamespace,
    subjectId,
    subjectRelation,
    ...payload,
  };
}

const nodeOf = (index: TupleIndex, text: string): number => {
  if (text === '*') return WILDCARD_NODE;
  const [namespace = '', id, relation = ''] = text.split(/[:#]/);
  if (id === undefined) return index.nodeId(index.entityId(0, namespace), 0);
  return index.nodeId(index.entityId(index.nameId(namespace), id), index.nameId(relation));
};

function rowsOf(rows: readonly TupleRow[], format: 'binary' | 'text' = 'text'): RowBytes {
  const chunks: Buffer[] = [];
  const bounds = new Int32Array(rows.length * ROW_BOUNDS);
  let length = 0;
  rows.forEach((row, at) => {
    const expiry = Buffer.alloc(8);
    if (row.expiresAtUs != null) expiry.writeBigInt64BE(row.expiresAtUs);
    const columns = [
      row.namespace,
      row.objectId,
      row.relation,
      row.subjectNamespace,
      row.subjectId,
      row.subjectRelation,
      row.expiresAtUs == null ? null : format === 'binary' ? expiry : String(row.expiresAtUs),
      row.conditionName ?? null,
      row.conditionParams ?? null,
    ];
    columns.forEach((column, i) => {
      const chunk = column === null ? Buffer.alloc(0) : Buffer.from(column as string);
      bounds[at * ROW_BOUNDS + i * 2] = column === null ? -1 : length;
      bounds[at * ROW_BOUNDS + i * 2 + 1] = column === null ? -1 : length + chunk.length;
      length += chunk.length;
      chunks.push(chunk);
    });
  });
  return { bytes: Buffer.concat(chunks), bounds, rows: rows.length, expiryFormat: format };
}

describe('the journal of changes', () => {
  /** The record of a change in the index, in words. */
  function changeOf(index: TupleIndex, revision: number): number[] | undefined {
    const out = new Uint32Array(CHANGE_WORDS);
    return index.readChange(revision, out) ? [...out] : undefined;
  }
  function expected(index: TupleIndex, text: string, flags: number): number[] {
    const [object = '', subject = ''] = text.split('@');
    const node = nodeOf(index, object);
    const words: number[] = [];
    words[CHANGE_NODE] = node;
    words[CHANGE_SUBJECT] = nodeOf(index, subject);
    words[CHANGE_ENTITY] = index.entityOf(node);
    words[CHANGE_NAMESPACE] = index.namespaceOf(index.entityOf(node));
    words[CHANGE_RELATION] = index.relationOf(node);
    words[CHANGE_FLAGS] = flags;
    return words;
  }

  test('tells the ids of each change, and whether it is of a user or a first mention', () => {
    const index = new TupleIndex();
    const steps: readonly (readonly [string, number, object?])[] = [
      ['doc:a#viewer@u', CHANGE_OF_USER],
      ['doc:a#viewer@*', CHANGE_OF_USER],
      ['doc:a#viewer@group:g#member', CHANGE_FIRST_MENTION],
      ['doc:b#viewer@group:g#member', 0],
      ['doc:a#viewer@u', CHANGE_OF_USER, { expiresAtUs: 5n }],
      ['doc:b#viewer@group:g#member', 0, { expiresAtUs: 5n }],
      ['doc:b#viewer@group:g#member', 0, { conditionName: 'c', conditionParams: '{}' }],
      ['doc:b#viewer@doc:a#', CHANGE_FIRST_MENTION],
      ['doc:b#viewer@doc:a#', CHANGE_FIRST_MENTION],
    ];
    steps.forEach(([text, flags, payload], i) => {
      index.insert(rowOf(text, payload));
      expect(index.revision).toBe(i + 1);
      expect([text, changeOf(index, i + 1)]).toEqual([text, expected(index, text, flags)]);
    });
    // Ids of what goes are those that it had.
    for (const [text, flags] of [
      ['doc:b#viewer@doc:a#', 0],
      ['doc:a#viewer@*', CHANGE_OF_USER],
      ['doc:a#viewer@u', CHANGE_OF_USER],
    ] as const) {
      const before = expected(index, text, flags);
      expect(index.remove(rowOf(text))).toBe(true);
      expect(changeOf(index, index.revision)).toEqual(before);
    }
    const { revision } = index;
    expect(index.remove(rowOf('doc:b#viewer@nobody'))).toBe(false);
    expect(index.revision).toBe(revision);
  });

  test('remembers the last 64, and nothing before, beyond or of another life', () => {
    const index = new TupleIndex();
    for (let i = 1; i <= 200; i++) {
      index.insert(rowOf(`doc:d${i}#viewer@u${i}`));
      expect(changeOf(index, i)?.[CHANGE_NODE]).toBe(nodeOf(index, `doc:d${i}#viewer`));
      expect(changeOf(index, i + 1)).toBeUndefined();
      const oldest = Math.max(1, i - 63);
      expect(changeOf(index, oldest)?.[CHANGE_NODE]).toBe(nodeOf(index, `doc:d${oldest}#viewer`));
      expect(changeOf(index, oldest - 1)).toBeUndefined();
    }
  });

  test('starts anew with an index that was emptied', () => {
    const index = new TupleIndex();
    for (let i = 0; i < 1000; i++) index.insert(rowOf(`doc:d${i}#viewer@u${i}`));
    index.pinName('kept');
    const pinned = index.nameId('kept');
    for (let i = 0; i < 1000; i++) index.remove(rowOf(`doc:d${i}#viewer@u${i}`));
    expect(index.bytes).toBeLessThan(1 << 20);
    expect([index.tupleCount, index.nodeCount, index.nameId('kept')]).toEqual([0, 1, pinned]);
    expect(index.nameText(pinned)).toBe('kept');
    const { revision } = index;
    for (const one of [revision, revision - 1, revision - 63]) {
      expect(changeOf(index, one)).toBeUndefined();
    }
    index.insert(rowOf('doc:x#viewer@u'));
    expect(index.revision).toBe(revision + 1);
    expect(changeOf(index, revision + 1)).toBeDefined();
    for (const one of [revision, revision - 1, revision - 62]) {
      expect(changeOf(index, one)).toBeUndefined();
    }
    checkIndex(index);
  });
});

describe('long lists', () => {
  /** One group with many users, and one user in many groups: both ways lists that are hashed. */
  const operation = fc.record({
    isInsert: fc.boolean(),
    isHub: fc.boolean(),
    n: fc.nat(60),
    payload: fc.constantFrom({}, {}, { expiresAtUs: 7n }, { conditionName: 'c' }),
  });
  const textOf = (isHub: boolean, n: number): string =>
    isHub ? `group:hub#member@u${n}` : `group:g${n}#member@hub`;

  test.each([
    ['around the size from which forward lists are hashed', 28, 60],
    ['around the size from which reverse lists are hashed', 250, 20],
    ['around half of it', 122, 20],
  ])('%s', (_what, size, runs) => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 80, size: 'max' }), (operations) => {
        const index = new TupleIndex();
        const stored = new Map<string, boolean>();
        const insert = (text: string, payload: Partial<TupleRow>): void => {
          expect(index.insert(rowOf(text, payload))).toBe(!stored.has(text));
          stored.set(text, Object.keys(payload).length > 0);
        };
        for (let n = 0; n < size; n++) {
          insert(textOf(true, n), {});
          insert(textOf(false, n), {});
        }
        if (size === 122) {
          for (let n = size; n < 300; n++) insert(textOf(false, n), {});
          for (let n = size; n < 300; n++) {
            expect(index.remove(rowOf(textOf(false, n)))).toBe(true);
            stored.delete(textOf(false, n));
          }
        }
        for (const { isInsert, isHub, n, payload } of operations) {
          const text = textOf(isHub, size - 20 + n);
          if (isInsert) insert(text, payload);
          else expect(index.remove(rowOf(text))).toBe(stored.delete(text));
        }
        const holders = [...stored].filter(([text]) => text.endsWith('@hub'));
        const members = [...stored].filter(([text]) => text.startsWith('group:hub'));
        const sorted = (entries: readonly number[]) => entries.toSorted((a, b) => a - b);
        const entryOf = (node: string, isQualified: boolean): number =>
          (nodeOf(index, node) | (isQualified ? EDGE_QUALIFIED : 0)) >>> 0;
        expect(sorted(listOf(index, nodeOf(index, 'hub'), 'reverse'))).toEqual(
          sorted(holders.map(([text, is]) => entryOf(text.split('@')[0] ?? '', is))),
        );
        const hub = nodeOf(index, 'group:hub#member');
        expect(sorted(listOf(index, hub, 'users'))).toEqual(
          sorted(members.map(([text, is]) => entryOf(text.split('@')[1] ?? '', is))),
        );
        const word = index.usersWord(hub);
        for (const entry of listOf(index, hub, 'users')) {
          const subject = entry & EDGE_NODE_MASK;
          const edge = entry >= EDGE_QUALIFIED ? 2 : 1;
          expect([index.edge(hub, subject), index.wordEdge(word, hub, subject)]).toEqual([
            edge,
            edge,
          ]);
        }
        const room = new Uint32Array(members.length);
        expect(index.readWord(word, room)).toBe(members.length);
        if (members.length > 0) expect(index.readWord(word, room.subarray(1))).toBe(-1);
        checkIndex(index);
      }),
      { numRuns: Math.ceil(runs * Math.min(1, FUZZ_RUNS * 0.5)) },
    );
  });
});

describe('what a tuple carries', () => {
  test.each([
    [{ expiresAtUs: 0n }, 0, '', ''],
    [{ expiresAtUs: 1n }, 0.001, '', ''],
    [{ expiresAtUs: -1n }, -0.001, '', ''],
    [{ expiresAtUs: 2n ** 32n - 1n }, (2 ** 32 - 1) / 1000, '', ''],
    [{ expiresAtUs: 2n ** 32n }, 2 ** 32 / 1000, '', ''],
    [{ expiresAtUs: 2n ** 53n }, 2 ** 53 / 1000, '', ''],
    [{ expiresAtUs: 2n ** 63n - 2n ** 32n - 1n }, Number(2n ** 63n - 2n ** 32n) / 1000, '', ''],
    [{ expiresAtUs: 2n ** 63n - 2n }, Number(2n ** 63n - 2n) / 1000, '', ''],
    [{ conditionName: 'c' }, Infinity, 'c', ''],
    [{ conditionName: 'c', conditionParams: '{}' }, Infinity, 'c', '{}'],
    [{ conditionName: 'c', conditionParams: '{"a":1}' }, Infinity, 'c', '{"a":1}'],
    [{ conditionName: 'c', conditionParams: '{"a":"é"}' }, Infinity, 'c', '{"a":"é"}'],
    [{ expiresAtUs: 9n, conditionName: 'c', conditionParams: '[12]' }, 0.009, 'c', '[12]'],
  ] as const)('%o', (payload, expiresAtMs, conditionName, conditionParams) => {
    const wanted = { expiresAtMs, conditionName, conditionParams };
    const text = 'doc:a#viewer@u';
    for (const format of ['binary', 'text', undefined] as const) {
      const index = new TupleIndex();
      index.insert(rowOf('doc:a#viewer@other', { expiresAtUs: 3n }));
      if (format === undefined) index.insert(rowOf(text, payload));
      else index.insertRows(rowsOf([rowOf(text, payload)], format));
      const [node, subject] = [nodeOf(index, 'doc:a#viewer'), nodeOf(index, 'u')];
      expect(index.edge(node, subject)).toBe(2);
      expect(index.qualifier(node, subject)).toEqual(wanted);
      // Replaced by something else, and by nothing.
      index.insert(rowOf(text, { expiresAtUs: 77_000n }));
      expect(index.qualifier(node, subject).expiresAtMs).toBe(77);
      index.insert(rowOf(text));
      expect(index.edge(node, subject)).toBe(1);
      checkIndex(index);
    }
  });

  test('the last moment that there is stands for never', () => {
    for (const format of ['binary', 'text', undefined] as const) {
      const index = new TupleIndex();
      const row = rowOf('doc:a#viewer@u', { expiresAtUs: 2n ** 63n - 1n });
      if (format === undefined) index.insert(row);
      else index.insertRows(rowsOf([row], format));
      expect(index.edge(nodeOf(index, 'doc:a#viewer'), nodeOf(index, 'u'))).toBe(1);
    }
  });

  test('is only asked for where there is something, and takes no room once it has gone', () => {
    const index = new TupleIndex();
    index.insert(rowOf('doc:a#viewer@plain'));
    index.insert(rowOf('doc:a#viewer@u', { expiresAtUs: 1n }));
    const [node, subject] = [nodeOf(index, 'doc:a#viewer'), nodeOf(index, 'plain')];
    expect(() => index.qualifier(node, subject)).toThrow('has a qualifier');
    const { bytes } = index;
    for (let i = 0; i < 3_000; i++) {
      index.insert(rowOf('doc:a#viewer@u', { expiresAtUs: BigInt(i), conditionName: 'c' }));
    }
    expect(index.bytes).toBe(bytes);
    checkIndex(index);
  });

  test('what is no moment is refused', () => {
    const load = (expiry: Buffer, expiryFormat: 'binary' | 'text') => () => {
      const rows = rowsOf([rowOf('doc:a#viewer@u')]);
      const bounds = Int32Array.from(rows.bounds);
      bounds[12] = rows.bytes.length;
      bounds[13] = rows.bytes.length + expiry.length;
      const bytes = Buffer.concat([rows.bytes, expiry]);
      new TupleIndex().insertRows({ bytes, bounds, rows: 1, expiryFormat });
    };
    const refused = expect.objectContaining({
      reason: 'FIELD_INVALID',
      metadata: { field: 'expires_at_us' },
    }) as unknown;
    for (const text of ['', '-', '1.5', ' 1', '1 ', 'x', '+1', '12345678901234567890']) {
      expect(load(Buffer.from(text), 'text')).toThrow(refused);
    }
    expect(load(Buffer.from('-9223372036854775808'), 'text')).not.toThrow();
    for (const bytes of [0, 7, 9]) expect(load(Buffer.alloc(bytes), 'binary')).toThrow(refused);
    expect(load(Buffer.alloc(8), 'binary')).not.toThrow();
  });
});

describe('rows of bytes', () => {
  const texts = (index: TupleIndex): string[] => {
    const lines: string[] = [];
    const out = new Uint32Array(100);
    for (const namespace of ['doc', 'docs', 'group']) {
      const count = index.readEntitiesOf(index.nameId(namespace), 0, out, 0);
      for (const entity of out.slice(0, count)) {
        for (let node = index.firstNodeOf(entity); node !== 0; node = index.nextNodeOf(node)) {
          for (const list of ['users', 'sets'] as const) {
            for (const entry of listOf(index, node, list)) {
              const subject = entry & EDGE_NODE_MASK;
              const of = index.entityOf(subject);
              const name =
                subject === WILDCARD_NODE
                  ? '*'
                  : list === 'users'
                    ? index.entityText(of)
                    : `${index.nameText(index.namespaceOf(of))}:${index.entityText(of)}#${index.nameText(index.relationOf(subject))}`;
              lines.push(
                `${namespace}:${index.entityText(entity)}#${index.nameText(index.relationOf(node))}@${name}`,
              );
            }
          }
        }
      }
    }
    return lines.toSorted();
  };

  const parts = fc.record({
    namespace: fc.constantFrom('doc', 'docs', 'group'),
    id: fc.constantFrom('a', 'b', 'ab'),
    relation: fc.constantFrom('viewer', 'viewed', 'member'),
    subject: fc.constantFrom(
      'a',
      'b',
      'u',
      '*',
      'doc:a#viewer',
      'docs:a#viewed',
      'doc:b#',
      'docs:b#',
    ),
  });

  test('are read one by one, whatever the row before was, and whatever changed in between', () => {
    fc.assert(
      fc.property(
        fc.array(parts, { maxLength: 30, size: 'max' }),
        fc.array(fc.nat(), { maxLength: 5 }),
        (some, cuts) => {
          const all = some.map(
            (one) => `${one.namespace}:${one.id}#${one.relation}@${one.subject}`,
          );
          const index = new TupleIndex();
          const stored = new Set<string>();
          let at = 0;
          for (const cut of [...cuts.map((one) => one % 8), all.length]) {
            const next = all.slice(at, at + cut);
            at += next.length;
            index.insertRows(rowsOf(next.map((text) => rowOf(text))));
            for (const text of next) stored.add(text);
            // Names and entities that the loader remembers go, and their ids become others'.
            for (const text of [...stored].slice(0, cut)) {
              expect(index.remove(rowOf(text))).toBe(true);
              stored.delete(text);
            }
          }
          expect(texts(index)).toEqual([...stored].toSorted());
          checkIndex(index);
        },
      ),
      { numRuns: Math.ceil(200 * FUZZ_RUNS) },
    );
  });

  /** Rows whose columns may be anywhere in their bytes. */
  const placed = (bytes: string | Buffer, ...columns: ([number, number] | null)[]): RowBytes => ({
    bytes: Buffer.from(bytes as string),
    bounds: Int32Array.from(columns.flatMap((column) => column ?? [-1, -1])),
    rows: 1,
    expiryFormat: 'text',
  });

  test.each([
    ['77|doc a viewer u', [[0, 2], null, null], { expiresAtMs: 0.077 }],
    ['cd|doc a viewer u', [null, [0, 2], null], { conditionName: 'cd' }],
    ['{}|doc a viewer u', [null, [13, 14], [0, 2]], { conditionName: 'e', conditionParams: '{}' }],
  ] as const)('may have any column first: %s', (text, [expiry, condition, params], wanted) => {
    const index = new TupleIndex();
    const names: [number, number][] = [
      [3, 6],
      [7, 8],
      [9, 15],
      [0, 0],
      [16, 17],
      [0, 0],
    ];
    const rest = [expiry, condition, params].map((column) => column as [number, number] | null);
    index.insertRows(placed(text, ...names, ...rest));
    const [node, subject] = [nodeOf(index, 'doc:a#viewer'), nodeOf(index, 'u')];
    expect(index.qualifier(node, subject)).toMatchObject(wanted);
  });

  test('a name is read to its own end, not to where the one before began', () => {
    const index = new TupleIndex();
    const rest: [number, number][] = [
      [20, 21],
      [22, 28],
      [0, 0],
      [29, 30],
      [0, 0],
    ];
    // The first and the second are as far from the beginning, with the same text behind their ends.
    index.insertRows(placed('___abcdefghijklmnop_a_viewer_u', [3, 7], ...rest, null, null, null));
    index.insertRows(placed('__abcdefghijklmnop__a_viewer_u', [2, 8], ...rest, null, null, null));
    expect(nodeOf(index, 'abcd:a#viewer')).not.toBe(0);
    expect(index.edge(nodeOf(index, 'abcdef:a#viewer'), nodeOf(index, 'u'))).toBe(1);
    expect(index.tupleCount).toBe(2);
  });

  test('names that are like others backwards, or behind their second letter, are told apart', () => {
    const index = new TupleIndex();
    const long = 'x'.repeat(50);
    const rows = ['doc:xb#ab@u', 'doc:xb#ax@u', `doc:y#r2${long}@u`, `doc:y#${long}@u`];
    index.insertRows(rowsOf(rows.map((text) => rowOf(text))));
    for (const text of rows) {
      expect(index.edge(nodeOf(index, text.split('@')[0] ?? ''), nodeOf(index, 'u'))).toBe(1);
    }
    expect(index.tupleCount).toBe(rows.length);
  });

  test('only the asterisk alone is the wildcard', () => {
    const index = new TupleIndex();
    const rows = [
      'doc:a#viewer@d:x#member',
      'doc:a#viewer@*x:y#member',
      'doc:b#viewer@*',
      'doc:c#viewer@*:doc#',
      'doc:d#viewer@doc:*#',
    ];
    index.insertRows(rowsOf(rows.map((text) => rowOf(text))));
    const edges = (object: string): number[] =>
      ['d:x#member', '*x:y#member', '*', '*:doc#', 'doc:*#'].map((text) =>
        index.edge(nodeOf(index, object), nodeOf(index, text)),
      );
    expect(['a', 'b', 'c', 'd'].map((id) => edges(`doc:${id}#viewer`))).toEqual([
      [1, 1, 0, 0, 0],
      [0, 0, 1, 0, 0],
      [0, 0, 0, 1, 0],
      [0, 0, 0, 0, 1],
    ]);
    const node = nodeOf(index, 'doc:c#viewer');
    expect([index.userCount(node), index.setCount(node)]).toEqual([0, 1]);
    expect(index.hasTypedWildcards).toBe(true);
    expect(typedWildcardOf(index, 'doc')).toBe(index.entityId(WILDCARD_NAME, 'doc'));
    expect(typedWildcardOf(index, 'd')).toBe(0);
    expect(index.remove(rowOf('doc:c#viewer@*:doc#'))).toBe(true);
    expect(index.hasTypedWildcards).toBe(false);
    expect(typedWildcardOf(index, 'doc')).toBe(0);
    checkIndex(index);
  });

  test('names beyond what is copied are looked up', () => {
    const index = new TupleIndex();
    const names = [127, 128, 129, 200, 255, 256].flatMap((length) => [
      'r'.repeat(length),
      `${'r'.repeat(length - 1)}s`,
      'r'.repeat(length),
    ]);
    for (const name of names) index.insertRows(rowsOf([rowOf(`doc:a#${name}@u`)]));
    index.insertRows(rowsOf(names.map((name) => rowOf(`doc:b#${name}@u`))));
    for (const name of new Set(names)) {
      for (const id of ['a', 'b']) {
        expect(index.edge(nodeOf(index, `doc:${id}#${name}`), nodeOf(index, 'u'))).toBe(1);
      }
    }
    expect(index.tupleCount).toBe(new Set(names).size * 2);
    checkIndex(index);
  });
});
