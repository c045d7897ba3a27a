import {
  ANY,
  type ConditionType,
  listOf,
  mapOf,
  scalar,
  type ScalarKind,
} from '../condition-type.ts';

/** One form of a function: its target (if it is a method), arguments and result. */
export type Signature = {
  readonly target: ConditionType | undefined;
  readonly args: readonly ConditionType[];
  readonly result: ConditionType;
};

const table = new Map<string, Signature[]>();

const [BOOL, INT, UINT, DOUBLE] = kinds('bool', 'int', 'uint', 'double');
const [STRING, BYTES, TYPE] = kinds('string', 'bytes', 'type');
const [TIMESTAMP, DURATION, ADDRESS] = kinds('timestamp', 'duration', 'ipaddress');
const LIST = listOf(ANY);
const MAP = mapOf(ANY, ANY);

/**
 * Forms of a function or operator that expressions may use; undefined for an unknown one. Operators have their names in
 * CEL. `==`, `in`, `[]` and `?:` are not included, since the types of their operands decide.
 */
export function signaturesOf(name: string): readonly Signature[] | undefined {
  return table.get(name);
}

/** Names of the functions that an expression can call. */
export function functionNames(): string[] {
  return [...table.keys()].filter((name) => /^[a-z]/i.test(name));
}

function kinds<K extends readonly ScalarKind[]>(...names: K): { [I in keyof K]: ConditionType } {
  return names.map(scalar) as { [I in keyof K]: ConditionType };
}

function add(name: string, args: readonly ConditionType[], result: ConditionType): void {
  addForm(name, { target: undefined, args, result });
}

function addMethod(
  target: ConditionType,
  name: string,
  args: readonly ConditionType[],
  result: ConditionType,
): void {
  addForm(name, { target, args, result });
}

function addForm(name: string, form: Signature): void {
  const forms = table.get(name);
  if (forms === undefined) table.set(name, [form]);
  else forms.push(form);
}

for (const name of ['_&&_', '_||_']) add(name, [BOOL, BOOL], BOOL);
add('!_', [BOOL], BOOL);
add('@not_strictly_false', [BOOL], BOOL);
for (const type of [INT, DOUBLE]) add('-_', [type], type);
for (const name of ['_+_', '_-_', '_*_', '_/_']) {
  for (const type of [INT, UINT, DOUBLE]) add(name, [type, type], type);
}
for (const type of [INT, UINT]) add('_%_', [type, type], type);
for (const type of [STRING, BYTES, DURATION]) add('_+_', [type, type], type);
add('_+_', [LIST, LIST], LIST);
add('_+_', [TIMESTAMP, DURATION], TIMESTAMP);
add('_+_', [DURATION, TIMESTAMP], TIMESTAMP);
add('_-_', [TIMESTAMP, TIMESTAMP], DURATION);
add('_-_', [TIMESTAMP, DURATION], TIMESTAMP);
add('_-_', [DURATION, DURATION], DURATION);

for (const name of ['_<_', '_<=_', '_>_', '_>=_']) {
  for (const type of [BOOL, STRING, BYTES, TIMESTAMP, DURATION]) add(name, [type, type], BOOL);
  for (const left of [INT, UINT, DOUBLE]) {
    for (const right of [INT, UINT, DOUBLE]) add(name, [left, right], BOOL);
  }
}

for (const type of [STRING, BYTES, LIST, MAP]) {
  add('size', [type], INT);
  addMethod(type, 'size', [], INT);
}
for (const name of ['contains', 'startsWith', 'endsWith', 'matches']) {
  addMethod(STRING, name, [STRING], BOOL);
}
add('matches', [STRING, STRING], BOOL);
addMethod(ADDRESS, 'in_cidr', [STRING], BOOL);
add('ipaddress', [STRING], ADDRESS);

for (const type of [INT, UINT, DOUBLE, STRING]) {
  add('int', [type], INT);
  add('uint', [type], UINT);
  add('double', [type], DOUBLE);
}
for (const type of [TIMESTAMP, DURATION]) add('int', [type], INT);
for (const type of [BOOL, STRING]) add('bool', [type], BOOL);
for (const type of [BYTES, STRING]) add('bytes', [type], BYTES);
for (const type of [STRING, BOOL, INT, UINT, DOUBLE, BYTES, TIMESTAMP, DURATION, ADDRESS]) {
  add('string', [type], STRING);
}
for (const type of [STRING, BOOL, INT, UINT, DOUBLE, BYTES, TIMESTAMP, DURATION]) {
  add('goString', [type], STRING);
}
add('goInt', [DURATION], INT);
addMethod(DURATION, 'goMilliseconds', [], INT);
for (const type of [TIMESTAMP, STRING, INT]) add('timestamp', [type], TIMESTAMP);
for (const type of [DURATION, STRING, INT]) add('duration', [type], DURATION);
add('type', [ANY], TYPE);
add('dyn', [ANY], ANY);

for (const name of ['getHours', 'getMinutes', 'getSeconds', 'getMilliseconds']) {
  addMethod(DURATION, name, [], INT);
}
for (const name of [
  'getFullYear',
  'getMonth',
  'getDate',
  'getDayOfMonth',
  'getDayOfWeek',
  'getDayOfYear',
  'getHours',
  'getMinutes',
  'getSeconds',
  'getMilliseconds',
]) {
  addMethod(TIMESTAMP, name, [], INT);
  addMethod(TIMESTAMP, name, [STRING], INT);
}
