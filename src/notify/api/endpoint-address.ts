import { isRefusedHost } from '../core/refused-host.ts';
import type { OutboundChannel } from '../model/notification.ts';
import { invalidField } from './notify-error.ts';

const ADDRESS_MAX = 2_048;
/** RFC 5321 §4.5.3.1: 64 before the @, labels of 63, and 254 in all, which leaves room for the brackets of a path. */
const MAIL_MAX = 254;
/**
 * What mail programs would take for an option, a second recipient, a comment or a route is no address here, and
 * neither is what nobody can see: controls, format characters and spaces of any kind.
 */
const MAIL_LOCAL = /^(?!-)[^\p{C}\p{Z}@<>"(),:;[\]\\]{1,64}$/u;
const MAIL_DOMAIN = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;
const FIELD = 'endpoint.address';

/**
 * The address of an endpoint in its canonical form. Errors: FIELD_INVALID for endpoint.address. A
 * host name may still resolve to a private address later: channels/webhook-sender.ts looks again.
 */
export function checkedAddress(
  channel: OutboundChannel,
  address: string,
  allowsPrivate: boolean,
): string {
  if (address.length > ADDRESS_MAX) throw invalidField(FIELD, `at most ${ADDRESS_MAX} characters`);
  return channel === 'email' ? checkedMail(address) : checkedUrl(address, allowsPrivate);
}

function checkedMail(address: string): string {
  const at = address.lastIndexOf('@');
  const isMail =
    at > 0 &&
    address.length <= MAIL_MAX &&
    MAIL_LOCAL.test(address.slice(0, at)) &&
    MAIL_DOMAIN.test(address.slice(at + 1));
  if (!isMail) throw invalidField(FIELD, 'must be a mail address');
  return address;
}

function checkedUrl(address: string, allowsPrivate: boolean): string {
  // The parser drops some of them without a word.
  if (/\p{Cc}/u.test(address) || !address.isWellFormed()) {
    throw invalidField(FIELD, 'must be well-formed text without control characters');
  }
  const url = URL.parse(address);
  if (url === null || !['http:', 'https:'].includes(url.protocol)) {
    throw invalidField(FIELD, 'must be an http or https URL');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidField(FIELD, 'must not carry a user or password');
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isRefusedHost(host, allowsPrivate)) {
    const problem = 'must not be a loopback, private, link-local or cloud metadata address';
    // Of metadata services it is true in any case.
    const isPrivateOnly = !isRefusedHost(host, true);
    const hint =
      '; NOTIFY_WEBHOOK_ALLOW_PRIVATE=true admits those of this machine and of private networks';
    throw invalidField(FIELD, isPrivateOnly ? `${problem}${hint}` : problem);
  }
  url.hash = '';
  return url.href;
}
