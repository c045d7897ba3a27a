import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runSuite } from '../../src/cli/models/files/run-suite.ts';
import { parseGate } from '../../src/language/gate/parse-gate.ts';
import { printGate } from '../../src/language/gate/print-gate-tree.ts';
import { readOpenFgaDsl } from '../../src/language/openfga/read-openfga-model.ts';
import { readStoreFile } from '../../src/language/openfga/read-store-file.ts';
import { importPeerModel } from '../../src/language/peers/import-peer-model.ts';
import { importSuite } from '../../src/language/peers/import-suite.ts';
import type {
  PeerCheck,
  PeerModel,
  PeerReference,
  PeerRelation,
  PeerRule,
  PeerSubjectType,
  PeerSuite,
  PeerTuple,
} from '../../src/language/peers/peer-model.ts';
import { readSpiceDbSchema } from '../../src/language/spicedb/read-spicedb-schema.ts';
import { readValidationFile } from '../../src/language/spicedb/read-validation-file.ts';
import { byLength } from '../support/test-length.ts';
import { NaivePeer } from './naive-peer.ts';
import { openFgaText, spiceDbText, storeFileText, validationFileText } from './peer-text.ts';

/* Random models in the peers' own words, imported and asked, beside an evaluation by the peers' rules. */
const RELATIONS = ['aa', 'bb', 'member', 'dd'];
const PARENT = 'parent';
const OBJECTS = ['o1', 'o2'];
const USERS = ['u1', 'u2'];
const APPS = ['a1'];

type World = { readonly model: PeerModel; readonly tuples: readonly PeerTuple[] };

function plain(type: string, relation: string): PeerSubjectType {
  return { type, relation, condition: undefined, expires: false };
}

/** A relation of the given level: what it takes away rests on lower levels, so that it is decided. */
function relationOf(
  level: number,
  types: readonly string[],
  users: string,
  isMixed: boolean,
): fc.Arbitrary<PeerRelation> {
  const name = RELATIONS[level] as string;
  const upTo = (last: number): readonly string[] => RELATIONS.slice(0, last + 1);
  const subject = (last: number): fc.Arbitrary<PeerSubjectType> =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(plain(users, '')) },
      { weight: 1, arbitrary: fc.constant(plain(users, '*')) },
      { weight: 1, arbitrary: fc.constant(plain('app', '')) },
      { weight: 1, arbitrary: fc.constant(plain('app', '*')) },
      { weight: 1, arbitrary: fc.constantFrom(...types).map((type) => plain(type, '*')) },
      ...(last < 0
        ? []
        : [
            {
              weight: 3,
              arbitrary: fc
                .tuple(fc.constantFrom(...types), fc.constantFrom(...upTo(last)))
                .map(([type, relation]) => plain(type, relation)),
            },
          ]),
    );
  const leaf = (last: number): fc.Arbitrary<PeerRule> => {
    const walk = fc
      .constantFrom(...upTo(Math.max(0, last)))
      .map((computed): PeerRule => ({ op: 'walk', tupleset: PARENT, computed }));
    if (level === 0) return walk;
    const computed = fc
      .constantFrom(...upTo(level - 1))
      .map((relation): PeerRule => ({ op: 'computed', relation }));
    return fc.oneof(computed, walk);
  };
  const rule = (last: number, depth: number): fc.Arbitrary<PeerRule> => {
    if (depth === 0) return leaf(last);
    const children = fc.array(rule(last, depth - 1), { minLength: 2, maxLength: 3 });
    const lower = rule(level - 1, depth - 1);
    return fc.oneof(
      leaf(last),
      fc.record({
        op: fc.constantFrom('union', 'intersection'),
        children,
      }) as fc.Arbitrary<PeerRule>,
      ...(level === 0
        ? []
        : [
            fc.record({
              op: fc.constant('exclusion' as const),
              include: lower,
              exclude: lower,
            }),
          ]),
    );
  };
  const stored = fc
    .uniqueArray(subject(level), {
      minLength: 1,
      maxLength: 3,
      selector: (one) => JSON.stringify(one),
    })
    .map((subjects): PeerRelation => ({ name, place: '', rule: { op: 'this' }, subjects }));
  const derived = rule(level, 2).map((one): PeerRelation => {
    return { name, place: '', rule: one, subjects: [] };
  });
  if (!isMixed) return fc.oneof(stored, derived);
  const both = fc
    .tuple(
      fc.uniqueArray(subject(level - 1), { minLength: 1, selector: (one) => JSON.stringify(one) }),
      rule(level - 1, 1),
      fc.constantFrom('union', 'intersection', 'exclusion'),
    )
    .filter(() => level > 0)
    .map(([subjects, other, op]): PeerRelation => {
      const own: PeerRule = { op: 'this' };
      const mixed =
        op === 'exclusion'
          ? { op: 'exclusion' as const, include: own, exclude: other }
          : { op: op as 'union', children: [own, other] };
      return { name, place: '', rule: mixed, subjects };
    });
  return level === 0 ? fc.oneof(stored, derived) : fc.oneof(stored, derived, both);
}

function worldOf(isMixed: boolean, isSpiceDb: boolean): fc.Arbitrary<World> {
  const names = fc.constantFrom(
    ['folder', 'group', 'doc'],
    ['workspace', 'group', 'doc'],
    isSpiceDb ? ['org/folder', 'team', 'doc'] : ['Folder', 'team', 'my.doc'],
  );
  const users = fc.constantFrom('user', isSpiceDb ? 'org/user' : 'person');
  return fc.tuple(names, users).chain(([types, userType]) => {
    const relations = types.map(() =>
      fc.tuple(
        ...RELATIONS.map((_, level) =>
          fc.option(relationOf(level, types, userType, isMixed), { nil: undefined, freq: 10 }),
        ),
        fc.uniqueArray(fc.constantFrom(...types), { minLength: 1, maxLength: 3 }),
      ),
    );
    return fc.tuple(...relations).chain((drawn) => {
      const declared = drawn.map((entries, index) => {
        const parents = entries.at(-1) as string[];
        const parent: PeerRelation = {
          name: PARENT,
          place: '',
          rule: { op: 'this' },
          subjects: parents.map((type) => plain(type, '')),
        };
        const own = entries.slice(0, -1).filter((one) => one !== undefined) as PeerRelation[];
        return { name: types[index] as string, place: '', relations: [parent, ...own] };
      });
      const bare = ['app', userType].map((name) => ({ name, place: '', relations: [] }));
      const all = [...bare, ...declared];
      const model = repaired({ types: all, conditions: [], problems: [], notes: [] });
      return tuplesFor(model).map((tuples) => ({ model, tuples }));
    });
  });
}

/** The model without names that name nothing: those of relations that were not drawn. */
function repaired(model: PeerModel): PeerModel {
  const has = (type: string, relation: string): boolean =>
    model.types.some(({ name, relations }) => {
      return name === type && relations.some((one) => one.name === relation);
    });
  const types = model.types.map(({ name, place, relations }) => {
    const parents = relations.find((one) => one.name === PARENT)?.subjects ?? [];
    const rule = (one: PeerRule): PeerRule => {
      const nobody: PeerRule = { op: 'computed', relation: PARENT };
      switch (one.op) {
        case 'computed':
          return has(name, one.relation) ? one : nobody;
        case 'walk':
          return parents.some(({ type }) => has(type, one.computed)) ? one : nobody;
        case 'union':
        case 'intersection': {
          const texts = new Map(one.children.map((child) => [JSON.stringify(rule(child)), child]));
          const [only, ...others] = [...texts.values()].map(rule);
          if (only === undefined || others.length === 0) return only ?? nobody;
          return { op: one.op, children: [only, ...others] };
        }
        case 'exclusion':
          return { op: 'exclusion', include: rule(one.include), exclude: rule(one.exclude) };
        default:
          return one;
      }
    };
    const kept = relations.map((relation): PeerRelation => {
      const subjects = relation.subjects.filter(
        (one) => ['', '*'].includes(one.relation) || has(one.type, one.relation),
      );
      const some = subjects.length > 0 || relation.subjects.length === 0;
      const users = model.types[1]?.name ?? '';
      const admitted = some ? subjects : [plain(users, '')];
      return { ...relation, rule: rule(relation.rule), subjects: admitted };
    });
    return { name, place, relations: kept };
  });
  return { ...model, types };
}

function tuplesFor(model: PeerModel): fc.Arbitrary<readonly PeerTuple[]> {
  const possible: PeerTuple[] = [];
  for (const type of model.types) {
    for (const { name, subjects } of type.relations) {
      for (const subject of subjects) {
        for (const id of OBJECTS) {
          for (const subjectId of idsOf(model, subject)) {
            const relation = subject.relation === '*' ? '' : subject.relation;
            possible.push({
              object: { type: type.name, id, relation: '' },
              relation: name,
              subject: { type: subject.type, id: subjectId, relation },
              condition: undefined,
              context: undefined,
              expiresAt: undefined,
              place: '',
            });
          }
        }
      }
    }
  }
  if (possible.length === 0) return fc.constant([]);
  return fc.uniqueArray(fc.constantFrom(...possible), {
    minLength: Math.min(possible.length, 8),
    maxLength: 48,
  });
}

function idsOf(model: PeerModel, { type, relation }: PeerSubjectType): readonly string[] {
  if (relation === '*') return ['*'];
  const isBare = model.types.find(({ name }) => name === type)?.relations.length === 0;
  if (!isBare) return OBJECTS;
  return type === 'app' ? APPS : USERS;
}

function questionsOf({ model, tuples }: World): readonly PeerCheck[] {
  const peer = new NaivePeer(model, tuples);
  const bare = model.types.filter(({ relations }) => relations.length === 0);
  const subjects = bare.flatMap(({ name }) =>
    (name === 'app' ? APPS : USERS).map((id): PeerReference => ({ type: name, id, relation: '' })),
  );
  return model.types.flatMap(({ name: type, relations }) =>
    relations.flatMap(({ name: relation }) =>
      OBJECTS.flatMap((id) => {
        const object = { type, id, relation: '' };
        return subjects.map((subject): PeerCheck => {
          const isAllowed = peer.holds(object, relation, subject);
          return { object, relation, subject, context: undefined, isAllowed, place: '' };
        });
      }),
    ),
  );
}

/** The differences between the answers, or undefined if the model was refused. */
function differences(model: PeerModel, suite: PeerSuite): readonly string[] | undefined {
  const imported = importPeerModel(model, { userType: undefined });
  if (imported.document === undefined) {
    expect(imported.problems.length).toBeGreaterThan(0);
    return undefined;
  }
  const { json } = parseGate(printGate(imported.document));
  const asked = importSuite(imported, suite);
  expect(asked.problems).toEqual([]);
  expect(asked.unsupported).toEqual([]);
  const result = runSuite(json, asked);
  expect(result.assertions).toBeGreaterThan(0);
  return result.differences;
}

describe('an imported model answers as the peer does, or is refused', () => {
  test('OpenFGA', () => {
    let imported = 0;
    fc.assert(
      fc.property(worldOf(true, false), (world) => {
        const file = storeFileText(openFgaText(world.model), world.tuples, questionsOf(world));
        const { model, suite } = readStoreFile(file, () => '');
        const found = differences(readOpenFgaDsl(model.kind === 'text' ? model.text : ''), suite);
        if (found !== undefined) imported += 1;
        expect(found ?? []).toEqual([]);
      }),
      { numRuns: byLength(20, 150) },
    );
    expect(imported).toBeGreaterThan(byLength(1, 15));
  }, 120_000);

  test('SpiceDB', () => {
    let imported = 0;
    fc.assert(
      fc.property(worldOf(false, true), (world) => {
        const text = spiceDbText(world.model);
        const file = validationFileText(text, world.tuples, questionsOf(world));
        const { schema, suite } = readValidationFile(file, String);
        const found = differences(
          readSpiceDbSchema(schema.kind === 'text' ? schema.text : ''),
          suite,
        );
        if (found !== undefined) imported += 1;
        expect(found ?? []).toEqual([]);
      }),
      { numRuns: byLength(20, 150) },
    );
    expect(imported).toBeGreaterThan(byLength(1, 15));
  }, 120_000);
});
