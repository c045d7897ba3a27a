import { integerOption, type OptionTable, textOption } from '../../config/option.ts';
import { invalidField } from '../model/reasons.ts';
import { defineOutbound } from './channel.ts';
import { EmailSender } from './email-sender.ts';

/** RFC 5321 §4.5.3.1: 64 before the @, labels of 63, and 254 in all, which leaves room for the brackets of a path. */
const MAIL_MAX = 254;
/**
 * What mail programs would take for an option, a second recipient, a comment or a route is no address here, and
 * neither is what nobody can see: controls, format characters and spaces of any kind.
 */
const MAIL_LOCAL = /^(?!-)[^\p{C}\p{Z}@<>"(),:;[\]\\]{1,64}$/u;
const MAIL_DOMAIN = /^(?!-)[A-Za-z0-9-]{1,63}(?<!-)(?:\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*$/;

const OPTIONS = {
  mailSendsMax: integerOption({
    env: 'NOTIFY_MAIL_SENDS_MAX',
    description:
      'Mails being handed to the mail server at once, each over a connection of its own.',
    fallback: 8,
    min: 1,
    max: 200,
  }),
  smtpUrl: textOption({
    env: 'NOTIFY_SMTP_URL',
    description:
      'Mail server, such as smtp://user:password@mail.example:587. Unset: the email channel is refused.',
    fallback: undefined,
    fallbackText: 'unset',
    pattern: /^smtps?:\/\/\S+$/,
    rule: 'an smtp:// or smtps:// URL',
    secret: true,
  }),
  mailFrom: textOption({
    env: 'NOTIFY_MAIL_FROM',
    description: 'Sender of mails.',
    fallback: 'notifications@localhost',
    fallbackText: 'notifications@localhost',
    pattern: /^[^\s@<>"]+@[^\s@<>"]+$/,
    rule: 'a mail address',
  }),
} as const satisfies OptionTable;

/** A mail to each email endpoint of the user. */
export const emailChannel = defineOutbound({
  number: 3,
  name: 'email',
  provider: 'smtp',
  options: OPTIONS,
  servesTenants: false,
  isSigned: false,
  checkAddress: checkedMail,
  open: ({ smtpUrl, mailFrom, mailSendsMax, sendTimeoutMs }) =>
    smtpUrl === undefined
      ? undefined
      : {
          sendsMax: mailSendsMax,
          sender: new EmailSender({
            smtpUrl,
            from: mailFrom,
            timeoutMs: sendTimeoutMs,
            connectionsMax: mailSendsMax,
          }),
        },
});

function checkedMail(field: string, address: string): string {
  const at = address.lastIndexOf('@');
  const isMail =
    at > 0 &&
    address.length <= MAIL_MAX &&
    MAIL_LOCAL.test(address.slice(0, at)) &&
    MAIL_DOMAIN.test(address.slice(at + 1));
  if (!isMail) throw invalidField(field, 'must be a mail address');
  return address;
}
