import type { ExpandTree, UsersetRef } from '../../model/expand-tree.ts';
import type { Rewrite } from '../../model/namespace/model-shape.ts';
import type { NamespaceModel } from '../../model/namespace/namespace-model.ts';
import { EDGE_NODE_MASK, WILDCARD_NODE } from '../../model/tuple-reader.ts';
import { compareUtf8 } from '../../shared/text/utf8-order.ts';
import { BACKSTOP_CYCLE, BACKSTOP_DEPTH, type EvaluationTask } from '../bound/evaluator-api.ts';
import { type Scope, TRUE } from '../bound/scope.ts';

/** A userset on the way from the root, for the search of itself and the depth bound. */
type PathNode = {
  readonly ref: UsersetRef;
  readonly entity: number;
  readonly parent: PathNode | undefined;
  readonly level: number;
};
type AttachTree = (tree: ExpandTree) => void;
type ExpandJob = {
  readonly rewrite: Rewrite | undefined; // undefined: a whole userset, `path` names it
  readonly path: PathNode;
  readonly expanded: UsersetRef | undefined;
  readonly attach: AttachTree;
};

type Building<T> = { -readonly [K in keyof T]: T[K] };

/** Subtree whose job has not run yet. */
const UNFILLED: ExpandTree = { type: 'leaf', userIds: [], sets: [], wildcard: false };
const THIS: Rewrite = { op: 'this' };
const ENTRIES_PER_READ_SHIFT = 6;
const STEPS_PER_CLOCK_READ = 32;
const chunk = new Uint32Array(1024);

/**
 * Builds the tree of a userset top down from a stack of unfilled positions. So deep or long trees do not
 * need the machine's stack, and a slice can end anywhere. Expired and conditional tuples are left out.
 */
export class ExpandRun implements EvaluationTask<ExpandTree> {
  readonly #scope: Scope;
  readonly #model: NamespaceModel;
  readonly #jobs: ExpandJob[] = [];
  #root: ExpandTree | undefined;

  constructor(scope: Scope, model: NamespaceModel, root: UsersetRef) {
    this.#scope = scope;
    this.#model = model;
    const namespace = scope.reader.nameId(root.namespace);
    const entity = namespace > 0 ? scope.reader.entityId(namespace, root.objectId) : 0;
    this.#jobs.push({
      rewrite: undefined,
      path: { ref: root, entity, parent: undefined, level: 1 },
      expanded: root,
      attach: (tree) => (this.#root = tree),
    });
  }

  get backstops(): number {
    return this.#scope.backstops;
  }

  run(sliceEndMs: number): 'done' | 'more' {
    for (let steps = 1; ; steps++) {
      const job = this.#jobs.pop();
      if (job === undefined) return 'done';
      if (job.rewrite === undefined) this.#expandUserset(job);
      else this.#expandRewrite(job, job.rewrite);
      if (steps % STEPS_PER_CLOCK_READ === 0 && this.#scope.clock.monotonicMs() >= sliceEndMs) {
        return this.#jobs.length > 0 ? 'more' : 'done';
      }
    }
  }

  result(): ExpandTree {
    if (this.#root === undefined) throw new Error('assertion failed: the tree is complete');
    return this.#root;
  }

  #expandUserset(job: ExpandJob): void {
    const { path, attach } = job;
    this.#scope.charge(1);
    let isOnPath = false;
    for (let above = path.parent; above !== undefined; above = above.parent) {
      if (above.entity === path.entity && above.ref.relation === path.ref.relation) isOnPath = true;
    }
    if (isOnPath || path.level > this.#scope.depthMax) {
      this.#scope.backstops |= isOnPath ? BACKSTOP_CYCLE : BACKSTOP_DEPTH;
      attach({ type: 'leaf', expanded: path.ref, userIds: [], sets: [path.ref], wildcard: false });
      return;
    }
    const rewrite = this.#rewriteOf(path.ref);
    if (rewrite.op === 'computed') {
      // The computed relation's own subtree names itself: this node names the userset that it expands.
      const children: ExpandTree[] = [];
      attach({ type: 'union', expanded: path.ref, children });
      this.#pushChild(rewrite, path, children, 0);
    } else {
      this.#expandRewrite({ ...job, expanded: path.ref }, rewrite);
    }
  }

  #expandRewrite(job: ExpandJob, rewrite: Rewrite): void {
    const { path, expanded, attach } = job;
    switch (rewrite.op) {
      case 'this':
        attach(this.#leafOf(path, expanded));
        return;
      case 'computed':
        this.#jobs.push({
          ...job,
          rewrite: undefined,
          path: below(path, path.entity, {
            ...path.ref,
            relation: rewrite.relation,
          }),
        });
        return;
      case 'tupleToUserset': {
        const children: ExpandTree[] = [];
        attach({ type: 'union', ...named(expanded), children });
        this.#objectsOf(path, rewrite.tupleset, rewrite.computed).forEach((child, index) => {
          this.#jobs.push({
            rewrite: undefined,
            path: child,
            expanded: undefined,
            attach: (tree) => (children[index] = tree),
          });
        });
        return;
      }
      case 'union':
      case 'intersection': {
        const children: ExpandTree[] = [];
        attach({ type: rewrite.op, ...named(expanded), children });
        rewrite.children.forEach((child, index) => this.#pushChild(child, path, children, index));
        return;
      }
      case 'exclusion':
        this.#expandExclusion(rewrite, path, expanded, attach);
    }
  }

  #expandExclusion(
    rewrite: Extract<Rewrite, { op: 'exclusion' }>,
    path: PathNode,
    expanded: UsersetRef | undefined,
    attach: AttachTree,
  ): void {
    const tree: Building<Extract<ExpandTree, { type: 'exclusion' }>> = {
      type: 'exclusion',
      ...named(expanded),
      include: UNFILLED,
      exclude: UNFILLED,
    };
    attach(tree);
    const { include, exclude } = rewrite;
    this.#enqueue(include, path, (child) => (tree.include = child));
    this.#enqueue(exclude, path, (child) => (tree.exclude = child));
  }

  #pushChild(rewrite: Rewrite, path: PathNode, children: ExpandTree[], index: number): void {
    this.#enqueue(rewrite, path, (tree) => (children[index] = tree));
  }

  #enqueue(rewrite: Rewrite, path: PathNode, attach: AttachTree): void {
    this.#jobs.push({ rewrite, path, expanded: undefined, attach });
  }

  #rewriteOf(ref: UsersetRef): Rewrite {
    return this.#model.namespaces.get(ref.namespace)?.get(ref.relation) ?? THIS;
  }

  #leafOf(path: PathNode, expanded: UsersetRef | undefined): ExpandTree {
    const { reader } = this.#scope;
    const node = this.#nodeOf(path, path.ref.relation);
    const userIds: string[] = [];
    const sets: UsersetRef[] = [];
    const wildcardsOf: string[] = [];
    let wildcard = false;
    this.#scope.charge(1);
    if (node !== 0) {
      for (const subject of this.#plainSubjects(node, true)) {
        if (subject === WILDCARD_NODE) wildcard = true;
        else userIds.push(reader.entityText(reader.entityOf(subject)));
      }
      for (const subject of this.#plainSubjects(node, false)) {
        const entity = reader.entityOf(subject);
        if (this.#scope.isWildcard(entity)) wildcardsOf.push(reader.entityText(entity));
        else sets.push(this.#refOf(subject));
      }
    }
    userIds.sort(compareUtf8);
    sets.sort(compareRefs);
    const leaf = { type: 'leaf', ...named(expanded), userIds, sets, wildcard } as const;
    return wildcardsOf.length === 0
      ? leaf
      : { ...leaf, wildcardsOf: wildcardsOf.toSorted(compareUtf8) };
  }

  /** One path node for each object that the tupleset references, sorted. */
  #objectsOf(path: PathNode, tupleset: string, computed: string): PathNode[] {
    const { reader } = this.#scope;
    const node = this.#nodeOf(path, tupleset);
    this.#scope.charge(1);
    if (node === 0) return [];
    const objects = new Map<number, PathNode>();
    for (const subject of this.#plainSubjects(node, false)) {
      const entity = reader.entityOf(subject);
      if (objects.has(entity)) continue;
      if (this.#scope.isWildcard(entity)) continue;
      const ref = { ...this.#refOf(subject), relation: computed };
      objects.set(entity, below(path, entity, ref));
    }
    return [...objects.values()].sort((a, b) => compareRefs(a.ref, b.ref));
  }

  #nodeOf(path: PathNode, relation: string): number {
    const name = this.#scope.reader.nameId(relation);
    return name > 0 && path.entity !== 0 ? this.#scope.reader.nodeId(path.entity, name) : 0;
  }

  #refOf(node: number): UsersetRef {
    const { reader } = this.#scope;
    const entity = reader.entityOf(node);
    return {
      namespace: reader.nameText(reader.namespaceOf(entity)),
      objectId: reader.entityText(entity),
      relation: reader.nameText(reader.relationOf(node)),
    };
  }

  /** Unexpired, unconditional subjects. */
  #plainSubjects(node: number, users: boolean): number[] {
    const { reader } = this.#scope;
    const total = users ? reader.userCount(node) : reader.setCount(node);
    this.#scope.charge(total >> ENTRIES_PER_READ_SHIFT);
    const subjects: number[] = [];
    for (let cursor = total === 0 ? -1 : 0; cursor >= 0; cursor = reader.nextCursor) {
      const count = users
        ? reader.readUsers(node, cursor, chunk, 0)
        : reader.readSets(node, cursor, chunk, 0);
      for (let i = 0; i < count; i++) {
        const entry = chunk[i] as number;
        if (this.#scope.entryValue(node, entry) === TRUE) subjects.push(entry & EDGE_NODE_MASK);
      }
    }
    return subjects;
  }
}

function below(path: PathNode, entity: number, ref: UsersetRef): PathNode {
  return { ref, entity, parent: path, level: path.level + 1 };
}

function named(expanded: UsersetRef | undefined): { readonly expanded?: UsersetRef } {
  return expanded === undefined ? {} : { expanded };
}

function compareRefs(a: UsersetRef, b: UsersetRef): number {
  return (
    compareUtf8(a.namespace, b.namespace) ||
    compareUtf8(a.objectId, b.objectId) ||
    compareUtf8(a.relation, b.relation)
  );
}
