import { createHash } from 'node:crypto';
import { BUILT_IN_CONDITIONS } from '../../model/conditions/conditions.ts';
import { SEAT_NAMESPACE } from '../../model/names.ts';
import type { PeerModel, PeerRule } from '../peers/peer-model.ts';

const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
/** Prefix of escaped names; no other name begins with it. */
const ESCAPE = 'x-';
/** Begins an escape whose rest is a hash: `h` is no hexadecimal digit. */
const HASHED = 'x-h';
const NAME_CHARACTERS_MAX = 64;
/** 240 bits of SHA-256. */
const HASH_CHARACTERS = 60;
/**
 * Names that the service uses itself: it writes tuples of these namespaces, or gives them another
 * meaning.
 */
const TAKEN: ReadonlySet<string> = new Set(['user', 'group', 'workspace', SEAT_NAMESPACE]);

/**
 * The name here of a type, relation or condition of a store of OpenFGA. It depends on the name
 * alone, whatever models contain. Two names never become one, except for a collision of 240 bits of
 * SHA-256.
 *
 * A name that is valid here stays. Any other becomes `x-` and the hexadecimal digits of its UTF-8,
 * or, if that is too long, `x-h` and a hash. The name must be well-formed Unicode.
 */
export function ownNameOf(name: string): string {
  const isPlain = NAME.test(name) && !name.startsWith(ESCAPE);
  if (isPlain && !TAKEN.has(name) && !BUILT_IN_CONDITIONS.has(name)) return name;
  const escaped = ESCAPE + Buffer.from(name).toString('hex');
  if (escaped.length <= NAME_CHARACTERS_MAX) return escaped;
  return HASHED + createHash('sha256').update(name).digest('hex').slice(0, HASH_CHARACTERS);
}

/** The name that became `own`; undefined if `own` holds a hash. */
export function storeNameOf(own: string): string | undefined {
  if (!own.startsWith(ESCAPE)) return own;
  if (own.startsWith(HASHED)) return undefined;
  return Buffer.from(own.slice(ESCAPE.length), 'hex').toString();
}

/** The model with the names that it has here. */
export function withOwnNames(model: PeerModel): PeerModel {
  return {
    ...model,
    types: model.types.map((type) => ({
      ...type,
      name: ownNameOf(type.name),
      relations: type.relations.map((relation) => ({
        ...relation,
        name: ownNameOf(relation.name),
        rule: ruleOf(relation.rule),
        subjects: relation.subjects.map((one) => ({
          ...one,
          type: ownNameOf(one.type),
          relation:
            one.relation === '' || one.relation === '*' ? one.relation : ownNameOf(one.relation),
          condition: one.condition === undefined ? undefined : ownNameOf(one.condition),
        })),
      })),
    })),
    conditions: model.conditions.map((one) => ({ ...one, name: ownNameOf(one.name) })),
  };
}

function ruleOf(rule: PeerRule): PeerRule {
  switch (rule.op) {
    case 'nil':
    case 'this':
      return rule;
    case 'computed':
      return { op: 'computed', relation: ownNameOf(rule.relation) };
    case 'walk':
      return {
        op: 'walk',
        tupleset: ownNameOf(rule.tupleset),
        computed: ownNameOf(rule.computed),
      };
    case 'union':
    case 'intersection':
      return { op: rule.op, children: rule.children.map(ruleOf) };
    case 'exclusion':
      return { op: 'exclusion', include: ruleOf(rule.include), exclude: ruleOf(rule.exclude) };
  }
}
