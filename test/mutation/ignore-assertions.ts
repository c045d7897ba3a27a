type Node = { readonly type: string; readonly [key: string]: unknown };
type Path = { readonly node: Node };
type Name = { readonly name?: string; readonly id?: Name };

/** The name of a function or method; `#name` has it one level deeper. */
function nameOf({ id, key }: Node): string {
  const name = (id ?? key) as Name | undefined;
  return name?.name ?? name?.id?.name ?? '';
}

/**
 * A plugin of Stryker that leaves the assertions alone which only tests make (`if (DEBUG_ASSERTIONS)`, and
 * functions `assert…`, which stand behind it): they look at what has been done, and decide nothing.
 */
export const strykerPlugins = [
  {
    kind: 'Ignore',
    name: 'assertions',
    value: {
      shouldIgnore({ node }: Path): string | undefined {
        const isGuarded =
          node.type === 'IfStatement' && (node['test'] as Name).name === 'DEBUG_ASSERTIONS';
        const isFunction = /^(FunctionDeclaration|ClassMethod|ClassPrivateMethod)$/.test(node.type);
        const isAssertion = isFunction && /^assert[A-Z]/.test(nameOf(node));
        return isGuarded || isAssertion ? 'an assertion' : undefined;
      },
    },
  },
];
