import { describe, expect, test } from 'vitest';
import { parseModel } from './namespace-model.ts';
import { checkModelDocument, inspectModel, MODEL_PROBLEMS_MAX } from './namespace-model.ts';

type Relations = Readonly<Record<string, unknown>>;

function model(
  namespaces: Readonly<Record<string, Relations>>,
  open: readonly string[] = [],
): string {
  const documents = Object.entries(namespaces).map(([name, relations]) => [
    name,
    open.includes(name) ? { open: true, relations } : { relations },
  ]);
  return JSON.stringify({ namespaces: Object.fromEntries(documents) as unknown });
}

/** `path: message` of each. */
function problems(json: string): readonly string[] {
  return inspectModel(json).errors.map(({ path, message }) => `${path}: ${message}`);
}

const banned = {
  viewer: {
    exclusion: { include: { union: [{}, { computed: 'owner' }] }, exclude: { computed: 'baned' } },
  },
  owner: {},
  banned: {},
};

describe('references', () => {
  test('a typo in an exclusion, by which a banned user came in, is refused with the name that was meant', () => {
    const json = model({ doc: banned });
    expect(() => checkModelDocument(json)).toThrow(
      expect.objectContaining({
        reason: 'MODEL_INVALID',
        message:
          'model_json: $.namespaces.doc.relations.viewer.exclusion.exclude.computed: ' +
          'the namespace "doc" declares no relation "baned"; did you mean "banned"?',
        metadata: {
          field: 'model_json',
          path: '$.namespaces.doc.relations.viewer.exclusion.exclude.computed',
        },
      }),
    );
  });

  test('a type of subjects where a relation stands is told how it is written', () => {
    const json = model({
      doc: { viewer: { computed: 'user' }, editor: { computed: 'team' } },
      team: {},
    });
    const { errors } = inspectModel(json);
    expect(errors.map(({ message }) => message)).toEqual([
      'the namespace "doc" declares no relation "user"; "user" is a type of subjects: who may be written stands in brackets, "relation viewer: [user]" in .gate, "subjects": ["user"] in JSON',
      'the namespace "doc" declares no relation "team"; "team" is a type of subjects: who may be written stands in brackets, "relation editor: [team]" in .gate, "subjects": ["team"] in JSON',
    ]);
  });

  test('a name that is far from all is not taken for another: team is no slip of seat', () => {
    const relations = { viewer: { this: {}, subjects: ['team'] } };
    const { errors } = inspectModel(JSON.stringify({ namespaces: { doc: { relations } } }));
    expect(errors[0]?.message).toBe('the model declares no namespace "team"');
  });

  test('what was stored before still loads, as it did', () => {
    expect(parseModel(model({ doc: banned })).namespaces.get('doc')?.size).toBe(3);
  });

  test.each([
    [
      'a tupleset',
      {
        doc: {
          viewer: { tuple_to_userset: { tupleset: 'parnet', computed: 'viewer' } },
          parent: {},
        },
      },
      '$.namespaces.doc.relations.viewer.tuple_to_userset.tupleset: ' +
        'the namespace "doc" declares no relation "parnet"; did you mean "parent"?',
    ],
    [
      'what a walk looks for, which no namespace has',
      {
        doc: {
          viewer: { tuple_to_userset: { tupleset: 'parent', computed: 'vewer' } },
          parent: {},
        },
      },
      '$.namespaces.doc.relations.viewer.tuple_to_userset.computed: ' +
        'no namespace declares a relation "vewer"; did you mean "viewer"?',
    ],
    [
      'a name that is near to none',
      { doc: { viewer: { union: [{}, { intersection: [{}, { computed: 'zz' }] }] }, parent: {} } },
      '$.namespaces.doc.relations.viewer.union[1].intersection[1].computed: ' +
        'the namespace "doc" declares no relation "zz"',
    ],
  ])('%s', (_, namespaces, problem) => {
    expect(problems(model(namespaces))).toEqual([problem]);
  });

  test('what a walk looks for may be in any namespace, merged built-in ones and seats too', () => {
    for (const computed of ['admin', 'member', 'viewer', 'holder']) {
      const walk = { tuple_to_userset: { tupleset: 'parent', computed } };
      expect(problems(model({ doc: { viewer: walk, parent: {} } }))).toEqual([]);
    }
  });

  test('an open namespace is not looked at, the others beside it are', () => {
    expect(problems(model({ doc: banned }, ['doc']))).toEqual([]);
    expect(problems(model({ doc: banned, file: banned }, ['doc']))).toHaveLength(1);
  });

  test('a relation named like a member of every object is none', () => {
    expect(problems(model({ doc: { a: { computed: 'constructor' } } }))).toHaveLength(1);
  });

  test('unknown members name the nearest one', () => {
    expect(problems(model({ doc: { a: { computd: 'b' }, b: {} } }))).toEqual([
      '$.namespaces.doc.relations.a.computd: is not a known member; did you mean "computed"?',
    ]);
    expect(problems('{"namespases":{}}')).toEqual([
      '$.namespases: is not a known member; did you mean "namespaces"?',
    ]);
    expect(problems('{"namespaces":{"doc":{"relatons":{},"relations":{}}}}')).toEqual([
      '$.namespaces.doc.relatons: is not a known member; did you mean "relations"?',
    ]);
    expect(problems(model({ doc: { a: { subjets: ['user'] } } }))).toEqual([
      '$.namespaces.doc.relations.a.subjets: is not a known member; did you mean "subjects"?',
    ]);
  });

  test('all problems are told at once, up to a number, and a refusal says how many more there are', () => {
    const relations = Object.fromEntries(
      Array.from({ length: 200 }, (_, i) => [`r${i}`, { computed: `missing${i}` }]),
    );
    const json = model({ doc: relations });
    expect(inspectModel(json).errors).toHaveLength(MODEL_PROBLEMS_MAX);
    expect(() => checkModelDocument(json)).toThrow('(and 49 more)');
  });

  test('a hostile model is refused in bounded time', () => {
    const relations = (prefix: string, to: (i: number) => string): Relations =>
      Object.fromEntries(
        Array.from({ length: 256 }, (_, i) => [
          `${prefix}${String(i).padStart(3, '0')}${'x'.repeat(50)}`,
          { tuple_to_userset: { tupleset: `t${'y'.repeat(60)}`, computed: to(i) } },
        ]),
      );
    const namespaces = Object.fromEntries(
      Array.from({ length: 256 }, (_, n) => [
        `n${n}`,
        relations(`r${n}`, (i) => `m${i}${'x'.repeat(58)}`),
      ]),
    );
    expect(inspectModel(model(namespaces)).errors).toHaveLength(MODEL_PROBLEMS_MAX);
  });
});

describe('typed models', () => {
  const people = ['user', 'group#member'];

  test('every form of a subject', () => {
    const json = model({
      folder: { viewer: { subjects: ['user'] } },
      doc: {
        parent: { subjects: ['folder', { type: 'seat#holder' }] },
        viewer: {
          subjects: [
            'user',
            'user:*',
            'group#member',
            { type: 'user', condition: 'not_after' },
            { type: 'user:*', expires: true },
            { type: 'folder#viewer', condition: 'ip_in_cidrs', expires: false },
          ],
          union: [{ this: {} }, { tuple_to_userset: { tupleset: 'parent', computed: 'holder' } }],
        },
      },
    });
    expect(problems(json)).toEqual([
      '$.namespaces.doc.relations.viewer.union[1].tuple_to_userset.computed: ' +
        'the namespace "folder", which "parent" admits, declares no relation "holder"',
    ]);
    const types = parseModel(json).subjects.get('doc')?.get('viewer');
    expect(types).toHaveLength(6);
    expect(types?.[5]).toEqual({
      kind: 'userset',
      namespace: 'folder',
      relation: 'viewer',
      condition: 'ip_in_cidrs',
      expires: false,
    });
  });

  test.each([
    [[], 'subjects: must not be empty'],
    ['user', 'subjects: must be a list'],
    [['user', 'user'], 'subjects[1]: is the same as entry [0]'],
    [[1], 'subjects[0]: must be an object'],
    [['User'], 'subjects[0]: the name must match'],
    [
      ['group:x'],
      'subjects[0]: must be user, user:*, NAMESPACE, NAMESPACE:* or NAMESPACE#RELATION',
    ],
    [['group#member:*'], 'subjects[0]: the name must match'],
    [[':*'], 'subjects[0]: the name must match'],
    [['*'], 'subjects[0]: the name must match'],
    [['grup:*'], 'subjects[0]: the model declares no namespace "grup"; did you mean "group"?'],
    [['group:*', { type: 'group:*' }], 'subjects[1]: is the same as entry [0]'],
    [['group#'], 'subjects[0]: the name must match'],
    [['#member'], 'subjects[0]: the name must match'],
    [[{ type: 'user', conditon: 'x' }], 'did you mean "condition"?'],
    [[{ condition: 'not_after' }], 'subjects[0].type: is required'],
    [[{ type: 'user', expires: 1 }], 'subjects[0].expires: must be true or false'],
    [[{ type: 'user', condition: '' }], 'subjects[0].condition: the name must match'],
    [
      [{ type: 'user', condition: 'not_aftr' }],
      'subjects[0].condition: there is no condition "not_aftr"; did you mean "not_after"?',
    ],
    [['usr'], 'subjects[0]: the model declares no namespace "usr"; did you mean "user"?'],
    [['grup#member'], 'the model declares no namespace "grup"; did you mean "group"?'],
    [['group#membr'], 'the namespace "group" declares no relation "membr"; did you mean "member"?'],
    [['seat#user'], 'the namespace "seat" declares no relation "user"'],
    [Array.from({ length: 65 }, (_, i) => `n${i}`), 'holds more than 64 entries'],
  ])('subjects %j: %s', (subjects, problem) => {
    const [first] = problems(model({ doc: { viewer: { subjects } } }));
    expect(first).toContain('$.namespaces.doc.relations.viewer.');
    expect(first).toContain(problem);
  });

  test('a relation on which tuples count must say its subjects; one on which none do must not', () => {
    const typed = { subjects: ['user'] };
    const walk = { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } };
    expect(problems(model({ doc: { owner: typed, viewer: {} } }))).toEqual([
      '$.namespaces.doc.relations.viewer: must say its subjects, since tuples of it count',
    ]);
    const computedParent = { parent: { computed: 'owner' }, owner: typed, viewer: walk };
    expect(problems(model({ doc: computedParent }))).toEqual([
      '$.namespaces.doc.relations.parent: must say its subjects, since tuples of it count',
    ]);
    const moot = { owner: typed, viewer: { subjects: ['user'], computed: 'owner' } };
    expect(problems(model({ doc: moot }))).toEqual([
      '$.namespaces.doc.relations.viewer.subjects: says who may be written, but no tuple of it counts: ' +
        'add {"this": {}} to the rewrite',
    ]);
    expect(problems(model({ doc: { owner: typed }, file: { viewer: {} } }, ['file']))).toEqual([]);
  });

  test('what a walk looks for must be on every type that the tupleset admits', () => {
    const walk = { tuple_to_userset: { tupleset: 'parent', computed: 'viewer' } };
    const of = (parents: readonly string[]): readonly string[] =>
      problems(
        model(
          {
            doc: { viewer: walk, parent: { subjects: parents } },
            folder: { viewer: { subjects: ['user'] } },
            drive: { reader: { subjects: ['user'] } },
            shelf: {},
          },
          ['shelf'],
        ),
      );
    expect(of(['folder', 'doc', 'shelf'])).toEqual([]);
    expect(of(['folder#viewer', 'user'])).toEqual([]);
    expect(of(['folder', 'drive'])).toEqual([
      '$.namespaces.doc.relations.viewer.tuple_to_userset.computed: ' +
        'the namespace "drive", which "parent" admits, declares no relation "viewer"',
    ]);
    expect(of(['user'])[0]).toContain('"parent" admits no objects');
  });

  test('workspaces, groups and seats must be able to go on', () => {
    const typed = { doc: { viewer: { subjects: people } } };
    expect(problems(model(typed))).toEqual([]);
    const role = { subjects: ['user'] };
    const workspace = { owner: role, admin: role, member: role, guest: role };
    expect(
      problems(model({ ...typed, workspace, group: { member: { subjects: people } } })),
    ).toEqual([]);
    expect(
      problems(model({ ...typed, workspace: { ...workspace, guest: { subjects: ['user:*'] } } })),
    ).toEqual([
      '$.namespaces.workspace.relations.guest: "guest" must admit "user" without a condition: ' +
        'the service itself writes such tuples of workspaces',
    ]);
    const conditional = { subjects: [{ type: 'user', condition: 'not_after' }, 'group#member'] };
    expect(problems(model({ ...typed, group: { member: conditional } }))[0]).toContain(
      'must admit "user"',
    );
    const expiring = { subjects: [{ type: 'user', expires: true }, 'group#member'] };
    expect(problems(model({ ...typed, group: { member: expiring } }))[0]).toContain(
      'must admit "user"',
    );
    const lacking = problems(model({ doc: { viewer: role }, group: { membr: role } }));
    expect(lacking).toContain(
      '$.namespaces.group.relations: "member" must admit "user" and "group#member" without a condition: ' +
        'the service itself writes such tuples of groups',
    );
    expect(problems(model({ doc: { viewer: role }, group: {} }, ['group']))).toEqual([]);
  });

  test('a model that is not typed is as it was: a defined group may lack its member', () => {
    expect(problems(model({ doc: {}, group: {} }))).toEqual([]);
    expect(parseModel(model({ doc: {} })).subjects.size).toBe(0);
    expect([...parseModel(model({ doc: { a: { subjects: ['user'] } } })).subjects.keys()]).toEqual([
      'doc',
      'workspace',
      'group',
    ]);
  });
});
