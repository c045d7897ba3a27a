import type { Template, TemplateEntry } from '../model/workflow.ts';
import { type Availability, EVERYTHING_AVAILABLE } from './expression.ts';
import type { ProblemList } from './problems.ts';
import {
  ANY,
  type Definition,
  type MappingDefinition,
  NOTHING_AVAILABLE,
  type Property,
  union,
} from './schema.ts';
import { isInsertKey, type ScalarTemplate, templateFromText } from './template-scalar.ts';
import { type ScalarValue, type YamlNode, type YamlScalar, scalarText } from './yaml-tree.ts';

type YamlMapping = YamlNode & { kind: 'mapping' };

/**
 * Reads a tree by a definition: checks keys, values and expressions, and gives the template of the whole,
 * literals converted to what the definition wants. Messages are GitHub's. Cost is linear.
 */
export function readBySchema(
  node: YamlNode,
  definition: Definition,
  problems: ProblemList,
): Template {
  return new WorkflowSchemaReader(problems).value(node, definition, NOTHING_AVAILABLE);
}

class WorkflowSchemaReader {
  readonly #problems: ProblemList;

  constructor(problems: ProblemList) {
    this.#problems = problems;
  }

  value(node: YamlNode, definition: Definition, outer: Availability): Template {
    const available = union(outer, definition.available);
    const alternatives = alternativesOf(definition);
    switch (node.kind) {
      case 'scalar':
        return this.#checked(this.#scalar(node, available), alternatives, available);
      case 'sequence':
        return this.#sequence(node, alternatives, available);
      case 'mapping':
        return this.#mapping(node, alternatives, available);
    }
  }

  #scalar(node: YamlScalar, available: Availability): ScalarTemplate {
    const { value, at } = node;
    // Where no expression may stand, that is what to say, not that its contexts are unknown.
    const checked = hasAny(available) ? available : EVERYTHING_AVAILABLE;
    return typeof value === 'string'
      ? templateFromText(value, at, checked, (message) => {
          this.#problems.add(at, message);
        })
      : { kind: 'literal', value, at };
  }

  #checked(
    scalar: ScalarTemplate,
    alternatives: readonly Definition[],
    available: Availability,
  ): Template {
    if (scalar.kind === 'expression') {
      if (!hasAny(available)) {
        this.#problems.add(scalar.at, 'A template expression is not allowed in this context');
      }
      return scalar;
    }
    if (alternatives.some((alternative) => isMatch(scalar.value, alternative))) {
      return scalar;
    }
    const text = scalarText(scalar.value);
    if (alternatives.some((alternative) => isMatch(text, alternative))) {
      return { ...scalar, value: text };
    }
    this.#problems.add(scalar.at, `Unexpected value '${text}'`);
    return scalar;
  }

  #sequence(
    node: YamlNode & { kind: 'sequence' },
    alternatives: readonly Definition[],
    available: Availability,
  ): Template {
    const definition = alternatives.find(({ kind }) => kind === 'sequence' || kind === 'any');
    if (definition === undefined) {
      this.#problems.add(node.at, 'A sequence was not expected');
      return { kind: 'sequence', items: [], at: node.at };
    }
    const item = definition.kind === 'sequence' ? definition.item : ANY;
    return {
      kind: 'sequence',
      items: node.items.map((child) => this.value(child, item, available)),
      at: node.at,
    };
  }

  #mapping(
    node: YamlMapping,
    alternatives: readonly Definition[],
    available: Availability,
  ): Template {
    const candidates = alternatives.flatMap((alternative) => {
      if (alternative.kind === 'any') {
        return [ANY_MAPPING];
      }
      return alternative.kind === 'mapping' ? [alternative] : [];
    });
    if (candidates.length === 0) {
      this.#problems.add(node.at, 'A mapping was not expected');
      return { kind: 'mapping', entries: [], at: node.at };
    }
    const seen = new Set<string>();
    const entries: TemplateEntry[] = [];
    let hasExpressionKey = false;
    for (const { key, value } of node.entries) {
      const keyTemplate = this.#scalar(key, available);
      if (keyTemplate.kind === 'expression') {
        hasExpressionKey = true;
        if (hasAny(available)) {
          const [first] = candidates;
          const definition = isInsertKey(keyTemplate) ? ANY : (first?.loose?.value ?? ANY);
          entries.push({ key: keyTemplate, value: this.value(value, definition, available) });
        } else {
          this.#problems.add(key.at, 'A template expression is not allowed in this context');
        }
        continue;
      }
      const entry = this.#entry(scalarText(keyTemplate.value), { key, value }, candidates, {
        available,
        seen,
      });
      if (entry !== undefined) {
        entries.push(entry);
      }
    }
    this.#complete(node, candidates, seen, hasExpressionKey);
    return { kind: 'mapping', entries, at: node.at };
  }

  #entry(
    name: string,
    { key, value }: { readonly key: YamlScalar; readonly value: YamlNode },
    candidates: MappingDefinition[],
    state: { readonly available: Availability; readonly seen: Set<string> },
  ): TemplateEntry | undefined {
    const { available, seen } = state;
    const upper = name.toUpperCase();
    if (name !== '' && seen.has(upper)) {
      this.#problems.add(key.at, `'${name}' is already defined`);
      return undefined;
    }
    seen.add(upper);
    const keyTemplate: Template = { kind: 'literal', value: name, at: key.at };
    const property = narrow(candidates, name);
    if (property !== undefined) {
      return { key: keyTemplate, value: this.value(value, property.definition, available) };
    }
    const loose = candidates[0]?.loose;
    if (loose === undefined || !isMatch(name, loose.key)) {
      this.#problems.add(key.at, `Unexpected value '${name}'`);
      return undefined;
    }
    return { key: keyTemplate, value: this.value(value, loose.value, available) };
  }

  #complete(
    node: YamlMapping,
    candidates: readonly MappingDefinition[],
    seen: ReadonlySet<string>,
    hasExpressionKey: boolean,
  ): void {
    const [only] = candidates;
    if (candidates.length > 1) {
      this.#problems.add(
        node.at,
        `There's not enough info to determine what you meant. Add one of these properties: ${distinguishingKeys(candidates).join(', ')}`,
      );
    } else if (only !== undefined && !hasExpressionKey) {
      for (const [name, { isRequired }] of Object.entries(only.properties)) {
        if (isRequired && !seen.has(name.toUpperCase())) {
          this.#problems.add(node.at, `Required property is missing: ${name}`);
        }
      }
    }
  }
}

const ANY_MAPPING: MappingDefinition = {
  kind: 'mapping',
  properties: {},
  loose: { key: { kind: 'string', isNonEmpty: false }, value: ANY },
};

function hasAny(available: Availability): boolean {
  return available.contexts.length > 0 || available.functions.length > 0;
}

function alternativesOf(definition: Definition): readonly Definition[] {
  return definition.kind === 'oneOf'
    ? definition.definitions.flatMap(alternativesOf)
    : [definition];
}

function isMatch(value: ScalarValue, definition: Definition): boolean {
  switch (definition.kind) {
    case 'any':
      return true;
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return typeof value === 'number';
    case 'string':
      return typeof value === 'string' && !(definition.isNonEmpty && value === '');
    case 'constants':
      return (
        typeof value === 'string' &&
        definition.values.includes(definition.isCaseless ? value.toLowerCase() : value)
      );
    default:
      return false;
  }
}

/** The property in any candidate; those without it are dropped where others have it. */
function narrow(candidates: MappingDefinition[], name: string): Property | undefined {
  const having = candidates.filter(({ properties }) => Object.hasOwn(properties, name));
  if (having.length > 0 && having.length < candidates.length) {
    candidates.splice(0, candidates.length, ...having);
  }
  return having[0]?.properties[name];
}

/** Keys that only one candidate has. */
function distinguishingKeys(candidates: readonly MappingDefinition[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const { properties } of candidates) {
    for (const name of Object.keys(properties)) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return [...counts]
    .filter(([, count]) => count === 1)
    .map(([name]) => name)
    .toSorted();
}
