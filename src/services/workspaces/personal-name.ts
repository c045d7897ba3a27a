import { NAME_CHARACTERS_MAX } from '../../model/names.ts';

const DEFAULT_NAME = 'Personal';

/**
 * The display name of a user's PERSONAL workspace: the local part of a user id that is an e-mail
 * address, else "Personal". At most 200 characters.
 */
export function personalNameOf(userId: string): string {
  const at = userId.lastIndexOf('@');
  const localPart = at > 0 ? userId.slice(0, at).trim() : '';
  if (localPart === '') return DEFAULT_NAME;
  return Array.from(localPart).slice(0, NAME_CHARACTERS_MAX).join('').trim();
}
