import type {
  PeerCondition,
  PeerModel,
  PeerRelation,
  PeerRule,
  PeerSubjectType,
  PeerType,
} from '../../src/language/peers/peer-model.ts';
import type { Random } from '../../verify/workload/random.ts';

/** Relations by level: what takes away rests on lower ones, so that no cycle leads through an exclusion. */
const RELATIONS = ['owner', 'member', 'viewer', 'reader'];
/** What walks follow. */
const PARENT = 'parent';
/** Types whose objects have relations. */
const OBJECT_TYPES = ['team', 'folder', 'doc'];
/** Types whose objects have none; each model has some of them as subjects. */
const BARE_TYPES = ['user', 'employee', 'robot'];
const CONDITIONS: readonly PeerCondition[] = [
  condition(
    'below',
    [
      ['level', 'int'],
      ['top', 'int'],
    ],
    'level < top',
  ),
  condition(
    'named',
    [
      ['name', 'string'],
      ['names', 'list<string>'],
    ],
    'name in names',
  ),
  condition('open', [['is_open', 'bool']], 'is_open'),
];

function condition(
  name: string,
  parameters: readonly (readonly [string, string])[],
  expression: string,
): PeerCondition {
  return { name, place: '', parameters, expression };
}

/**
 * A model of OpenFGA: three types of objects, one to three of others, so that two to four types are subjects;
 * wildcards of every type, conditions, usersets, walks and nested operators. OpenFGA may refuse it: then another is drawn.
 */
export function randomModel(random: Random): PeerModel {
  const bare = BARE_TYPES.slice(0, 1 + random.integer(BARE_TYPES.length));
  const drawn = OBJECT_TYPES.map((name) => new TypeDrawer(random, name, bare).draw());
  const all = [...bare.map((name) => ({ name, place: '', relations: [] })), ...drawn];
  return {
    types: all.map((type) => repaired(type, all)),
    conditions: CONDITIONS,
    problems: [],
    notes: [],
  };
}

/** Another version of a model: who may be stored differs, some relations are decided otherwise, or are gone. */
export function nextVersion(random: Random, model: PeerModel): PeerModel {
  const fresh = randomModel(random);
  const bare = model.types.filter(({ relations }) => relations.length === 0);
  const freshBare = new Set(fresh.types.map(({ name }) => name));
  const kept = model.types.map((type): PeerType => {
    const other = fresh.types.find(({ name }) => name === type.name);
    const relations = type.relations.flatMap((relation): PeerRelation[] => {
      const drawn = other?.relations.find(({ name }) => name === relation.name);
      if (drawn === undefined || random.chance(0.5)) return [relation];
      if (random.chance(0.1) && relation.name !== PARENT) return [];
      const subjects = drawn.subjects.filter(
        ({ type: name }) => !freshBare.has(name) || model.types.some((one) => one.name === name),
      );
      return [{ ...drawn, subjects }];
    });
    return { ...type, relations };
  });
  const all = [...bare, ...kept.filter(({ name }) => !bare.some((one) => one.name === name))];
  return { ...model, types: all.map((type) => repaired(type, all)) };
}

class TypeDrawer {
  readonly #random: Random;
  readonly #name: string;
  readonly #bare: readonly string[];

  constructor(random: Random, name: string, bare: readonly string[]) {
    this.#random = random;
    this.#name = name;
    this.#bare = bare;
  }

  draw(): PeerType {
    const parents = OBJECT_TYPES.filter(() => this.#random.chance(0.6));
    const parent: PeerRelation = {
      name: PARENT,
      place: '',
      rule: { op: 'this' },
      subjects: (parents.length === 0 ? ['folder'] : parents).map((type) => plain(type, '')),
    };
    const relations = RELATIONS.map((_, level) => this.#relation(level));
    return { name: this.#name, place: '', relations: [parent, ...relations] };
  }

  #relation(level: number): PeerRelation {
    const name = RELATIONS[level] as string;
    const kind = level === 0 ? 0 : this.#random.integer(5);
    if (kind <= 1)
      return { name, place: '', rule: { op: 'this' }, subjects: this.#subjects(level) };
    if (kind === 2) return { name, place: '', rule: this.#rule(level, level, 2), subjects: [] };
    const other = this.#rule(level, level - 1, 1);
    const own: PeerRule = { op: 'this' };
    const op = this.#random.pick(['union', 'union', 'intersection', 'exclusion'] as const);
    const rule: PeerRule =
      op === 'exclusion' ? { op, include: own, exclude: other } : { op, children: [own, other] };
    return { name, place: '', rule, subjects: this.#subjects(level - 1) };
  }

  /** Who may be stored; usersets have relations up to the level `last`. */
  #subjects(last: number): readonly PeerSubjectType[] {
    const subjects = new Map<string, PeerSubjectType>();
    for (let count = 1 + this.#random.integer(4); count > 0; count--) {
      const one = this.#subject(last);
      subjects.set(`${one.type}#${one.relation}+${one.condition}`, one);
    }
    return [...subjects.values()];
  }

  #subject(last: number): PeerSubjectType {
    const random = this.#random;
    const drawn = random.fraction();
    const asked = random.chance(0.2) ? random.pick(CONDITIONS).name : undefined;
    if (drawn < 0.4) return { ...plain(random.pick(this.#bare), ''), condition: asked };
    if (drawn < 0.55) return { ...plain(random.pick(this.#bare), '*'), condition: asked };
    if (drawn < 0.65) return { ...plain(random.pick(OBJECT_TYPES), ''), condition: asked };
    if (drawn < 0.72) return plain(random.pick(OBJECT_TYPES), '*');
    const relation = random.pick(RELATIONS.slice(0, last + 1));
    return { ...plain(random.pick(OBJECT_TYPES), relation), condition: asked };
  }

  #leaf(level: number, last: number): PeerRule {
    const random = this.#random;
    if (random.chance(0.5)) {
      return { op: 'computed', relation: random.pick(RELATIONS.slice(0, level)) };
    }
    const computed = random.pick(RELATIONS.slice(0, Math.max(0, last) + 1));
    return { op: 'walk', tupleset: PARENT, computed };
  }

  /** A rule of the relation of `level`; walks may lead to relations up to the level `last`. */
  #rule(level: number, last: number, depth: number): PeerRule {
    const drawn = depth === 0 ? 0 : this.#random.integer(5);
    if (drawn <= 1) return this.#leaf(level, last);
    if (drawn === 4) {
      const include = this.#rule(level, level - 1, depth - 1);
      return { op: 'exclusion', include, exclude: this.#rule(level, level - 1, depth - 1) };
    }
    const count = 2 + this.#random.integer(2);
    const children = Array.from({ length: count }, () => this.#rule(level, last, depth - 1));
    return { op: drawn === 2 ? 'union' : 'intersection', children };
  }
}

function plain(type: string, relation: string): PeerSubjectType {
  return { type, relation, condition: undefined, expires: false };
}

/** The type without names that name nothing in this model. */
function repaired(type: PeerType, all: readonly PeerType[]): PeerType {
  const has = (name: string, relation: string): boolean =>
    all.some((one) => one.name === name && one.relations.some((each) => each.name === relation));
  const parents = type.relations.find(({ name }) => name === PARENT)?.subjects ?? [];
  const nobody: PeerRule = { op: 'computed', relation: PARENT };
  const rule = (one: PeerRule): PeerRule => {
    switch (one.op) {
      case 'computed':
        return has(type.name, one.relation) ? one : nobody;
      case 'walk':
        return parents.some((parent) => has(parent.type, one.computed)) ? one : nobody;
      case 'union':
      case 'intersection':
        return { op: one.op, children: one.children.map(rule) };
      case 'exclusion':
        return { op: 'exclusion', include: rule(one.include), exclude: rule(one.exclude) };
      default:
        return one;
    }
  };
  const relations = type.relations.map((relation): PeerRelation => {
    const subjects = relation.subjects.filter((one) => {
      const isThere = all.some(({ name }) => name === one.type);
      return isThere && (['', '*'].includes(one.relation) || has(one.type, one.relation));
    });
    const isStored = relation.subjects.length > 0;
    const some = isStored && subjects.length === 0 ? [plain('user', '')] : subjects;
    return { ...relation, rule: rule(relation.rule), subjects: some };
  });
  return { ...type, relations };
}

/** The model as OpenFGA's API takes it. */
export function openFgaJson(model: PeerModel): object {
  return {
    schema_version: '1.1',
    type_definitions: model.types.map(({ name, relations }) => ({
      type: name,
      relations: Object.fromEntries(relations.map((one) => [one.name, ruleJson(one.rule)])),
      metadata: {
        relations: Object.fromEntries(
          relations.map(({ name: relation, subjects }) => [
            relation,
            { directly_related_user_types: subjects.map(subjectJson) },
          ]),
        ),
      },
    })),
    conditions: Object.fromEntries(
      model.conditions.map(({ name, parameters, expression }) => [
        name,
        {
          name,
          expression,
          parameters: Object.fromEntries(parameters.map(([key, type]) => [key, typeJson(type)])),
        },
      ]),
    ),
  };
}

function subjectJson({ type, relation, condition: name }: PeerSubjectType): object {
  const named = name === undefined ? {} : { condition: name };
  if (relation === '*') return { type, wildcard: {}, ...named };
  return relation === '' ? { type, ...named } : { type, relation, ...named };
}

function typeJson(type: string): object {
  const [, outer = type, inner] = /^(\w+)<(\w+)>$/.exec(type) ?? [];
  const name = `TYPE_NAME_${outer.toUpperCase()}`;
  return inner === undefined
    ? { type_name: name }
    : { type_name: name, generic_types: [typeJson(inner)] };
}

function ruleJson(rule: PeerRule): object {
  switch (rule.op) {
    case 'nil':
      throw new Error('OpenFGA has no nil');
    case 'this':
      return { this: {} };
    case 'computed':
      return { computedUserset: { relation: rule.relation } };
    case 'walk':
      return {
        tupleToUserset: {
          tupleset: { relation: rule.tupleset },
          computedUserset: { relation: rule.computed },
        },
      };
    case 'union':
    case 'intersection':
      return { [rule.op]: { child: rule.children.map(ruleJson) } };
    case 'exclusion':
      return { difference: { base: ruleJson(rule.include), subtract: ruleJson(rule.exclude) } };
  }
}
