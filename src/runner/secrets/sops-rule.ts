import { stringOf, type JsonNode } from '../text/ordered-json.ts';

const DEFAULT_SUFFIX = '_unencrypted';
const RULE_KEYS = [
  'unencrypted_suffix',
  'encrypted_suffix',
  'unencrypted_regex',
  'encrypted_regex',
  'unencrypted_comment_regex',
  'encrypted_comment_regex',
] as const;

/** Which values of a SOPS file are encrypted, by the keys of their path. */
export type CryptRule = { readonly encrypts: (path: readonly string[]) => boolean };

/**
 * The rule in a file's metadata; without one, keys that end in `_unencrypted` are left plain
 * (getsops/sops sops.go `shouldBeEncrypted`, stores.go). JSON has no comments, so a rule for them
 * says the same of every value. Errors: TypeError for several rules or an expression that is none here.
 */
export function cryptRuleOf(metadata: JsonNode): CryptRule {
  const given = RULE_KEYS.flatMap((key) => {
    const value = stringOf(metadata, key);
    return value === undefined || value === '' ? [] : [{ key, value }];
  });
  if (given.length > 1) throw new TypeError('there is more than one rule of what is encrypted');
  const { key, value } = given[0] ?? { key: 'unencrypted_suffix', value: DEFAULT_SUFFIX };
  switch (key) {
    case 'unencrypted_suffix':
      return { encrypts: (path) => !path.some((part) => part.endsWith(value)) };
    case 'encrypted_suffix':
      return { encrypts: (path) => path.some((part) => part.endsWith(value)) };
    case 'unencrypted_regex': {
      const pattern = patternOf(value);
      return { encrypts: (path) => !path.some((part) => pattern.test(part)) };
    }
    case 'encrypted_regex': {
      const pattern = patternOf(value);
      return { encrypts: (path) => path.some((part) => pattern.test(part)) };
    }
    case 'unencrypted_comment_regex':
      return { encrypts: () => true };
    case 'encrypted_comment_regex':
      return { encrypts: () => false };
  }
}

/** Go's inline flags are the one thing that its expressions often have and ours spell otherwise. */
function patternOf(source: string): RegExp {
  const insensitive = source.startsWith('(?i)');
  try {
    return new RegExp(insensitive ? source.slice(4) : source, insensitive ? 'iu' : 'u');
  } catch (error) {
    throw new TypeError('the rule of what is encrypted cannot be read here', { cause: error });
  }
}
