import { MODEL_NESTING_MAX } from '../../model/namespace/model-document.ts';
import { AppError } from '../../shared/app-error.ts';
import {
  membersOf,
  optionalList,
  optionalMembers,
  optionalString,
  shapeError,
  stringOf,
} from '../peers/json-shape.ts';
import type {
  PeerCondition,
  PeerModel,
  PeerRelation,
  PeerRule,
  PeerSubjectType,
  PeerType,
} from '../peers/peer-model.ts';
import { OpenFgaPlaces } from './openfga-places.ts';

/**
 * Versions with type restrictions. Without these a relation does not define what may be written.
 */
const SCHEMA_VERSIONS = ['1.1', '1.2'];
const SCALARS: ReadonlyMap<string, string> = new Map(
  [
    'any',
    'bool',
    'string',
    'int',
    'uint',
    'double',
    'duration',
    'timestamp',
    'map',
    'list',
    'ipaddress',
  ].map((name) => [`TYPE_NAME_${name.toUpperCase()}`, name]),
);

/**
 * Reads a model of OpenFGA from the JSON form of its API and of `fga model transform`.
 * Errors: FIELD_INVALID naming the place that is not part of such a model. O(size).
 */
export function peerModelOfJson(value: unknown, places: OpenFgaPlaces): PeerModel {
  const root = membersOf(value, 'the model');
  const version = root['schema_version'];
  if (typeof version !== 'string' || !SCHEMA_VERSIONS.includes(version)) {
    throw shapeError('schema_version', `must be ${SCHEMA_VERSIONS.join(' or ')}`);
  }
  const types = optionalList(root['type_definitions'], 'type_definitions').map((one) =>
    typeOf(one, places),
  );
  const conditions = Object.entries(optionalMembers(root['conditions'], 'conditions')).map(
    ([name, condition]) => conditionOf(name, condition, places),
  );
  return { types, conditions, problems: [], notes: [] };
}

/**
 * Reads the same form from a text, without the library for the language of OpenFGA. A text that is
 * not such a model yields a problem.
 */
export function peerModelOfText(text: string): PeerModel {
  try {
    return peerModelOfJson(JSON.parse(text), new OpenFgaPlaces([]));
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const problems = [{ place: 'the model', text: error.message }];
    return { types: [], conditions: [], problems, notes: [] };
  }
}

function typeOf(value: unknown, places: OpenFgaPlaces): PeerType {
  const document = membersOf(value, 'a type definition');
  const name = stringOf(document['type'], 'the type of a type definition');
  const place = places.type(name);
  const metadata = optionalMembers(document['metadata'], `${place}, metadata`);
  const about = optionalMembers(metadata['relations'], `${place}, metadata.relations`);
  const rewrites = Object.entries(optionalMembers(document['relations'], place));
  const relations = rewrites
    .toSorted(([one], [other]) => places.compareRelations(name, one, other))
    .map(([relation, rewrite]): PeerRelation => {
      const own = places.relation(name, relation);
      const rule = ruleOf(rewrite, own, 1);
      const { directly_related_user_types: listed } = optionalMembers(
        Object.hasOwn(about, relation) ? about[relation] : undefined,
        own,
      );
      const subjects = hasThis(rule)
        ? optionalList(listed, own).map((one) => subjectOf(one, own))
        : [];
      return { name: relation, place: own, rule, subjects };
    });
  return { name, place, relations };
}

function subjectOf(value: unknown, place: string): PeerSubjectType {
  const document = membersOf(value, `${place}, a type restriction`);
  const isWildcard = document['wildcard'] !== undefined && document['wildcard'] !== null;
  return {
    type: stringOf(document['type'], `${place}, the type of a type restriction`),
    relation: isWildcard ? '*' : (optionalString(document['relation'], place) ?? ''),
    condition: optionalString(document['condition'], place),
    expires: false,
  };
}

function ruleOf(value: unknown, place: string, nesting: number): PeerRule {
  if (nesting > MODEL_NESTING_MAX) {
    throw shapeError(place, `it is nested more than ${MODEL_NESTING_MAX} deep`);
  }
  const document = membersOf(value, place);
  const members = Object.entries(document).filter(([, inner]) => inner !== undefined);
  const [found] = members;
  if (found === undefined || members.length > 1) {
    throw shapeError(place, 'a rewrite has one member');
  }
  const [member, inner] = found;
  switch (member) {
    case 'this':
      return { op: 'this' };
    case 'computedUserset':
    case 'computed_userset':
      return { op: 'computed', relation: relationOf(inner, place) };
    case 'tupleToUserset':
    case 'tuple_to_userset': {
      const walk = membersOf(inner, place);
      return {
        op: 'walk',
        tupleset: relationOf(walk['tupleset'], place),
        computed: relationOf(walk['computedUserset'] ?? walk['computed_userset'], place),
      };
    }
    case 'union':
    case 'intersection': {
      const children = optionalList(membersOf(inner, place)['child'], place).map((child) =>
        ruleOf(child, place, nesting + 1),
      );
      if (children.length === 0) throw shapeError(place, `a ${member} has operands`);
      return { op: member, children };
    }
    case 'difference': {
      const difference = membersOf(inner, place);
      return {
        op: 'exclusion',
        include: ruleOf(difference['base'], place, nesting + 1),
        exclude: ruleOf(difference['subtract'], place, nesting + 1),
      };
    }
    default:
      throw shapeError(place, `${member} is no rewrite that is known here`);
  }
}

function relationOf(value: unknown, place: string): string {
  return stringOf(membersOf(value, place)['relation'], `${place}, the relation of a rewrite`);
}

function hasThis(rule: PeerRule): boolean {
  switch (rule.op) {
    case 'this':
      return true;
    case 'union':
    case 'intersection':
      return rule.children.some(hasThis);
    case 'exclusion':
      return hasThis(rule.include) || hasThis(rule.exclude);
    default:
      return false;
  }
}

function conditionOf(name: string, value: unknown, places: OpenFgaPlaces): PeerCondition {
  const place = places.condition(name);
  const document = membersOf(value, place);
  const parameters = Object.entries(optionalMembers(document['parameters'], place)).map(
    ([parameter, type]) => [parameter, parameterType(type, `${place}, ${parameter}`, 1)] as const,
  );
  return { name, place, parameters, expression: stringOf(document['expression'], place) };
}

function parameterType(value: unknown, place: string, nesting: number): string {
  const document = membersOf(value, place);
  const name = stringOf(document['type_name'], `${place}, type_name`);
  const generic = optionalList(document['generic_types'], `${place}, generic_types`);
  if (nesting > MODEL_NESTING_MAX) throw shapeError(place, 'the type is nested too deep');
  const inner = generic.map((one) => parameterType(one, place, nesting + 1));
  return (SCALARS.get(name) ?? name) + (inner.length === 0 ? '' : `<${inner.join(', ')}>`);
}
