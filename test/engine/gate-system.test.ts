import fc from 'fast-check';
import { expect, test } from 'vitest';
import { UNDETERMINED, FALSE, TRUE, type Value } from '../../src/engine/bound/scope.ts';
import {
  ALL,
  ANY,
  EXCLUSION,
  EXCLUDE_ROLE,
  type Gate,
  GateSystem,
  PLAIN_ROLE,
  WEAK_ROLE,
} from '../../src/engine/general/gate-system.ts';

const FUZZ_RUNS = Number(process.env['FUZZ_RUNS'] ?? 1);
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

type Operand = { readonly of: number; readonly role: number };
type Vertex = {
  readonly gate: Gate;
  readonly isUserset: boolean;
  readonly operands: readonly Operand[];
  readonly isStained: boolean;
  readonly isSeeded: boolean;
};
type Solved = { readonly vertices: readonly string[]; readonly isTruncated: boolean };

const NAMES = ['FALSE', 'TRUE', 'CUT'];
/** Value and height; of what is undecided the height says nothing. */
const told = (value: Value, height: number): string =>
  value === UNDETERMINED ? 'CUT' : `${NAMES[value]} at ${height}`;

function solved(vertices: readonly Vertex[], roundMax: number): Solved {
  const system = new GateSystem();
  for (const { gate, isUserset } of vertices) system.add(gate, isUserset);
  vertices.forEach(({ operands, isStained, isSeeded }, at) => {
    for (const { of, role } of operands) system.connect(of, at, role);
    if (isStained) system.markUndetermined(at);
    if (isSeeded) system.seedTrue(at);
    if (isSeeded) system.seedTrue(at);
  });
  Array.from(system.solve(roundMax));
  return {
    vertices: vertices.map((_, at) => told(system.valueOf(at), system.heightOf(at))),
    isTruncated: system.isTruncated,
  };
}

/** The same by looking at every vertex again and again, as the definition says it. */
class Plain {
  readonly #vertices: readonly Vertex[];
  readonly #values: Value[];
  readonly #heights: number[];
  /** What readers see. Usersets are seen a round after they are decided. */
  readonly #seen: Value[];
  isTruncated = false;

  constructor(vertices: readonly Vertex[]) {
    this.#vertices = vertices;
    this.#heights = vertices.map(({ isSeeded, isUserset }) => (isSeeded && isUserset ? 1 : 0));
    this.#values = vertices.map(({ isSeeded, isStained, operands }): Value => {
      if (isSeeded) return TRUE;
      return operands.length === 0 && !isStained ? FALSE : UNDETERMINED;
    });
    this.#seen = vertices.map(({ isSeeded, isUserset }, at) =>
      isSeeded && isUserset ? UNDETERMINED : (this.#values[at] as Value),
    );
  }

  get told(): string[] {
    return this.#values.map((value, at) => told(value, this.#heights[at] as number));
  }

  solve(roundMax: number): void {
    for (let round = 1; ; round++) {
      if (round > roundMax) {
        this.isTruncated = true;
        return;
      }
      while (this.#decideOne(round));
      const fresh = this.#values.flatMap((value, at) => (value === this.#seen[at] ? [] : [at]));
      for (const at of fresh) this.#seen[at] = this.#values[at] as Value;
      if (fresh.length === 0 && !this.#refute(round)) return;
    }
  }

  #decideOne(round: number): boolean {
    const at = this.#vertices.findIndex(
      (vertex, one) => this.#values[one] === UNDETERMINED && this.#follows(vertex) !== UNDETERMINED,
    );
    if (at < 0) return false;
    const vertex = this.#vertices[at] as Vertex;
    const value = this.#follows(vertex);
    this.#values[at] = value;
    this.#heights[at] = round;
    if (!vertex.isUserset) this.#seen[at] = value;
    return true;
  }

  #follows({ gate, operands, isStained }: Vertex): Value {
    const values = operands.map(({ of, role }) => ({ value: this.#seen[of] as Value, role }));
    const are = (wanted: Value): boolean => values.every(({ value }) => value === wanted);
    if (gate === ANY) {
      if (values.some(({ value, role }) => value === TRUE && role !== WEAK_ROLE)) return TRUE;
      return are(FALSE) && !isStained ? FALSE : UNDETERMINED;
    }
    if (gate === ALL) {
      if (values.some(({ value }) => value === FALSE)) return FALSE;
      return are(TRUE) ? TRUE : UNDETERMINED;
    }
    const [include, exclude] = values;
    if (include?.value === FALSE || exclude?.value === TRUE) return FALSE;
    return include?.value === TRUE && exclude?.value === FALSE ? TRUE : UNDETERMINED;
  }

  /** What is open and could not even be TRUE if what it waits for could becomes FALSE. */
  #refute(round: number): boolean {
    const possible = new Set<number>();
    const may = ({ of }: Operand): boolean => this.#values[of] === TRUE || possible.has(of);
    for (let size = -1; size !== possible.size;) {
      size = possible.size;
      this.#vertices.forEach(({ gate, operands, isStained }, at) => {
        if (this.#values[at] !== UNDETERMINED) return;
        const isPossible =
          gate === ANY
            ? isStained || operands.some(may)
            : gate === ALL
              ? operands.every(may)
              : operands.slice(0, 1).every(may);
        if (isPossible) possible.add(at);
      });
    }
    const refuted = this.#values.flatMap((value, at) =>
      value === UNDETERMINED && !possible.has(at) ? [at] : [],
    );
    for (const at of refuted) {
      this.#values[at] = FALSE;
      this.#seen[at] = FALSE;
      this.#heights[at] = round;
    }
    return refuted.length > 0;
  }
}

function expected(vertices: readonly Vertex[], roundMax: number): Solved {
  const plain = new Plain(vertices);
  plain.solve(roundMax);
  return { vertices: plain.told, isTruncated: plain.isTruncated };
}

const systems = fc.integer({ min: 1, max: 14 }).chain((count) => {
  const other = fc.nat(count - 1);
  const plain = other.map((of): Operand => ({ of, role: PLAIN_ROLE }));
  const weak = other.map((of): Operand => ({ of, role: WEAK_ROLE }));
  const rarely = fc.nat(9).map((n) => n === 0);
  const any = fc.record({
    gate: fc.constant<Gate>(ANY),
    isUserset: fc.boolean(),
    operands: fc.array(fc.oneof({ weight: 4, arbitrary: plain }, { weight: 1, arbitrary: weak }), {
      maxLength: 4,
    }),
    isStained: rarely,
    isSeeded: fc.nat(5).map((n) => n === 0),
  });
  const operator = { isUserset: fc.constant(false), isStained: fc.constant(false) };
  const all = fc.record({
    gate: fc.constant<Gate>(ALL),
    operands: fc.array(plain, { minLength: 1, maxLength: 3 }),
    isSeeded: fc.constant(false),
    ...operator,
  });
  const butNot = fc.record({
    gate: fc.constant<Gate>(EXCLUSION),
    operands: fc.tuple(other, other).map(([of, but]): Operand[] => [
      { of, role: PLAIN_ROLE },
      { of: but, role: EXCLUDE_ROLE },
    ]),
    isSeeded: fc.constant(false),
    ...operator,
  });
  const vertex: fc.Arbitrary<Vertex> = fc.oneof(
    { weight: 3, arbitrary: any },
    { weight: 1, arbitrary: all },
    { weight: 2, arbitrary: butNot },
  );
  return fc.array(vertex, { minLength: count, maxLength: count });
});

test(`values and heights are those of the definition, within any number of rounds (SEED=${seed})`, () => {
  fc.assert(
    fc.property(systems, fc.constantFrom(1, 2, 3, 5, 100), (vertices, roundMax) => {
      expect(solved(vertices, roundMax)).toEqual(expected(vertices, roundMax));
    }),
    { numRuns: Math.ceil(4_000 * FUZZ_RUNS), seed },
  );
});

const leaf = (isSeeded = false): Vertex => ({
  gate: ANY,
  isUserset: false,
  operands: [],
  isStained: false,
  isSeeded,
});
const userset = (...of: readonly number[]): Vertex => ({
  ...leaf(),
  isUserset: true,
  operands: of.map((one) => ({ of: one, role: PLAIN_ROLE })),
});

test('a chain of usersets takes a round each, and no more than there may be', () => {
  const chain = [leaf(true), userset(0), userset(1), userset(2)];
  const whole = ['TRUE at 0', 'TRUE at 1', 'TRUE at 2', 'TRUE at 3'];
  expect(solved(chain, 4)).toEqual({ vertices: whole, isTruncated: false });
  expect(solved(chain, 3)).toEqual({ vertices: whole, isTruncated: true });
  expect(solved(chain, 2).vertices).toEqual(['TRUE at 0', 'TRUE at 1', 'TRUE at 2', 'CUT']);
});

test('it may be interrupted in proportion to its work', () => {
  const yields = (stained: boolean, count = 640): number => {
    const system = new GateSystem();
    for (let i = 0; i < count; i++) {
      const vertex = system.add(ANY, false);
      system.connect(vertex, vertex, PLAIN_ROLE);
      if (stained) system.markUndetermined(vertex);
    }
    return [...system.solve(100)].length;
  };
  // Each vertex is looked at: at the start; twice, and with its reader once, when what cannot hold is refuted.
  expect(yields(true)).toBe((4 * 640) / 64);
  // No more where that decides all of them: what cannot hold is not looked for again.
  expect(yields(false)).toBe((4 * 640) / 64);
  expect(yields(false, 10)).toBe(0);
});
