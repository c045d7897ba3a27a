import { readFileSync } from 'node:fs';
import type { Environment } from '../../../config/load-options.ts';
import { OPTIONS } from '../../../config/options.ts';
import { fileVariableOf } from '../../../config/secret-file.ts';
import type { NamedObservation } from './observation.ts';

const SHOWN = '…';
/** Shorter texts occur in words by chance. */
const LENGTH_MIN = 4;

/** The observations with all secrets of the environment, and of files that it names, replaced. */
export function withoutSecrets(
  observations: readonly NamedObservation[],
  environment: Environment,
): readonly NamedObservation[] {
  const secrets = secretsOf(environment);
  const hidden = (text: string): string =>
    secrets.reduce((rest, secret) => rest.replaceAll(secret, SHOWN), text);
  return observations.map(({ seen, advice, ...rest }) => ({
    ...rest,
    seen: hidden(seen),
    ...(advice === undefined ? {} : { advice: hidden(advice) }),
  }));
}

/** Secrets, longest first: one may be a part of another. */
function secretsOf(environment: Environment): readonly string[] {
  return (
    Object.values(OPTIONS)
      .filter(({ secret }) => secret)
      .flatMap(({ env }) => [
        environment[env] ?? '',
        contentOf(environment[fileVariableOf(env)] ?? ''),
      ])
      // Messages about a document of callers show nothing of it (callers-file.ts).
      .filter((text) => !text.startsWith('{'))
      .flatMap((text) => [text, ...text.split(/[\s,]+/), ...passwordsOf(text)])
      .filter((secret) => secret.length >= LENGTH_MIN)
      .toSorted((a, b) => b.length - a.length)
  );
}

/** Passwords of a URL, escaped as in the text and decoded as a server gets them. */
function passwordsOf(text: string): readonly string[] {
  if (!URL.canParse(text)) return [];
  const { password, searchParams } = new URL(text);
  return [password, decoded(password), searchParams.get('password') ?? ''];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // The text has no escapes.
    return text;
  }
}

function contentOf(path: string): string {
  try {
    return path === '' ? '' : readFileSync(path, 'utf8').trim();
  } catch {
    // The check of the settings reports this.
    return '';
  }
}
