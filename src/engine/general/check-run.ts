import { OP_EXCLUSION, OP_INTERSECTION, OP_LEAF, type Op } from '../bound/bound-model.ts';
import { BACKSTOP_CYCLE, BACKSTOP_DEPTH } from '../bound/evaluator-api.ts';
import { PairTable } from '../bound/pair-table.ts';
import { UNDETERMINED, FALSE, type Scope, type Target, TRUE, type Value } from '../bound/scope.ts';
import { type Outcome, solveComponent } from './component-solver.ts';
import type { Steps } from './gate-system.ts';
import { type Border, Region } from './region.ts';

type RegionFrame = {
  readonly kind: 'region';
  readonly region: Region;
  levelMax: number;
  nextBorder: number;
};
type OpFrame = {
  readonly kind: 'op';
  readonly op: Op;
  readonly node: NodeFrame;
  readonly isExcluding: boolean;
  next: number;
  value: Value;
  height: number;
  isDepthExceeded: boolean;
};
type NodeFrame = {
  readonly kind: 'node';
  readonly entity: number;
  readonly relation: number;
  readonly isExcluding: boolean;
  readonly levelMax: number;
  readonly memoIndex: number;
  isStarted: boolean;
};
/** Solves the component of the node below. */
type SolverFrame = { readonly kind: 'solver'; readonly steps: Steps<Outcome> };
type Frame = RegionFrame | OpFrame | NodeFrame | SolverFrame;

/** The userset of which an operand is evaluated. */
export type OperandIds = { readonly entity: number; readonly relation: number };

const ON_PATH: Outcome = { value: UNDETERMINED, height: 0, isDepthExceeded: true };
/** A step is a userset, or 256 entries of a list: some ten microseconds at most. */
const STEPS_PER_CLOCK_READ = 8;

/**
 * Evaluates whether the target is in usersets, three-valued, demand-driven: regions of unions by
 * reachability, intersections and exclusions on an explicit stack, with every finished value
 * remembered. A userset met again on the stack means a cyclic component with an intersection or
 * exclusion in it: that is solved as a whole by fixpoint (component-solver.ts) and the stack
 * resumes above it, so nothing on the stack ever rests on an unfinished value.
 */
export class CheckRun {
  outcome: Outcome = ON_PATH;
  readonly #scope: Scope;
  readonly #target: Target;
  readonly #stack: Frame[] = [];
  readonly #memoKeys = new PairTable();
  readonly #memo: (Outcome & { readonly levelMax: number })[] = [];

  constructor(scope: Scope, target: Target) {
    this.#scope = scope;
    this.#target = target;
  }

  /** Starts the evaluation of one userset; values found for earlier ones are reused. */
  start(entity: number, relation: number): void {
    this.#stack.length = 0;
    const region = new Region(this.#scope, this.#target, this.#scope.depthMax, false);
    region.seed(entity, relation);
    this.#stack.push({ kind: 'region', region, levelMax: this.#scope.depthMax, nextBorder: 0 });
  }

  /**
   * Starts the evaluation of one operand of the rewrite of a userset at a level where `levelMax` usersets are left,
   * itself included. The outcome's height counts the usersets below it.
   */
  startOperand(ids: OperandIds, op: Op, isExcluding: boolean, levelMax: number): void {
    this.#stack.length = 0;
    const { entity, relation } = ids;
    const node = { entity, relation, isExcluding, levelMax, memoIndex: -1, isStarted: true };
    this.#pushOp(op, { kind: 'node', ...node }, isExcluding);
  }

  /** Works until done ('done': `outcome` is set) or the slice has ended. Errors: BUDGET_EXHAUSTED. */
  run(sliceEndMs: number): 'done' | 'more' {
    for (let steps = 1; this.#stack.length > 0; steps++) {
      this.#step(this.#stack[this.#stack.length - 1] as Frame);
      if (steps % STEPS_PER_CLOCK_READ === 0 && this.#scope.clock.monotonicMs() >= sliceEndMs) {
        return this.#stack.length > 0 ? 'more' : 'done';
      }
    }
    return 'done';
  }

  #step(frame: Frame): void {
    switch (frame.kind) {
      case 'region':
        return this.#stepRegion(frame);
      case 'op':
        return this.#stepOp(frame);
      case 'node':
        if (frame.isStarted) return;
        frame.isStarted = true;
        return this.#pushOp(this.#rootOf(frame.entity, frame.relation), frame, frame.isExcluding);
      case 'solver':
        return this.#stepSolver(frame);
    }
  }

  #stepRegion(frame: RegionFrame): void {
    const { region } = frame;
    if (region.step()) return;
    const border = region.borders[frame.nextBorder];
    if (
      region.value === TRUE ||
      border === undefined ||
      (region.value === UNDETERMINED && border.isWeak)
    ) {
      if (region.isDepthExceeded) this.#scope.backstops |= BACKSTOP_DEPTH;
      if (region.value !== TRUE && region.hasCycle()) this.#scope.backstops |= BACKSTOP_CYCLE;
      this.#finish({
        value: region.value,
        height: region.height,
        isDepthExceeded: region.isDepthExceeded,
      });
      return;
    }
    const levelMax = frame.levelMax - border.level + 1;
    const relationKey = border.relation * 2 + (region.isExcluding ? 1 : 0);
    const memoIndex = this.#memoKeys.insert(border.entity, relationKey);
    const known = this.#memo[memoIndex];
    if (known === undefined) {
      this.#pushNode(border, levelMax, region.isExcluding, memoIndex);
    } else if (known.height < 0) {
      this.#solveAt(memoIndex);
    } else if (isUsable(known, levelMax)) {
      frame.nextBorder++;
      region.acceptBorder(border, known.value, known.height, known.isDepthExceeded);
    } else {
      this.#pushNode(border, levelMax, region.isExcluding, memoIndex);
    }
  }

  #pushNode(border: Border, levelMax: number, isExcluding: boolean, memoIndex: number): void {
    this.#memo[memoIndex] = { ...ON_PATH, height: -1, levelMax };
    const { entity, relation } = border;
    this.#stack.push({
      kind: 'node',
      entity,
      relation,
      isExcluding,
      levelMax,
      memoIndex,
      isStarted: false,
    });
  }

  #rootOf(entity: number, relation: number): Op {
    const { model, reader } = this.#scope;
    const program = model.programOf(reader.namespaceOf(entity), relation);
    if (program === undefined) throw new Error('assertion failed: a border has a program');
    return program.root;
  }

  #pushOp(op: Op, node: NodeFrame, isExcluding: boolean): void {
    if (op.kind === OP_LEAF) {
      const levelMax = node.levelMax - 1;
      const region = new Region(this.#scope, this.#target, levelMax, isExcluding);
      region.seedLeaf(node.entity, node.relation, op);
      this.#stack.push({ kind: 'region', region, levelMax, nextBorder: 0 });
      return;
    }
    const value = op.kind === OP_INTERSECTION ? TRUE : FALSE;
    this.#stack.push({
      kind: 'op',
      op,
      node,
      isExcluding,
      next: 0,
      value,
      height: 0,
      isDepthExceeded: false,
    });
  }

  #stepOp(frame: OpFrame): void {
    const child = frame.op.children[frame.next];
    if (child === undefined) {
      this.#finish({
        value: frame.value,
        height: frame.height,
        isDepthExceeded: frame.isDepthExceeded,
      });
      return;
    }
    const isExcluding = frame.isExcluding || (frame.op.kind === OP_EXCLUSION && frame.next === 1);
    this.#pushOp(child, frame.node, isExcluding);
  }

  #stepSolver(frame: SolverFrame): void {
    const step = frame.steps.next();
    if (step.done !== true) return;
    this.#stack.pop();
    const node = this.#stack[this.#stack.length - 1];
    if (node?.kind !== 'node')
      throw new Error('assertion failed: a component is solved for a node');
    this.#finishNode(node, step.value);
  }

  /** The value of the top frame, handed to the one below. */
  #finish(outcome: Outcome): void {
    this.#stack.pop();
    const parent = this.#stack[this.#stack.length - 1];
    if (parent === undefined) {
      this.outcome = outcome;
    } else if (parent.kind === 'op') {
      acceptOperand(parent, outcome);
    } else if (parent.kind === 'node') {
      const height = outcome.height + 1;
      this.#finishNode(parent, { ...outcome, height });
    } else {
      throw new Error('assertion failed: a region reads its borders from the memo');
    }
  }

  #finishNode(frame: NodeFrame, outcome: Outcome): void {
    this.#stack.pop();
    this.#memo[frame.memoIndex] = { ...outcome, levelMax: frame.levelMax };
  }

  /** Unwinds to the userset that was met again and solves everything that it depends on. */
  #solveAt(memoIndex: number): void {
    this.#scope.backstops |= BACKSTOP_CYCLE;
    for (;;) {
      const frame = this.#stack[this.#stack.length - 1];
      if (frame === undefined) throw new Error('assertion failed: the userset is on the stack');
      if (frame.kind === 'node') {
        if (frame.memoIndex === memoIndex) {
          const { entity, relation, isExcluding, levelMax } = frame;
          const [scope, target] = [this.#scope, this.#target];
          const steps = solveComponent(scope, target, entity, relation, isExcluding, levelMax);
          this.#stack.push({ kind: 'solver', steps });
          return;
        }
        // Unfinished: forget it, so that it is evaluated anew where it is still needed.
        this.#memo[frame.memoIndex] = {
          value: UNDETERMINED,
          height: 0,
          isDepthExceeded: true,
          levelMax: 0,
        };
      }
      this.#stack.pop();
    }
  }
}

/** TRUE and FALSE hold for every bound that reaches what they rest on; UNDETERMINED for smaller bounds. */
function isUsable(known: Outcome & { readonly levelMax: number }, levelMax: number): boolean {
  if (known.value !== UNDETERMINED) return known.height <= levelMax;
  return !known.isDepthExceeded || levelMax <= known.levelMax;
}

function acceptOperand(frame: OpFrame, outcome: Outcome): void {
  const { value, height } = outcome;
  const isFirst = frame.next === 0;
  frame.next++;
  if (outcome.isDepthExceeded && value === UNDETERMINED) frame.isDepthExceeded = true;
  if (frame.op.kind === OP_EXCLUSION) {
    acceptExclusion(frame, value, height, isFirst);
    return;
  }
  // A union ends at TRUE, an intersection at FALSE; otherwise UNDETERMINED outweighs.
  const ending = frame.op.kind === OP_INTERSECTION ? FALSE : TRUE;
  if (value === ending) {
    frame.value = value;
    frame.height = height;
    frame.next = frame.op.children.length;
  } else if (value === UNDETERMINED) {
    frame.value = UNDETERMINED;
  } else {
    frame.height = Math.max(frame.height, height);
  }
}

function acceptExclusion(frame: OpFrame, value: Value, height: number, isInclude: boolean): void {
  if (isInclude) {
    frame.value = value;
    frame.height = height;
    if (value === FALSE) frame.next = 2;
  } else if (value === TRUE) {
    frame.value = FALSE;
    frame.height = height;
  } else if (value === UNDETERMINED) {
    frame.value = UNDETERMINED;
  } else {
    frame.height = Math.max(frame.height, height);
  }
}
