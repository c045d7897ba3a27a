import type { JsonValue } from '../../shared/json.ts';
import type { Condition, Position, Template, TemplateEntry } from '../model/workflow.ts';
import { type Availability, ExpressionSyntaxError, parseExpression } from './expression.ts';
import { objectFrom } from './ordered-object.ts';
import type { ProblemList } from './problems.ts';
import { scalarText } from './yaml-tree.ts';

/** The entries of a mapping with literal keys, in order; none for anything else. */
export function entriesOf(
  template: Template | undefined,
): readonly { readonly name: string; readonly at: Position; readonly value: Template }[] {
  if (template?.kind !== 'mapping') {
    return [];
  }
  return template.entries.flatMap(({ key, value }: TemplateEntry) =>
    key.kind === 'literal' ? [{ name: scalarText(key.value), at: key.at, value }] : [],
  );
}

/** The value of a literal key. */
export function valueOf(template: Template | undefined, name: string): Template | undefined {
  return entriesOf(template).find((entry) => entry.name === name)?.value;
}

/** The value unless it is missing or null. */
export function presentValueOf(template: Template | undefined, name: string): Template | undefined {
  const value = valueOf(template, name);
  return value?.kind === 'literal' && value.value === null ? undefined : value;
}

/** The text of a literal; undefined for anything else and for null. */
export function literalText(template: Template | undefined): string | undefined {
  return template?.kind === 'literal' && template.value !== null
    ? scalarText(template.value)
    : undefined;
}

export function isTrue(template: Template | undefined): boolean {
  return template?.kind === 'literal' && template.value === true;
}

/** The items of a sequence, or the one value that stands for a sequence of one. */
export function itemsOf(template: Template | undefined): readonly Template[] {
  if (template === undefined) {
    return [];
  }
  return template.kind === 'sequence' ? template.items : [template];
}

/** Literal texts of a list or a single value; undefined when there is none. */
export function textsOf(template: Template | undefined): readonly string[] | undefined {
  return template === undefined
    ? undefined
    : itemsOf(template).flatMap((item) => literalText(item) ?? []);
}

/** A template without expressions as JSON; an expression gives its source in `${{ }}`. */
export function jsonFromTemplate(template: Template): JsonValue {
  switch (template.kind) {
    case 'literal':
      return template.value;
    case 'expression':
      return `\${{ ${template.source} }}`;
    case 'sequence':
      return template.items.map(jsonFromTemplate);
    case 'mapping':
      return objectFrom(
        entriesOf(template).map(({ name, value }) => [name, jsonFromTemplate(value)]),
      );
  }
}

/** Does its value depend on anything but the file? */
export function hasExpression(template: Template): boolean {
  switch (template.kind) {
    case 'literal':
      return false;
    case 'expression':
      return true;
    case 'sequence':
      return template.items.some(hasExpression);
    case 'mapping':
      return template.entries.some(({ key, value }) => hasExpression(key) || hasExpression(value));
  }
}

/** An `if:`, with or without `${{ }}`; undefined when it is absent or empty, which means success(). */
export function readCondition(
  template: Template | undefined,
  available: Availability,
  problems: ProblemList,
): Condition | undefined {
  if (template?.kind === 'expression') {
    return { source: template.source, at: template.at };
  }
  const source = literalText(template)?.trim() ?? '';
  if (template === undefined || source === '') {
    return undefined;
  }
  try {
    parseExpression(source, available);
  } catch (error) {
    problems.add(
      template.at,
      error instanceof ExpressionSyntaxError ? error.message : 'Invalid expression',
    );
  }
  return { source, at: template.at };
}
