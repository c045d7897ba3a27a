/** A userset by its names. */
export type UsersetRef = {
  readonly namespace: string;
  readonly objectId: string;
  readonly relation: string;
};

/** Result of Expand; field names as in the proto message UsersetTree. */
export type ExpandTree =
  | {
      readonly type: 'leaf';
      readonly expanded?: UsersetRef | undefined;
      readonly userIds: readonly string[];
      readonly sets: readonly UsersetRef[];
      readonly wildcard: boolean;
      /** Namespaces of typed wildcards; absent if there are no typed wildcards. */
      readonly wildcardsOf?: readonly string[] | undefined;
    }
  | {
      readonly type: 'union' | 'intersection';
      readonly expanded?: UsersetRef | undefined;
      readonly children: readonly ExpandTree[];
    }
  | {
      readonly type: 'exclusion';
      readonly expanded?: UsersetRef | undefined;
      readonly include: ExpandTree;
      readonly exclude: ExpandTree;
    };
