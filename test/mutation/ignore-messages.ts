type Node = { readonly type: string; readonly [key: string]: unknown };
type Path = { readonly node: Node; readonly parentPath: Path | null };

/** What makes an error, by the position of its message among the arguments. */
const MESSAGE_OF: Readonly<Record<string, number>> = {
  Error: 0,
  RangeError: 0,
  AppError: 1,
  assert: 1,
  fieldError: 1,
  modelError: 1,
  unavailable: 0,
};

/**
 * A plugin of Stryker that leaves the text of an error's message alone: tests hold to its reason and
 * to the field that it names, and what a person reads may be put better without a test. Everything else
 * stays a mutant.
 */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'messages',
    value: {
      shouldIgnore({ node, parentPath }: Path): string | undefined {
        if (node.type !== 'StringLiteral' && node.type !== 'TemplateLiteral') return undefined;
        const call = parentPath?.node;
        if (call?.type !== 'CallExpression' && call?.type !== 'NewExpression') return undefined;
        const position = MESSAGE_OF[(call['callee'] as { name?: string }).name ?? ''];
        if (position === undefined) return undefined;
        return (call['arguments'] as unknown[])[position] === node ? 'a message' : undefined;
      },
    },
  },
];
