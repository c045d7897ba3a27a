import { newSalt, type MasterKey } from './key-source.ts';
import { openValue, sealValue } from './value-cipher.ts';

/** A text as it may lie in a file. */
export type SealedText = {
  /** Base64, of the key that is derived for this text alone. */
  readonly salt: string;
  readonly value: string;
};

/** Seals texts under the key of the local secrets, for files of other parts. */
export interface TextSealer {
  /**
   * `context` says what the text is; nothing else opens it. Makes the key if there is none.
   * Errors: BACKEND_UNAVAILABLE.
   */
  seal(context: string, text: string): Promise<SealedText>;
  /** Errors: BACKEND_UNAVAILABLE when the key is missing or another, or the text was changed. */
  open(context: string, sealed: SealedText): Promise<string>;
}

export function createTextSealer(masterKey: MasterKey): TextSealer {
  return {
    async seal(context, text) {
      const salt = newSalt();
      const { values } = await masterKey.keysFor(salt, true);
      return { salt: salt.toString('base64'), value: sealValue(values, context, text) };
    },
    async open(context, sealed) {
      const { values } = await masterKey.keysFor(Buffer.from(sealed.salt, 'base64'), false);
      return openValue(values, context, sealed.value);
    },
  };
}

/** Whether `value`, read from a file, has the form of a sealed text. */
export function isSealedText(value: unknown): value is SealedText {
  if (typeof value !== 'object' || value === null) return false;
  const { salt, value: sealed } = value as Partial<Record<keyof SealedText, unknown>>;
  return typeof salt === 'string' && typeof sealed === 'string';
}
