import { stringify } from 'yaml';
import type {
  PeerCheck,
  PeerModel,
  PeerReference,
  PeerRelation,
  PeerRule,
  PeerSubjectType,
  PeerTuple,
} from '../../src/language/peers/peer-model.ts';

/** A model in the language of OpenFGA. A relation that stores tuples begins with them. */
export function openFgaText(model: PeerModel): string {
  const types = model.types.map(({ name, relations }) => {
    const defines = relations.map(
      (relation) => `    define ${relation.name}: ${openFgaRule(relation, relation.rule, true)}\n`,
    );
    return `type ${name}\n${defines.length === 0 ? '' : `  relations\n${defines.join('')}`}`;
  });
  return `model\n  schema 1.1\n\n${types.join('\n')}`;
}

function openFgaRule(relation: PeerRelation, rule: PeerRule, isRoot: boolean): string {
  const nested = (child: PeerRule): string => openFgaRule(relation, child, false);
  const closed = (text: string): string => (isRoot ? text : `(${text})`);
  switch (rule.op) {
    case 'nil':
      throw new Error('OpenFGA has no nil');
    case 'this':
      return `[${relation.subjects.map((subject) => subjectText(subject)).join(', ')}]`;
    case 'computed':
      return rule.relation;
    case 'walk':
      return `${rule.computed} from ${rule.tupleset}`;
    case 'union':
      return closed(rule.children.map(nested).join(' or '));
    case 'intersection':
      return closed(rule.children.map(nested).join(' and '));
    case 'exclusion':
      return closed(`${nested(rule.include)} but not ${nested(rule.exclude)}`);
  }
}

/** A model as a schema of SpiceDB: what stores tuples stores nothing else. */
export function spiceDbText(model: PeerModel): string {
  const definitions = model.types.map(({ name, relations }) => {
    const members = relations.map((relation) => {
      const { rule, subjects } = relation;
      if (rule.op !== 'this') return `  permission ${relation.name} = ${spiceDbRule(rule, true)}\n`;
      const types = subjects.map((subject) => subjectText(subject)).join(' | ');
      return `  relation ${relation.name}: ${types}\n`;
    });
    return `definition ${name} {\n${members.join('')}}\n`;
  });
  const isExpiring = model.types.some(({ relations }) =>
    relations.some(({ subjects }) => subjects.some(({ expires }) => expires)),
  );
  return (isExpiring ? 'use expiration\n\n' : '') + definitions.join('\n');
}

function spiceDbRule(rule: PeerRule, isRoot: boolean): string {
  const nested = (child: PeerRule): string => spiceDbRule(child, false);
  const closed = (text: string): string => (isRoot ? text : `(${text})`);
  switch (rule.op) {
    case 'nil':
      return 'nil';
    case 'this':
      throw new Error('a permission of SpiceDB stores nothing');
    case 'computed':
      return rule.relation;
    case 'walk':
      return `${rule.tupleset}->${rule.computed}`;
    case 'union':
      return closed(rule.children.map(nested).join(' + '));
    case 'intersection':
      return closed(rule.children.map(nested).join(' & '));
    case 'exclusion':
      return closed(`${nested(rule.include)} - ${nested(rule.exclude)}`);
  }
}

function subjectText({ type, relation, expires }: PeerSubjectType): string {
  const base = relation === '*' ? `${type}:*` : relation === '' ? type : `${type}#${relation}`;
  return expires ? `${base} with expiration` : base;
}

/** A store file of OpenFGA with one test. */
export function storeFileText(
  modelText: string,
  tuples: readonly PeerTuple[],
  checks: readonly PeerCheck[],
): string {
  return stringify({
    model: modelText,
    tuples: tuples.map(({ object, relation, subject }) => {
      return { user: referenceText(subject), relation, object: referenceText(object) };
    }),
    tests: [
      {
        name: 'all',
        check: checks.map(({ object, relation, subject, isAllowed }) => ({
          user: referenceText(subject),
          object: referenceText(object),
          assertions: { [relation]: isAllowed },
        })),
      },
    ],
  });
}

/** A validation file of SpiceDB. */
export function validationFileText(
  schema: string,
  tuples: readonly PeerTuple[],
  checks: readonly PeerCheck[],
): string {
  const texts = (isAllowed: boolean): readonly string[] =>
    checks.filter((check) => check.isAllowed === isAllowed).map(relationshipText);
  return stringify(
    {
      schema,
      relationships: tuples
        .map((tuple) => {
          const expiry = tuple.expiresAt === undefined ? '' : `[expiration:${tuple.expiresAt}]`;
          return relationshipText(tuple) + expiry;
        })
        .join('\n'),
      assertions: { assertTrue: texts(true), assertFalse: texts(false) },
    },
    { lineWidth: 0 },
  );
}

function relationshipText({ object, relation, subject }: PeerTuple | PeerCheck): string {
  return `${referenceText(object)}#${relation}@${referenceText(subject)}`;
}

function referenceText({ type, id, relation }: PeerReference): string {
  return `${type}:${id}${relation === '' ? '' : `#${relation}`}`;
}
